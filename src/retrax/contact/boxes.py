"""Boxes: their cores and edges, and where two of them touch."""

import itertools
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float

from retrax.contact.bodies import Placed
from retrax.contact.nearest import Segment, Vector
from retrax.contact.shapes import Box

# The twelve edges: the axis of each, and the middle in half sides.
_AXES = np.repeat(np.arange(3), 4)
_MIDDLES = np.array(
    [
        np.insert(signs, axis, 0.0)
        for axis in range(3)
        for signs in itertools.product((-1.0, 1.0), repeat=2)
    ]
)


class Core(NamedTuple):
    """A box in space: its centre, its axes as columns, and half of its sides."""

    centre: Vector
    axes: Float[Array, "3 3"]
    half: Vector


def core_box(box: Box, on: Placed) -> Core:
    """Return the core of a box in space."""
    return Core(on.point(box.at), on.R @ box.turned, box.half)


def edges_of(core: Core) -> Segment:
    """Return the twelve edges of a box."""
    middles = core.centre[None] + (_MIDDLES * core.half[None]) @ core.axes.T
    return Segment(middles, core.axes.T[_AXES], core.half[_AXES])

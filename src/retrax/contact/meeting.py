"""The candidates of a pair of shapes."""

from typing import NamedTuple

import jax.numpy as jnp

from retrax.contact.bodies import Placed
from retrax.contact.nearest import Nearest, Points, Scalar, Scalars, Segment, length_and_way
from retrax.contact.shapes import Ball, Capsule

# Where the middles of two round things coincide, this is taken for the direction between them.
_SOME = (0.0, 0.0, 1.0)


class Meeting(NamedTuple):
    """The candidates of a pair.

    **Attributes:** `gap`; `normal`: from the second shape to the first; `first`, `second`: the
    points of both that are nearest; `way`: the first tangents, where it matters which these are.
    """

    gap: Scalars
    normal: Points
    first: Points
    second: Points
    way: Points | None = None

    @property
    def swapped(self) -> "Meeting":
        """The same, with the other shape first."""
        return Meeting(self.gap, -self.normal, self.second, self.first, self.way)


def join_candidates(*meetings: Meeting) -> Meeting:
    """Return the candidates of several meetings."""
    parts = zip(*(found[:4] for found in meetings), strict=True)
    return Meeting(*(jnp.concatenate(part) for part in parts))


def round_meets_round(p: Points, r: Scalar, q: Points, s: Scalar) -> Meeting:
    """Return the meetings of balls around points."""
    far, n = length_and_way(p - q, jnp.broadcast_to(jnp.array([_SOME]), p.shape))
    return Meeting(far - r - s, n, p - r * n, q + s * n)


def round_meets_solid(p: Points, r: Scalar, solid: Nearest, s: Scalar) -> Meeting:
    """Return the meetings of balls around points with a solid of rounded edges."""
    n = solid.normal
    return Meeting(solid.distance - r - s, n, p - r * n, solid.point + s * n)


def centre_of(ball: Ball, at: Placed) -> Points:
    """Return the centre of a ball in space, as the only row."""
    return at.point(ball.at)[None]


def core_of(capsule: Capsule, at: Placed) -> Segment:
    """Return the core of a capsule in space, as the only one of several."""
    way = at.R @ capsule.axis
    return Segment(at.point(capsule.at)[None], way[None], (capsule.length / 2)[None])


def ends_of(core: Segment) -> Points:
    """Return both ends of a segment."""
    reach = core.half[:, None] * core.way
    return jnp.concatenate([core.middle - reach, core.middle + reach])

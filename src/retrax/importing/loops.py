"""Loops that users close in a tree: `(link, link, kind, at, axis)`."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from retrax.errors import BadInput
from retrax.importing.closed import Closed
from retrax.importing.placement import HERE, Placement, Vector, along_z
from retrax.importing.tree import Tree
from retrax.mechanisms.joints import (
    AbstractJoint,
    Cylindrical,
    Fixed,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
)
from retrax.numerics.checks import host_float64, quote, require_direction, require_finite

# A name of a joint of the file, or what joins two links.
Loop = str | tuple

_KINDS = {
    "fixed": Fixed,
    "spherical": Spherical,
    "revolute": Revolute,
    "prismatic": Prismatic,
    "cylindrical": Cylindrical,
    "planar": Planar,
}
_WITHOUT_AXIS = ("fixed", "spherical")
# These can be closed wherever they are drawn; of the others, how they are turned counts too.
_ANYWHERE = ("spherical", "revolute", "cylindrical")


class Closing(NamedTuple):
    """A loop to close: names of two links, kind, and the point and axis on each of them.

    **Attributes:** `at`, `axis`: a row for space, or two rows: one in the frame of each link.
    """

    a: str
    b: str
    kind: str
    at: np.ndarray
    axis: np.ndarray | None


def split_loops(loops: Sequence[Loop] | None) -> tuple[list[str], list[Closing]]:
    """Return the names of joints that close loops, and the loops that users describe."""
    if loops is None:
        return [], []
    if isinstance(loops, str) or not isinstance(loops, Sequence):
        raise BadInput(f"loops = {quote(loops)} must be a list, also of one loop.")
    names = [loop for loop in loops if isinstance(loop, str)]
    return names, [_closing(loop) for loop in loops if not isinstance(loop, str)]


def _closing(loop: object) -> Closing:
    if not isinstance(loop, tuple | list) or len(loop) not in (4, 5):
        raise BadInput(
            f"the loop {quote(loop)} is neither the name of a joint nor (link, link, kind, at) or "
            "(link, link, kind, at, axis)."
        )
    a, b, kind, at, *rest = loop
    if kind not in _KINDS:
        raise BadInput(f"the loop {quote(loop)} is of no kind among {', '.join(_KINDS)}.")
    if bool(rest) == (kind in _WITHOUT_AXIS):
        needs = "has no axis" if rest else "needs an axis"
        raise BadInput(f"the loop between {a!r} and {b!r} {needs}: it is {kind}.")
    place = _rows("at", at)
    axis = _rows("axis", rest[0]) if rest else None
    if axis is not None and axis.shape != place.shape:
        raise BadInput("at and axis of a loop are both in space, or both a row for each link.")
    if place.shape == (2, 3) and kind not in _ANYWHERE:
        raise BadInput(
            f"a {kind} loop is given in space, as drawn: points of both links are not enough."
        )
    if axis is not None:
        lengths = [require_direction("axis of a loop", row) for row in np.atleast_2d(axis)]
        axis = axis / np.reshape(lengths, (*axis.shape[:-1], 1))
    return Closing(a, b, kind, place, axis)


def _rows(name: str, value: object) -> np.ndarray:
    array = host_float64(name, value)
    if array.shape not in ((3,), (2, 3)):
        raise BadInput(
            f"{name} of a loop has shape {array.shape}; it has three numbers in space, or two rows "
            "of them, one in the frame of each link."
        )
    require_finite(name, array)
    return array


def closing_joint(loop: Closing, tree: Tree, name: str) -> AbstractJoint:
    """Return the joint that closes a loop between the bodies of two links."""
    for link in (loop.a, loop.b):
        if link not in tree.places:
            raise BadInput(f"a loop names the link {link!r}, which the file does not have.")
    a, b = tree.body_of(loop.a), tree.body_of(loop.b)
    if a == b:
        raise BadInput(f"the loop between {loop.a!r} and {loop.b!r} lies within one body.")
    if loop.at.shape == (3,):
        return _joint(loop.kind, a, b, loop.at, loop.axis, name)
    first, second = tree.places[loop.a], tree.places[loop.b]
    axes = [None, None] if loop.axis is None else list(loop.axis)
    here = first.then(_frame(loop.at[0], axes[0]))
    there = second.then(_frame(loop.at[1], axes[1]))
    axis = None if axes[0] is None else first.R @ axes[0]
    joint = _joint(loop.kind, a, b, here.x, axis, name)
    return Closed(joint, here.then(there.inverse()))


def _frame(at: Vector, axis: Vector | None) -> Placement:
    return Placement(HERE.R if axis is None else along_z(axis), at)


def _joint(kind: str, a: str, b: str, at: Vector, axis: Vector | None, name: str) -> AbstractJoint:
    if kind in ("fixed", "spherical"):
        return (Fixed if kind == "fixed" else Spherical)(a, b, at, name)
    assert axis is not None
    return _KINDS[kind](a, b, at, axis, name)

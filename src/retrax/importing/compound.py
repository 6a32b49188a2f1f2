r"""From freedoms in a row to joints: two hinges are a universal joint, and so on.

Between two bodies a file may put several freedoms, one after the other, with nothing heavy between
them. They are exactly one joint of another kind, or none that retrax has. Each keeps its name and
its coordinate. Of three hinges about $a_1$, $a_2$, $a_3$ at right angles, $Q = e^{q_1\hat a_1}
e^{q_2\hat a_2}e^{q_3\hat a_3}$, with $a_3 = a_1\times a_2$,

$$ Qa_3 = \sin q_2\,a_1 + \cos q_2(\cos q_1\,a_3 - \sin q_1\,a_2),\qquad
   Q^Ta_1 = \sin q_2\,a_3 + \cos q_2(\cos q_3\,a_1 - \sin q_3\,a_2). \tag{1} $$
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from retrax.errors import BadInput
from retrax.importing.placement import Vector
from retrax.importing.readings import Angle, Held, Level, Position, Reading
from retrax.importing.robot import Freedom
from retrax.importing.unturning import Unturning
from retrax.mechanisms.joints import (
    AbstractJoint,
    Cylindrical,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)

_SAME = 1e-7


class Combined(NamedTuple):
    """A joint, `None` for full freedom, and the coordinates of several freedoms."""

    joint: AbstractJoint | None
    readings: tuple[Reading, ...] = ()


def combine(a: str, b: str, freedoms: Sequence[Freedom]) -> Combined:
    """Return what leaves exactly these freedoms between two bodies, written in space axes."""
    whole = " and ".join(f.name for f in freedoms)
    if len(freedoms) == 1:
        return Combined(_single(a, b, freedoms[0]))
    kinds = [f.kind for f in freedoms]
    slides = [f for f in freedoms if f.kind == "slide"]
    hinges = [f for f in freedoms if f.kind == "hinge"]
    if len(slides) + len(hinges) == len(freedoms):
        found = _several(a, b, whole, slides, hinges, kinds)
        if found is not None:
            return found
    if kinds == ["slide", "slide", "slide", "ball"] and _apart(slides):
        return Combined(None, tuple(_travels(slides, freedoms[3].at)))
    raise BadInput(
        f"between {a!r} and {b!r} lie {', '.join(f'{f.name!r} ({f.kind})' for f in freedoms)} with "
        "no mass between them, and together they are no joint that retrax has: two or three hinges "
        "at right angles through one point are, slides at right angles, and a hinge along a slide "
        "or at right angles to two. Give the links between them masses."
    )


def _single(a: str, b: str, freedom: Freedom) -> AbstractJoint | None:
    match freedom.kind:
        case "hinge":
            return Revolute(a, b, freedom.at, freedom.axis, freedom.name)
        case "slide":
            return Prismatic(a, b, freedom.at, freedom.axis, freedom.name)
        case "ball":
            return Spherical(a, b, freedom.at, freedom.name)
        case "planar":
            return Planar(a, b, freedom.at, freedom.axis, freedom.name)
        case "free":
            return None


def _several(
    a: str,
    b: str,
    whole: str,
    slides: list[Freedom],
    hinges: list[Freedom],
    kinds: list[str],
) -> Combined | None:
    counts = len(slides), len(hinges)
    if counts == (1, 1) and _parallel(slides[0].axis, hinges[0].axis):
        at, axis = hinges[0].at, hinges[0].axis
        both = {hinges[0].name: _turning(hinges)[0], slides[0].name: _travels(slides, at)[0]}
        ordered = [both[name] for name in whole.split(" and ")]
        return _hold(Cylindrical(a, b, at, axis, whole), ordered)
    if not _apart(slides) or not _apart(hinges):
        return None
    if counts in ((0, 2), (0, 3)):
        at = _meeting(hinges)
        if at is None:
            return None
        axes = (hinges[0].axis, hinges[1].axis)
        two = counts == (0, 2)
        joint = Universal(a, b, at, axes, whole) if two else Spherical(a, b, at, whole)
        return _hold(joint, _turning(hinges))
    if counts in ((2, 0), (3, 0)):
        at = slides[0].at
        plane = [] if counts == (3, 0) else [_normal(slides)]
        return _hold(Unturning(a, b, plane, at, whole), _travels(slides, at))
    if kinds != ["slide"] * len(slides) + ["hinge"] * len(hinges):
        return None
    if counts == (2, 1) and _parallel(_normal(slides), hinges[0].axis):
        at, axis = hinges[0].at, hinges[0].axis
        readings = [*_travels(slides, at), *_turning(hinges)]
        return _hold(Planar(a, b, at, axis, whole), readings)
    if counts == (3, 3) and (at := _meeting(hinges)) is not None:
        return Combined(None, (*_travels(slides, at), *_turning(hinges)))
    return None


def _hold(joint: AbstractJoint, readings: Sequence[Reading]) -> Combined:
    return Combined(Held(joint, readings), tuple(readings))


def _travels(slides: Sequence[Freedom], at: Vector) -> list[Reading]:
    return [Position(slide.name, at, slide.axis) for slide in slides]


def _turning(hinges: Sequence[Freedom]) -> list[Reading]:
    """Return the angles of one, two or three hinges, by (1)."""
    first, last = hinges[0], hinges[-1]
    if len(hinges) == 1:
        e = _across(first.axis)
        return [Angle(first.name, e, np.cross(first.axis, e), e)]
    a1, a2 = first.axis, hinges[1].axis
    a3 = np.cross(a1, a2)
    if len(hinges) == 2:
        return [Angle(first.name, a2, a3, a2), Angle(last.name, a1, a3, a1, backwards=True)]
    hand = float(np.sign(last.axis @ a3))
    return [
        Angle(first.name, a3, -a2, a3),
        Level(hinges[1].name, a1, a3),
        Angle(last.name, a1, -hand * a2, a1, backwards=True),
    ]


def _parallel(u: Vector, v: Vector) -> bool:
    return bool(np.linalg.norm(np.cross(u, v)) < _SAME)


def _apart(freedoms: Sequence[Freedom]) -> bool:
    """Return whether all axes are at right angles."""
    axes = [f.axis for f in freedoms]
    return all(abs(u @ v) < _SAME for k, u in enumerate(axes) for v in axes[:k])


def _meeting(hinges: Sequence[Freedom]) -> Vector | None:
    """Return the point that all axes share, or nothing."""
    A = sum(np.eye(3) - np.outer(h.axis, h.axis) for h in hinges)
    b = sum((np.eye(3) - np.outer(h.axis, h.axis)) @ h.at for h in hinges)
    at = np.linalg.solve(A, b)
    missed = max(float(np.linalg.norm(np.cross(h.axis, at - h.at))) for h in hinges)
    size = max(float(np.max(np.abs(h.at - at))) for h in hinges)
    return at if missed <= _SAME * (1 + size) else None


def _normal(slides: Sequence[Freedom]) -> Vector:
    return np.cross(slides[0].axis, slides[1].axis)


def _across(axis: Vector) -> Vector:
    """Return a unit vector at right angles to another."""
    first = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    return first / np.linalg.norm(first)

r"""From freedoms in a row to joints: two hinges are a universal joint, and so on.

Between two bodies a file may put several freedoms, one after the other, with nothing heavy between
them. They are exactly one joint of another kind, or none that retrax has. Each keeps its name and
its coordinate. Of three hinges about $a_1$, $a_2$, $a_3$ at right angles, $Q = e^{q_1\hat a_1}
e^{q_2\hat a_2}e^{q_3\hat a_3}$, with $a_3 = a_1\times a_2$,

$$ Qa_3 = \sin q_2\,a_1 + \cos q_2(\cos q_1\,a_3 - \sin q_1\,a_2),\qquad
   Q^Ta_1 = \sin q_2\,a_3 + \cos q_2(\cos q_3\,a_1 - \sin q_3\,a_2). \tag{1} $$
"""

from collections.abc import Sequence

import numpy as np

from retrax.errors import BadInput
from retrax.importing.placement import Vector
from retrax.importing.readings import Angle, Level, Position
from retrax.importing.unturning import Unturning
from retrax.importing.robot import Freedom
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


def joints_between(a: str, b: str, freedoms: Sequence[Freedom]) -> list[AbstractJoint]:
    """Return the joints that leave exactly these freedoms, in space axes; none for all freedom."""
    whole = " and ".join(f.name for f in freedoms)
    kinds = [f.kind for f in freedoms]
    if kinds == ["free"]:
        return []
    if kinds == ["hinge"]:
        return [Revolute(a, b, freedoms[0].at, freedoms[0].axis, whole)]
    if kinds == ["slide"]:
        return [Prismatic(a, b, freedoms[0].at, freedoms[0].axis, whole)]
    if kinds == ["ball"]:
        return [Spherical(a, b, freedoms[0].at, whole)]
    if kinds == ["planar"]:
        return [Planar(a, b, freedoms[0].at, freedoms[0].axis, whole)]
    slides = [f for f in freedoms if f.kind == "slide"]
    hinges = [f for f in freedoms if f.kind == "hinge"]
    if len(slides) + len(hinges) == len(freedoms):
        found = _combined(a, b, whole, slides, hinges, kinds)
        if found is not None:
            return found
    if set(kinds[:3]) == {"slide"} and kinds[3:] == ["ball"] and _apart(slides):
        return _travels(a, b, slides, freedoms[3].at)
    raise BadInput(
        f"between {a!r} and {b!r} lie {', '.join(f'{f.name!r} ({f.kind})' for f in freedoms)} with no "
        "mass between them, and together they are no joint that retrax has: two or three hinges at "
        "right angles through one point are, slides at right angles, and a hinge along a slide or at "
        "right angles to two. Give the links between them masses."
    )


def _combined(
    a: str,
    b: str,
    whole: str,
    slides: list[Freedom],
    hinges: list[Freedom],
    kinds: list[str],
) -> list[AbstractJoint] | None:
    counts = len(slides), len(hinges)
    ordered = kinds == ["slide"] * len(slides) + ["hinge"] * len(hinges)
    if counts == (1, 1) and _parallel(slides[0].axis, hinges[0].axis):
        at, axis = hinges[0].at, hinges[0].axis
        along = slides[0].axis @ axis
        sleeve = Cylindrical(a, b, at, axis, whole)
        return [sleeve, *_turning(a, b, hinges, at), Position(a, b, at, along * axis, slides[0].name)]
    if not _apart(slides) or not _apart(hinges):
        return None
    if counts in ((0, 2), (0, 3)):
        at = _meeting(hinges)
        if at is None:
            return None
        held = (
            Universal(a, b, at, (hinges[0].axis, hinges[1].axis), whole)
            if counts == (0, 2)
            else Spherical(a, b, at, whole)
        )
        return [held, *_turning(a, b, hinges, at)]
    if counts in ((2, 0), (3, 0)):
        plane = [] if counts == (3, 0) else [_normal(slides)]
        return [Unturning(a, b, plane, slides[0].at, whole), *_travels(a, b, slides, slides[0].at)]
    if not ordered:
        return None
    if counts == (2, 1) and _parallel(_normal(slides), hinges[0].axis):
        at, axis = hinges[0].at, hinges[0].axis
        plate = Planar(a, b, at, axis, whole)
        return [plate, *_travels(a, b, slides, at), *_turning(a, b, hinges, at)]
    if counts == (3, 3) and (at := _meeting(hinges)) is not None:
        return [*_travels(a, b, slides, at), *_turning(a, b, hinges, at)]
    return None


def _travels(a: str, b: str, slides: Sequence[Freedom], at: Vector) -> list[AbstractJoint]:
    return [Position(a, b, at, slide.axis, slide.name) for slide in slides]


def _turning(a: str, b: str, hinges: Sequence[Freedom], at: Vector) -> list[AbstractJoint]:
    """Return the angles of one, two or three hinges, by (1)."""
    first, last = hinges[0], hinges[-1]
    if len(hinges) == 1:
        e = _across(first.axis)
        return [Angle(a, b, e, np.cross(first.axis, e), e, at, first.name)]
    a1, a2 = first.axis, hinges[1].axis
    a3 = np.cross(a1, a2)
    if len(hinges) == 2:
        turned = Angle(a, b, a2, a3, a2, at, first.name)
        return [turned, Angle(b, a, a1, a3, a1, at, last.name)]
    hand = float(np.sign(last.axis @ a3))
    return [
        Angle(a, b, a3, -a2, a3, at, first.name),
        Level(a, b, a1, a3, at, hinges[1].name),
        Angle(b, a, a1, -hand * a2, a1, at, last.name),
    ]


def _parallel(u: Vector, v: Vector) -> bool:
    return bool(np.linalg.norm(np.cross(u, v)) < _SAME)


def _apart(freedoms: Sequence[Freedom]) -> bool:
    """Whether all axes are at right angles."""
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

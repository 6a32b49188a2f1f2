r"""Which pairs of shapes can touch, and where they come closest.

The normal points from the second shape to the first. Moving bodies change the gap by the speed of
the two nearest points along it, because these minimise the distance. A pair has several candidates
where it can touch in several points at once; each is the distance of two parts of the shapes, so
that the least of them is the distance of the shapes.
"""

from collections.abc import Callable
from typing import NamedTuple

from retrax.contact import on_planes, round_shapes
from retrax.contact.bodies import Placed
from retrax.contact.meeting import Meeting
from retrax.contact.nearest import Points
from retrax.contact.shapes import AbstractSurface, Ball, Box, Capsule, Cylinder, Plane
from retrax.errors import BadInput


class Pair(NamedTuple):
    """How two kinds of shapes meet.

    **Attributes:** `meet`; `parts`: which part of which shape each candidate is about, 0 for the
    first and 1 for the second; `follows`: whether its candidates go on from where they were when
    the step began.
    """

    meet: Callable[..., Meeting]
    parts: tuple[tuple[int, str], ...]
    follows: bool = False


def _parts(which: int, what: str, count: int) -> tuple[tuple[int, str], ...]:
    return tuple((which, f" {what} {k + 1}") for k in range(count))


_WHOLE = ((0, ""),)
_RIMS = tuple((0, f" rim {rim} point {k + 1}") for rim in (1, 2) for k in range(4))

PAIRS: dict[tuple[type, type], Pair] = {
    (Ball, Plane): Pair(on_planes.ball_on_plane, _WHOLE),
    (Capsule, Plane): Pair(on_planes.capsule_on_plane, _parts(0, "end", 2)),
    (Cylinder, Plane): Pair(on_planes.cylinder_on_plane, _RIMS, follows=True),
    (Box, Plane): Pair(on_planes.box_on_plane, _parts(0, "corner", 8)),
    (Ball, Ball): Pair(round_shapes.ball_on_ball, _WHOLE),
    (Ball, Capsule): Pair(round_shapes.ball_on_capsule, _WHOLE),
    (Ball, Cylinder): Pair(round_shapes.ball_on_cylinder, _WHOLE),
    (Ball, Box): Pair(round_shapes.ball_on_box, _WHOLE),
    (Capsule, Capsule): Pair(
        round_shapes.capsule_on_capsule, (*_parts(0, "end", 2), *_parts(1, "end", 2), *_WHOLE)
    ),
    (Capsule, Box): Pair(
        round_shapes.capsule_on_box, (*_parts(0, "end", 2), *_parts(1, "edge", 12))
    ),
}


def names_of(a: AbstractSurface, b: AbstractSurface, first: str, second: str) -> tuple[str, ...]:
    """Return what sentences call the candidates of a pair, from what they call its shapes.

    **Raises:** `BadInput` where no formula is known for the pair.
    """
    pair, swapped = _find_meeting(a, b)
    both = (second, first) if swapped else (first, second)
    return tuple(f"{both[which]}{part} on {both[1 - which]}" for which, part in pair.parts)


def meeting(
    a: AbstractSurface,
    b: AbstractSurface,
    at: Placed,
    on: Placed,
    before: Points | None = None,
    held: bool = False,
) -> Meeting:
    """Return where two shapes on bodies come closest.

    **Arguments:** `before`: the first tangents of the candidates when the step began; `held`:
    whether candidates are where these say.
    """
    pair, swapped = _find_meeting(a, b)
    more = (before, held) if pair.follows else ()
    return pair.meet(b, a, on, at, *more).swapped if swapped else pair.meet(a, b, at, on, *more)


def follows(a: AbstractSurface, b: AbstractSurface) -> bool:
    """Return whether candidates of two shapes go on from where they were when a step began."""
    return _find_meeting(a, b)[0].follows


def _find_meeting(a: AbstractSurface, b: AbstractSurface) -> tuple[Pair, bool]:
    """Return how two shapes meet, and whether the second comes first there."""
    one, two = type(a), type(b)
    if (one, two) in PAIRS:
        return PAIRS[one, two], False
    if (two, one) in PAIRS:
        return PAIRS[two, one], True
    known = ", ".join(f"{x.__name__} and {y.__name__}" for x, y in PAIRS)
    raise BadInput(
        f"{a.name!r} and {b.name!r}: there is no formula for a {one.__name__} that touches a "
        f"{two.__name__}. Pairs that can touch: {known}."
    )

"""Solids: boxes, balls, rods, wheels, cones."""

import numpy as np
from jaxtyping import Float

from retrax.errors import BadInput
from retrax.mechanics.shape import Shape, require_colour, triple
from retrax.numerics.checks import (
    ArrayLike,
    host_finite64,
    host_float64,
    quote,
    require_direction,
    require_number,
)
from retrax.numerics.meant import explain_keywords

# Unless told, a rod is this thick in lengths of itself, and a wheel this wide in radii.
_THICK, _WIDE = 0.03, 0.12


@explain_keywords
def box(size: ArrayLike, colour: str = "") -> Shape:
    """Return a box about the origin with these sides along the axes; one number makes a cube."""
    return _solid("box", np.diag(_sides("size", size)), colour)


@explain_keywords
def sphere(radius: float, colour: str = "") -> Shape:
    """Return a ball about the origin; without a colour its octants have two, to show turns."""
    return _solid("ball", require_number("radius", radius, "> 0") * np.eye(3), colour)


@explain_keywords
def ellipsoid(semiaxes: ArrayLike, colour: str = "") -> Shape:
    """Return an ellipsoid about the origin with these semiaxes along the axes."""
    return _solid("ball", np.diag(_sides("semiaxes", semiaxes)), colour)


@explain_keywords
def cylinder(radius: float, axis: ArrayLike, width: float, colour: str = "") -> Shape:
    """Return a cylinder about the origin.

    **Arguments:** `radius`; `axis`: its direction; `width`: how long it is along the axis.
    """
    return _solid("cylinder", _round(radius, axis, width), colour)


@explain_keywords
def wheel(
    radius: float, axis: ArrayLike = (0.0, 1.0, 0.0), width: float | None = None, colour: str = ""
) -> Shape:
    """Return a wheel about the origin, a cylinder with spokes that show how far it has turned.

    **Arguments:** `radius`; `axis`: that it turns about; `width`: about an eighth of the radius
    unless given.
    """
    radius = require_number("radius", radius, "> 0")
    return _solid("wheel", _round(radius, axis, _WIDE * radius if width is None else width), colour)


@explain_keywords
def rod(a: ArrayLike, b: ArrayLike, radius: float | None = None, colour: str = "") -> Shape:
    """Return a round rod from the point `a` to the point `b`.

    **Arguments:** `radius`: 0.03 of its length unless given.
    """
    return _between("cylinder", a, b, radius, colour)


@explain_keywords
def cone(a: ArrayLike, b: ArrayLike, radius: float | None = None, colour: str = "") -> Shape:
    """Return a cone with its base about the point `a` and its tip at the point `b`.

    **Arguments:** `radius`: of the base, 0.03 of its length unless given.
    """
    return _between("cone", a, b, radius, colour)


def _solid(kind: str, matrix: np.ndarray, colour: str) -> Shape:
    return Shape(kind, tuple(matrix.ravel().tolist()), colour=require_colour(colour))


def _between(kind: str, a: ArrayLike, b: ArrayLike, radius: float | None, colour: str) -> Shape:
    start, end = (np.array(triple(name, x)) for name, x in (("a", a), ("b", b)))
    along = end - start
    length = float(np.linalg.norm(along))
    if not length > 0:
        raise BadInput(
            f"a and b are the same point, {quote(start.tolist())}: there is no {kind} between."
        )
    radius = _THICK * length if radius is None else radius
    return _solid(kind, _round(radius, along, length), colour).at((start + end) / 2)


def _round(radius: float, axis: ArrayLike, width: float) -> Float[np.ndarray, "3 3"]:
    """Return the matrix from a cylinder of radius and length 1 along e3 to one along `axis`."""
    radius = require_number("radius", radius, "> 0")
    width = require_number("width", width, "> 0")
    along = host_finite64("axis", axis, (3,))
    along = along / require_direction("axis", along)
    first = np.cross(along, np.eye(3)[int(np.argmin(np.abs(along)))])
    first = first / np.linalg.norm(first)
    return np.stack([radius * first, radius * np.cross(along, first), width * along], axis=1)


def _sides(name: str, value: ArrayLike) -> Float[np.ndarray, "3"]:
    sides = host_float64(name, value)
    if sides.shape not in ((), (3,)) or not np.all(np.isfinite(sides)) or not np.all(sides > 0):
        raise BadInput(f"{name} = {quote(value)} must be three positive numbers, or one.")
    return np.broadcast_to(sides, (3,))

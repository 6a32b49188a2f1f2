"""What something looks like: a solid, a line or an arrow, in plain numbers and text.

Every solid is one of size 1, and a matrix and a place that make it as large as it is and put it
where it stands. So the same data goes into a page, a figure and a movie, into a file, and, as it
has no arrays, into the static parts of a system.
"""

import re
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from retrax.errors import BadInput
from retrax.numerics.checks import ArrayLike, host_float64, quote, require_finite

# The colours by name, in the order of the palette of pages and figures, each with one for light
# and one for dark paper.
COLOURS = ("blue", "orange", "green", "purple", "sky", "amber")
SOLIDS = ("box", "ball", "cylinder", "wheel", "cone", "mesh")
KINDS = (*SOLIDS, "line", "arrow", "trail")

Triple = tuple[float, float, float]
_ONE = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
_HEX = re.compile(r"#[0-9a-fA-F]{6}")
_ORTHOGONAL = 1e-6


class Shape(NamedTuple):
    """Something to draw. The functions of `rx.draw` make them, and these methods place them.

    **Attributes:**

    - `kind`: `box`, `ball`, `cylinder`, `wheel`, `cone` and `mesh` are solids of size 1; `line`,
        `arrow` and `trail` have `points`.
    - `matrix`, `place`: take the points of the solid or the line to where they are; the matrix row
        by row.
    - `colour`: a name of `COLOURS`, `#rrggbb`, or nothing for the colour of bodies.
    - `body`: the name or the number of the body that carries it, or nothing.
    - `points`: of a line, both ends of an arrow, or the one point of a trail.
    - `data`: the corners and triangles of a mesh, packed; see `retrax.draw.surface`.
    """

    kind: str
    matrix: tuple[float, ...] = _ONE
    place: Triple = (0.0, 0.0, 0.0)
    colour: str = ""
    body: int | str | None = None
    points: tuple[Triple, ...] = ()
    data: str = ""

    def at(self, place: ArrayLike) -> "Shape":
        """Move it by `place`: three numbers, or two in the plane."""
        x, y, z = triple("place", place)
        return self._replace(place=(self.place[0] + x, self.place[1] + y, self.place[2] + z))

    def turned(self, rotation: ArrayLike) -> "Shape":
        """Turn it about the origin.

        **Arguments:** `rotation`: a rotation matrix; three numbers, an axis times an angle; or in
        the plane a matrix of two rows, or one angle.
        """
        R = rotation_matrix(rotation)
        return self._transform(R @ self.linear, R @ np.array(self.place))

    def scaled(self, factor: ArrayLike) -> "Shape":
        """Make it larger by a factor, or by one along each axis, as seen from the origin."""
        factors = host_float64("factor", factor)
        if (
            factors.shape not in ((), (3,))
            or not np.all(factors > 0)
            or not np.all(factors < 1e300)
        ):
            raise BadInput(f"factor = {quote(factor)} must be a positive number, or three of them.")
        S = np.diag(np.broadcast_to(factors, (3,)))
        return self._transform(S @ self.linear, S @ np.array(self.place))

    def on(self, body: int | str) -> "Shape":
        """Fix it to a body, by the body's name or number; its place is then one in body axes."""
        return self._replace(body=body)

    @property
    def linear(self) -> Float[np.ndarray, "3 3"]:
        """The matrix as an array."""
        return np.array(self.matrix).reshape(3, 3)

    def _transform(self, matrix: np.ndarray, place: np.ndarray) -> "Shape":
        return self._replace(matrix=tuple(matrix.ravel().tolist()), place=tuple(place.tolist()))


def shapes_of(name: str, said: object) -> tuple[Shape, ...]:
    """Return shapes, given as one or as several; reject what cannot be drawn."""
    several = (said,) if isinstance(said, Shape) else said
    if not isinstance(several, list | tuple) or not all(isinstance(x, Shape) for x in several):
        raise BadInput(f"{name} = {quote(said)} must be a shape of rx.draw, or a list of shapes.")
    unknown = {shape.kind for shape in several} - set(KINDS)
    if unknown:
        raise BadInput(f"{name} has a shape of the unknown kind {sorted(unknown)[0]!r}.")
    return tuple(several)


def triple(name: str, value: ArrayLike) -> Triple:
    """Return three finite numbers; two in the plane get a zero behind them."""
    array = host_float64(name, value)
    if array.shape not in ((2,), (3,)):
        raise BadInput(
            f"{name} has shape {array.shape}; it has three numbers, or two in the plane."
        )
    require_finite(name, array)
    x, y, z = (*array.tolist(), 0.0)[:3]
    return x, y, z


def rotation_matrix(value: ArrayLike) -> Float[np.ndarray, "3 3"]:
    """Return a rotation of space, given as `Shape.turned` takes it."""
    array = host_float64("rotation", value)
    require_finite("rotation", array)
    if array.shape in ((), (1,)):
        array = np.array([0.0, 0.0, float(array.reshape(()))])
    if array.shape == (3,):
        return _about(array)
    R = np.eye(3)
    if array.shape not in ((2, 2), (3, 3)):
        raise BadInput(
            f"rotation has shape {array.shape}; it is a matrix, axis times angle, or an angle."
        )
    R[: len(array), : len(array)] = array
    if np.max(np.abs(R @ R.T - np.eye(3))) > _ORTHOGONAL or np.linalg.det(R) < 0:
        raise BadInput(f"rotation = {quote(array.tolist())} is not a rotation matrix.")
    return R


def _about(vector: np.ndarray) -> Float[np.ndarray, "3 3"]:
    """Return the rotation about a vector, by Rodrigues' formula."""
    angle = float(np.linalg.norm(vector))
    x, y, z = vector / angle if angle > 0 else vector
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def require_colour(colour: object) -> str:
    """Return a colour that pages, figures and movies know."""
    if not isinstance(colour, str) or not (colour in ("", *COLOURS) or _HEX.fullmatch(colour)):
        raise BadInput(
            f"colour = {quote(colour)} is not known: name one of {', '.join(COLOURS)}, or write "
            "#rrggbb."
        )
    return colour

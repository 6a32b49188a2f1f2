"""Points, directions and rotations as users write them: checked, and seen from a body."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from jaxtyping import Float

from retrax.errors import BadInput
from retrax.mechanisms.body import Body
from retrax.mechanisms.pose import Place
from retrax.numerics.checks import ArrayLike, host_float64, quote, require_finite

# A rotation may miss R^T R = 1 by this much, and is then made exact.
_ROTATION = 1e-8


def vector(name: str, value: ArrayLike) -> Float[np.ndarray, " d"]:
    """Return three finite numbers, or two in the plane."""
    array = host_float64(name, value)
    if array.shape not in ((2,), (3,)):
        raise BadInput(
            f"{name} has shape {array.shape}, but it has three numbers, or two in the plane."
        )
    require_finite(name, array)
    return array


def whole_vector(name: str, value: object) -> tuple[np.ndarray, np.ndarray]:
    """Return two points."""
    array = host_float64(name, value)
    if array.shape not in ((2, 2), (2, 3)):
        raise BadInput(
            f"{name} has shape {array.shape}, but it is two points: one on each body, as "
            f"{name}=[p, q]."
        )
    require_finite(name, array)
    return array[0], array[1]


def unit(name: str, value: ArrayLike) -> Float[np.ndarray, " d"]:
    """Return a direction as a unit vector."""
    array = vector(name, value)
    largest = float(np.max(np.abs(array)))
    if not largest > 0:
        raise BadInput(f"{name} = {array.tolist()} has no direction.")
    array = array / largest
    length = float(np.linalg.norm(array))
    return array if length == 1 else array / length


def rotation(name: str, value: ArrayLike | None, d: int) -> Float[np.ndarray, "d d"]:
    """Return a rotation from body axes to space axes; the identity if none is given."""
    if value is None:
        return np.eye(d)
    array = host_float64(name, value)
    if array.shape != (d, d):
        raise BadInput(f"{name} has shape {array.shape}, but it is a {d} x {d} rotation matrix.")
    require_finite(name, array)
    off = float(np.max(np.abs(array.T @ array - np.eye(d))))
    if off > _ROTATION or np.linalg.det(array) < 0:
        why = f"max |R^T R - 1| = {off:.3g}" if off > _ROTATION else "it mirrors (det R = -1)"
        raise BadInput(f"{name} = {quote(array.tolist())} is not a rotation: {why}.")
    u, _, v = np.linalg.svd(array)
    nearest = u @ v
    return array if np.max(np.abs(nearest - array)) < 4e-16 else nearest


def require_body(argument: str, value: Any) -> Body | str:
    """Return a body or its name."""
    if isinstance(value, Body) or (isinstance(value, str) and value.strip()):
        return value
    raise BadInput(
        f"{argument} = {quote(value)} is not a body: give what Mechanism.body(...) returned, its "
        'name, or "ground".'
    )


def require_name(name: object) -> str | None:
    """Return a name, or `None` if it is not given yet."""
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise BadInput(f"name = {quote(name)} must be a text that is not empty.")
    return name


def same(name: str, value: np.ndarray, places: tuple[Place, ...]) -> None:
    """Reject a point or direction of the plane in space, and the other way round."""
    d = len(places[0][1])
    if len(value) != d:
        where = "in space: three numbers" if d == 3 else "in the plane: two numbers"
        raise BadInput(f"{name} = {value.tolist()} must be a point or direction {where}.")


def local(place: Place, p: np.ndarray) -> np.ndarray:
    """Return a point of space in the axes of a body."""
    R, x = place
    return R.T @ (p - x)


def view_from(place: Place, direction: np.ndarray) -> np.ndarray:
    """Return a direction of space in the axes of a body."""
    return place[0].T @ direction


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Say in a sentence about bad input what it is about."""
    try:
        yield
    except BadInput as cause:
        raise BadInput(f"{what}: {cause}") from cause

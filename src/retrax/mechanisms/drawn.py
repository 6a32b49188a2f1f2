"""Laws and measures between two bodies, from points and directions of space as they stand."""

import numpy as np

from retrax.mechanisms.laws import Aligned, Coincidence, InPlanes, Unturned
from retrax.mechanisms.measures import Travel, Turn
from retrax.mechanisms.pose import Place, across
from retrax.mechanisms.written import local, same, view_from
from retrax.numerics.evaluate import as_jax


def pin(at: np.ndarray, places: tuple[Place, ...]) -> Coincidence:
    """Return that the point `at` is a point of both bodies."""
    same("at", at, places)
    return Coincidence(*(as_jax(local(place, at)) for place in places))


def alignment(axis: np.ndarray, places: tuple[Place, ...]) -> Aligned:
    """Return that `axis` is a direction of both bodies."""
    same("axis", axis, places)
    e = np.stack([view_from(places[0], way) for way in across(axis)])
    return Aligned(as_jax(e), as_jax(view_from(places[1], axis)))


def no_rotation(places: tuple[Place, ...]) -> Unturned:
    """Return that neither body turns against the other."""
    (Ra, _), (Rb, _) = places
    return Unturned(as_jax(Rb.T @ Ra))


def aside(axis: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the directions at right angles to an axis: two in space, one in the plane."""
    return (np.array([-axis[1], axis[0]]),) if len(axis) == 2 else across(axis)


def in_planes(
    normals: tuple[np.ndarray, ...], at: np.ndarray, places: tuple[Place, ...]
) -> InPlanes:
    """Return that the point `at` of the second body stays in planes of the first."""
    same("at", at, places)
    same("axis", normals[0], places)
    n = np.stack([view_from(places[0], normal) for normal in normals])
    a, b = (local(place, at) for place in places)
    return InPlanes(as_jax(n), as_jax(a), as_jax(b))


def travel(axis: np.ndarray, at: np.ndarray, places: tuple[Place, ...]) -> Travel:
    """Return the travel of the point `at` of the second body along an axis of the first."""
    a, b = (as_jax(local(place, at)) for place in places)
    return Travel(as_jax(view_from(places[0], axis)), a, b)


def turn(axis: np.ndarray | None, places: tuple[Place, ...]) -> Turn:
    """Return the angle about an axis, or of the plane."""
    e, n = np.eye(2) if axis is None else across(axis)
    return turn_of(e, n, e, *places)


def turn_of(e: np.ndarray, n: np.ndarray, f: np.ndarray, first: Place, second: Place) -> Turn:
    """Return the angle of `f` of the second body, from `e` towards `n` of the first."""
    parts = view_from(first, e), view_from(first, n), view_from(second, f)
    return Turn(*(as_jax(part) for part in parts))

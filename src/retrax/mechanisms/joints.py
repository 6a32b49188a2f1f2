"""Joints as users write them: which bodies, where, and along which axis, as the bodies stand."""

import abc
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from retrax.errors import BadInput
from retrax.mechanisms.laws import AbstractLaw, Coincidence, Perpendicular, Several
from retrax.mechanisms.pose import across
from retrax.numerics.checks import ArrayLike, host_float64, require_finite, require_shape

if TYPE_CHECKING:
    from retrax.mechanisms.mechanism import Body

# Rotation and centre of mass of a body as the mechanism is drawn, on the host.
Place = tuple[np.ndarray, np.ndarray]


class AbstractJoint(abc.ABC):
    """A joint between two bodies, in space axes, as the bodies stand when it is written.

    **Attributes:** `bodies`: those it joins, the first of which carries it; `name`.
    """

    bodies: tuple["Body", ...]
    name: str | None

    @abc.abstractmethod
    def law(self, *places: Place) -> AbstractLaw:
        """Return what the joint asks, with its numbers in the axes of its bodies."""


class Spherical(AbstractJoint):
    """A ball in a socket: two bodies share the point `at`. In the plane, a pin.

    **Arguments:** `a`, `b`: the bodies; `at`: the point, in space axes; `name`.
    """

    def __init__(self, a: "Body", b: "Body", at: ArrayLike, name: str | None = None):
        self.bodies, self.name = (a, b), name
        self.at = vector("at", at, a.d)

    def law(self, *places: Place) -> AbstractLaw:
        return Coincidence(*(jnp.asarray(local(place, self.at)) for place in places))


class Revolute(AbstractJoint):
    """A hinge: two bodies share the point `at` and turn about `axis` alone.

    **Arguments:** `a`, `b`: the bodies; `at`, `axis`: a point and the direction, in space axes; in
    the plane there is no axis; `name`.
    """

    def __init__(
        self, a: "Body", b: "Body", at: ArrayLike, axis: ArrayLike | None = None, name: str | None = None
    ):
        self.bodies, self.name = (a, b), name
        self.at = vector("at", at, a.d)
        if (axis is None) != (a.d == 2):
            raise BadInput("Revolute: a hinge in space needs an axis, and one in the plane has none.")
        self.axis = None if axis is None else unit("axis", axis)

    def law(self, *places: Place) -> AbstractLaw:
        pin = Coincidence(*(jnp.asarray(local(place, self.at)) for place in places))
        if self.axis is None:
            return pin
        (Ra, _), (Rb, _) = places
        along = jnp.asarray(Rb.T @ self.axis)
        ways = [Perpendicular(jnp.asarray(Ra.T @ e), along) for e in across(self.axis)]
        return Several((pin, *ways))


def local(place: Place, p: np.ndarray) -> np.ndarray:
    """Return a point of space in the axes of a body."""
    R, x = place
    return R.T @ (p - x)


def vector(name: str, value: ArrayLike, d: int) -> Float[np.ndarray, " d"]:
    """Return `d` finite numbers."""
    array = host_float64(name, value)
    require_shape(name, array, (d,))
    require_finite(name, array)
    return array


def unit(name: str, value: ArrayLike) -> Float[np.ndarray, "3"]:
    """Return a direction as a unit vector."""
    array = vector(name, value, 3)
    length = float(np.linalg.norm(array))
    if not length > 0:
        raise BadInput(f"{name} = {array.tolist()} has no direction.")
    return array / length

"""Joints that bind nothing: they give a name to one of several coordinates of another joint."""

import jax.numpy as jnp
import numpy as np

from retrax.mechanisms.joints import AbstractJoint, Coordinates
from retrax.mechanisms.laws import AbstractLaw, Blocks, Residual
from retrax.mechanisms.measures import Coordinate, Tilt, Travel, Turn
from retrax.mechanisms.pose import Place, Pose
from retrax.mechanisms.written import local, seen_from


class Nothing(AbstractLaw):
    """No equation."""

    @property
    def count(self) -> int:
        return 0

    def residual(self, *poses: Pose) -> Residual:
        return jnp.zeros(0)

    def rows(self, *poses: Pose) -> Blocks:
        none = jnp.zeros((0, 6))
        return none, none


class Angle(AbstractJoint):
    """The angle of a direction `f` of the second body, in the plane of `e` and `n` of the first.

    **Arguments:** `a`, `b`: the bodies; `e`, `n`, `f`: unit vectors, as drawn, `e` and `n` at right
    angles; `at`: where torques are told; `name`.
    """

    def __init__(
        self, a: str, b: str, e: np.ndarray, n: np.ndarray, f: np.ndarray, at: np.ndarray, name: str
    ):
        self._write(a, b, name)
        self.e, self.n, self.f, self.at = e, n, f, at

    def law(self, *places: Place) -> AbstractLaw:
        return Nothing()

    def coordinates(self, *places: Place) -> Coordinates:
        first, second = places
        seen = seen_from(first, self.e), seen_from(first, self.n), seen_from(second, self.f)
        return (Coordinate(Turn(*(jnp.asarray(v) for v in seen))),)


class Position(AbstractJoint):
    """How far the point `at` of the second body has travelled along `axis` of the first."""

    def __init__(self, a: str, b: str, at: np.ndarray, axis: np.ndarray, name: str):
        self._write(a, b, name)
        self.at, self.axis = at, axis

    def law(self, *places: Place) -> AbstractLaw:
        return Nothing()

    def coordinates(self, *places: Place) -> Coordinates:
        assert self.at is not None
        a, b = (jnp.asarray(local(place, self.at)) for place in places)
        return (Coordinate(Travel(jnp.asarray(seen_from(places[0], self.axis)), a, b)),)


class Level(AbstractJoint):
    """How far a direction `f` of the second body rises above the plane across `e` of the first."""

    def __init__(self, a: str, b: str, e: np.ndarray, f: np.ndarray, at: np.ndarray, name: str):
        self._write(a, b, name)
        self.e, self.f, self.at = e, f, at

    def law(self, *places: Place) -> AbstractLaw:
        return Nothing()

    def coordinates(self, *places: Place) -> Coordinates:
        first, second = places
        seen = seen_from(first, self.e), seen_from(second, self.f)
        return (Coordinate(Tilt(*(jnp.asarray(v) for v in seen))),)

"""Coordinates of joints with several freedoms, one for each, written as the bodies stand."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from retrax.mechanisms.joints import AbstractJoint, Coordinates
from retrax.mechanisms.laws import AbstractLaw
from retrax.mechanisms.measures import Coordinate, Tilt, Travel, Turn
from retrax.mechanisms.pose import Place
from retrax.mechanisms.written import local, view_from

Vector = np.ndarray


class Angle(NamedTuple):
    """The angle of a direction `f` of the second body, in the plane of `e` and `n` of the first.

    **Attributes:** `name`; `e`, `n`, `f`: unit vectors, `e` and `n` at right angles; `backwards`:
    whether the bodies change places.
    """

    name: str
    e: Vector
    n: Vector
    f: Vector
    backwards: bool = False

    def coordinate(self, *places: Place) -> Coordinate:
        """Return it with its numbers in body axes."""
        first, second = places[::-1] if self.backwards else places
        seen = view_from(first, self.e), view_from(first, self.n), view_from(second, self.f)
        return Coordinate(Turn(*(jnp.asarray(v) for v in seen)), self.backwards)


class Level(NamedTuple):
    """How far a direction `f` of the second body rises above the plane across `e` of the first."""

    name: str
    e: Vector
    f: Vector

    def coordinate(self, *places: Place) -> Coordinate:
        """Return it with its numbers in body axes."""
        seen = view_from(places[0], self.e), view_from(places[1], self.f)
        return Coordinate(Tilt(*(jnp.asarray(v) for v in seen)))


class Position(NamedTuple):
    """How far the point `at` of the second body has travelled along `axis` of the first."""

    name: str
    at: Vector
    axis: Vector

    def coordinate(self, *places: Place) -> Coordinate:
        """Return it with its numbers in body axes."""
        a, b = (jnp.asarray(local(place, self.at)) for place in places)
        return Coordinate(Travel(jnp.asarray(view_from(places[0], self.axis)), a, b))


Reading = Angle | Level | Position


class Held(AbstractJoint):
    """A joint with the coordinates that a file gives it, in place of its own.

    **Arguments:** `joint`: what is held; `readings`: its coordinates.
    """

    def __init__(self, joint: AbstractJoint, readings: Sequence[Reading]):
        self._write(joint.bodies[0], joint.bodies[1], joint.name)
        self.joint, self.readings, self.at = joint, tuple(readings), joint.at

    @property
    def kind(self) -> str:
        return self.joint.kind

    def law(self, *places: Place) -> AbstractLaw:
        return self.joint.law(*places)

    def coordinates(self, *places: Place) -> Coordinates:
        return tuple(reading.coordinate(*places) for reading in self.readings)

"""Joints as users write them: which bodies, where, and along which axis, as the bodies stand.

All points and directions are in space axes. A joint is at zero as it is drawn: its angle and its
position count from there, those of the second body against the first.
"""

import abc
import math

import jax.numpy as jnp
import numpy as np

from retrax.errors import BadInput
from retrax.mechanisms.body import Body
from retrax.mechanisms.drawn import (
    alignment,
    aside,
    in_planes,
    no_rotation,
    pin,
    travel,
    turn,
    turn_of,
)
from retrax.mechanisms.laws import AbstractLaw, Apart, Perpendicular, Screwed, Several, Threaded
from retrax.mechanisms.measures import Coordinate
from retrax.mechanisms.pose import Place, across
from retrax.mechanisms.stops import Stops, stops
from retrax.mechanisms.written import (
    local,
    require_body,
    require_name,
    unit,
    vector,
    view_from,
    whole_vector,
)
from retrax.numerics.checks import ArrayLike, quote, require_number
from retrax.numerics.meant import explain_keywords

Bodies = tuple[Body | str, ...]
Coordinates = tuple[Coordinate, ...]
Ends = tuple[float | None, float | None] | list[float | None] | np.ndarray
# A direction at right angles to another may miss that by rounding.
_RIGHT = 1e-9


class AbstractJoint(abc.ABC):
    """A joint between two bodies, in space axes, as the bodies stand when it is written.

    **Attributes:** `bodies`: those it joins, the first of which carries it; `name`; `at`: where
    forces and torques are told, or `None` for the centre of the second body; `stops`: the limits of
    its coordinate, or `None`.
    """

    bodies: Bodies
    name: str | None
    at: np.ndarray | None
    stops: Stops | None

    def _write(self, a: Body | str, b: Body | str, name: str | None) -> None:
        self.bodies = require_body("a", a), require_body("b", b)
        self.name, self.at = require_name(name), None
        self.stops = None

    @property
    def kind(self) -> str:
        """What it is called in sentences."""
        return type(self).__name__

    def point(self, places: tuple[Place, ...]) -> np.ndarray:
        """Return the point at which forces and torques are measured."""
        return places[1][1] if self.at is None else self.at

    @abc.abstractmethod
    def law(self, *places: Place) -> AbstractLaw:
        """Return what the joint asks, with its numbers in the axes of its bodies."""

    def coordinates(self, *places: Place) -> Coordinates:
        """Return the angles and travels that the joint leaves free."""
        return ()

    def _in_space(self, places: tuple[Place, ...], instead: str) -> None:
        if len(places[0][1]) == 2:
            raise BadInput(f"{self.kind} is a joint in space; in the plane {instead}.")


class Spherical(AbstractJoint):
    """A ball in a socket: two bodies share the point `at`. In the plane, a pin.

    **Arguments:** `a`, `b`: the bodies; `at`: the point; `name`.
    """

    @explain_keywords
    def __init__(self, a: Body | str, b: Body | str, at: ArrayLike, name: str | None = None):
        self._write(a, b, name)
        self.at = vector("at", at)

    def law(self, *places: Place) -> AbstractLaw:
        return pin(self.point(places), places)


class Revolute(AbstractJoint):
    """A hinge: two bodies share the point `at` and turn about `axis` alone.

    **Arguments:** `a`, `b`: the bodies; `at`: a point of the axis; `axis`: its direction; in the
    plane there is none; `name`; `limits`: the least and the largest angle in rad, at which it
    stops, and `restitution`: how it bounces there.
    """

    @explain_keywords
    def __init__(
        self,
        a: Body | str,
        b: Body | str,
        at: ArrayLike,
        axis: ArrayLike | None = None,
        name: str | None = None,
        *,
        limits: Ends | None = None,
        restitution: ArrayLike = 0.0,
    ):
        self._write(a, b, name)
        self.stops = stops(limits, restitution)
        self.at = vector("at", at)
        self.axis = None if axis is None else unit("axis", axis)
        if (self.axis is None) != (len(self.at) == 2):
            raise BadInput(
                "a Revolute joint in space needs an axis, and one in the plane has none: its axis "
                "is at right angles to the plane."
            )

    def law(self, *places: Place) -> AbstractLaw:
        shared = pin(self.point(places), places)
        return shared if self.axis is None else Several((shared, alignment(self.axis, places)))

    def coordinates(self, *places: Place) -> Coordinates:
        return (Coordinate(turn(self.axis, places)),)


class Fixed(AbstractJoint):
    """A weld: two bodies move as one.

    **Arguments:** `a`, `b`: the bodies; `at`: where they are welded, the centre of mass of `b` if
    not given; `name`.
    """

    @explain_keywords
    def __init__(
        self, a: Body | str, b: Body | str, at: ArrayLike | None = None, name: str | None = None
    ):
        self._write(a, b, name)
        self.at = None if at is None else vector("at", at)

    def law(self, *places: Place) -> AbstractLaw:
        return Several((pin(self.point(places), places), no_rotation(places)))


class Prismatic(AbstractJoint):
    """A slider: the second body moves along `axis` of the first and does not turn.

    **Arguments:** `a`, `b`: the bodies; `at`: the point of `b` whose travel is the position, its
    centre of mass if not given; `axis`: the direction; `name`; `limits`: the least and the largest
    position in m, `None` where there is no limit, and `restitution`: how it bounces there.
    """

    @explain_keywords
    def __init__(
        self,
        a: Body | str,
        b: Body | str,
        at: ArrayLike | None = None,
        axis: ArrayLike | None = None,
        name: str | None = None,
        *,
        limits: Ends | None = None,
        restitution: ArrayLike = 0.0,
    ):
        self._write(a, b, name)
        self.stops = stops(limits, restitution)
        if axis is None:
            raise BadInput("a Prismatic joint needs an axis: the direction in which it slides.")
        self.at, self.axis = None if at is None else vector("at", at), unit("axis", axis)

    def law(self, *places: Place) -> AbstractLaw:
        line = in_planes(aside(self.axis), self.point(places), places)
        return Several((no_rotation(places), line))

    def coordinates(self, *places: Place) -> Coordinates:
        return (Coordinate(travel(self.axis, self.point(places), places)),)


class Cylindrical(AbstractJoint):
    """A sleeve on a rod: the second body turns about and slides along `axis`.

    Its angle comes first among its coordinates, then its position.

    **Arguments:** `a`, `b`: the bodies; `at`: a point of the axis; `axis`: its direction; `name`.
    """

    @explain_keywords
    def __init__(
        self,
        a: Body | str,
        b: Body | str,
        at: ArrayLike,
        axis: ArrayLike,
        name: str | None = None,
    ):
        self._write(a, b, name)
        self.at, self.axis = vector("at", at), unit("axis", axis)

    def law(self, *places: Place) -> AbstractLaw:
        self._in_space(places, "write a Prismatic one, or a PointOnLine where it may turn")
        line = in_planes(aside(self.axis), self.point(places), places)
        return Several((alignment(self.axis, places), line))

    def coordinates(self, *places: Place) -> Coordinates:
        along = travel(self.axis, self.point(places), places)
        return Coordinate(turn(self.axis, places)), Coordinate(along)


class Screw(AbstractJoint):
    r"""A nut on a thread: the second body slides by $x = p\,\theta/2\pi$ as it turns by $\theta$.

    **Arguments:** `a`, `b`: the bodies; `at`: a point of the axis; `axis`: its direction; `pitch`:
    the travel $p$ of a whole turn in metres, below zero for a left-handed thread; `name`.
    """

    @explain_keywords
    def __init__(
        self,
        a: Body | str,
        b: Body | str,
        at: ArrayLike,
        axis: ArrayLike,
        pitch: float,
        name: str | None = None,
    ):
        self._write(a, b, name)
        self.at, self.axis = vector("at", at), unit("axis", axis)
        self.pitch = require_number("pitch", pitch, unit="m")
        if self.pitch == 0:
            raise BadInput("pitch = 0 m: a thread that does not advance is a Revolute joint.")

    @property
    def lead(self) -> float:
        """The travel per radian."""
        return self.pitch / (2 * math.pi)

    def law(self, *places: Place) -> AbstractLaw:
        self._in_space(places, "nothing can screw")
        line = in_planes(aside(self.axis), self.point(places), places)
        along = travel(self.axis, self.point(places), places)
        thread = Threaded(turn(self.axis, places), along, jnp.asarray(self.lead))
        return Several((alignment(self.axis, places), line, Screwed(thread)))

    def coordinates(self, *places: Place) -> Coordinates:
        along = travel(self.axis, self.point(places), places)
        return Coordinate(turn(self.axis, places)), Coordinate(along)


class Universal(AbstractJoint):
    """A cardan joint: a cross that turns in the first body and in which the second turns.

    Its coordinates are the angle of the cross about the first axis, and that of the second body
    about the second.

    **Arguments:** `a`, `b`: the bodies; `at`: the centre of the cross; `axes`: its arms, the first
    of which is held by `a` and the second by `b`, at right angles; `name`.
    """

    @explain_keywords
    def __init__(
        self,
        a: Body | str,
        b: Body | str,
        at: ArrayLike,
        axes: tuple[ArrayLike, ArrayLike] | list[ArrayLike] | np.ndarray,
        name: str | None = None,
    ):
        self._write(a, b, name)
        if not isinstance(axes, tuple | list | np.ndarray) or len(axes) != 2:
            raise BadInput(
                f"axes = {quote(axes)}, but the cross of a Universal joint has two arms: two rows."
            )
        self.at = vector("at", at)
        self.first, self.second = (unit(f"axes[{k}]", axis) for k, axis in enumerate(axes))
        if abs(self.first @ self.second) > _RIGHT:
            angle = math.degrees(math.acos(float(self.first @ self.second)))
            raise BadInput(
                f"the axes of a Universal joint are at right angles, but these make {angle:.6g} "
                "degrees."
            )

    def law(self, *places: Place) -> AbstractLaw:
        self._in_space(places, "write a Revolute one")
        first, second = view_from(places[0], self.first), view_from(places[1], self.second)
        cross = Perpendicular(jnp.asarray(first), jnp.asarray(second))
        return Several((pin(self.point(places), places), cross))

    def coordinates(self, *places: Place) -> Coordinates:
        a, b = places
        third = np.cross(self.first, self.second)
        arm = turn_of(self.second, third, self.second, a, b)
        body = turn_of(self.first, third, self.first, b, a)
        return Coordinate(arm), Coordinate(body, backwards=True)


class Planar(AbstractJoint):
    """A plate on a table: the second body slides in a plane of the first, and turns in it.

    Its coordinates are the two travels and the angle about the normal.

    **Arguments:** `a`, `b`: the bodies; `at`: a point of `b` in the plane; `normal`: of the plane;
    `name`.
    """

    @explain_keywords
    def __init__(
        self,
        a: Body | str,
        b: Body | str,
        at: ArrayLike,
        normal: ArrayLike,
        name: str | None = None,
    ):
        self._write(a, b, name)
        self.at, self.normal = vector("at", at), unit("normal", normal)

    def law(self, *places: Place) -> AbstractLaw:
        self._in_space(places, "every body moves like this by itself")
        plane = in_planes((self.normal,), self.point(places), places)
        return Several((alignment(self.normal, places), plane))

    def coordinates(self, *places: Place) -> Coordinates:
        ways = [Coordinate(travel(e, self.point(places), places)) for e in across(self.normal)]
        return *ways, Coordinate(turn(self.normal, places))


class Distance(AbstractJoint):
    """A rod without mass: a point of each body, at a fixed distance.

    **Arguments:** `a`, `b`: the bodies; `at`: two points, one on each; `length`: the distance, as
    drawn if not given; `name`.
    """

    @explain_keywords
    def __init__(
        self,
        a: Body | str,
        b: Body | str,
        at: tuple[ArrayLike, ArrayLike] | list[ArrayLike] | np.ndarray,
        length: float | None = None,
        name: str | None = None,
    ):
        self._write(a, b, name)
        self.start, self.at = whole_vector("at", at)
        drawn = float(np.linalg.norm(self.at - self.start))
        self.length = drawn if length is None else require_number("length", length, "> 0", "m")
        if not self.length > 0:
            raise BadInput(
                "a Distance joint between points that coincide has no length: write a Spherical "
                "one."
            )
        if not drawn > 0:
            raise BadInput(
                f"the ends of this Distance joint coincide as drawn, so its rod of {self.length:g} "
                "m has no direction: draw the ends apart."
            )

    def law(self, *places: Place) -> AbstractLaw:
        a, b = local(places[0], self.start), local(places[1], self.point(places))
        return Apart(jnp.asarray(a), jnp.asarray(b), jnp.asarray(self.length))


class PointOnLine(AbstractJoint):
    """A pin in a slot: the point `at` of the second body stays on a line of the first.

    Its coordinate is the travel along the line.

    **Arguments:** `a`, `b`: the bodies; `at`: the point; `axis`: the direction of the line through
    it; `name`.
    """

    @explain_keywords
    def __init__(
        self,
        a: Body | str,
        b: Body | str,
        at: ArrayLike,
        axis: ArrayLike,
        name: str | None = None,
    ):
        self._write(a, b, name)
        self.at, self.axis = vector("at", at), unit("axis", axis)

    def law(self, *places: Place) -> AbstractLaw:
        return in_planes(aside(self.axis), self.point(places), places)

    def coordinates(self, *places: Place) -> Coordinates:
        return (Coordinate(travel(self.axis, self.point(places), places)),)


class PointOnPlane(AbstractJoint):
    """The point `at` of the second body stays in a plane of the first.

    Its coordinates are the two travels in the plane.

    **Arguments:** `a`, `b`: the bodies; `at`: the point; `normal`: of the plane through it; `name`.
    """

    @explain_keywords
    def __init__(
        self,
        a: Body | str,
        b: Body | str,
        at: ArrayLike,
        normal: ArrayLike,
        name: str | None = None,
    ):
        self._write(a, b, name)
        self.at, self.normal = vector("at", at), unit("normal", normal)

    def law(self, *places: Place) -> AbstractLaw:
        self._in_space(places, "write a PointOnLine")
        return in_planes((self.normal,), self.point(places), places)

    def coordinates(self, *places: Place) -> Coordinates:
        return tuple(Coordinate(travel(e, self.point(places), places)) for e in across(self.normal))

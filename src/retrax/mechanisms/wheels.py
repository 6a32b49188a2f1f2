"""Wheels, balls and blades on a plane, as users write them.

The plane goes through the origin, at right angles to gravity, unless another one is given.
"""

import abc
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from retrax.errors import BadInput
from retrax.mechanisms.body import Body
from retrax.mechanisms.laws import AbstractLaw, InPlanes
from retrax.mechanisms.pose import Place, across
from retrax.mechanisms.rolling import (
    FLAT,
    AbstractContact,
    BallContact,
    BladeContact,
    WheelContact,
    WheelHeight,
)
from retrax.mechanisms.written import (
    local,
    require_body,
    require_name,
    same,
    unit,
    vector,
    view_from,
)
from retrax.numerics.checks import ArrayLike, quote, require_number
from retrax.numerics.evaluate import as_jax
from retrax.numerics.meant import explain_keywords


class Plane(NamedTuple):
    """A plane that does not move: a point of it, and the normal on the side of the bodies."""

    point: np.ndarray
    normal: np.ndarray

    @property
    def ways(self) -> np.ndarray:
        """Directions in the plane, one a row: two, or one where the plane is a line."""
        n = self.normal
        return np.array([[n[1], -n[0]]]) if len(n) == 2 else np.stack(across(n))


class AbstractWheel(abc.ABC):
    """What rolls or glides on a plane.

    **Attributes:** `body`: which body; `name`; `plane`: a point and the normal of the plane, or
    `None` for the one through the origin against gravity.
    """

    body: Body | str
    name: str | None
    plane: Plane | None

    def _write(self, body: Body | str, name: str | None, plane: object) -> None:
        self.body, self.name = require_body("body", body), require_name(name)
        self.plane = None if plane is None else _plane(plane)

    @property
    def kind(self) -> str:
        """What it is called in sentences."""
        return type(self).__name__

    @property
    def needs_plane(self) -> bool:
        """Whether it needs to know its plane."""
        return True

    @abc.abstractmethod
    def contact(self, place: Place, plane: Plane, axle: np.ndarray | None) -> AbstractContact:
        """Return what is asked of velocities; `axle`: of the one hinge of its body, if any."""

    @abc.abstractmethod
    def height(self, contact: AbstractContact, plane: Plane) -> AbstractLaw | None:
        """Return what is asked of positions, with the ground as first body of two; or nothing."""


class RollingWheel(AbstractWheel):
    """A wheel that rolls on a plane without slipping: a circle about its axle.

    **Arguments:** `body`: which body; `radius` in metres; `axis`: the direction of the axle, that
    of the only Revolute joint of the body if not given (in the plane there is none); `name`; `at`:
    the centre of the wheel, the centre of mass if not given; `plane`: a point and the normal of
    another plane than the one through the origin, against gravity.
    """

    @explain_keywords
    def __init__(
        self,
        body: Body | str,
        radius: float,
        axis: ArrayLike | None = None,
        name: str | None = None,
        *,
        at: ArrayLike | None = None,
        plane: tuple[ArrayLike, ArrayLike] | None = None,
    ):
        self._write(body, name, plane)
        self.radius = require_number("radius", radius, "> 0", "m")
        self.axis = None if axis is None else unit("axis", axis)
        self.at = None if at is None else vector("at", at)

    def contact(self, place: Place, plane: Plane, axle: np.ndarray | None) -> AbstractContact:
        centre, radius = _centre(self.at, place), as_jax(np.asarray(self.radius))
        normal, ways = as_jax(plane.normal), as_jax(plane.ways)
        if len(plane.normal) == 2:
            if self.axis is not None:
                raise BadInput(
                    "a RollingWheel in the plane has no axis: it is normal to the plane."
                )
            return BallContact(centre, radius, normal, ways)
        axis = axle if self.axis is None else self.axis
        if axis is None:
            raise BadInput(
                "this RollingWheel needs axis=..., the direction of its axle: its body does not "
                "have exactly one Revolute joint from which to take it."
            )
        same("axis", axis, (place,))
        if not np.linalg.norm(np.cross(axis, plane.normal)) > FLAT:
            raise BadInput(
                "this RollingWheel lies flat: its axle is along the normal of the plane, so that "
                "it touches the plane everywhere and not in one point."
            )
        return WheelContact(centre, as_jax(view_from(place, axis)), radius, normal, ways)

    def height(self, contact: AbstractContact, plane: Plane) -> AbstractLaw | None:
        if isinstance(contact, WheelContact):
            return WheelHeight(contact, as_jax(plane.normal @ plane.point))
        assert isinstance(contact, BallContact)
        return _at_height(contact, plane)


class RollingBall(AbstractWheel):
    """A ball that rolls on a plane without slipping.

    **Arguments:** `body`: which body; `radius` in metres; `name`; `at`: the centre of the ball, the
    centre of mass if not given; `plane`: as for `RollingWheel`.
    """

    @explain_keywords
    def __init__(
        self,
        body: Body | str,
        radius: float,
        name: str | None = None,
        *,
        at: ArrayLike | None = None,
        plane: tuple[ArrayLike, ArrayLike] | None = None,
    ):
        self._write(body, name, plane)
        self.radius = require_number("radius", radius, "> 0", "m")
        self.at = None if at is None else vector("at", at)

    def contact(self, place: Place, plane: Plane, axle: np.ndarray | None) -> AbstractContact:
        if len(plane.normal) == 2:
            raise BadInput("a RollingBall is in space; in the plane write a RollingWheel.")
        centre, radius = _centre(self.at, place), as_jax(np.asarray(self.radius))
        return BallContact(centre, radius, as_jax(plane.normal), as_jax(plane.ways))

    def height(self, contact: AbstractContact, plane: Plane) -> AbstractLaw | None:
        assert isinstance(contact, BallContact)
        return _at_height(contact, plane)


class KnifeEdge(AbstractWheel):
    """A blade or skate: its point glides along it and does not move sideways.

    It keeps no height: in space, join its body with `Planar` or `PointOnPlane` for that.

    **Arguments:** `body`: which body; `at`: the point; `direction`: along the blade; `name`;
    `plane`: as for `RollingWheel`; its normal says what is sideways.
    """

    @explain_keywords
    def __init__(
        self,
        body: Body | str,
        at: ArrayLike,
        direction: ArrayLike,
        name: str | None = None,
        *,
        plane: tuple[ArrayLike, ArrayLike] | None = None,
    ):
        self._write(body, name, plane)
        self.at, self.direction = vector("at", at), unit("direction", direction)

    @property
    def needs_plane(self) -> bool:
        return len(self.at) == 3

    def contact(self, place: Place, plane: Plane, axle: np.ndarray | None) -> AbstractContact:
        same("at", self.at, (place,))
        same("direction", self.direction, (place,))
        at, ahead = local(place, self.at), view_from(place, self.direction)
        if len(ahead) == 2:
            return BladeContact(as_jax(at), as_jax(ahead), None)
        if not np.linalg.norm(np.cross(self.direction, plane.normal)) > FLAT:
            raise BadInput(
                "this KnifeEdge stands on its tip: its direction is along the normal of the plane, "
                "so that nothing is sideways."
            )
        return BladeContact(as_jax(at), as_jax(ahead), as_jax(plane.normal))

    def height(self, contact: AbstractContact, plane: Plane) -> AbstractLaw | None:
        return None


def plane_of(wheel: AbstractWheel, name: str, gravity: np.ndarray) -> Plane:
    """Return the plane of a wheel: its own, or the one under it."""
    size = float(np.linalg.norm(gravity))
    if wheel.plane is not None:
        return wheel.plane
    if size > 0:
        return Plane(np.zeros(len(gravity)), -gravity / size)
    if wheel.needs_plane:
        raise BadInput(
            f"there is no gravity that says where {name!r} has its plane: give "
            "plane=(point, normal)."
        )
    return Plane(np.zeros(2), np.array([0.0, 1.0]))


def _plane(plane: object) -> Plane:
    if not isinstance(plane, tuple | list) or len(plane) != 2:
        raise BadInput(f"plane = {quote(plane)} must be a pair (point, normal).")
    point, normal = vector("plane[0]", plane[0]), unit("plane[1]", plane[1])
    if len(point) != len(normal):
        raise BadInput("the point and the normal of plane= have different numbers of components.")
    return Plane(point, normal)


def _centre(at: np.ndarray | None, place: Place) -> jnp.ndarray:
    if at is not None:
        same("at", at, (place,))
    return as_jax(local(place, place[1] if at is None else at))


def _at_height(contact: BallContact, plane: Plane) -> InPlanes:
    """Return that the centre of a ball lies its radius above the plane."""
    level = as_jax(plane.point) + contact.radius * contact.normal
    return InPlanes(contact.normal[None], level, contact.centre)

"""Springs and dampers as users write them, in space axes, as the bodies stand."""

import abc

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.mechanisms.body import Body
from retrax.mechanisms.couplings import Free, JointOrName, require_joint
from retrax.mechanisms.elements import (
    FARTHEST,
    AbstractDamper,
    AbstractSpring,
    JointDamper,
    JointSpring,
    Line,
    LineDamper,
    LineSpring,
)
from retrax.mechanisms.measures import Coordinate
from retrax.mechanisms.pose import Place
from retrax.mechanisms.written import local, require_body, require_name, same, whole_vector
from retrax.numerics.checks import ArrayLike, finite64
from retrax.numerics.known import require_each
from retrax.numerics.meant import explain_keywords

Scalar = Float[Array, ""]
Points = tuple[ArrayLike, ArrayLike] | list[ArrayLike] | np.ndarray


class AbstractBetweenPoints(abc.ABC):
    """What acts along the line between a point of each of two bodies.

    **Attributes:** `bodies`; `start`, `end`: the points; `name`.
    """

    bodies: tuple[Body | str, Body | str]
    name: str | None
    start: np.ndarray
    end: np.ndarray

    def _write(self, a: Body | str, b: Body | str, at: Points, name: str | None) -> None:
        self.bodies = require_body("a", a), require_body("b", b)
        self.name = require_name(name)
        self.start, self.end = whole_vector("at", at)

    @property
    def drawn(self) -> float:
        """The distance of the points as drawn."""
        return float(np.linalg.norm(self.end - self.start))

    def line(self, a: Place, b: Place) -> Line:
        """Return the line, with its ends in the axes of the bodies."""
        same("at", self.start, (a,))
        return Line(jnp.asarray(local(a, self.start)), jnp.asarray(local(b, self.end)))

    @abc.abstractmethod
    def element(self, a: Place, b: Place) -> AbstractSpring | AbstractDamper:
        """Return it with its numbers in the axes of the bodies."""


class Spring(AbstractBetweenPoints):
    """A straight spring between a point of each body.

    **Arguments:** `a`, `b`: the bodies; `at`: two points, one on each; `stiffness` in N/m;
    `length`: at which it is slack, as drawn if not given; `name`.
    """

    @explain_keywords
    def __init__(
        self,
        a: Body | str,
        b: Body | str,
        at: Points,
        stiffness: ArrayLike,
        length: ArrayLike | None = None,
        name: str | None = None,
    ):
        self._write(a, b, at, name)
        self.stiffness = not_negative("stiffness", stiffness)
        self.length = not_negative("length", self.drawn if length is None else length)

    def element(self, a: Place, b: Place) -> AbstractSpring:
        return LineSpring(self.line(a, b), self.stiffness, self.length)


class Damper(AbstractBetweenPoints):
    """A damper between a point of each body, against the rate of their distance.

    **Arguments:** `a`, `b`: the bodies; `at`: two points, one on each; `damping` in N s/m; `name`.
    """

    @explain_keywords
    def __init__(
        self,
        a: Body | str,
        b: Body | str,
        at: Points,
        damping: ArrayLike,
        name: str | None = None,
    ):
        self._write(a, b, at, name)
        self.damping = not_negative("damping", damping)
        if not self.drawn > 0:
            raise BadInput("the ends of this Damper coincide as drawn, so it has no direction.")

    def element(self, a: Place, b: Place) -> AbstractDamper:
        return LineDamper(self.line(a, b), self.damping)


class AbstractAtJoint(abc.ABC):
    """What acts on the coordinate of a joint.

    **Attributes:** `joint`: one with a single coordinate, or its name; `name`.
    """

    joint: JointOrName
    name: str | None

    @abc.abstractmethod
    def element(self, coordinate: Coordinate) -> AbstractSpring | AbstractDamper:
        """Return it for the coordinate that it acts on."""


class TorsionSpring(AbstractAtJoint):
    """A spring at a joint, against its angle; at a Prismatic joint against its position.

    An angle is known up to whole turns only: a spring can be wound by less than 2.8 rad, as drawn,
    as assembled and along a run, which stops there.

    **Arguments:** `joint`: one with a single coordinate, or its name; `stiffness` in N m/rad, or
    N/m; `rest`: where it is slack, as drawn if not given; `name`.
    """

    @explain_keywords
    def __init__(
        self,
        joint: JointOrName,
        stiffness: ArrayLike,
        rest: ArrayLike = 0.0,
        name: str | None = None,
    ):
        self.joint, self.name = require_joint("joint", joint), require_name(name)
        self.stiffness, self.rest = not_negative("stiffness", stiffness), finite64("rest", rest)

    def element(self, coordinate: Coordinate) -> AbstractSpring:
        if coordinate.is_angle:
            require_each(_winding, self.rest)
        return JointSpring(coordinate, self.stiffness, self.rest)


class TorsionDamper(AbstractAtJoint):
    """A damper at a joint, against its rate.

    **Arguments:** `joint`: one with a single coordinate, or its name; `damping` in N m s/rad, or in
    N s/m at a Prismatic joint; `name`.
    """

    @explain_keywords
    def __init__(self, joint: JointOrName, damping: ArrayLike, name: str | None = None):
        self.joint, self.name = require_joint("joint", joint), require_name(name)
        self.damping = not_negative("damping", damping)

    def element(self, coordinate: Coordinate) -> AbstractDamper:
        return JointDamper(coordinate, self.damping)


def single(free: Free, who: str) -> Coordinate:
    """Return the only coordinate of a joint: of a Screw its angle."""
    if free.kind == "Screw":
        return free.coordinates[0]
    if len(free.coordinates) != 1:
        count = len(free.coordinates)
        raise BadInput(
            f"{who} acts on a joint with one coordinate, but {free.name!r} is a {free.kind} joint, "
            f"which has {count or 'none'}."
        )
    return free.coordinates[0]


def _winding(rest: np.ndarray) -> None:
    if not abs(rest) < FARTHEST:
        raise BadInput(
            f"rest = {float(rest):g} rad winds this TorsionSpring by {abs(float(rest)):g} rad as "
            f"drawn: beyond {FARTHEST:g} rad (half a turn is 3.14) an angle does not tell which "
            "way the spring is wound. Draw the mechanism nearer to where the spring is slack."
        )


def not_negative(name: str, value: object) -> Scalar:
    """Return one number that is not below zero."""
    number = finite64(name, value)

    def check(value: np.ndarray) -> None:
        if value < 0:
            raise BadInput(f"{name} = {float(value):g} must not be negative.")

    require_each(check, number)
    return number

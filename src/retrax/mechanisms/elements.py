r"""What acts between bodies: springs with an energy, dampers that take energy away.

$$
\begin{aligned}
V &= \tfrac k2(|d| - \ell)^2, & f &= -c\,\dot{|d|}\,\partial|d|  &&\text{(1) along a line}\\
V &= \tfrac k2(q - q_0)^2, & f &= -c\,\dot q\,\partial q         &&\text{(2) at a joint}
\end{aligned}
$$
"""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.base import Coordinates, Element
from retrax.mechanics.functions import Function
from retrax.mechanisms.body import GROUND
from retrax.mechanisms.joined import pose_of
from retrax.mechanisms.measures import Coordinate, Measured
from retrax.mechanisms.pose import Pose, Row, Vector, moment, point
from retrax.numerics.frozen import Frozen

Scalar = Float[Array, ""]
# How far a spring at a joint may be wound, in radians: beyond, angles cannot be told apart.
FARTHEST = 2.8


class AbstractSpring(Frozen):
    """An energy of the poses of two bodies."""

    @abc.abstractmethod
    def energy(self, a: Pose, b: Pose) -> Scalar:
        """Return the energy."""

    @abc.abstractmethod
    def pull(self, a: Pose, b: Pose) -> tuple[Row, Row]:
        """Return the forces on both bodies, minus the derivatives of the energy."""

    @property
    def winds(self) -> bool:
        """Whether it is wound by an angle."""
        return False

    def winding(self, a: Pose, b: Pose) -> Scalar:
        """Return the angle by which it is wound, zero by default."""
        return jnp.zeros(())


class AbstractDamper(Frozen):
    """A force against the relative velocity of two bodies."""

    @abc.abstractmethod
    def pull(self, a: Pose, b: Pose, speeds: tuple[Row, Row]) -> tuple[Row, Row]:
        """Return the forces on both bodies at their velocities."""


class Line(Frozen):
    """The straight line from a point of one body to a point of another."""

    a: Vector
    b: Vector

    def ends(self, a: Pose, b: Pose) -> Vector:
        """Return the vector from one end to the other."""
        return point(b, self.b) - point(a, self.a)

    def along(self, a: Pose, b: Pose, u: Vector) -> tuple[Row, Row]:
        """Return the rows of the velocity of the ends against each other along `u`."""
        return (
            -jnp.concatenate([moment(self.a, a.R.T @ u), u]),
            jnp.concatenate([moment(self.b, b.R.T @ u), u]),
        )


class LineSpring(AbstractSpring):
    """A spring between two points, (1)."""

    line: Line
    stiffness: Scalar
    length: Scalar

    def energy(self, a: Pose, b: Pose) -> Scalar:
        stretch = _size(self.line.ends(a, b)) - self.length
        return self.stiffness / 2 * stretch * stretch

    def pull(self, a: Pose, b: Pose) -> tuple[Row, Row]:
        d = self.line.ends(a, b)
        size = _size(d)
        # Without a length of its own a spring pulls with k d, also where its ends meet.
        slack = jnp.where(self.length == 0, 1.0, 1 - self.length / jnp.where(size == 0, 1.0, size))
        one, two = self.line.along(a, b, self.stiffness * slack * d)
        return -one, -two


class LineDamper(AbstractDamper):
    """A damper between two points, (1)."""

    line: Line
    damping: Scalar

    def pull(self, a: Pose, b: Pose, speeds: tuple[Row, Row]) -> tuple[Row, Row]:
        d = self.line.ends(a, b)
        one, two = self.line.along(a, b, d / _size(d))
        rate = one @ speeds[0] + two @ speeds[1]
        return -self.damping * rate * one, -self.damping * rate * two


class JointSpring(AbstractSpring):
    """A spring at a joint, (2)."""

    coordinate: Coordinate
    stiffness: Scalar
    rest: Scalar

    def _stretch(self, a: Pose, b: Pose) -> Measured:
        found = self.coordinate.of(a, b)
        off = found.value - self.rest
        if self.coordinate.is_angle:
            off = jnp.arctan2(jnp.sin(off), jnp.cos(off))
        return found._replace(value=off)

    def energy(self, a: Pose, b: Pose) -> Scalar:
        stretch = self._stretch(a, b).value
        return self.stiffness / 2 * stretch * stretch

    def pull(self, a: Pose, b: Pose) -> tuple[Row, Row]:
        q = self._stretch(a, b)
        return -self.stiffness * q.value * q.first, -self.stiffness * q.value * q.second

    @property
    def winds(self) -> bool:
        return self.coordinate.is_angle

    def winding(self, a: Pose, b: Pose) -> Scalar:
        return self._stretch(a, b).value


class JointDamper(AbstractDamper):
    """A damper at a joint, (2)."""

    coordinate: Coordinate
    damping: Scalar

    def pull(self, a: Pose, b: Pose, speeds: tuple[Row, Row]) -> tuple[Row, Row]:
        q = self.coordinate.of(a, b)
        rate = q.first @ speeds[0] + q.second @ speeds[1]
        return -self.damping * rate * q.first, -self.damping * rate * q.second


class Acting(Frozen):
    """A spring or damper, and the two bodies between which it acts.

    **Attributes:** `element`; `bodies`: their indices; `name`: what sentences call it.
    """

    element: AbstractSpring | AbstractDamper
    bodies: tuple[int, int] = eqx.field(static=True)
    name: str = eqx.field(static=True)

    def poses(self, g: Element) -> tuple[Pose, Pose]:
        """Return where its bodies are."""
        a, b = self.bodies
        return pose_of(g, a), pose_of(g, b)


def energy_of(springs: tuple[Acting, ...], g: Element) -> Scalar:
    """Return the energy of all springs."""
    total = jnp.zeros(())
    for one in springs:
        assert isinstance(one.element, AbstractSpring)
        total = total + one.element.energy(*one.poses(g))
    return total


def pull_of(
    acting: tuple[Acting, ...], g: Element, each: Float[Array, "n dim"]
) -> Float[Array, "n dim"]:
    """Return the forces of springs and dampers on all bodies, whose velocities are `each`."""
    n, dim = each.shape
    pulls: dict[int, list[Row]] = {}
    for one in acting:
        poses = one.poses(g)
        if isinstance(one.element, AbstractSpring):
            both = one.element.pull(*poses)
        else:
            still = jnp.zeros(dim)
            speeds = [still if i == GROUND else each[i] for i in one.bodies]
            both = one.element.pull(*poses, (speeds[0], speeds[1]))
        for body, pull in zip(one.bodies, both, strict=True):
            if body != GROUND:
                pulls.setdefault(body, []).append(pull)
    still = jnp.zeros(dim)
    return jnp.stack([sum(pulls[i][1:], pulls[i][0]) if i in pulls else still for i in range(n)])


class Outside(Frozen):
    """The forces on a mechanism that have no energy: its dampers, and a function of the user's."""

    dampers: tuple[Acting, ...]
    force: Function | None
    n: int = eqx.field(static=True)

    def __call__(self, g: Element, xi: Coordinates, t: Scalar) -> Coordinates:
        damped = pull_of(self.dampers, g, xi.reshape(self.n, -1)).reshape(-1)
        if self.force is None:
            return damped
        pushed = jnp.asarray(self.force(g, xi, t))
        return damped + pushed if self.dampers else pushed


def _size(d: Vector) -> Scalar:
    """Return |d|, with a slope of zero where it vanishes."""
    square = d @ d
    return jnp.where(square == 0, 0.0, jnp.sqrt(jnp.where(square == 0, 1.0, square)))

r"""Angles and travels between two bodies, with their rates: what laws couple and what users read.

An angle is kept as its cosine and sine, so that nothing jumps when a body has gone round.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.mechanisms.pose import Pose, Row, Vector, moment, point
from retrax.numerics.frozen import Frozen

Scalar = Float[Array, ""]


class Measured(NamedTuple):
    """A number between two bodies, and its derivative by the velocity of each."""

    value: Scalar
    first: Row
    second: Row


class Turn(Frozen):
    r"""The angle by which the direction `f` of the second body is turned, seen from the first.

    It is measured from `e` towards `n`, unit vectors of the first body at right angles:
    $\cos\theta = R_ae\cdot R_bf$ and $\sin\theta = R_an\cdot R_bf$.
    """

    e: Vector
    n: Vector
    f: Vector

    def cosine(self, a: Pose, b: Pose) -> Measured:
        """Return $R_ae\\cdot R_bf$."""
        return _product(self.e, self.f, a, b)

    def sine(self, a: Pose, b: Pose) -> Measured:
        """Return $R_an\\cdot R_bf$."""
        return _product(self.n, self.f, a, b)

    def angle(self, a: Pose, b: Pose) -> Measured:
        """Return the angle, between -pi and pi, and its derivatives."""
        c, s = self.cosine(a, b), self.sine(a, b)
        square = c.value * c.value + s.value * s.value
        p, q = c.value / square, s.value / square
        return Measured(
            jnp.arctan2(s.value, c.value),
            p * s.first - q * c.first,
            p * s.second - q * c.second,
        )


class Tilt(Frozen):
    r"""The angle by which a direction `f` of the second body rises from the plane across `e` of the
    first, $\sin\theta = R_ae\cdot R_bf$, between $-\pi/2$ and $\pi/2$."""

    e: Vector
    f: Vector

    def angle(self, a: Pose, b: Pose) -> Measured:
        """Return the angle and its derivatives, which grow without end towards a right angle."""
        s = _product(self.e, self.f, a, b)
        slope = 1 / jnp.sqrt((1 - s.value) * (1 + s.value))
        return Measured(jnp.arcsin(s.value), slope * s.first, slope * s.second)


class Travel(Frozen):
    r"""How far a point of the second body lies from one of the first, along a direction of that.

    $$ R_an\cdot(x_b + R_bs_b - x_a) - n\cdot s_a. $$
    """

    n: Vector
    a: Vector
    b: Vector

    def distance(self, a: Pose, b: Pose) -> Measured:
        """Return the travel in metres, and its derivatives."""
        along = a.R @ self.n
        seen = a.R.T @ (point(b, self.b) - a.x)
        return Measured(
            self.n @ (seen - self.a),
            jnp.concatenate([moment(self.n, seen), -along]),
            jnp.concatenate([moment(self.b, b.R.T @ along), along]),
        )


def _product(e: Vector, f: Vector, a: Pose, b: Pose) -> Measured:
    """Return the product of a direction of one body with one of another."""
    seen = a.R.T @ (b.R @ f)
    still = jnp.zeros_like(a.x)
    return Measured(
        e @ seen,
        jnp.concatenate([moment(e, seen), still]),
        jnp.concatenate([moment(f, b.R.T @ (a.R @ e)), still]),
    )


class Coordinate(Frozen):
    """An angle or a travel that a joint leaves free, of its second body against its first.

    **Attributes:** `measure`: what is measured; `backwards`: whether it is measured from the second
    body.
    """

    measure: Turn | Tilt | Travel
    backwards: bool = eqx.field(static=True, default=False)

    @property
    def is_angle(self) -> bool:
        """Whether this is an angle, and not a travel."""
        return not isinstance(self.measure, Travel)

    def of(self, a: Pose, b: Pose) -> Measured:
        """Return its value and the derivatives by the velocities of the first and second body."""
        one, two = (b, a) if self.backwards else (a, b)
        if isinstance(self.measure, Travel):
            found = self.measure.distance(one, two)
        else:
            found = self.measure.angle(one, two)
        return Measured(found.value, found.second, found.first) if self.backwards else found

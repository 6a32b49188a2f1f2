r"""One joint follows another: mimic joints of a URDF, joint equalities of a MJCF."""

from fractions import Fraction

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.mechanisms.couplings import AbstractCoupling, Free, JointOrName
from retrax.mechanisms.laws import AbstractLaw, Blocks, Geared, Residual, Side, Threaded
from retrax.mechanisms.measures import Measured, Tilt, Travel, Turn
from retrax.mechanisms.pose import Pose
from retrax.mechanisms.springs import single
from retrax.mechanisms.written import require_name

Measure = Turn | Tilt | Travel
# A ratio of angles is one of teeth if some wheels of up to so many make it.
_MOST_TEETH = 60
_SAME = 1e-9


class Polynomial(AbstractLaw):
    r"""A coordinate follows another, $q_1 - \sum_kc_kq_2^k = 0$; angles stay between $-\pi$ and $\pi$.

    **Attributes:** `first`, `second`: what is measured, between the first two and the last two
    bodies; `coefficients`: $c_0, c_1, \dots$
    """

    first: Measure
    second: Measure
    coefficients: Float[Array, " degree"]

    @property
    def count(self) -> int:
        return 1

    def residual(self, *poses: Pose) -> Residual:
        one, two = _value(self.first, *poses[:2]), _value(self.second, *poses[2:])
        return jnp.stack([one.value - jnp.polyval(self.coefficients[::-1], two.value)])

    def rows(self, *poses: Pose) -> Blocks:
        one, two = _value(self.first, *poses[:2]), _value(self.second, *poses[2:])
        powers = jnp.arange(1.0, len(self.coefficients))
        slope = jnp.polyval((self.coefficients[1:] * powers)[::-1], two.value)
        return (
            one.first[None],
            one.second[None],
            (-slope * two.first)[None],
            (-slope * two.second)[None],
        )


class Swapped(AbstractLaw):
    """A law between two pairs of bodies, told to the second pair first."""

    law: AbstractLaw

    @property
    def count(self) -> int:
        return self.law.count

    def residual(self, *poses: Pose) -> Residual:
        return self.law.residual(*poses[2:], *poses[:2])

    def rows(self, *poses: Pose) -> Blocks:
        rows = self.law.rows(*poses[2:], *poses[:2])
        return *rows[2:], *rows[:2]

    def side(self, *poses: Pose) -> Side:
        return self.law.side(*poses[2:], *poses[:2])


class Follow(AbstractCoupling):
    r"""A joint follows another, $q_1 = \sum_kc_kq_2^k$.

    Two angles in a ratio of whole numbers mesh as gears do, and an angle with a travel as a pinion
    with its rack, so that turns need not be counted; else angles stay between $-\pi$ and $\pi$.

    **Arguments:** `follower`, `leader`: joints with one coordinate each, or their names;
    `coefficients`: $c_0, c_1, \dots$; `name`.
    """

    def __init__(
        self,
        follower: JointOrName,
        leader: JointOrName,
        coefficients: tuple[float, ...],
        name: str | None = None,
    ):
        self.joints, self.name = (follower, leader), require_name(name)
        self.coefficients = coefficients

    def law(self, first: Free, second: Free) -> AbstractLaw:
        one, two = single(first, "a coupling").measure, single(second, "a coupling").measure
        offset, ratio, *more = (*self.coefficients, 0.0, 0.0)
        if not any(more) and ratio != 0:
            if isinstance(one, Turn) and isinstance(two, Turn):
                teeth = Fraction(ratio).limit_denominator(_MOST_TEETH)
                whole = np.array([teeth.denominator, -teeth.numerator], dtype=float)
                if abs(float(teeth) - ratio) < _SAME and np.max(np.abs(whole)) <= _MOST_TEETH:
                    return Geared(_from(one, offset), two, jnp.asarray(whole))
            elif isinstance(one, Turn) and isinstance(two, Travel):
                return Threaded(_from(one, offset), two, jnp.asarray(1 / ratio))
            elif isinstance(one, Travel) and isinstance(two, Turn):
                moved = Travel(one.n, one.a + offset * one.n, one.b)
                return Swapped(Threaded(two, moved, jnp.asarray(ratio)))
        return Polynomial(one, two, jnp.asarray(self.coefficients))


def _from(turn: Turn, zero: float) -> Turn:
    """Return an angle counted from `zero`."""
    c, s = np.cos(zero), np.sin(zero)
    return Turn(c * turn.e + s * turn.n, c * turn.n - s * turn.e, turn.f)


def _value(measure: Measure, a: Pose, b: Pose) -> Measured:
    return measure.distance(a, b) if isinstance(measure, Travel) else measure.angle(a, b)

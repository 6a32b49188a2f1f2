r"""One joint follows another: mimic joints of a URDF, joint equalities of a MJCF."""

from fractions import Fraction

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.mechanisms.couplings import AbstractCoupling, Free, JointOrName
from retrax.mechanisms.laws import AbstractLaw, Blocks, Geared, Residual, Side, Threaded
from retrax.mechanisms.measures import Coordinate, Travel, Turn
from retrax.mechanisms.pose import Pose
from retrax.mechanisms.springs import single
from retrax.mechanisms.written import require_name

# A ratio of angles is one of teeth if some wheels of up to so many make it.
_MOST_TEETH = 60
_SAME = 1e-9


class Polynomial(AbstractLaw):
    r"""A coordinate follows another, $q_1 - \sum_kc_kq_2^k = 0$; angles stay within $\pm\pi$.

    **Attributes:** `first`, `second`: the coordinates, of the first two and of the last two bodies;
    `coefficients`: $c_0, c_1, \dots$
    """

    first: Coordinate
    second: Coordinate
    coefficients: Float[Array, " degree"]

    @property
    def count(self) -> int:
        return 1

    def residual(self, *poses: Pose) -> Residual:
        one, two = self.first.of(*poses[:2]), self.second.of(*poses[2:])
        return jnp.stack([one.value - jnp.polyval(self.coefficients[::-1], two.value)])

    def rows(self, *poses: Pose) -> Blocks:
        one, two = self.first.of(*poses[:2]), self.second.of(*poses[2:])
        powers = jnp.arange(1.0, len(self.coefficients))
        slope = jnp.polyval((self.coefficients[1:] * powers)[::-1], two.value)
        return (
            one.first[None],
            one.second[None],
            (-slope * two.first)[None],
            (-slope * two.second)[None],
        )


class Reordered(AbstractLaw):
    """A law that is told its bodies in another order.

    **Attributes:** `law`; `order`: which body comes when.
    """

    law: AbstractLaw
    order: tuple[int, ...] = eqx.field(static=True)

    @property
    def count(self) -> int:
        return self.law.count

    def residual(self, *poses: Pose) -> Residual:
        return self.law.residual(*(poses[k] for k in self.order))

    def rows(self, *poses: Pose) -> Blocks:
        rows = self.law.rows(*(poses[k] for k in self.order))
        return tuple(rows[self.order.index(k)] for k in range(len(rows)))

    def side(self, *poses: Pose) -> Side:
        return self.law.side(*(poses[k] for k in self.order))


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

    @property
    def kind(self) -> str:
        return "Gear"

    def law(self, first: Free, second: Free) -> AbstractLaw:
        one, two = single(first, "a coupling"), single(second, "a coupling")
        offset, ratio, *more = (*self.coefficients, 0.0, 0.0)
        pair, other = (1, 0) if one.backwards else (0, 1), (3, 2) if two.backwards else (2, 3)
        if ratio != 0 and not any(more):
            if isinstance(one.measure, Turn) and isinstance(two.measure, Turn):
                teeth = Fraction(ratio).limit_denominator(_MOST_TEETH)
                whole = np.array([teeth.denominator, -teeth.numerator], dtype=float)
                if abs(float(teeth) - ratio) < _SAME and np.max(np.abs(whole)) <= _MOST_TEETH:
                    geared = Geared(_from(one.measure, offset), two.measure, jnp.asarray(whole))
                    return Reordered(geared, (*pair, *other))
            elif isinstance(one.measure, Turn) and isinstance(two.measure, Travel):
                threaded = Threaded(_from(one.measure, offset), two.measure, jnp.asarray(1 / ratio))
                return Reordered(threaded, (*pair, *other))
            elif isinstance(one.measure, Travel) and isinstance(two.measure, Turn):
                travel = one.measure
                moved = Travel(travel.n, travel.a + offset * travel.n, travel.b)
                threaded = Threaded(two.measure, moved, jnp.asarray(ratio))
                return Reordered(threaded, (*other, *pair))
        return Polynomial(one, two, jnp.asarray(self.coefficients))


def _from(turn: Turn, zero: float) -> Turn:
    """Return an angle counted from `zero`."""
    c, s = np.cos(zero), np.sin(zero)
    return Turn(c * turn.e + s * turn.n, c * turn.n - s * turn.e, turn.f)

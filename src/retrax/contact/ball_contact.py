r"""Contact of many balls with each other and with what stands in space.

With what is touched as a point or the axis of a capsule at $c$, a ball of radius $r$ at $x$ has

$$ \gamma = |x - c| - r - R, \qquad n = \frac{x - c}{|x - c|}, \tag{1} $$

where another ball is $c = x_j$, $R = r_j$, a post that with half length $l$ and axis $a$ has
$c = b + \mathrm{clip}(a\cdot(x - b), -l, l)\,a$, and a plane $\gamma = n\cdot(x - b) - r$.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from retrax.contact.capsules import Numbers, Points, dot
from retrax.contact.node_contact import (
    AbstractNodeContact,
    AbstractSpots,
    Closest,
    Looking,
    Met,
    Pairs,
    between,
    standing,
)
from retrax.contact.rows import FAR, Places
from retrax.contact.shapes import AbstractSurface, Ball, Capsule, Plane
from retrax.numerics.checks import ArrayLike, positive64, require_whole

# The skin, in radii of the smallest ball, and pairs for each ball, unless the user says which.
_SKIN, _NEIGHBOURS = 0.5, 8
# Pairs of balls whose distances are found at once.
_AT_ONCE = 1 << 16


class _Bodies(NamedTuple):
    """What stands in space: `flat` is 1 for a plane, and `axis` its normal."""

    at: Places
    axis: Places
    half: Numbers
    radius: Numbers
    flat: Numbers


class _Core(NamedTuple):
    """What each ball of some pairs is near: `ball` is 1 where it is another ball."""

    at: Points
    axis: Points
    half: Numbers
    radius: Numbers
    flat: Numbers
    ball: Bool[Array, " m"]


class BallContact(AbstractNodeContact):
    """What balls may touch: each other, and what stands in space.

    **Arguments:** as of `rx.systems.Balls`; `radius` of each ball.
    """

    radius: Float[Array, " n"]
    friction: Float[Array, ""]
    restitution: Float[Array, ""]
    skin: Float[Array, ""]
    against: tuple[AbstractSurface, ...]
    capacity: int | None = eqx.field(static=True)
    kinds: ClassVar[int] = 1
    spread: ClassVar[int] = 0

    def __init__(
        self,
        radius: Float[Array, " n"],
        friction: ArrayLike,
        restitution: ArrayLike,
        *,
        against: Sequence[AbstractSurface],
        skin: ArrayLike | None,
        capacity: int | None,
    ):
        self.radius = radius
        self.friction = between("friction", friction, 0.0, math.inf)
        self.restitution = between("restitution", restitution, 0.0, 1.0)
        self.skin = _SKIN * jnp.min(radius) if skin is None else positive64("skin", skin)
        self.against = standing(against, "balls")
        self.capacity = None if capacity is None else require_whole("capacity", capacity, 1, 10**7)

    @property
    def extent(self) -> Float[Array, ""]:
        return jnp.max(self.radius)

    @property
    def listed(self) -> bool:
        return True

    @property
    def strands(self) -> tuple[int, ...]:
        return (len(self.radius),)

    @property
    def things(self) -> tuple[str, ...]:
        return ("balls",)

    def part(self, node: int) -> str:
        return f"ball {node}"

    @property
    def listed_things(self) -> tuple[str, str]:
        return "pairs", "Balls"

    def room(self, nodes: int) -> int:
        most = nodes * (nodes - 1) // 2 + nodes * len(self.against)
        usual = (_NEIGHBOURS + len(self.against)) * nodes
        return max(1, min(most, usual if self.capacity is None else self.capacity))

    def slots(self, nodes: int) -> int:
        return self.room(nodes)

    def cores(self, places: Places, second: Pairs) -> _Core:
        """Return what is touched."""
        n, many = len(self.radius), len(self.against)
        ball = second < n
        there = jnp.minimum(second, n - 1)
        at, radius = places[there], self.radius[there]
        none = jnp.zeros_like(radius)
        if many == 0:
            return _Core(at, jnp.zeros_like(at), none, radius, none, ball)
        rows = [_row(shape) for shape in self.against]
        bodies = _Bodies(*(jnp.stack([row[k] for row in rows]) for k in range(5)))
        k = jnp.maximum(second - n, 0)
        wide = jnp.broadcast_to(ball[:, None], at.shape)
        return _Core(
            jnp.where(wide, at, bodies.at[k]),
            jnp.where(wide, 0.0, bodies.axis[k]),
            jnp.where(ball, 0.0, bodies.half[k]),
            jnp.where(ball, radius, bodies.radius[k]),
            jnp.where(ball, 0.0, bodies.flat[k]),
            ball,
        )

    def apart(self, places: Places, first: Pairs, core: _Core) -> tuple[Numbers, Points, Numbers]:
        """Return (1) for pairs: gaps, normals, and how far the first is from the core."""
        apart = places[first] - core.at
        along = dot(apart, core.axis)
        inside = jnp.minimum(jnp.maximum(along, -core.half), core.half)
        point = apart - inside[:, None] * core.axis
        far = jnp.sqrt(dot(point, point))
        normal = point / jnp.where(far > 0, far, 1.0)[:, None]
        on_plane = core.flat > 0
        far = jnp.where(on_plane, along, far)
        normal = jnp.where(jnp.broadcast_to(on_plane[:, None], point.shape), core.axis, normal)
        return far - core.radius - self.radius[first], normal, far

    def gaps(self, g: tuple[Array, Points]) -> Numbers:
        """Return how far every ball is from those before it, then from what stands in space."""
        _, places = g
        n = len(places)
        every = jnp.arange(n, dtype=jnp.int32)

        def others(i: Int[Array, ""]) -> Float[Array, ""]:
            gap, _, _ = self.apart(places, jnp.full(n, i, jnp.int32), self.cores(places, every))
            return jnp.min(jnp.where(every < i, gap, jnp.inf))

        parts = [lax.map(others, every, batch_size=max(1, min(n, _AT_ONCE // n)))]
        for k in range(len(self.against)):
            core = self.cores(places, jnp.full(n, n + k, jnp.int32))
            gap, _, _ = self.apart(places, every, core)
            parts.append(gap)
        return jnp.concatenate(parts)

    def overlap(self, candidate: int, depth: float) -> str:
        kind, ball = divmod(candidate, len(self.radius))
        other = "a ball before it" if kind == 0 else f"the {self.against[kind - 1].name}"
        return (
            f"ball {ball} and {other} overlap by {depth:.3g} m in this state. Move them apart by "
            "as much, or take smaller radii."
        )

    def looking(self, places: Places, skin: Float[Array, ""]) -> Looking:
        n = len(places)

        def near(i: Int[Array, ""], j: Int[Array, ""]) -> Bool[Array, ""]:
            r, reach = places[i] - places[j], self.radius[i] + self.radius[j] + skin
            return r @ r <= reach * reach

        def near_other(i: Int[Array, ""], k: Int[Array, ""]) -> Bool[Array, ""]:
            gap, _, _ = self.apart(places, i[None], self.cores(places, (k + n)[None]))
            return gap[0] <= skin

        size = 2 * jnp.max(self.radius) + skin
        return Looking(places, size, near, len(self.against), near_other)

    def spots(self, first: Pairs, second: Pairs, used: Bool[Array, " pairs"]) -> "BallSpots":
        return BallSpots(self, first, second, used)

    def contact_name(self, first: int, second: int) -> str:
        other = f"ball {second}" if second >= 0 else f"the {self.against[-1 - second].name}"
        return f"The contact of ball {first} and {other}"


def _row(shape: AbstractSurface) -> tuple[Array, Array, Array, Array, Array]:
    """Return place, axis, half length and radius of a shape, and whether it is a plane."""
    none, one = jnp.zeros(()), jnp.ones(())
    if isinstance(shape, Plane):
        return shape.at, shape.normal, none, none, one
    if isinstance(shape, Capsule):
        return shape.at, shape.axis, shape.length / 2, shape.radius, none
    assert isinstance(shape, Ball)
    return shape.at, jnp.zeros(3), none, shape.radius, none


@dataclass(frozen=True)
class BallSpots(AbstractSpots):
    """Pairs of balls, or of a ball and what stands in space, and how many of them count."""

    contact: BallContact
    first: Pairs
    second: Pairs
    used: Bool[Array, " pairs"]
    lasting: ClassVar[bool] = True

    @property
    def pairs(self) -> Bool[Array, " pairs"]:
        """Which of them are two balls."""
        return self.second < len(self.contact.radius)

    @property
    def nodes(self) -> Int[Array, "m 2"]:
        return jnp.stack([self.first, jnp.where(self.pairs, self.second, self.first)], axis=1)

    def nearest(self, places: Places) -> None:
        return None

    def measure_gaps(self, places: Places, near: None) -> Met:
        contact = self.contact
        core = contact.cores(places, self.second)
        gap, normal, far = contact.apart(places, self.first, core)
        own, other = contact.radius[self.first], core.radius
        # One point for both: it divides the way between their centres as the radii do.
        both = jnp.where(self.pairs, far / (own + other), 1.0)
        one = jnp.ones_like(gap)
        second = jnp.where(self.pairs, -one, 0.0)
        arms = jnp.stack([-both * own, jnp.where(self.pairs, -both * other, 0.0)], axis=1)
        weights = jnp.stack([one, second], axis=1)
        return Met(jnp.where(self.used, gap, FAR), normal, weights, arms)

    def start_points(self, here: None, near: None) -> None:
        return None

    def where(self, near: None) -> Float[Array, "m 2"]:
        return jnp.zeros((len(self.first), 2))

    def points(self, where: Float[Array, "m 2"], touch: Bool[Array, " m"]) -> None:
        return None

    @property
    def sides(self) -> tuple[Pairs, Pairs]:
        n = len(self.contact.radius)
        return self.first, jnp.where(self.pairs, self.second, n - 1 - self.second)

    def closest(self, places: Places) -> Closest:
        gap = self.measure_gaps(places, None).gap
        return Closest(jnp.where(gap < FAR, gap, jnp.inf), *self.sides)

    def renew(self, *_: object) -> None:
        return None

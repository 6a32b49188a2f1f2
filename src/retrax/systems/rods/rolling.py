"""The contact of two rods: where it is, how it slips, and what forces there do to the nodes."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.product import Product
from retrax.groups.translation import Translation
from retrax.mechanics.constraints import AbstractConstraint
from retrax.mechanics.system import AbstractGroupSystem, ArrayLike, Coordinates
from retrax.numerics.bspline import bends, slopes, weights
from retrax.numerics.newton import NewtonStatus, newton
from retrax.numerics.small_matrices import cross, solve
from retrax.systems.rods.elastic import Placement
from retrax.systems.rods.meeting import Strand, printed_slip, slip
from retrax.systems.rods.rod import Rod

# Coordinates of one of the rods.
Part = Float[Array, " _part"]
Pair = tuple[Placement, Placement, Float[Array, "2"]]


class AbstractRollingPair(AbstractGroupSystem):
    """Two rods and the points at which they touch; `RodsInContact` says how they move."""

    first: eqx.AbstractVar[Rod]
    second: eqx.AbstractVar[Rod]
    radius: eqx.AbstractVar[Float[Array, ""]]
    width: eqx.AbstractVar[Float[Array, ""]]
    friction: eqx.AbstractVar[Float[Array, ""] | None]
    arcs: eqx.AbstractVar[tuple[Part, Part]]
    variant: eqx.AbstractVar[str]

    @property
    def group(self) -> Product:
        return Product(self.first.group, self.second.group, Translation(2))

    @property
    def rods(self) -> tuple[Rod, Rod]:
        return self.first, self.second

    def split(self, x: Coordinates) -> tuple[Part, Part]:
        """The parts of coordinates that belong to each rod."""
        one, two, _ = self.group.split(x)
        return one, two

    def joined(self, one: Part, two: Part, s: Any = None) -> Coordinates:
        return jnp.concatenate([one, two, jnp.zeros(2) if s is None else s])

    def strands(self, g: Pair) -> tuple[Strand, Strand]:
        one, two, s = g
        alpha = weights(self.arcs[0], s[0], self.first.spacing, self.width)
        beta = weights(self.arcs[1], s[1], self.second.spacing, self.width)
        return Strand(one[0], one[1], alpha), Strand(two[0], two[1], beta)

    def gap_vector(self, g: Pair) -> Float[Array, "3"]:
        r"""$d$, from the first centreline to the second at the contact."""
        first, second = self.strands(g)
        return second.point - first.point

    def gap(self, g: Pair) -> Float[Array, ""]:
        d = self.gap_vector(g)
        return jnp.sqrt(d @ d)

    def tangency(self, g: Pair) -> Float[Array, "2"]:
        """(2) of `meeting.py`: zero where s are the points closest to each other."""
        first, second = self.strands(g)
        d = second.point - first.point
        if self.variant == "printed 8":
            return jnp.stack([-d @ first.axis, d @ second.axis])
        one, two = self._along(slopes, g)
        return jnp.stack([-d @ one, d @ two])

    def curvature_of_gap(self, g: Pair) -> Float[Array, "2 2"]:
        """$H$: the contact is one of closest points only while it is positive definite."""
        if self.variant == "printed 8":
            one, two, s = g
            return jax.jacfwd(lambda x: self.tangency((one, two, x)))(s)
        d, (T1, T2), (K1, K2) = self.gap_vector(g), self._along(slopes, g), self._along(bends, g)
        across = -T1 @ T2
        rows = jnp.stack([T1 @ T1 - d @ K1, across]), jnp.stack([across, T2 @ T2 + d @ K2])
        return jnp.stack(rows)

    def _along(
        self, rule: Callable[..., Array], g: Pair
    ) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
        """Derivatives of both centrelines by the arc length, at the contact."""
        one, two, s = g
        alpha = rule(self.arcs[0], s[0], self.first.spacing, self.width)
        beta = rule(self.arcs[1], s[1], self.second.spacing, self.width)
        return alpha @ one[1], beta @ two[1]

    def touching(
        self, one: Placement, two: Placement, guess: ArrayLike
    ) -> tuple[Float[Array, "2"], NewtonStatus]:
        """The arc lengths at which the centrelines are closest, near `guess`."""
        return newton(lambda s: self.tangency((one, two, s)), jnp.asarray(guess), self.radius)

    def slip(self, g: Pair, xi: Coordinates) -> Float[Array, "3"]:
        """$C$: the velocity with which the surfaces slip."""
        one, two = self.split(xi)
        rule = printed_slip if self.variant == "printed 10" else slip
        return rule(*self.strands(g), self.first.parts(one), self.second.parts(two))

    def reactions(self, g: Pair) -> tuple[Coordinates, ...]:
        """What unit multipliers do to the nodes that are not held: the rows of the constraint."""
        units = jnp.eye(3)
        if self.variant == "printed 10":
            rest = jnp.zeros(self.group.dim)
            transposed = jax.linear_transpose(lambda xi: self.slip(g, xi), rest)
            rows = [transposed(units[i])[0] for i in range(3)]
            free = self.joined(self.first.mobility, self.second.mobility) > 0
            return tuple(jnp.where(free, row, 0.0) for row in rows)
        first, second = self.strands(g)
        d = second.point - first.point
        return tuple(
            self.joined(
                self.first.held(first.pushed(units[i], cross(d, units[i]) / 2)),
                self.second.held(second.pushed(-units[i], cross(d, units[i]) / 2)),
            )
            for i in range(3)
        )

    def mobile(self, mu: Coordinates) -> Coordinates:
        """Velocities of the nodes; those of the points of contact are left at zero."""
        one, two = self.split(mu)
        return self.joined(self.first.mobility * one, self.second.mobility * two)

    def yielding(self, rows: tuple[Coordinates, ...]) -> Float[Array, "3 3"]:
        """$A M^{-1} A^T$: how fast unit forces at the contact part the surfaces."""
        moved = [self.mobile(row) for row in rows]
        return jnp.stack([jnp.stack([jnp.sum(a * b) for b in moved]) for a in rows])

    def travel(self, g: Pair, one: Part, two: Part) -> Float[Array, "2"]:
        r"""$\dot s$, (4) of `meeting.py`."""
        moved = self.group.tangent(g, self.joined(one, two))
        _, rate = jax.jvp(self.tangency, (g,), (moved,))
        return -solve(self.curvature_of_gap(g), rate)

    def contact_force(self, g: Pair, lam: Float[Array, "3"]) -> dict[str, Float[Array, "..."]]:
        r"""The pressure $N = -\lambda\cdot\hat d$, the tangential part, and the friction needed."""
        if self.variant == "printed 10":  # its multipliers are in the frames of rod 1
            first, _ = self.strands(g)
            lam = first.mean(jax.vmap(jnp.matmul, (0, None))(first.frames, lam))
        d = self.gap_vector(g)
        axis = d / jnp.sqrt(d @ d)
        along = lam @ axis
        tangential = lam - along * axis
        needed = jnp.sqrt(tangential @ tangential)
        return {"pressure": -along, "tangential": tangential, "friction": -needed / along}


class NoSlip(AbstractConstraint):
    """The surfaces of two rods do not slip where they touch: three equations."""

    pair: AbstractRollingPair

    def rows(self, g: Pair, t: Float[Array, ""]) -> Float[Array, "3 dim"]:
        return jnp.stack(self.pair.reactions(g))

    def offset(self, g: Pair, t: Float[Array, ""]) -> Float[Array, "3"]:
        return jnp.zeros(3)

    @property
    def driven(self) -> bool:
        return False

    def check(self, group: Any) -> None:
        if group != self.pair.group:
            raise BadInput(f"the rods move on {self.pair.group.name}, not on {group.name}.")

    def violation(self, g: Pair, xi: Coordinates, t: Float[Array, ""]) -> Float[Array, "3"]:
        return self.pair.slip(g, xi)

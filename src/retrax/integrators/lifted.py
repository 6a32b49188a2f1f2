r"""Methods made of the map $D_s(g, x) = (g\,\tau(-s x),\ g\,\tau((1-s)x))$, and its lift."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup
from retrax.groups.retractions import AbstractRetraction, Exp
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates, Element
from retrax.numerics.checks import as_float, quote


class AbstractLifted(AbstractIntegrator):
    r"""A method with a retraction $\tau$ and a base point: the part $s$ of the step lies behind it.

    Symmetric and of order 2 for $s = \tfrac12$, of order 1 otherwise.

    **Arguments:**

    - `retraction`: the map $\tau$.
    - `s`: where the base point lies in the step, from 0 to 1.
    """

    kept: eqx.AbstractClassVar[frozenset[str]]  # what is preserved for every s

    retraction: AbstractRetraction = Exp()
    s: float = eqx.field(static=True, default=0.5)
    order: int = eqx.field(static=True, init=False)
    preserves: frozenset[str] = eqx.field(static=True, init=False)

    def __post_init__(self) -> None:
        self.s = require_base_point(self.s)
        self.order = 2 if self.s == 0.5 else 1
        self.preserves = self.kept | {"symmetric"} if self.s == 0.5 else self.kept

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.retraction!r}, s={self.s:g})"

    def covers(self, group: AbstractLieGroup, x: Coordinates) -> Bool[Array, ""]:
        """Return whether the retraction covers both parts of a step by `x`."""
        return self.retraction.covers(group, max(self.s, 1 - self.s) * x)


class LiftedMap(NamedTuple):
    r"""The cotangent lift of $D_s$, piece by piece.

    With $a$ the momentum of the start and $b$ that of the end, both carried to the base $g$:

    $$
    \begin{aligned}
    g &= g_0\,\tau^*(s x), & a &= \mathrm{Ad}^*_{\tau^*(s x)}\mu_0                    &&\text{(1)}\\
    \mu &= s\,(d^L\tau^*_{s x})^* a + (1-s)\,(d^R\tau_{(1-s)x})^* b                &&&&\text{(2)}\\
    g_1 &= g\,\tau((1-s)x), & \mu_1 &= \mathrm{Ad}^*_{\tau((1-s)x)} b                 &&\text{(3)}
    \end{aligned}
    $$

    where $\tau^*(x) = \tau(-x)^{-1}$ is $\tau$ itself where $\tau$ is symmetric.

    References: [BarberoLinanMartinDeDiego2023].
    """

    group: AbstractLieGroup
    tau: AbstractRetraction
    s: float

    def base(self, g0: Element, mu0: Coordinates, x: Coordinates) -> tuple[Element, Coordinates]:
        if self.s == 0:
            return g0, mu0
        return self._move(self.tau.adjoint, g0, mu0, self.s * x)  # (1)

    def momentum(self, x: Coordinates, a: Coordinates, b: Coordinates) -> Coordinates:
        s = self.s
        first = s * self.tau.adjoint.dL_dual(self.group, s * x, a)
        return first + (1 - s) * self.tau.dR_dual(self.group, (1 - s) * x, b)  # (2)

    def end(self, g: Element, b: Coordinates, x: Coordinates) -> tuple[Element, Coordinates]:
        if self.s == 1:
            return g, b
        return self._move(self.tau, g, b, (1 - self.s) * x)  # (3)

    def _move(
        self, tau: AbstractRetraction, g: Element, mu: Coordinates, x: Coordinates
    ) -> tuple[Element, Coordinates]:
        forward = tau.minus_identity(self.group, x)
        return self.group.advance(g, forward), mu + self.group.coAdm1(forward, mu)


def require_base_point(s: object) -> float:
    """Reject a base point that does not lie in the step."""
    place = as_float(s)
    if not 0 <= place <= 1:
        raise BadInput(
            f"s = {quote(s)} is not between 0 and 1: the base point must lie in the step."
        )
    return place


def midpoint_velocity(
    system: AbstractGroupSystem, state: State, h: Float[Array, ""]
) -> Coordinates:
    r"""Guess the mean velocity of a step to $O(h^2)$,

    $\partial_\mu H(g, \mu + \tfrac h2\dot\mu, t + \tfrac h2)$.
    """
    now = system.vector_field(state.g, state.momentum, state.t)
    middle = system.at_time(state.t + h / 2)
    return middle.velocity(state.g, state.momentum + h / 2 * now.momentum_rate)


def as_momentum(state: State, xi: Coordinates) -> Float[Array, ""]:
    """Return the factor that makes velocities as large as momenta, to stand in one equation."""
    pace, size = jnp.max(jnp.abs(xi)), jnp.max(jnp.abs(state.momentum))
    moving = (pace > 0) & (size > 0)  # a force sets a body at rest in motion
    return jnp.where(moving, size / jnp.where(pace > 0, pace, 1), 1)

"""The tangent lift of a retraction: second-order equations on the tangent bundle."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.retractions import AbstractRetraction
from retrax.integrators.base import StepInfo, step_info
from retrax.integrators.lifted import AbstractLifted, midpoint_velocity
from retrax.mechanics.reactions import rate_of_velocity
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates, Element
from retrax.numerics.newton import newton
from retrax.numerics.roundoff import unseen_velocity


class TangentLift(AbstractLifted):
    r"""The tangent lift of $D_s(g, x) = (g\,\tau(-s x),\ g\,\tau((1-s)x))$.

    The variation of $D_s$ along $(\eta, y)$ is, left-trivialised at its two ends,
    $\mathrm{Ad}_{\tau(-s x)}^{-1}\eta - s\,d^L\tau_{-s x}\,y$ and
    $\mathrm{Ad}_{\tau((1-s)x)}^{-1}\eta + (1-s)\,d^L\tau_{(1-s)x}\,y$. A second-order equation
    $\dot\xi = \Gamma(g, \xi)$ has $\eta = \xi$, $x = h\xi$, and exchanging the two derivatives of
    $TTG$ adds $[x, \eta] = 0$ to $y = h\Gamma$; as $\xi$ commutes with $\tau(h\xi)$ what is left is

    $$
    \begin{aligned}
    g &= g_k\,\tau(s x), \qquad
        \xi_k = \xi - s\,h\,d^L\tau_{-s x}\,\Gamma(g, \xi, t)                        &&\text{(1)}\\
    g_{k+1} &= g\,\tau((1-s)x), \qquad
        \xi_{k+1} = \xi + (1-s)\,h\,d^L\tau_{(1-s)x}\,\Gamma(g, \xi, t)              &&\text{(2)}
    \end{aligned}
    $$

    For a $\tau$ that is no function of $\hat\xi$, such as `SecondKind`, the terms with
    $\mathrm{Ad}$ stay, and $\tau(s x)$ in (1) is $\tau(-s x)^{-1}$.

    Explicit for $s = 0$; symmetric and of order 2 for $s = \tfrac12$, of order 1 otherwise. Neither
    symplectic nor momentum preserving, and constraints are kept to the order only: for these use
    the cotangent lift and `LagrangeDAlembert`.

    **Arguments:**

    - `retraction`: the map $\tau$.
    - `s`: where the base point lies in the step, from 0 to 1.

    References: [BarberoLinanMartinDeDiego2023].
    """

    kept: ClassVar[frozenset[str]] = frozenset({"group"})

    def check(self, system: AbstractGroupSystem) -> None:
        self.retraction.check(system.group)

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        group, tau, s, t = system.group, self.retraction, self.s, state.t + self.s * h

        def move(g: Element, map_: AbstractRetraction, x: Coordinates) -> Element:
            return group.advance(g, map_.minus_identity(group, x))

        def carry(map_: AbstractRetraction, x: Coordinates, xi: Coordinates) -> Coordinates:
            """Return the velocity after a step by `x`, which it may not commute with."""
            return xi if tau.commutes else group.Ad(map_(group, x), xi)

        def acceleration(g: Element, xi: Coordinates) -> Coordinates:
            mu = system.at_time(t).momentum(g, xi)
            rate = system.vector_field(g, mu, t).momentum_rate
            return rate_of_velocity(system, g, mu, t, xi, rate)

        def start(xi: Coordinates) -> Coordinates:
            gain = acceleration(move(state.g, tau.adjoint, s * h * xi), xi)
            before = carry(tau.adjoint, s * h * xi, xi)
            return before - s * h * tau.dL(group, -s * h * xi, gain)  # (1)

        xi0 = system.velocity_at(state)
        guess = midpoint_velocity(system, state, 2 * s * h)
        xi, status = newton(
            lambda xi: start(xi) - xi0, guess, jnp.max(jnp.abs(xi0)), unseen_velocity(h, state.g)
        )
        g = move(state.g, tau.adjoint, s * h * xi)
        gain = acceleration(g, xi)
        g1 = move(g, tau, (1 - s) * h * xi)
        after = carry(tau.adjoint, (s - 1) * h * xi, xi)
        xi1 = after + (1 - s) * h * tau.dL(group, (1 - s) * h * xi, gain)  # (2)
        covered = self.covers(group, h * xi)
        t1 = state.t + h
        end = State(g1, system.at_time(t1).momentum(g1, xi1), t1)
        return end, step_info(status, h * xi, covered)

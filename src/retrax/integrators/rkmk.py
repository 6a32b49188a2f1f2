"""Explicit Runge-Kutta: in the Lie algebra, by Munthe-Kaas, and blind to the group."""

from functools import partial
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.integrators.base import AbstractIntegrator, StepInfo, explicit_step
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates, Element
from retrax.numerics import tableaus

Phase = tuple[Element, Coordinates]


class RKMK(AbstractIntegrator):
    r"""An explicit Runge-Kutta method for $u$ in $g(t) = g_k\exp(u(t))$, and for $\mu$ beside it.

    $$
    \begin{aligned}
    u_i &= h\textstyle\sum_j a_{ij}\dot u_j, \qquad \mu_i = \mu_k + h\sum_j a_{ij}\dot\mu_j
                                                                   &&\text{(1)}\\
    \dot u_i &= d^L\exp^{-1}_{u_i}\xi(g_k\exp u_i, \mu_i), \qquad
        \dot\mu_i = \dot\mu(g_k\exp u_i, \mu_i, t_k + c_i h)         &&\text{(2)}\\
    g_{k+1} &= g_k\exp\bigl(h\textstyle\sum_i b_i\dot u_i\bigr), \qquad
        \mu_{k+1} = \mu_k + h\sum_i b_i\dot\mu_i                     &&\text{(3)}
    \end{aligned}
    $$

    The inverse tangent map in (2) is exact, so the order is that of the tableau. The configuration
    stays on the group; energy and momentum drift, slowly at high order.

    **Arguments:** `tableau`: a name (`"euler"`, `"midpoint"`, `"heun3"`, `"rk4"`, `"dopri5"`) or a
    `Tableau`.

    References: [MuntheKaas1999]; [IserlesMuntheKaasNorsettZanna2000].
    """

    tableau: tableaus.Tableau = eqx.field(static=True)
    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)
    needs_momentum: ClassVar[bool] = False

    def __init__(self, tableau: str | tableaus.Tableau = "rk4"):
        self.tableau = tableaus.tableau(tableau)
        self.order = self.tableau.order
        self.preserves = frozenset({"group"})

    def __repr__(self) -> str:
        return f"RKMK({self.tableau.name!r})"

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        end, u, _ = self._stages(system, state, h)
        return end, explicit_step(u, system.configuration_space.covers(u))

    def step_with_error(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo, Float[Array, ""]]:
        r"""Take a step; return it with its distance in the algebra from the embedded one.

        $$ \max\bigl(|u - \hat u|_\infty,\
           |\mu - \hat\mu|_\infty/\max(1, |\mu|_\infty)\bigr) $$
        """
        end, u, rates = self._stages(system, state, h)
        space = system.configuration_space
        last = system.vector_field(end.g, end.momentum, state.t + h)
        rates.append((space.dexp_inv(u, last.velocity), last.momentum_rate))
        u_other = _combine(h, self.tableau.embedded, [rate for rate, _ in rates], u)
        mu_other = state.momentum + _combine(
            h, self.tableau.embedded, [rate for _, rate in rates], state.momentum
        )
        error = jnp.maximum(jnp.max(jnp.abs(u - u_other)), momentum_error(end.momentum, mu_other))
        return end, explicit_step(u, space.covers(u)), error

    def _stages(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, Coordinates, list[tuple[Coordinates, Coordinates]]]:
        """Return the end of the step, the move to it, and the rates of all stages."""
        space, mu = system.configuration_space, state.momentum
        combine = partial(_combine, h)
        u_rates, mu_rates = [], []
        for row, c in zip(self.tableau.a, self.tableau.c, strict=True):
            u = combine(row, u_rates, mu)  # (1)
            g_i = space.move(state.g, u)
            now = system.vector_field(g_i, mu + combine(row, mu_rates, mu), state.t + c * h)
            u_rates.append(space.dexp_inv(u, now.velocity))  # (2)
            mu_rates.append(now.momentum_rate)
        u = combine(self.tableau.b, u_rates, mu)
        end = State(
            space.move(state.g, u), mu + combine(self.tableau.b, mu_rates, mu), state.t + h
        )  # (3)
        return end, u, list(zip(u_rates, mu_rates, strict=True))


def momentum_error(mu: Coordinates, other: Coordinates) -> Float[Array, ""]:
    """Return the largest difference of two momenta, relative to their size or to 1."""
    return jnp.max(jnp.abs(mu - other)) / jnp.maximum(1.0, jnp.max(jnp.abs(mu)))


def _combine(
    h: Float[Array, ""], weights: tuple[float, ...], rates: list[Coordinates], like: Coordinates
) -> Coordinates:
    return h * sum((w * r for w, r in zip(weights, rates, strict=True)), jnp.zeros_like(like))


class RungeKutta(AbstractIntegrator):
    r"""An explicit Runge-Kutta method for the entries of $(g, \mu)$, with $\dot g = g\,\hat\xi$.

    What people write first; here to be compared with. Nothing is preserved: rotation matrices
    leave the group at the order of the method.

    **Arguments:** `tableau`: a name (`"euler"`, `"midpoint"`, `"heun3"`, `"rk4"`, `"dopri5"`) or a
    `Tableau`.

    References: [HairerNorsettWanner1993].
    """

    tableau: tableaus.Tableau = eqx.field(static=True)
    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)
    needs_momentum: ClassVar[bool] = False

    def __init__(self, tableau: str | tableaus.Tableau = "rk4"):
        self.tableau = tableaus.tableau(tableau)
        self.order = self.tableau.order
        self.preserves = frozenset()

    def __repr__(self) -> str:
        return f"RungeKutta({self.tableau.name!r})"

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        start = (state.g, state.momentum)

        def displace(weights: tuple[float, ...], rates: list[Phase]) -> Phase:
            z = start
            for w, rate in zip(weights, rates, strict=True):
                z = jax.tree.map(lambda x, dx, w=w: x + h * w * dx, z, rate)
            return z

        rates, velocities, space = [], [], system.configuration_space
        for row, c in zip(self.tableau.a, self.tableau.c, strict=True):
            g, mu = displace(row, rates)
            now = system.vector_field(g, mu, state.t + c * h)
            velocities.append(now.velocity)
            rates.append((space.tangent(g, now.velocity), now.momentum_rate))
        g, mu = displace(self.tableau.b, rates)
        return State(g, mu, state.t + h), explicit_step(h * velocities[0])

"""Runge-Kutta-Munthe-Kaas: explicit Runge-Kutta in the Lie algebra."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.retractions import Exp
from retrax.integrators.base import AbstractIntegrator, StepInfo, explicit_step
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics import tableaus


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
        group, mu = system.group, state.momentum

        def combine(weights, rates):
            return h * sum((w * r for w, r in zip(weights, rates, strict=True)), jnp.zeros_like(mu))

        u_rates, mu_rates = [], []
        for row, c in zip(self.tableau.a, self.tableau.c, strict=True):
            u = combine(row, u_rates)  # (1)
            g_i = group.advance(state.g, group.expm1(u))
            now = system.vector_field(g_i, mu + combine(row, mu_rates), state.t + c * h)
            u_rates.append(group.dexp_inv(u, now.velocity))  # (2)
            mu_rates.append(now.momentum_rate)
        u = combine(self.tableau.b, u_rates)
        end = State(
            group.advance(state.g, group.expm1(u)),
            mu + combine(self.tableau.b, mu_rates),
            state.t + h,
        )  # (3)
        return end, explicit_step(u, Exp().covers(group, u))

"""The implicit midpoint rule for strings in contact: the energy is exact."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.integrators.base import AbstractIntegrator, StepInfo, step_info
from retrax.integrators.contact_step import require_strings
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.newton import newton
from retrax.numerics.tridiagonal import solve_line, solve_ring
from retrax.systems.strings.strings_in_contact import Nodes, StringsInContact


class ContactMidpoint(AbstractIntegrator):
    r"""The implicit midpoint rule, the contact force acting at the midpoint.

    With bars for means of both ends, $\bar\alpha = \alpha(\bar s_1)$, $Lu = c^2u_{xx}$ and
    $A = 1 - \tfrac{h^2}4L$,

    $$
    \begin{aligned}
    A\,\bar{\dot u} &= \dot u + \tfrac h2Lu - \kappa\,\bar\alpha, \qquad
    A\,\bar{\dot v} = \dot v + \tfrac h2Lv + F\kappa\,\bar\beta, \qquad
    \kappa = h\lambda/2d                                                       &&\text{(1)}\\
    U &= \bar\alpha\cdot\bar{\dot u} = F\,\bar\beta\cdot\bar{\dot v}           &&\text{(2)}\\
    \bar s &= s + \tfrac h2\,(G_1U,\ G_2U/F)                                    &&\text{(3)}
    \end{aligned}
    $$

    For given $\bar s$ (1) and (2) are linear, so all of it is one equation for the number $U$; its
    residual costs two tridiagonal solves. The contact does no work, $\lambda\,(\bar\alpha\cdot
    \bar{\dot u} - F\bar\beta\cdot\bar{\dot v}) = 0$, and the rest of the energy is quadratic: it is
    conserved at any step size, and so is $G_2s_1 - FG_1s_2$.

    Rounding is kept from acting one way in every step by solving for what changes:

    $$ \bar{\dot u} = \dot u
       + A^{-1}\bigl[\tfrac h2L(u + \tfrac h2\dot u) - \kappa\,\bar\alpha\bigr]. \tag{4} $$

    References: [GayBalmazPutkaradze2012] (the model); [HairerLubichWanner2006] (quadratic
    invariants).
    """

    order: ClassVar[int] = 2
    preserves: ClassVar[frozenset[str]] = frozenset({"group", "momentum", "symmetric", "energy"})

    def check(self, system: AbstractGroupSystem) -> None:
        require_strings(self, system)

    def step(
        self, system: StringsInContact, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        (u, v, s), (u_t, v_t) = state.g, system.rates(state.momentum)
        F, d = system.F, system.spacing
        paces = jnp.stack([system.G[0], system.G[1] / F])
        gain_u = _smoothed(system, h, h / 2 * system.pull(u + h / 2 * u_t))
        gain_v = _smoothed(system, h, h / 2 * system.pull(v + h / 2 * v_t))
        free_u, free_v = u_t + gain_u, v_t + gain_v  # (4)

        def contact(U):
            places = s + h / 2 * paces * U  # (3)
            a, b = system.weights(places[0]), system.weights(places[1])
            return a, b, _smoothed(system, h, a), _smoothed(system, h, b)

        def common_rate(U):
            a, b, Aa, Ab = contact(U)
            p, q = a @ Aa, F * F * (b @ Ab)
            return (q * (a @ free_u) + p * F * (b @ free_v)) / (p + q)  # (1), (2)

        first = system.weights(s[0]) @ u_t
        scale = jnp.max(jnp.abs(free_u)) + jnp.abs(F) * jnp.max(jnp.abs(free_v))
        root, status = newton(lambda U: U - common_rate(U[0])[None], first[None], scale)
        U = root[0]
        a, b, Aa, Ab = contact(U)
        kappa = (a @ free_u - F * (b @ free_v)) / (a @ Aa + F * F * (b @ Ab))
        change = [gain_u - kappa * Aa, gain_v + F * kappa * Ab, jnp.zeros(2)]  # (1), (4)
        u_mean, v_mean = u_t + change[0], v_t + change[1]
        end = (u + h * u_mean, v + h * v_mean, s + h * paces * U)
        momentum = state.momentum + 2 * d * jnp.concatenate(change)
        move = h * jnp.stack([jnp.max(jnp.abs(u_mean)), jnp.max(jnp.abs(v_mean))])
        return State(end, momentum, state.t + h), step_info(status, move, jnp.asarray(True))


def _smoothed(system: StringsInContact, h: Float[Array, ""], b: Nodes) -> Nodes:
    r"""$A^{-1}b$."""
    ratio = (h * system.c / (2 * system.spacing)) ** 2
    if system.ends == "periodic":
        return solve_ring(1 + 2 * ratio, -ratio, b)
    return solve_line(jnp.ones_like(b) * (1 + 2 * ratio), -ratio, b)

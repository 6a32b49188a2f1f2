"""Strings in contact: drift, kick, drift, and the implicit midpoint rule."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.integrators.base import AbstractIntegrator, Refusal, StepInfo, step_info, worse
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.newton import NewtonStatus, newton
from retrax.numerics.tridiagonal import solve_line, solve_ring
from retrax.systems.strings.strings_in_contact import Nodes, StringsInContact

Scalar = Float[Array, ""]


class AbstractStringsMethod(AbstractIntegrator):
    """A step of two strings in contact."""

    def check(self, system: AbstractGroupSystem) -> None:
        """Reject everything but a pair of strings."""
        if not isinstance(system, StringsInContact):
            raise BadInput(
                f"{type(self).__name__} needs StringsInContact, whose contacts carry no momentum, "
                f"got the {system.name}; use LieVerlet or, under a constraint, LagrangeDAlembert."
            )


class ContactDKD(AbstractStringsMethod):
    r"""Half a drift, a kick with the contact force, half a drift.

    With $\alpha = \alpha(s_1^{1/2})$, $\beta = \beta(s_2^{1/2})$, $Lu = c^2u_{xx}$, segments $d$,

    $$
    \begin{aligned}
    s_1^{1/2} &= s_1 + \tfrac h2G_1\,\alpha\cdot\dot u, \qquad
    u^{1/2} = u + \tfrac h2\dot u                                                  &&\text{(1)}\\
    \dot u^+ &= \dot u + h\,(Lu^{1/2} - \lambda\alpha/d), \qquad
    \dot v^+ = \dot v + h\,(Lv^{1/2} + F\lambda\beta/d)                             &&\text{(2)}\\
    \alpha\cdot(\dot u + \dot u^+) &= F\beta\cdot(\dot v + \dot v^+)                 &&\text{(3)}\\
    u^+ &= u^{1/2} + \tfrac h2\dot u^+, \qquad
    s_1^+ = s_1^{1/2} + \tfrac h2G_1\,\alpha\cdot\dot u^+                           &&\text{(4)}
    \end{aligned}
    $$

    and the same for $v$ and $s_2$. The place in (1) is one equation for one number; (3) gives
    $\lambda$ directly. At every step size

    $$ \tilde E = E - \tfrac{h^2}4\,V(\dot u, \dot v) \tag{5} $$

    is conserved exactly, $V$ being the potential energy, here of the velocities: with $\bar u =
    u^{1/2}$ both ends have $\tilde E = \tfrac d2|\dot u|^2 + V(\bar u) \mp h\,V'(\bar u)\dot u/2$.
    So is $G_2s_1 - FG_1s_2$. $\tilde E$ is positive for $h < d/c$, and longer steps are rejected.

    References: [GayBalmazPutkaradze2012] (the model); [HairerLubichWanner2006] (splitting).
    """

    order: ClassVar[int] = 2
    preserves: ClassVar[frozenset[str]] = frozenset({"group", "momentum", "symmetric"})

    def refusal(self, system: StringsInContact, state: State, h: float, moved: float) -> Refusal:
        longest = float(system.spacing / system.c)
        if abs(h) >= longest:
            return Refusal(
                "was not taken",
                f"A wave of speed c = {float(system.c):g} crosses a segment in {longest:.3g} s, "
                "and an explicit step must be shorter.",
                longest / 2,
            )
        return super().refusal(system, state, h, moved)

    def exact_integrals(
        self, system: StringsInContact, state: State, h: Scalar, kept: tuple = ()
    ) -> dict[str, Scalar]:
        u_t, v_t = system.rates(state.momentum)
        of_rates = system.stretching(u_t) + system.stretching(v_t)
        return {"modified energy": system.energy(state) - h * h / 4 * of_rates}  # (5)

    def step(self, system: StringsInContact, state: State, h: Scalar) -> tuple[State, StepInfo]:
        (u, v, s), (u_t, v_t) = state.g, system.rates(state.momentum)
        F, G, d = system.F, system.G, system.spacing
        s1, status1 = _midway(system, s[0], h / 2 * G[0], u_t)  # (1)
        s2, status2 = _midway(system, s[1], h / 2 * G[1], v_t)
        u_half, v_half = u + h / 2 * u_t, v + h / 2 * v_t
        a, b = system.weights(s1), system.weights(s2)
        pull_u, pull_v = system.pull(u_half), system.pull(v_half)
        mismatch = 2 / h * (a @ u_t - F * (b @ v_t)) + a @ pull_u - F * (b @ pull_v)
        force = mismatch / (a @ a + F * F * (b @ b))  # (3): lambda / d
        kick = [h * (pull_u - force * a), h * (pull_v + F * force * b), jnp.zeros(2)]
        u_end, v_end = u_t + kick[0], v_t + kick[1]  # (2)
        speeds = G * jnp.stack([a @ u_end, b @ v_end])
        s_end = jnp.stack([s1, s2]) + h / 2 * speeds  # (4)
        g = (u_half + h / 2 * u_end, v_half + h / 2 * v_end, s_end)
        # Added to the momentum: to divide by d and multiply again would round one way in each step.
        momentum = state.momentum + d * jnp.concatenate(kick)
        allowed = jnp.abs(h) * system.c < d
        move = h * jnp.stack([jnp.max(jnp.abs(u_end)), jnp.max(jnp.abs(v_end))])
        return State(g, momentum, state.t + h), step_info(worse(status1, status2), move, allowed)


def _midway(
    system: StringsInContact,
    s: Scalar,
    factor: Scalar,
    rate: Nodes,
) -> tuple[Scalar, NewtonStatus]:
    """Return where the contact is after half a drift: (1)."""

    def mismatch(x: Float[Array, "1"]) -> Float[Array, "1"]:
        return x - s - factor * (system.weights(x[0]) @ rate)

    place, status = newton(mismatch, s[None])
    return place[0], status


class ContactMidpoint(AbstractStringsMethod):
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

    def step(self, system: StringsInContact, state: State, h: Scalar) -> tuple[State, StepInfo]:
        (u, v, s), (u_t, v_t) = state.g, system.rates(state.momentum)
        F, d = system.F, system.spacing
        paces = jnp.stack([system.G[0], system.G[1] / F])
        gain_u = _smooth(system, h, h / 2 * system.pull(u + h / 2 * u_t))
        gain_v = _smooth(system, h, h / 2 * system.pull(v + h / 2 * v_t))
        free_u, free_v = u_t + gain_u, v_t + gain_v  # (4)

        def contact(U: Scalar) -> tuple[Nodes, Nodes, Nodes, Nodes]:
            """Return the weights of both contacts, and $A^{-1}$ times these."""
            places = s + h / 2 * paces * U  # (3)
            a, b = system.weights(places[0]), system.weights(places[1])
            return a, b, _smooth(system, h, a), _smooth(system, h, b)

        def common_rate(U: Scalar) -> Scalar:
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


def _smooth(system: StringsInContact, h: Scalar, b: Nodes) -> Nodes:
    r"""Return $A^{-1}b$."""
    ratio = (h * system.c / (2 * system.spacing)) ** 2
    if system.ends == "periodic":
        return solve_ring(1 + 2 * ratio, -ratio, b)
    return solve_line(jnp.ones_like(b) * (1 + 2 * ratio), -ratio, b)

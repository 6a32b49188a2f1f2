"""Drift, kick, drift for strings in contact: explicit, with an exact energy of its own."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.integrators.base import AbstractIntegrator, Refusal, StepInfo, step_info
from retrax.integrators.contact_step import require_strings
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.newton import NewtonStatus, newton
from retrax.systems.strings.strings_in_contact import StringsInContact


class ContactDKD(AbstractIntegrator):
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
    So is $G_2s_1 - FG_1s_2$. $\tilde E$ is positive for $h < d/c$, and longer steps are refused.

    References: [GayBalmazPutkaradze2012] (the model); [HairerLubichWanner2006] (splitting).
    """

    order: ClassVar[int] = 2
    preserves: ClassVar[frozenset[str]] = frozenset({"group", "momentum", "symmetric"})

    def check(self, system: AbstractGroupSystem) -> None:
        require_strings(self, system)

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
        self, system: StringsInContact, state: State, h: Float[Array, ""], kept: tuple = ()
    ) -> dict[str, Float[Array, ""]]:
        u_t, v_t = system.rates(state.momentum)
        of_rates = system.stretching(u_t) + system.stretching(v_t)
        return {"modified energy": system.energy(state) - h * h / 4 * of_rates}  # (5)

    def step(
        self, system: StringsInContact, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
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
        status = NewtonStatus(
            status1.converged & status2.converged,
            jnp.maximum(status1.residual, status2.residual),
            status1.iterations + status2.iterations,
        )
        allowed = jnp.abs(h) * system.c < d
        move = h * jnp.stack([jnp.max(jnp.abs(u_end)), jnp.max(jnp.abs(v_end))])
        return State(g, momentum, state.t + h), step_info(status, move, allowed)


def _midway(
    system: StringsInContact,
    s: Float[Array, ""],
    factor: Float[Array, ""],
    rate: Float[Array, " m"],
) -> tuple[Float[Array, ""], NewtonStatus]:
    """Where the contact is after half a drift: (1)."""

    def mismatch(x):
        return x - s - factor * (system.weights(x[0]) @ rate)

    place, status = newton(mismatch, s[None])
    return place[0], status

"""Stoermer-Verlet for systems with a discrete Lagrangian of their own: strings and rods."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.integrators.base import (
    AbstractIntegrator,
    Refusal,
    StepInfo,
    shorter_step,
    step_info,
    worse,
)
from retrax.mechanics.split import AbstractSplitSystem
from retrax.mechanics.state import State
from retrax.mechanics.system import Coordinates
from retrax.numerics.newton import NewtonStatus, Sizes, to_stagnation

_MOST = 60  # iterations for loads that depend on velocities


class KickDriftKick(AbstractIntegrator):
    r"""Kick, drift, kick, with the kick and the drift that an `AbstractSplitSystem` brings.

    With $T_d$ the discrete kinetic energy of the system, which solves the drift as it can,

    $$ \mu^+ = \mu_k + \tfrac h2 F(g_k, t_k) = -D_1T_d(g_k, g_{k+1}), \qquad
       \mu_{k+1} = D_2T_d(g_k, g_{k+1}) + \tfrac h2 F(g_{k+1}, t_{k+1}). \tag{1} $$

    Its loads may depend on the velocity $\xi(g, \mu)$ as well. They act with the velocity
    between kick and drift, at both ends of the step,

    $$ \mu^+ = \mu_k + \tfrac h2\bigl(F(g_k, t_k) + f(g_k, \xi(g_k, \mu^+), t_k)\bigr), \qquad
       \mu_{k+1} = \mu^- + \tfrac h2\bigl(F(g_{k+1}, t_{k+1})
       + f(g_{k+1}, \xi(g_{k+1}, \mu^-), t_{k+1})\bigr), \tag{2} $$

    the first solved by iteration, $\mu^-$ being the momentum after the drift. Each of the two is
    the other backwards in time, so that the step stays symmetric and of order 2.

    The force with which one step ends is the one with which the next begins: its memory.

    References: [MarsdenWest2001].
    """

    order: ClassVar[int] = 2
    preserves: ClassVar[frozenset[str]] = frozenset(
        {"group", "momentum", "symplectic", "symmetric"}
    )
    memory_saves_work: ClassVar[bool] = True

    def check(self, system: AbstractSplitSystem) -> None:
        system.check_split()

    def check_step(self, system: AbstractSplitSystem, state: State, h: float) -> None:
        system.check_step(state, h)

    def refusal(self, system: AbstractSplitSystem, state: State, h: float, moved: float) -> Refusal:
        why = system.why_not(state, h)
        if why is None:
            return super().refusal(system, state, h, moved)
        return Refusal("could not turn so far", why, shorter_step(h, moved))

    def memory(self, system: AbstractSplitSystem, state: State) -> Coordinates:
        """Return the force at `state`."""
        return system.kick(state.g, state.t)

    def step(
        self, system: AbstractSplitSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        new, info, _ = self.next_step(system, state, h, self.memory(system, state))
        return new, info

    def next_step(
        self, system: AbstractSplitSystem, state: State, h: Float[Array, ""], memory: Coordinates
    ) -> tuple[State, StepInfo, Coordinates]:
        mu0, t1 = state.momentum, state.t + h
        first, met = h / 2 * memory, None
        if system.feedback:
            first, met = kick_with_loads(system, state, h, first)
        ending = system.at_time(t1)
        g1, change, move, status, in_chart = ending.drift(state.g, mu0 + first, h)  # (1)
        force = system.kick(g1, t1)
        last = h / 2 * force
        if met is not None:
            xi = ending.velocity(g1, mu0 + (first + change))
            last = last + h / 2 * system.load(g1, xi, t1)  # (2)
            status = worse(status, met)
        mu1 = mu0 + (first + change + last)
        return State(g1, mu1, t1), step_info(status, move, in_chart), force


def kick_with_loads(
    system: AbstractSplitSystem, state: State, h: Float[Array, ""], kick: Coordinates
) -> tuple[Coordinates, NewtonStatus]:
    r"""Return the first half kick of (2), loads included: $\mu^+ - \mu_k$, by iteration."""
    g, mu, t = state.g, state.momentum, state.t
    now = system.at_time(t)

    def improve(change: Coordinates) -> tuple[Coordinates, Sizes]:
        xi = now.velocity(g, mu + change)
        load = h / 2 * system.load(g, xi, t)
        new = kick + load
        size = jnp.sum(jnp.abs(mu)) + jnp.sum(jnp.abs(kick)) + jnp.sum(jnp.abs(load))
        return new, (jnp.sum(jnp.abs(new - change)), size)

    unknown = jnp.asarray(jnp.inf), jnp.zeros(())
    return to_stagnation(improve, kick, unknown, most=_MOST, gain=0.9)

"""Variational Stoermer-Verlet on a Lie group."""

from typing import Any, TypeGuard

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from retrax.groups.retractions import AbstractRetraction, Cayley
from retrax.integrators.base import (
    AbstractIntegrator,
    Refusal,
    StepInfo,
    shorter_step,
    step_info,
)
from retrax.integrators.predictor import midpoint_velocity
from retrax.mechanics.split import AbstractSplitSystem
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates
from retrax.numerics.newton import NewtonStatus, newton

_EPS = float(jnp.finfo(jnp.float64).eps)
# Loads that depend on velocities are iterated to this, relative to the momenta; `_ACCEPT` will do.
_AIM, _ACCEPT, _MOST = 2 * _EPS, 64 * _EPS, 60


class LieVerlet(AbstractIntegrator):
    r"""Stoermer-Verlet on $T^*G$: half kick, implicit drift, half kick.

    From $(g_k, \mu_k)$, with $\tau$ the retraction, $p(g, \xi) = \partial L/\partial\xi$ the
    momentum and $F = dL + f$ the total force,

    $$
    \begin{aligned}
    \mu^+ &= \mu_k + \tfrac h2 F(g_k, \xi, t_k)                    &&\text{(1) kick}\\
    \mu^+ &= (d^R\tau^{-1}_{h\xi})^*\,\tfrac12\bigl(p(g_k, \xi) + p(g_{k+1}, \xi)\bigr)
                                                                   &&\text{(2) solve for } \xi\\
    g_{k+1} &= g_k\,\tau(h\xi)                                     &&\text{(3) drift}\\
    \mu_{k+1} &= \mathrm{Ad}^*_{\tau(h\xi)}\,\mu^+ + \tfrac h2 F(g_{k+1}, \xi, t_{k+1})
                                                                   &&\text{(4) kick}
    \end{aligned}
    $$

    These are the forced discrete Euler-Lagrange equations of
    $L_d = \tfrac h2 L(g_k, \xi) + \tfrac h2 L(g_{k+1}, \xi)$ with
    $\xi = \tau^{-1}(g_k^{-1}g_{k+1})/h$, so without external force the map is symplectic and
    conserves the momentum of every symmetry exactly; it is symmetric, hence of order 2, with or
    without. For $L = \tfrac12\langle\mathbb I\xi,\xi\rangle - V(g)$ the forces do not enter (2),
    whose right side is $(d^R\tau^{-1}_{h\xi})^*\mathbb I\xi$. One linear system of size `dim` per
    Newton iteration.

    A system that splits (`AbstractSplitSystem`: strings, rods) brings its own discrete kinetic
    energy $T_d$ in place of $\tfrac h2(L + L)$, and its own solution of (2); then, with `Cayley()`,

    $$ \mu^+ = \mu_k + \tfrac h2 F(g_k, t_k) = -D_1T_d(g_k, g_{k+1}), \qquad
       \mu_{k+1} = D_2T_d(g_k, g_{k+1}) + \tfrac h2 F(g_{k+1}, t_{k+1}). \tag{5} $$

    Its loads may depend on the velocity $\xi(g, \mu)$ as well. They act with the velocity
    between kick and drift, at both ends of the step,

    $$ \mu^+ = \mu_k + \tfrac h2\bigl(F(g_k, t_k) + f(g_k, \xi(g_k, \mu^+), t_k)\bigr), \qquad
       \mu_{k+1} = \mu^- + \tfrac h2\bigl(F(g_{k+1}, t_{k+1})
       + f(g_{k+1}, \xi(g_{k+1}, \mu^-), t_{k+1})\bigr), \tag{6} $$

    the first solved by iteration, $\mu^-$ being the momentum after the drift. Each of the two is
    the other backwards in time, so that the step stays symmetric and of order 2.

    With a retraction that is not symmetric, such as `SecondKind`, the order is 1.

    **Arguments:** `retraction`: the map $\tau$; `Cayley()` needs no trigonometric function.

    References: [BouRabeeMarsden2009] (the method); [MarsdenWest2001] (why it is symplectic).
    """

    retraction: AbstractRetraction
    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)

    def __init__(self, retraction: AbstractRetraction = Cayley()):
        self.retraction = retraction
        symmetric = getattr(retraction, "symmetric", True)  # what is no retraction is refused below
        self.order = 2 if symmetric else 1
        always = {"group", "momentum", "symplectic"}
        self.preserves = frozenset(always | {"symmetric"} if symmetric else always)

    def __repr__(self) -> str:
        usual = self.retraction == Cayley()
        return "LieVerlet()" if usual else f"LieVerlet(retraction={self.retraction!r})"

    def check(self, system: AbstractGroupSystem) -> None:
        self.retraction.check(system.group)
        self.refuse_constraint(system)
        if self._splits(system):
            system.check_split()

    def check_step(self, system: AbstractGroupSystem, state: State, h: float) -> None:
        if self._splits(system):
            system.check_step(state, h)

    def refusal(self, system: AbstractGroupSystem, state: State, h: float, moved: float) -> Refusal:
        why = system.why_not(state, h) if self._splits(system) else None
        if why is None:
            return super().refusal(system, state, h, moved)
        return Refusal("could not turn so far", why, shorter_step(h, moved))

    def _splits(self, system: AbstractGroupSystem) -> TypeGuard[AbstractSplitSystem]:
        return isinstance(system, AbstractSplitSystem) and isinstance(self.retraction, Cayley)

    def remembered(self, system: AbstractGroupSystem, state: State) -> Coordinates | None:
        """The force of (5) with which one step ends and the next one begins."""
        return system.kick(state.g, state.t) if self._splits(system) else None

    def next_step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""], memory: Any
    ) -> tuple[State, StepInfo, Any]:
        if self._splits(system):
            return _kick_drift_kick(system, state, h, memory)
        return super().next_step(system, state, h, memory)

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        if self._splits(system):
            new, info, _ = self.next_step(system, state, h, self.remembered(system, state))
            return new, info
        group, tau = system.group, self.retraction
        g0, mu0, t0 = state.g, state.momentum, state.t

        def kick(g, xi, t):
            return h / 2 * system.total_force(g, xi, system.momentum(g, xi), t)

        def drift(xi):
            return group.advance(g0, tau.minus_identity(group, h * xi))  # (3)

        def mismatch(xi):
            p = (system.momentum(g0, xi) + system.momentum(drift(xi), xi)) / 2
            return tau.dR_inv_dual(group, h * xi, p) - (mu0 + kick(g0, xi, t0))  # (1), (2)

        guess = midpoint_velocity(system, state, h)
        xi, status = newton(mismatch, guess, jnp.max(jnp.abs(mu0)))
        g1, t1 = drift(xi), t0 + h
        # (4), with the small changes summed before the momentum they change: one rounding error.
        first = kick(g0, xi, t0)
        turn = group.coAdm1(tau.minus_identity(group, h * xi), mu0 + first)
        mu1 = mu0 + (first + turn + kick(g1, xi, t1))
        return State(g1, mu1, t1), step_info(status, h * xi, tau.covers(group, h * xi))


def _kick_drift_kick(
    system: AbstractSplitSystem, state: State, h: Float[Array, ""], force: Coordinates
) -> tuple[State, StepInfo, Coordinates]:
    """(5): the step of a system that splits, from the force where it is to that where it gets."""
    mu0, t1 = state.momentum, state.t + h
    first, met = h / 2 * force, None
    if system.feedback:
        first, met = _loaded(system, state, h, first)
    g1, change, move, status, in_chart = system.drift(state.g, mu0 + first, h)
    force = system.kick(g1, t1)
    last = h / 2 * force
    if met is not None:
        xi = system.velocity(g1, mu0 + (first + change))
        last = last + h / 2 * system.load(g1, xi, t1)  # (6)
        status = NewtonStatus(
            status.converged & met.converged,
            jnp.maximum(status.residual, met.residual),
            status.iterations + met.iterations,
        )
    mu1 = mu0 + (first + change + last)
    return State(g1, mu1, t1), step_info(status, move, in_chart), force


def _loaded(
    system: AbstractSplitSystem, state: State, h: Float[Array, ""], kick: Coordinates
) -> tuple[Coordinates, NewtonStatus]:
    r"""The first half kick of (6), loads included: $\mu^+ - \mu_k$, by iteration."""
    g, mu, t = state.g, state.momentum, state.t

    def again(it):
        change, moved, _, count = it
        xi = system.velocity(g, mu + change)
        new = kick + h / 2 * system.load(g, xi, t)
        return new, jnp.sum(jnp.abs(new - change)), moved, count + 1

    def size(change):
        return jnp.sum(jnp.abs(mu)) + jnp.sum(jnp.abs(change))

    def unfinished(it):
        change, moved, before, count = it
        closing = (moved < 0.9 * before) | (count < 3)
        return (moved > _AIM * size(change)) & closing & (count < _MOST)

    worst = jnp.asarray(jnp.inf)
    change, moved, _, count = lax.while_loop(
        unfinished, again, (kick, worst, worst, jnp.asarray(0))
    )
    # At rest and without kicks nothing moves, whatever its size.
    residual = jnp.where(moved > 0, moved / size(change), 0.0)
    return change, NewtonStatus(residual <= _ACCEPT, residual, count)

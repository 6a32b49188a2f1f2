"""Variational Stoermer-Verlet on a Lie group."""

from typing import ClassVar, TypeGuard

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.retractions import AbstractRetraction, Cayley
from retrax.integrators.base import (
    AbstractIntegrator,
    Memory,
    Refusal,
    StepInfo,
    step_info,
)
from retrax.integrators.kick_drift_kick import KickDriftKick
from retrax.integrators.lifted import midpoint_velocity
from retrax.integrators.rattle import Rattle
from retrax.mechanics.holonomic import AbstractHolonomic
from retrax.mechanics.split import AbstractSplitSystem
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates, Element
from retrax.numerics.newton import newton
from retrax.numerics.roundoff import unseen_velocity

Scalar = Float[Array, ""]


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
    $L_d = \tfrac h2 L(g_k, \xi, t_k) + \tfrac h2 L(g_{k+1}, \xi, t_{k+1})$ with
    $\xi = \tau^{-1}(g_k^{-1}g_{k+1})/h$, so without external force the map is symplectic and
    conserves the momentum of every symmetry exactly; it is symmetric, hence of order 2, with or
    without. For $L = \tfrac12\langle\mathbb I\xi,\xi\rangle - V(g)$ the forces do not enter (2),
    whose right side is $(d^R\tau^{-1}_{h\xi})^*\mathbb I\xi$. One linear system of size `dim` per
    Newton iteration.

    With `Cayley()`, a system that brings its own discrete kinetic energy (`AbstractSplitSystem`:
    strings, rods) is stepped by `KickDriftKick` instead.

    With a retraction that is not symmetric, such as `SecondKind`, the order is 1.

    **Arguments:** `retraction`: the map $\tau$; `Cayley()` needs no trigonometric function. For
    mechanisms whose wheels or screws turn far in a step take `Exp()`: Cayley's rates are those of
    the momenta up to $1 + h^2\omega^2/4$ only, and a wheel that rolls hands that on to its speed.

    References: [BouRabeeMarsden2009] (the method); [MarsdenWest2001] (why it is symplectic).
    """

    retraction: AbstractRetraction
    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)
    memory_saves_work: ClassVar[bool] = True

    def __init__(self, retraction: AbstractRetraction = Cayley()):
        self.retraction = retraction
        symmetric = getattr(retraction, "symmetric", True)  # `__check_init__` rejects the rest
        self.order = 2 if symmetric else 1
        always = {"group", "momentum", "positions", "symplectic"}
        self.preserves = frozenset(always | {"symmetric"} if symmetric else always)

    def __repr__(self) -> str:
        usual = self.retraction == Cayley()
        return "LieVerlet()" if usual else f"LieVerlet(retraction={self.retraction!r})"

    def check(self, system: AbstractGroupSystem) -> None:
        self.retraction.check(system.group)
        if not isinstance(system.constraint, AbstractHolonomic):
            self.refuse_constraint(system)
        self._method(system).check(system)

    def check_step(self, system: AbstractGroupSystem, state: State, h: float) -> None:
        self._method(system).check_step(system, state, h)

    def refusal(self, system: AbstractGroupSystem, state: State, h: float, moved: float) -> Refusal:
        return self._method(system).refusal(system, state, h, moved)

    def memory(self, system: AbstractGroupSystem, state: State) -> Memory:
        return self._method(system).memory(system, state)

    def next_step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""], memory: Memory
    ) -> tuple[State, StepInfo, Memory]:
        return self._method(system).next_step(system, state, h, memory)

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        return self._method(system).step(system, state, h)

    def _splits(self, system: AbstractGroupSystem) -> TypeGuard[AbstractSplitSystem]:
        """Return whether the system has its own discrete Lagrangian, made with this retraction."""
        return isinstance(system, AbstractSplitSystem) and isinstance(self.retraction, Cayley)

    def _method(self, system: AbstractGroupSystem) -> AbstractIntegrator:
        """Choose the step of a system: by its own discrete Lagrangian, or by that of (1)-(4)."""
        if self._splits(system):
            return KickDriftKick()
        made_for = system.verlet_step()
        if made_for is None:
            made_for = Rattle if isinstance(system.constraint, AbstractHolonomic) else _GroupVerlet
        return made_for(retraction=self.retraction, order=self.order, preserves=self.preserves)


class _GroupVerlet(AbstractIntegrator):
    """Equations (1) to (4) of `LieVerlet`, on any group.

    References: [BouRabeeMarsden2009].
    """

    retraction: AbstractRetraction
    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        group, tau = system.group, self.retraction
        g0, mu0, t0, t1 = state.g, state.momentum, state.t, state.t + h
        first, last = system.at_time(t0), system.at_time(t1)

        def kick(now: AbstractGroupSystem, g: Element, xi: Coordinates, t: Scalar) -> Coordinates:
            return h / 2 * now.total_force(g, xi, now.momentum(g, xi), t)

        def drift(xi: Coordinates) -> Element:
            return group.advance(g0, tau.minus_identity(group, h * xi))  # (3)

        def mismatch(xi: Coordinates) -> Coordinates:
            p = (first.momentum(g0, xi) + last.momentum(drift(xi), xi)) / 2
            return tau.dR_inv_dual(group, h * xi, p) - (mu0 + kick(first, g0, xi, t0))  # (1), (2)

        guess = midpoint_velocity(system, state, h)
        scale = jnp.max(jnp.abs(mu0))
        if system.force is not None:  # it may balance the others, and all of them round
            inner = first.differential(g0, guess, first.momentum(g0, guess))
            outer = jnp.asarray(system.force(g0, guess, t0))
            scale = scale + jnp.abs(h) / 2 * jnp.max(jnp.abs(inner) + jnp.abs(outer))
        xi, status = newton(mismatch, guess, scale, unseen_velocity(h, g0))
        g1 = drift(xi)
        # (4), with the small changes summed before the momentum they change: one rounding error.
        pushed = kick(first, g0, xi, t0)
        turn = group.coAdm1(tau.minus_identity(group, h * xi), mu0 + pushed)
        mu1 = mu0 + (pushed + turn + kick(last, g1, xi, t1))
        return State(g1, mu1, t1), step_info(status, h * xi, tau.covers(group, h * xi))

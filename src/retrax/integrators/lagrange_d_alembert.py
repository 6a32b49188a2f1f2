"""The discrete Lagrange-d'Alembert step: nonholonomic constraints kept, reactions known."""

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.integrators.base import StepInfo, step_info
from retrax.integrators.lifted import (
    AbstractLifted,
    LiftedMap,
    as_momentum,
    midpoint_velocity,
)
from retrax.mechanics.constraints import AbstractDistribution
from retrax.mechanics.reactions import admissible
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import left_invariant, turns_with_the_motion
from retrax.mechanics.system import AbstractGroupSystem, Coordinates, Element
from retrax.numerics.newton import NewtonStatus, newton
from retrax.numerics.roundoff import unseen_velocity
from retrax.numerics.small_matrices import determinant, solve

Impulses = Float[Array, " k"]


class _Unknowns(NamedTuple):
    """How the unknowns of a step are read: velocity, impulses, and what else must vanish."""

    guess: Float[Array, " unknowns"]
    velocities: int  # how many of them, the first, are velocities
    velocity: Callable[[Array], Coordinates]
    impulse: Callable[[Array], Impulses]
    further: Callable[[Element, Coordinates, Float[Array, ""]], Array]


class _Step(NamedTuple):
    state: State
    status: NewtonStatus
    xi: Coordinates
    before: Impulses
    after: Impulses


class LagrangeDAlembert(AbstractLifted):
    r"""The step of `CotangentLift` with impulses of the constraint $A\,\xi = c$ at both ends.

    With $x = h\xi$, base point $g = g_k\,\tau(s x)$ and $t = t_k + s h$,

    $$
    \begin{aligned}
    a &= \mathrm{Ad}^*_{\tau(s x)}(\mu_k + A_k^T\lambda_k^+), \qquad \nu = h\,F(g, \xi, t)
                                                                             &&\text{(1)}\\
    \partial_\xi L(g, \xi) &= s\,(d^L\tau_{s x})^* a + (1-s)\,(d^R\tau_{(1-s)x})^*(a + \nu)
                                                                             &&\text{(2)}\\
    A(g, t)\,\xi &= c(g, t)                                                  &&\text{(3)}\\
    g_{k+1} &= g\,\tau((1-s)x), \quad
    \mu_{k+1} = \mathrm{Ad}^*_{\tau((1-s)x)}(a + \nu) + A_{k+1}^T\lambda_{k+1}^-   &&\text{(4)}
    \end{aligned}
    $$

    where $A_k = A(g_k, t_k)$, and $\lambda_{k+1}^-$ is such that the velocity of $\mu_{k+1}$ is
    admissible at $(g_{k+1}, t_{k+1})$. The unknowns are $\xi$ and $\lambda_k^+$. Under a
    `Distribution`, $\xi = E u$ solves (3) from the outset, and the increment of the group lies in
    it exactly. The reactions do no virtual work, so the momentum of every horizontal symmetry is
    conserved to round-off. The energy is not: its error is $O(h^2)$ and may drift, as the true flow
    is not symplectic. Without a constraint this is `CotangentLift`.

    The order is 2 for $s = \tfrac12$. For any other $s$ it is 1, and 2 where no force depends on
    the configuration and the constraint is left- or right-invariant.

    **Arguments:**

    - `retraction`: the map $\tau$.
    - `s`: where the base point lies in the step, from 0 to 1.

    References: [CortesMartinez2001], [McLachlanPerlmutter2006] (the principle);
    [FedorovZenkov2005] (on Lie groups);
    [BarberoLinanMartinDeDiego2023] (the lifted maps).
    """

    kept: ClassVar[frozenset[str]] = frozenset({"group", "momentum", "constraint"})

    def check(self, system: AbstractGroupSystem) -> None:
        self.retraction.check(system.group)
        if not system.regular:
            raise BadInput(
                f"{self!r} solves for every velocity from its momentum, but the points of contact "
                f"of the {system.name} have no momentum; use RKMK, or the integrators made for it: "
                "RollingVerlet and RollingDKD for rods, ContactDKD and ContactMidpoint for strings."
            )

    def order_on(self, system: AbstractGroupSystem) -> int:
        indifferent = left_invariant(system) and turns_with_the_motion(system)
        return 2 if indifferent and self.retraction.symmetric else self.order

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        done = self._step(system, state, h)
        covered = self.covers(system.group, h * done.xi)
        return done.state, step_info(done.status, h * done.xi, covered)

    def impulses(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[Impulses, Impulses]:
        r"""Return $\lambda_k^+$ and $\lambda_{k+1}^-$ of one step.

        The reaction impulse of node $k$ is the sum of the second of one step and the first of the
        next; divided by $h$ it is the multiplier $\lambda(t_k)$ up to $O(h^2)$ for $s = 1/2$.
        """
        done = self._step(system, state, h)
        return done.before, done.after

    def _step(self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]) -> _Step:
        group, constraint, t = system.group, system.constraint, state.t + self.s * h
        lift = LiftedMap(group, self.retraction, self.s)
        unknown, base = _unknowns(system, state, h), system.at_time(t)

        def push(z: Array) -> Coordinates:
            if constraint is None:
                return state.momentum
            return state.momentum + unknown.impulse(z) @ constraint.rows(state.g, state.t)

        def forward(
            z: Array,
        ) -> tuple[Element, Coordinates, Coordinates, Coordinates, Coordinates]:
            xi = unknown.velocity(z)
            g, a = lift.base(state.g, push(z), h * xi)  # (1)
            mu = base.momentum(g, xi)
            return g, xi, mu, a, h * base.total_force(g, xi, mu, t)

        def mismatch(z: Array) -> Array:
            g, xi, mu, a, nu = forward(z)
            equations = lift.momentum(h * xi, a, a + nu) - mu  # (2)
            return jnp.concatenate([equations, unknown.further(g, xi, t)])  # (3)

        size = jnp.max(jnp.abs(state.momentum))
        moving = jnp.arange(len(unknown.guess)) < unknown.velocities
        unseen = jnp.where(moving, unseen_velocity(h, state.g), 0.0)
        z, status = newton(mismatch, unknown.guess, size, unseen)
        g, xi, _, a, nu = forward(z)
        g1, mu1 = lift.end(g, a + nu, h * xi)  # (4)
        after = jnp.zeros(0)
        if constraint is not None:
            t1 = state.t + h
            mu1, after = admissible(system, constraint, g1, mu1, t1)
            # Rows that turn over in one step have lost rank on the way.
            rows, rows1 = constraint.rows(state.g, state.t), constraint.rows(g1, t1)
            upright = determinant(rows @ rows1.T) > 0
            status = status._replace(converged=status.converged & upright)
        return _Step(State(g1, mu1, state.t + h), status, xi, unknown.impulse(z), after)


def _unknowns(system: AbstractGroupSystem, state: State, h: Float[Array, ""]) -> _Unknowns:
    constraint, n = system.constraint, system.group.dim
    xi, half = midpoint_velocity(system, state, h), h / 2 * system.multipliers(state)

    def nothing(g: Element, xi: Coordinates, t: Float[Array, ""]) -> Array:
        return jnp.zeros(0)

    if constraint is None:
        return _Unknowns(xi, n, lambda z: z, lambda z: jnp.zeros(0), nothing)
    if isinstance(constraint, AbstractDistribution):
        basis = constraint.basis
        m = basis.shape[0]
        guess = jnp.concatenate([solve(basis @ basis.T, basis @ xi), half])
        return _Unknowns(guess, m, lambda z: z[:m] @ basis, lambda z: z[m:], nothing)
    weight = as_momentum(state, xi)
    return _Unknowns(
        jnp.concatenate([xi, half]),
        n,
        lambda z: z[:n],
        lambda z: z[n:],
        lambda g, xi, t: weight * constraint.violation(g, xi, t),
    )

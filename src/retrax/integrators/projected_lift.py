"""The projected cotangent lift, as printed in the paper on nonholonomic retraction maps."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.errors import warn
from retrax.integrators.base import StepInfo, step_info
from retrax.integrators.hamel_midpoint import require_frame
from retrax.integrators.lifted import AbstractLifted, midpoint_velocity
from retrax.mechanics.hamel import HamelFrame
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import left_invariant
from retrax.mechanics.system import AbstractGroupSystem, Coordinates, Element
from retrax.numerics.newton import newton
from retrax.numerics.roundoff import unseen_velocity
from retrax.numerics.small_matrices import solve

Reduced = Float[Array, " m"]


class ProjectedLift(AbstractLifted):
    r"""The inverse of the free lifted map, projected onto the distribution: kept for comparison.

    With $\xi = E u$, $x = h\xi$, base point $g = g_k\,\tau(s x)$, $\bar\mu = E^T\mu$ and
    $M = \mathbb I E(E^T\mathbb I E)^{-1}$, for a symmetric $\tau$,

    $$
    \begin{aligned}
    E^T\mathrm{Ad}^*_{\tau((s-1)x)}M\bar\mu_{k+1}
        &= E^T\bigl(\mathrm{Ad}^*_{\tau(s x)}M\bar\mu_k + h\,F(g, \xi, t)\bigr)       &&\text{(1)}\\
    E^T\mathbb I E\,u &= E^T\bigl(s\,(d^L\tau_{s x})^*\mathrm{Ad}^*_{\tau(s x)}M\bar\mu_k
        + (1-s)\,(d^R\tau_{(1-s)x})^*\mathrm{Ad}^*_{\tau((s-1)x)}M\bar\mu_{k+1}\bigr)   &&\text{(2)}
    \end{aligned}
    $$

    Projecting the inverse of the free map is not inverting the projected map. The difference is a
    force $(s-\tfrac12)\,h\,E^T\mathrm{ad}^*_\xi(1 - ME^T)\,\mathrm{ad}^*_\xi M\bar\mu$ that does no
    work: for $s \ne \tfrac12$ the method is of **order 1 and its momentum drifts, while its energy
    looks well**. With $s = \tfrac12$ it is of order 2. Without a constraint it is `CotangentLift`.

    **Arguments:**

    - `retraction`: the map $\tau$.
    - `s`: where the base point lies in the step; the paper's is 0.

    References: [BarberoLinanMartinDeDiego2023] (the lifted maps).
    """

    kept: ClassVar[frozenset[str]] = frozenset({"group", "constraint"})

    def check(self, system: AbstractGroupSystem) -> None:
        self.retraction.check(system.group)
        require_frame(self, system)
        if self.order == 1 and system.constraint is not None:
            warn(
                f"{self!r} is of order 1 under a constraint, and its momentum drifts while its "
                "energy does not; use s=0.5, or LagrangeDAlembert."
            )

    def order_on(self, system: AbstractGroupSystem) -> int:
        free = system.constraint is None and left_invariant(system)
        return 2 if free and self.retraction.symmetric else self.order

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        group, tau, s = system.group, self.retraction, self.s
        frame = HamelFrame.of(system)
        basis, covectors = frame.basis, frame.covectors()  # E^T, M^T
        mu0, t = state.momentum, state.t + s * h

        def carry(x: Coordinates, mu: Coordinates) -> Coordinates:
            return mu + group.coAdm1(tau.adjoint.minus_identity(group, x), mu)

        def rebase(xi: Coordinates) -> Element:
            return group.advance(state.g, tau.adjoint.minus_identity(group, s * h * xi))

        def end(xi: Coordinates) -> tuple[Coordinates, Reduced]:
            """Return the carried momentum of the start, and the reduced momentum of the end."""
            a, base = carry(s * h * xi, mu0), rebase(xi)
            force = system.total_force(base, xi, system.momentum(base, xi), t)
            back = jnp.stack([carry((s - 1) * h * xi, row) for row in covectors], axis=1)
            return a, solve(basis @ back, basis @ (a + h * force))  # (1)

        def mismatch(u: Reduced) -> Reduced:
            xi = u @ basis
            a, reduced = end(xi)
            b = carry((s - 1) * h * xi, reduced @ covectors)
            lifted = s * tau.adjoint.dL_dual(group, s * h * xi, a)
            lifted = lifted + (1 - s) * tau.dR_dual(group, (1 - s) * h * xi, b)
            return basis @ (lifted - system.momentum(state.g, xi))  # (2)

        guess = solve(basis @ basis.T, basis @ midpoint_velocity(system, state, h))
        u, status = newton(mismatch, guess, jnp.max(jnp.abs(mu0)), unseen_velocity(h, state.g))
        xi = u @ basis
        _, reduced = end(xi)
        g1 = group.advance(rebase(xi), tau.minus_identity(group, (1 - s) * h * xi))
        covered = self.covers(group, h * xi)
        end_state = State(g1, reduced @ covectors, state.t + h)
        return end_state, step_info(status, h * xi, covered)

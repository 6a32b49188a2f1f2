"""The cotangent lift of a retraction: one family of symplectic steps on any group."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.retractions import AbstractRetraction, Cayley
from retrax.integrators.base import StepInfo, step_info
from retrax.integrators.lifted import AbstractLifted, LiftedMap, midpoint_velocity
from retrax.mechanics.hamiltonian import HamiltonianSystem
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates, Element
from retrax.numerics.newton import newton
from retrax.numerics.roundoff import unseen_velocity


class CotangentLift(AbstractLifted):
    r"""The symplectic step made of the map $D_s(g, x) = (g\,\tau(-s x),\ g\,\tau((1-s)x))$.

    With $x = h\xi$, base point $g = g_k\,\tau(s x)$ and time $t = t_k + s h$ there,

    $$
    \begin{aligned}
    a &= \mathrm{Ad}^*_{\tau(s x)}\,\mu_k, \qquad \nu = h\,F(g, \xi, t)        &&\text{(1)}\\
    \mu &= s\,(d^L\tau_{s x})^* a + (1-s)\,(d^R\tau_{(1-s)x})^*(a + \nu)       &&\text{(2)}\\
    \xi &= \partial_\mu H(g, \mu) \iff \mu = \partial_\xi L(g, \xi)             &&\text{(3)}\\
    g_{k+1} &= g\,\tau((1-s)x), \quad \mu_{k+1} = \mathrm{Ad}^*_{\tau((1-s)x)}(a + \nu)
                                                                              &&\text{(4)}
    \end{aligned}
    $$

    with $F = dL + f = -dH + f$. It is the variational integrator of $L_d = h\,L(g, \xi)$, so
    without external force symplectic and momentum preserving for every $s$. The adjoint of $s$ is
    $1-s$; $s = \tfrac12$ is symmetric and of order 2. Any other $s$ is of order 1, except that for
    left-invariant systems every $s$ is of order 2 (and with `Exp` all are the same map).

    **Arguments:**

    - `retraction`: the map $\tau$.
    - `s`: where the base point lies in the step, from 0 to 1.

    References: [BarberoLinanMartinDeDiego2023] (the lifted maps); [BouRabeeMarsden2009] (s = 0).
    """

    retraction: AbstractRetraction = Cayley()
    kept: ClassVar[frozenset[str]] = frozenset({"group", "momentum", "symplectic"})

    def check(self, system: AbstractGroupSystem) -> None:
        self.retraction.check(system.group)
        self.refuse_constraint(system)

    def order_on(self, system: AbstractGroupSystem) -> int:
        left_invariant = len(system.symmetries().space) == system.group.dim
        return 2 if left_invariant and self.retraction.symmetric else self.order

    def step(
        self, system: AbstractGroupSystem, state: State, h: Float[Array, ""]
    ) -> tuple[State, StepInfo]:
        group, n, t = system.group, system.group.dim, state.t + self.s * h
        lift, start = LiftedMap(group, self.retraction, self.s), system
        system = start.at_time(t)

        def base(xi: Coordinates) -> tuple[Element, Coordinates]:
            return lift.base(state.g, state.momentum, h * xi)  # (1)

        def mismatch(xi: Coordinates) -> Coordinates:
            g, a = base(xi)
            mu = system.momentum(g, xi)  # (3)
            return lift.momentum(h * xi, a, a + h * system.total_force(g, xi, mu, t)) - mu  # (2)

        def mismatch_hamiltonian(xi_mu: Array) -> Array:
            xi, mu = xi_mu[:n], xi_mu[n:]
            g, a = base(xi)
            nu = h * system.total_force(g, xi, mu, t)
            return jnp.concatenate(
                [system.velocity(g, mu) - xi, lift.momentum(h * xi, a, a + nu) - mu]
            )  # (3), (2)

        xi = midpoint_velocity(start, state, h)
        scale = jnp.max(jnp.abs(state.momentum))
        if isinstance(system, HamiltonianSystem):  # no inverse Legendre transform is needed
            unseen = jnp.where(jnp.arange(2 * n) < n, unseen_velocity(h, state.g), 0.0)
            unknowns, status = newton(
                mismatch_hamiltonian, jnp.concatenate([xi, state.momentum]), scale, unseen
            )
            xi, mu = unknowns[:n], unknowns[n:]
            g, a = base(xi)
        else:
            xi, status = newton(mismatch, xi, scale, unseen_velocity(h, state.g))
            g, a = base(xi)
            mu = system.momentum(g, xi)
        nu = h * system.total_force(g, xi, mu, t)
        g1, mu1 = lift.end(g, a + nu, h * xi)  # (4)
        covered = self.covers(group, h * xi)
        return State(g1, mu1, state.t + h), step_info(status, h * xi, covered)

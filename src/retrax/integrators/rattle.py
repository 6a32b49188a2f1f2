"""Verlet under constraints on positions: RATTLE on a Lie group."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from retrax.groups.retractions import AbstractRetraction
from retrax.integrators.base import AbstractIntegrator, StepInfo, step_info
from retrax.integrators.lifted import midpoint_velocity
from retrax.mechanics.constraints import Rows
from retrax.mechanics.holonomic import AbstractHolonomic
from retrax.mechanics.reactions import admissible, answers
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates, Element
from retrax.numerics.newton import newton
from retrax.numerics.roundoff import unseen_velocity
from retrax.numerics.small_matrices import PROXIMAL

Scalar = Float[Array, ""]
# The part of a velocity across the constraint that may be left where the equations agree.
_LEFT = 1e-9
# Up to so many unknowns are eliminated one by one, written out; so few impulses by exchanging rows.
_IN_ORDER, _EXCHANGED = 64, 3


class Rattle(AbstractIntegrator):
    r"""`LieVerlet` with impulses that keep positions, and what rolls on them, to round-off.

    With $\Phi$ the rows of $\varphi(g, t) = 0$ and $A\,\xi = c$ what rolls,

    $$
    \begin{aligned}
    \mu^+ &= \mu_k + \tfrac h2F(g_k, \xi, t_k) + \Phi_k^T\lambda + A_k^T\kappa   &&\text{(1)}\\
    \mu^+ &= (d^R\tau^{-1}_{h\xi})^*\,\tfrac12(p(g_k, \xi) + p(g_{k+1}, \xi)), \qquad
    g_{k+1} = g_k\,\tau(h\xi)                                                    &&\text{(2)}\\
    \varphi(g_{k+1}, t_{k+1}) &= 0                                               &&\text{(3)}\\
    \tfrac12(A_k + A_{k+1})\,\xi &= \tfrac12(c_k + c_{k+1})                      &&\text{(4)}\\
    \mu_{k+1} &= \mathrm{Ad}^*_{\tau(h\xi)}\mu^+ + \tfrac h2F(g_{k+1}, \xi, t_{k+1})
        + \Phi_{k+1}^T\lambda' + A_{k+1}^T\kappa'                                &&\text{(5)}\\
    \Phi_{k+1}\,\xi(\mu_{k+1}) &= -\partial_t\varphi_{k+1}, \qquad A_{k+1}\,\xi(\mu_{k+1}) = c_{k+1}
                                                                                 &&\text{(6)}
    \end{aligned}
    $$

    Without $A$ this is symplectic on $T^*\{\varphi = 0\}$, keeps the momentum of every symmetry and
    is symmetric, of order 2. With $A$ it is a discrete Lagrange-d'Alembert principle, symmetric and
    of order 2. The joint forces are $(\lambda + \lambda')/h$ up to $O(h^2)$.

    References: [Andersen1983], [HairerLubichWanner2006] VII.1.
    """

    retraction: AbstractRetraction
    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)

    def step(self, system: AbstractGroupSystem, state: State, h: Scalar) -> tuple[State, StepInfo]:
        constraint = system.constraint
        assert isinstance(constraint, AbstractHolonomic)
        group, tau, n = system.group, self.retraction, system.group.dim
        g0, mu0, t0, t1 = state.g, state.momentum, state.t, state.t + h
        first, last = system.at_time(t0), system.at_time(t1)
        rows0, rolls = constraint.rows(g0, t0), constraint.rolling
        slopes, masses = _masses(first, rows0, g0, mu0)

        def kick(now: AbstractGroupSystem, g: Element, xi: Coordinates, t: Scalar) -> Coordinates:
            return h / 2 * now.total_force(g, xi, now.momentum(g, xi), t)

        def drift(xi: Coordinates) -> Element:
            return group.advance(g0, tau.minus_identity(group, h * xi))

        def mismatch(z: Array) -> Array:
            xi, lam = z[:n], z[n:]
            g1 = drift(xi)
            p = (first.momentum(g0, xi) + last.momentum(g1, xi)) / 2
            given = mu0 + kick(first, g0, xi, t0) + lam @ rows0  # (1)
            across = constraint.positions(g1, t1) / h  # (3)
            if rolls is not None:
                both = rolls.violation(g0, xi, t0) + rolls.violation(g1, xi, t1)
                across = jnp.concatenate([across, both / 2])  # (4)
            return jnp.concatenate([tau.dR_inv_dual(group, h * xi, p) - given, masses * across])

        lam = h / 2 * system.multipliers(state)
        guess = jnp.concatenate([midpoint_velocity(system, state, h), lam])
        nowhere = unseen_velocity(h, g0)
        unseen = jnp.concatenate([jnp.full(n, nowhere), jnp.zeros_like(lam)])
        added = jnp.concatenate([jnp.zeros(n), PROXIMAL * slopes])
        in_order = n if len(lam) <= _EXCHANGED else n + len(lam)
        positive = in_order if system.quadratic and in_order <= _IN_ORDER else 0
        z, status = newton(mismatch, guess, jnp.max(jnp.abs(mu0)), unseen, added, positive)  # (2)
        xi, lam = z[:n], z[n:]
        g1 = drift(xi)
        pushed = kick(first, g0, xi, t0) + lam @ rows0
        turn = group.coAdm1(tau.minus_identity(group, h * xi), mu0 + pushed)
        off = mu0 + (pushed + turn + kick(last, g1, xi, t1))
        mu1, _ = admissible(last, constraint, g1, off, t1)  # (5), (6)
        status = status._replace(
            converged=status.converged & _is_admissible(last, constraint, g1, off, mu1, t1, nowhere)
        )
        return State(g1, mu1, t1), step_info(status, h * xi, tau.covers(group, h * xi))


def _masses(
    now: AbstractGroupSystem, rows: Rows, g: Element, mu: Coordinates
) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
    """Return the size of each row, and what makes a velocity across it as large as its momentum.

    So equations in kilograms and in metres are solved to the same relative accuracy.
    """
    slopes = jnp.max(jnp.abs(rows), axis=1)
    return slopes, slopes / jnp.sum(rows * answers(now, rows, g, mu), axis=1)


def _is_admissible(
    now: AbstractGroupSystem,
    constraint: AbstractHolonomic,
    g: Element,
    off: Coordinates,
    mu: Coordinates,
    t: Scalar,
    nowhere: Scalar,
) -> Bool[Array, ""]:
    """Tell whether (6) holds: it cannot where rows contradict each other. `off` is (5) without."""
    xi, slopes = now.velocity(g, mu), jnp.max(jnp.abs(constraint.rows(g, t)), axis=1)
    before = jnp.abs(constraint.violation(g, now.velocity(g, off), t))
    left = jnp.abs(constraint.violation(g, xi, t))
    return jnp.all(left <= _LEFT * (before + slopes * (nowhere + jnp.max(jnp.abs(xi)))))

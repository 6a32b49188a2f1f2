r"""What ideal constraints do to a system: reactions in continuous time, and projections.

With $A(g, t)\,\xi = c(g, t)$ and $\xi = \xi(g, \mu)$ the velocity of a momentum,

$$
\begin{aligned}
\dot\mu &= \dot\mu_{\text{free}} + A^T\lambda                                      &&\text{(1)}\\
A\,\partial_\mu\xi\,A^T\,\lambda &= \dot c - \dot A\,\xi - A\,\dot\xi_{\text{free}} &&\text{(2)}
\end{aligned}
$$

where dots are derivatives along the motion, $\dot A = \partial_gA\cdot g\xi + \partial_tA$, and
"free" is the motion without the constraint: (2) is the derivative of the constraint in time. An
impulse $A^T\lambda$ puts a momentum on the constraint:

$$ A\,\xi(g, \mu + A^T\lambda) = c, \tag{3} $$

the nearest admissible momentum in the metric of the kinetic energy.
"""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import Coordinates, Element
from retrax.mechanics.constraints import AbstractConstraint, Rows, Time
from retrax.mechanics.holonomic import AbstractHolonomic
from retrax.mechanics.state import State
from retrax.numerics.evaluate import Evaluated
from retrax.numerics.known import require_each
from retrax.numerics.newton import newton
from retrax.numerics.small_matrices import PROXIMAL, proximal_solve, solve

if TYPE_CHECKING:
    from retrax.mechanics.system import AbstractGroupSystem

# A velocity may miss the constraint by this much, relative to its components along the rows.
ALLOWED_VIOLATION = 1e-10


def multipliers(
    system: "AbstractGroupSystem",
    constraint: AbstractConstraint,
    g: Element,
    mu: Coordinates,
    t: Time,
    free_rate: Coordinates,
) -> Float[Array, " k"]:
    r"""Solve (2) for the multipliers $\lambda$; `free_rate` is $\dot\mu_{\text{free}}$ of (1)."""
    now = system.at_time(t)
    rows, xi = constraint.rows(g, t), now.velocity(g, mu)
    acceleration = rate_of_velocity(system, g, mu, t, xi, free_rate)
    turning = drift_of_constraint(system, constraint, g, xi, t)
    return -_solve(constraint, mobility(now, rows, g, mu), turning + rows @ acceleration)  # (2)


def rate_of_velocity(
    system: "AbstractGroupSystem",
    g: Element,
    mu: Coordinates,
    t: Time,
    xi: Coordinates,
    momentum_rate: Coordinates,
) -> Coordinates:
    r"""Return $\dot\xi$ along the motion, where $\xi = \xi(g, \mu, t)$ is the velocity."""
    along = (system.group.tangent(g, xi), momentum_rate)
    if not system.moving:
        return jax.jvp(system.velocity, (g, mu), along)[1]

    def velocity(g: Element, mu: Coordinates, t: Time) -> Coordinates:
        return system.at_time(t).velocity(g, mu)

    return jax.jvp(velocity, (g, mu, t), (*along, jnp.ones_like(t)))[1]


def drift_of_constraint(
    system: "AbstractGroupSystem",
    constraint: AbstractConstraint,
    g: Element,
    xi: Coordinates,
    t: Time,
) -> Float[Array, " k"]:
    r"""Return $\dot A\,\xi - \dot c$: how the constraint turns away from a constant velocity."""
    moved = system.group.tangent(g, xi)
    if not constraint.moving:
        return jax.jvp(lambda k: constraint.violation(k, xi, t), (g,), (moved,))[1]
    along = (moved, jnp.ones_like(t))
    return jax.jvp(lambda k, t: constraint.violation(k, xi, t), (g, t), along)[1]


def admissible(
    system: "AbstractGroupSystem",
    constraint: AbstractConstraint,
    g: Element,
    mu: Coordinates,
    t: Time,
) -> tuple[Coordinates, Float[Array, " k"]]:
    r"""Return the momentum $\mu + A^T\lambda$ of (3), and the impulses $\lambda$.

    Where the velocity is not linear in the momentum (3) is solved by Newton's method, and the
    result is NaN where that does not converge.
    """
    rows, system = constraint.rows(g, t), system.at_time(t)

    def violation(lam: Float[Array, " k"]) -> Float[Array, " k"]:
        return constraint.violation(g, system.velocity(g, mu + lam @ rows), t)

    start = jnp.zeros(rows.shape[0])
    if system.quadratic:
        lam = -_solve(constraint, mobility(system, rows, g, mu), violation(start))
    else:
        size = jnp.max(jnp.abs(rows) @ jnp.abs(system.velocity(g, mu)))
        redundant = isinstance(constraint, AbstractHolonomic)
        near = PROXIMAL * jnp.diag(mobility(system, rows, g, mu)) if redundant else None
        lam, status = newton(violation, start, size, proximal=near)
        lam = jnp.where(status.converged, lam, jnp.nan)
    return mu + lam @ rows, lam  # (3)


def require_admissible(
    system: "AbstractGroupSystem", constraint: AbstractConstraint, state: State, allowed: float
) -> None:
    """Reject a state whose velocity breaks the constraint by more than `allowed`.

    That is relative to the components of the velocity along the rows, where these exceed 1.
    """
    xi, broken, size = _across(system, constraint, state)

    def check(xi: np.ndarray, broken: np.ndarray, size: np.ndarray, t: np.ndarray) -> None:
        if not broken <= allowed * max(float(size), 1.0):
            when = f" at t = {float(t):g} s" if constraint.moving else ""
            raise BadInput(
                f"velocity = {xi.tolist()} breaks the constraint of the {system.name}{when}: "
                f"max |A xi - c| = {float(broken):.3g}, allowed {allowed:.0e}; "
                "state(..., project=True) takes the nearest admissible velocity."
            )

    def fine(xi: np.ndarray, broken: np.ndarray, size: np.ndarray, t: np.ndarray) -> np.ndarray:
        return broken <= allowed * np.maximum(size, 1.0)

    require_each(check, xi, broken, size, state.t, fine=fine)


@Evaluated
def _across(
    system: "AbstractGroupSystem", constraint: AbstractConstraint, state: State
) -> tuple[Coordinates, Float[Array, ""], Float[Array, ""]]:
    """Return the velocity, how far it crosses the constraint, and its size along the rows."""
    xi = system.velocity_at(state)
    broken = jnp.max(jnp.abs(constraint.violation(state.g, xi, state.t)))
    return xi, broken, jnp.max(constraint.reach(state.g, xi, state.t))


def _solve(
    constraint: AbstractConstraint, matrix: Float[Array, "k k"], b: Float[Array, " k"]
) -> Float[Array, " k"]:
    """Solve for multipliers; rows of constraints on positions may be redundant."""
    if isinstance(constraint, AbstractHolonomic):
        return proximal_solve(matrix, b)
    return solve(matrix, b)


def mobility(
    system: "AbstractGroupSystem", rows: Rows, g: Element, mu: Coordinates
) -> Float[Array, "k k"]:
    r"""Return $A\,\partial_\mu\xi\,A^T$: how impulses change the velocities across $A$."""
    return rows @ answers(system, rows, g, mu).T


def answers(system: "AbstractGroupSystem", rows: Rows, g: Element, mu: Coordinates) -> Rows:
    r"""Return the changes $\partial_\mu\xi\,A_i^T$ of the velocity for impulses along the rows."""

    def answer(row: Coordinates) -> Coordinates:
        return jax.jvp(lambda p: system.velocity(g, p), (mu,), (row,))[1]

    return jnp.stack([answer(row) for row in rows])

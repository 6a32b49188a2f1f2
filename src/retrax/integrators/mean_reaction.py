r"""The reaction of a constraint in a midpoint step that keeps the energy.

Where the admissible velocities $A(g, t)\,\xi = c(g, t)$ differ from place to place, the mean
velocity $\xi = \tfrac12(\xi_k + \xi_{k+1})$ of two admissible ones is admissible at the midpoint
$(g, t_k + \tfrac h2)$ only up to $O(h^2)$, and a reaction $A^T\lambda$ would do that much work. So
the rows are changed by as much, along $p = \mathbb I\xi$, and the unknowns are $\xi$ and $\lambda$:

$$
\begin{aligned}
\bar A &= A(g) - \bigl(A(g)\,\xi - c(g)\bigr)\frac{p^T}{\langle p, \xi\rangle}, \qquad
    \bar A\,\xi = c(g)                                                              &&\text{(1)}\\
\mu_{k+1} - \mu_k &= h\,\mathrm{ad}^*_\xi p + \nu + \bar A^T\lambda, \qquad
    p = \tfrac12(\mu_k + \mu_{k+1})                                                 &&\text{(2)}\\
A(g_{k+1})\,\xi_{k+1} &= c(g_{k+1}), \qquad \xi_{k+1} = 2\,\xi - \xi_k              &&\text{(3)}
\end{aligned}
$$

The kinetic energy changes by $\langle\mu_{k+1} - \mu_k, \xi\rangle = \langle\nu, \xi\rangle +
\lambda\cdot c(g)$: where $c = 0$ the reaction does no work, exactly. Reading the step backwards
exchanges (3) for the same law at $g_k$, which the state before has kept: the step is symmetric.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from retrax.integrators.predictor import as_momentum, midpoint_velocity
from retrax.mechanics.constraints import AbstractConstraint, Rows
from retrax.mechanics.mechanical import AbstractMechanicalSystem
from retrax.mechanics.reactions import admissible
from retrax.mechanics.state import State
from retrax.mechanics.system import Coordinates, Element
from retrax.numerics.newton import NewtonStatus, newton
from retrax.numerics.small_matrices import determinant

# From the mean velocity: midpoint and end of the step.
Points = Callable[[Coordinates], tuple[Element, Element]]
# From the mean velocity and its momentum: what the momentum gains without a reaction.
Gain = Callable[[Coordinates, Coordinates], Coordinates]


class Constrained(NamedTuple):
    """The mean velocity of a step, its end, and the impulses of the reaction."""

    xi: Coordinates
    g: Element
    momentum: Coordinates
    impulse: Float[Array, " k"]
    status: NewtonStatus


def constrained_step(
    system: AbstractMechanicalSystem,
    constraint: AbstractConstraint,
    state: State,
    h: Float[Array, ""],
    points: Points,
    gain: Gain,
    scale: Float[Array, ""],
) -> Constrained:
    """Solve (1) to (3); `scale` is the size of what cancels in (2)."""
    n, before = system.group.dim, system.velocity(state.g, state.momentum)
    middle, end = state.t + h / 2, state.t + h
    guess = midpoint_velocity(system, state, h)
    weight = as_momentum(state, guess)

    def forward(z):
        xi, lam = z[:n], z[n:]
        p, (g, g1) = system.momentum(state.g, xi), points(xi)
        return p, g1, gain(xi, p) + lam @ _mean_rows(constraint, g, xi, p, middle)

    def mismatch(z):
        p, g1, gained = forward(z)
        broken = constraint.violation(g1, 2 * z[:n] - before, end)
        return jnp.concatenate([2 * (p - state.momentum) - gained, weight * broken])  # (2), (3)

    start = jnp.concatenate([guess, h * system.multipliers(state)])
    z, status = newton(mismatch, start, scale)
    _, g1, gained = forward(z)
    mu1, rest = admissible(system, constraint, g1, state.momentum + gained, end)
    upright = _keeps_its_side(constraint.rows(state.g, state.t), constraint.rows(g1, end))
    status = status._replace(converged=status.converged & upright)
    return Constrained(z[:n], g1, mu1, z[n:] + rest, status)


def _mean_rows(
    constraint: AbstractConstraint,
    g: Element,
    xi: Coordinates,
    p: Coordinates,
    t: Float[Array, ""],
) -> Rows:
    r"""$\bar A$ of (1); at rest, where nothing can work, $A$ itself."""
    twice_kinetic = p @ xi
    moving = twice_kinetic > 0
    share = constraint.violation(g, xi, t) / jnp.where(moving, twice_kinetic, 1.0)
    return constraint.rows(g, t) - jnp.outer(jnp.where(moving, share, 0.0), p)  # (1)


def _keeps_its_side(before: Rows, after: Rows) -> Bool[Array, ""]:
    """Whether no row has turned over: rows that do have lost rank on the way."""
    return determinant(before @ after.T) > 0

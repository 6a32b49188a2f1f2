r"""When an iteration has converged: the one rule of all solvers.

A residual is a sum of terms that cancel, and cannot be evaluated more accurately than a few
rounding errors of them. An iteration therefore ends

1. where its residual is at most `AIM` of its terms;
2. where it stops falling, at no more than `ACCEPT` of its terms;
3. where it stops falling, and what is left moves bodies by less than `UNSEEN` of their places in
   the step. A place is known to rounding errors only, so that constraints on it, divided by the
   step, leave such velocities behind; a body that comes to rest has no others.

All else has not converged. An iteration that is judged by its increments ends where the next one is
`LOST` in what it is added to, or by 2 or 3.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

EPS = float(jnp.finfo(jnp.float64).eps)
AIM, ACCEPT = 2 * EPS, 128 * EPS
LOST, UNSEEN = EPS / 8, 4 * EPS
# Smaller terms count as this large: their rounding errors are floats below full precision, and
# no residual is small compared to them. A body at rest comes to this.
SMALLEST = 16 * float(jnp.finfo(jnp.float64).tiny) / EPS


def unseen_velocity(h: Float[Array, ""], g: PyTree) -> Float[Array, ""]:
    """Return a velocity that moves a body at `g` by rounding errors in a step, and so nowhere."""
    largest = [jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(g)]
    return UNSEEN * jnp.maximum(jnp.max(jnp.stack(largest)), 1.0) / jnp.abs(h)

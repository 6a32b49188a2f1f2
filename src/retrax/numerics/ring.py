r"""Tridiagonal systems with one number beside the diagonal, along a line or around a ring.

$$ e\,x_{i-1} + d_i\,x_i + e\,x_{i+1} = b_i. \tag{1} $$

For matrices whose diagonal dominates, in $O(n)$. In a ring, where $x_{n+i} = x_i$, the two corners
are a matrix of rank one, and the Sherman-Morrison formula does.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.numerics import tridiagonal

Vector = Float[Array, " n"]


def solve_line(d: Vector, e: Float[Array, ""], b: Vector) -> Vector:
    """The solution of (1) with nothing beyond the ends."""
    factors = tridiagonal.factor(d, jnp.broadcast_to(e, d.shape))
    return tridiagonal.solve(factors, b[:, None])[:, 0]


def solve_ring(d: Float[Array, ""], e: Float[Array, ""], b: Vector) -> Vector:
    r"""The solution of (1) in a ring, with the same diagonal everywhere.

    The matrix is $T + w w^T/\gamma$ with $w = (\gamma, 0, \dots, 0, e)$, $\gamma = -d$.
    """
    n, gamma = b.shape[0], -d
    first, last = (d - gamma)[None], (d - e * e / gamma)[None]
    diagonal = jnp.concatenate([first, jnp.full(n - 2, d), last])
    w = jnp.concatenate([gamma[None], jnp.zeros(n - 2), e[None]])
    x, z = solve_line(diagonal, e, b), solve_line(diagonal, e, w)
    along = (x[0] + x[-1] * e / gamma) / (1 + z[0] + z[-1] * e / gamma)
    return x - along * z

"""Small dense linear systems, unrolled.

A 3 x 3 solve through LAPACK costs more than the step it belongs to, so up to three unknowns are
solved by Cramer's rule and up to eight by elimination written out row by row. Pivots are chosen
by comparing and swapping, which needs no index that depends on the data.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from retrax.numerics.cross import cross

_UNROLLED = 8


def solve(A: Float[Array, "n n"], b: Float[Array, " n *m"]) -> Float[Array, " n *m"]:
    """The solution x of A x = b, where `b` is a vector or a matrix of columns.

    A singular `A` gives entries that are not finite, as `jnp.linalg.solve` does.
    """
    n = A.shape[0]
    if n <= 3:
        return inverse(A) @ b
    if n <= _UNROLLED:
        return _eliminate(A, b) if b.ndim == 2 else _eliminate(A, b[:, None])[:, 0]
    return jnp.linalg.solve(A, b)


def inverse(A: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The inverse matrix of A."""
    n = A.shape[0]
    if n == 1:
        return 1.0 / A
    if n == 2:
        adjugate = jnp.stack([jnp.stack([A[1, 1], -A[0, 1]]), jnp.stack([-A[1, 0], A[0, 0]])])
        return adjugate / (A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0])
    if n == 3:
        x, y, z = A[:, 0], A[:, 1], A[:, 2]
        yz = cross(y, z)
        return jnp.stack([yz, cross(z, x), cross(x, y)]) / (x @ yz)
    return solve(A, jnp.eye(n, dtype=A.dtype))


def _eliminate(A: Float[Array, "n n"], B: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """Gaussian elimination with partial pivoting; visibly linear in B, so JAX can transpose it."""
    n = A.shape[0]
    rows, x = [A[i] for i in range(n)], [B[i] for i in range(n)]
    for k in range(n):
        for i in range(k + 1, n):
            swap = jnp.abs(rows[i][k]) > jnp.abs(rows[k][k])
            rows[k], rows[i] = _swap_if(swap, rows[k], rows[i])
            x[k], x[i] = _swap_if(swap, x[k], x[i])
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            rows[i] = rows[i] - factor * rows[k]
            x[i] = x[i] - factor * x[k]
    for k in reversed(range(n)):
        for j in range(k + 1, n):
            x[k] = x[k] - rows[k][j] * x[j]
        x[k] = x[k] / rows[k][k]
    return jnp.stack(x)


def _swap_if(
    swap: Bool[Array, ""], a: Float[Array, " m"], b: Float[Array, " m"]
) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    return jnp.where(swap, b, a), jnp.where(swap, a, b)

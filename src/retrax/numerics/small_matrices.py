"""Small dense matrices: products, determinants, linear systems, null spaces.

A 3 x 3 solve through LAPACK costs more than the step it belongs to, so up to three unknowns are
solved by Cramer's rule and up to twelve by elimination written out row by row. Pivots are chosen
by comparing and swapping, which needs no index that depends on the data.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float

_UNROLLED = 12
# Elimination without exchanges is shorter.
_WRITTEN_OUT = 30
# The share of its diagonal that is added to a matrix that may be singular.
PROXIMAL = 1e-9


def cross(a: Float[Array, "3"], b: Float[Array, "3"]) -> Float[Array, "3"]:
    """Return a x b, whose shifted entries are $a_i b_{i+1} - a_{i+1} b_i$.

    Few and plain operations: a step holds dozens of cross products, and is traced entry by entry.
    """
    return _shift(lax.sub(lax.mul(a, _shift(b)), lax.mul(_shift(a), b)))


def _shift(a: Float[Array, "3"]) -> Float[Array, "3"]:
    """Return (a_2, a_3, a_1)."""
    return lax.concatenate([lax.slice(a, (1,), (3,)), lax.slice(a, (0,), (1,))], 0)


def determinant(A: Float[Array, "n n"]) -> Float[Array, ""]:
    """Return det A, written out for up to three rows."""
    n = A.shape[0]
    if n == 1:
        return A[0, 0]
    if n == 2:
        return A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]
    if n == 3:
        return A[0] @ cross(A[1], A[2])
    return jnp.linalg.det(A)


def solve(A: Float[Array, "n n"], b: Float[Array, " n *m"]) -> Float[Array, " n *m"]:
    """Solve A x = b, where `b` is a vector or a matrix of columns.

    A singular `A` gives entries that are not finite, as `jnp.linalg.solve` does.
    """
    n = A.shape[0]
    if n <= 3:
        adjugate, determinant = _cramer(A)
        return (adjugate @ b) * (1.0 / determinant)
    if n <= _UNROLLED:
        return _eliminate(A, b) if b.ndim == 2 else _eliminate(A, b[:, None])[:, 0]
    return jnp.linalg.solve(A, b)


def partly_ordered_solve(
    A: Float[Array, "n n"], b: Float[Array, " n"], positive: int
) -> Float[Array, " n"]:
    """Solve A x = b, eliminating the first `positive` unknowns in order, then the others as usual.

    Their block must be nearly symmetric and positive. Its zeros stay zeros in scalar programs.
    """
    if not positive:
        return solve(A, b)
    pivots = []
    for _ in range(positive):
        top, first, factor = A[0], b[0], A[1:, 0] / A[0, 0]
        A, b = A[1:, 1:] - factor[:, None] * top[None, 1:], b[1:] - factor * first
        pivots.append((top, first))
    x = solve(A, b) if len(b) else b
    for top, first in reversed(pivots):
        x = jnp.concatenate([((first - top[1:] @ x) / top[0])[None], x])
    return x


def proximal_solve(S: Float[Array, "n n"], b: Float[Array, " n"]) -> Float[Array, " n"]:
    r"""Solve $S x = b$ for a symmetric $S \ge 0$ that may be singular, where `b` lies in its range.

    $$ (\hat S + \rho 1)\,\hat x_{j+1} = \hat b + \rho\,\hat x_j, \qquad
       \hat S = DSD,\ \hat b = Db,\ x = D\hat x,\ D = \mathrm{diag}(S)^{-1/2}, \tag{1} $$

    from $\hat x_0 = 0$, three times: what redundant rows leave open stays small, and the rest is
    exact. The scaling $D$ keeps small rows from being taken for redundant ones.
    """
    small = len(S) <= _WRITTEN_OUT
    # JAX takes diagonals by asking where it runs, and compiles that.
    alone = jnp.stack([S[i, i] for i in range(len(S))]) if small else jnp.diag(S)
    scale = 1 / jnp.sqrt(alone)
    S, b = scale[:, None] * S * scale[None], scale * b
    near = S + PROXIMAL * jnp.eye(len(S), dtype=S.dtype)
    solved = partial(_substitute, _factor(near)) if small else _cholesky(near)
    x = solved(b)
    for _ in range(2):
        x = x + solved(b - S @ x)  # (1)
    return scale * x


def _cholesky(S: Float[Array, "n n"]) -> Callable[[Float[Array, " n"]], Float[Array, " n"]]:
    """Return the solution with a positive definite matrix of many rows."""
    factor = jnp.linalg.cholesky(S)
    return lambda b: cho_solve((factor, True), b)


def _factor(S: Float[Array, "n n"]) -> list[tuple[Float[Array, ""], Float[Array, " _"]]]:
    """Return the pivots of a positive definite matrix, each with the column of L below it."""
    found = []
    for _ in range(len(S)):
        pivot, below = S[0, 0], S[1:, 0] / S[0, 0]
        found.append((pivot, below))
        S = S[1:, 1:] - below[:, None] * S[None, 0, 1:]
    return found


def _substitute(
    factor: list[tuple[Float[Array, ""], Float[Array, " _"]]], b: Float[Array, " n"]
) -> Float[Array, " n"]:
    """Solve L D L^T x = b."""
    given = []
    for _, below in factor:
        given.append(b[0])
        b = b[1:] - below * b[0]
    x = jnp.zeros(0, b.dtype)
    for y, (pivot, below) in zip(reversed(given), reversed(factor), strict=True):
        x = jnp.concatenate([(y / pivot - below @ x)[None], x])
    return x


def solve_and_determinant(
    A: Float[Array, "n n"], b: Float[Array, " n"]
) -> tuple[Float[Array, " n"], Float[Array, ""]]:
    """Solve A x = b; return x, and det A from the same elimination."""
    n = A.shape[0]
    if n <= 3:
        adjugate, determinant = _cramer(A)
        return (adjugate @ b) * (1.0 / determinant), determinant
    if n <= _UNROLLED:
        x, determinant = _eliminate_with_determinant(A, b[:, None])
        return x[:, 0], determinant
    return jnp.linalg.solve(A, b), jnp.linalg.det(A)


def inverse(A: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Return the inverse matrix of A."""
    if A.shape[0] <= 3:
        adjugate, determinant = _cramer(A)
        return adjugate * (1.0 / determinant)
    return solve(A, jnp.eye(A.shape[0], dtype=A.dtype))


def _cramer(A: Float[Array, "n n"]) -> tuple[Float[Array, "n n"], Float[Array, ""]]:
    """Return the adjugate and the determinant, whose quotient is the inverse; n is 1, 2 or 3."""
    if A.shape[0] == 1:
        return jnp.ones_like(A), A[0, 0]
    if A.shape[0] == 2:
        adjugate = jnp.stack([A[1, 1], -A[0, 1], -A[1, 0], A[0, 0]]).reshape(2, 2)
        return adjugate, A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]
    x, y, z = A[:, 0], A[:, 1], A[:, 2]
    yz = cross(y, z)
    return jnp.stack([yz, cross(z, x), cross(x, y)]), x @ yz


@jax.jit
def _eliminate(A: Float[Array, "n n"], B: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """Solve by Gaussian elimination with partial pivoting; visibly linear in B, for JAX.

    Its hundreds of operations are traced once for each shape, however often a step solves.
    """
    return _elimination(A, B)[0]


@jax.jit
def _eliminate_with_determinant(
    A: Float[Array, "n n"], B: Float[Array, "n m"]
) -> tuple[Float[Array, "n m"], Float[Array, ""]]:
    return _elimination(A, B)


def _elimination(
    A: Float[Array, "n n"], B: Float[Array, "n m"]
) -> tuple[Float[Array, "n m"], Float[Array, ""]]:
    """Return the solution, and the determinant: the product of the pivots, a sign for each swap."""
    pivots, determinant = [], jnp.ones((), A.dtype)
    for _ in range(A.shape[0] - 1):
        top, A, B_top, B, sign = _bring_up_pivot(A, B)
        factor = A[:, 0] / top[0]
        A = A[:, 1:] - factor[:, None] * top[None, 1:]
        B = B - factor[:, None] * B_top[None]
        determinant = determinant * sign * top[0]
        pivots.append((top, B_top))
    x = B / A[0, 0]
    for top, B_top in reversed(pivots):
        x = jnp.concatenate([((B_top - top[1:] @ x) / top[0])[None], x])
    return x, determinant * A[0, 0]


def _bring_up_pivot(A: Float[Array, "n n"], B: Float[Array, "n m"]) -> tuple[Array, ...]:
    """Return the row with the largest first entry and the other rows, of A and of B, by swapping.

    Last comes the sign of the permutation.
    """
    size, top, B_top = jnp.abs(A[:, 0]), _row(A, 0), _row(B, 0)
    largest, rest, B_rest, sign = _row(size, 0), [], [], jnp.ones((), A.dtype)
    for i in range(1, A.shape[0]):
        row, B_row, here = _row(A, i), _row(B, i), _row(size, i)
        swap = lax.gt(here, largest)
        rest.append(lax.select(swap, top, row))
        B_rest.append(lax.select(swap, B_top, B_row))
        top, B_top = lax.select(swap, row, top), lax.select(swap, B_row, B_top)
        largest = lax.select(swap, here, largest)
        sign = lax.select(swap, -sign, sign)
    return top, jnp.stack(rest), B_top, jnp.stack(B_rest), sign


def _row(x: Float[Array, " n *m"], i: int) -> Float[Array, " *m"]:
    """Return x[i] by an operation that is quickly traced: elimination takes many rows."""
    return lax.index_in_dim(x, i, keepdims=False)


def null_space(
    matrix: Float[np.ndarray, "rows n"], tolerance: float
) -> Float[np.ndarray, "nullity n"]:
    """Return a basis of the null space, on the host, that people can read: axes come out as axes.

    It has reduced row echelon form. Singular values up to `tolerance` count as zero.
    """
    _, singular, rows = np.linalg.svd(matrix)
    return echelon(rows[np.sum(singular > tolerance) :])


def echelon(basis: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "m n"]:
    """Return the same span in reduced row echelon form; rows: independent and of size one."""
    basis = np.array(basis, dtype=float)
    pivot = 0
    for column in range(basis.shape[1]):
        if pivot == len(basis):
            break
        best = pivot + int(np.argmax(np.abs(basis[pivot:, column])))
        if abs(basis[best, column]) < 1e-6:
            continue
        basis[[pivot, best]] = basis[[best, pivot]]
        basis[pivot] /= basis[pivot, column]
        others = [i for i in range(len(basis)) if i != pivot]
        basis[others] -= np.outer(basis[others, column], basis[pivot])
        pivot += 1
    return np.where(np.abs(basis) < 1e-9, 0.0, basis)

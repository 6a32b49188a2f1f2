r"""Tridiagonal systems $Ax = b$, solved in one sweep down and one up: $O(N)$.

Two kinds, each as general as it is used: symmetric with numbers or 3 x 3 blocks; and symmetric with
one number beside the diagonal, along a line or around a ring.

$A$ has the diagonal $a_1, \dots, a_N$ and below it $b_2, \dots, b_N$ (above it their
transposes). It is positive definite, so elimination exchanges no rows. With pivots $d_k$,

$$
\begin{aligned}
d_1 &= a_1, \qquad l_k = b_k d_{k-1}^{-1}, \qquad d_k = a_k - l_k b_k^T            &&\text{(1)}\\
z_k &= q_k - l_k z_{k-1}, \qquad x_k = d_k^{-1}z_k - l_{k+1}^T x_{k+1}             &&\text{(2)}
\end{aligned}
$$
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from retrax.numerics.small_matrices import inverse

Vector = Float[Array, " n"]


class Factor(NamedTuple):
    """The factors of (1): `ratio` $l_k$, with $l_1 = 0$, and `inverse` $d_k^{-1}$."""

    ratio: Float[Array, " n"]
    inverse: Float[Array, " n"]


@jax.jit
def factor(diagonal: Float[Array, " n"], below: Float[Array, " n"]) -> Factor:
    """Factor a matrix of numbers; `below[0]` belongs to no entry and is ignored."""

    def pivot(before: Float[Array, ""], here: tuple):
        a, b = here
        ratio = b * before
        inverse = 1 / (a - ratio * b)
        return inverse, (ratio, inverse)  # (1)

    first = jnp.zeros((), diagonal.dtype)  # so that the first ratio is zero
    _, (ratio, inverse) = lax.scan(pivot, first, (diagonal, below))
    return Factor(ratio, inverse)


def solve(factors: Factor, q: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """Solve for the columns of `q`."""

    def forward(before: Float[Array, " k"], here: tuple):
        ratio, q = here
        z = q - ratio * before
        return z, z  # (2)

    def backward(after: tuple, here: tuple):
        ratio, inverse, z = here
        next_ratio, x = after
        x = inverse * z - next_ratio * x
        return (ratio, x), x  # (2)

    nothing = jnp.zeros_like(q[0])
    _, z = lax.scan(forward, nothing, (factors.ratio, q))
    zero = jnp.zeros((), q.dtype)
    _, x = lax.scan(backward, (zero, nothing), (factors.ratio, factors.inverse, z), reverse=True)
    return x


def solve_blocks(
    diagonal: Float[Array, "n 3 3"], below: Float[Array, "n 3 3"], q: Float[Array, "n 3 k"]
) -> Float[Array, "n 3 k"]:
    """Factor a matrix of 3 x 3 blocks and solve for the columns of `q`; `below[0]` is ignored."""

    def forward(before: tuple, here: tuple):
        a, b, q = here
        pivot_inverse, z = before
        ratio = b @ pivot_inverse
        pivot_inverse = inverse(a - ratio @ b.T)  # (1)
        z = q - ratio @ z  # (2)
        return (pivot_inverse, z), (ratio, pivot_inverse, z)

    def backward(after: tuple, here: tuple):
        ratio, pivot_inverse, z = here
        next_ratio, x = after
        x = pivot_inverse @ z - next_ratio.T @ x  # (2)
        return (ratio, x), x

    nothing, none = jnp.zeros_like(q[0]), jnp.zeros_like(diagonal[0])
    _, swept = lax.scan(forward, (none, nothing), (diagonal, below, q))
    _, x = lax.scan(backward, (none, nothing), swept, reverse=True)
    return x


def product(
    diagonal: Float[Array, " n"], below: Float[Array, " n"], x: Float[Array, "n k"]
) -> Float[Array, "n k"]:
    """Multiply: $Ax$ for a matrix of numbers and the columns of `x`."""
    nothing = jnp.zeros_like(x[:1])
    lower = below[:, None] * jnp.concatenate([nothing, x[:-1]])
    above = jnp.concatenate([below[1:], jnp.zeros_like(below[:1])])
    return diagonal[:, None] * x + (lower + above[:, None] * jnp.concatenate([x[1:], nothing]))


def solve_line(d: Vector, e: Float[Array, ""], b: Vector) -> Vector:
    r"""Solve $e\,x_{i-1} + d_i\,x_i + e\,x_{i+1} = b_i$ with nothing beyond the ends.

    The diagonal must dominate.
    """
    factors = factor(d, jnp.broadcast_to(e, d.shape))
    return solve(factors, b[:, None])[:, 0]


def solve_ring(d: Float[Array, ""], e: Float[Array, ""], b: Vector) -> Vector:
    r"""Solve $e\,x_{i-1} + d\,x_i + e\,x_{i+1} = b_i$ around a ring, where $x_{n+i} = x_i$.

    The two corners have rank one: with $w = (\gamma, 0, \dots, 0, e)$ and $\gamma = -d$ the matrix
    is $T + w w^T/\gamma$, and the Sherman-Morrison formula gives $x$ from two solves along a line.
    """
    n, gamma = b.shape[0], -d
    first, last = (d - gamma)[None], (d - e * e / gamma)[None]
    diagonal = jnp.concatenate([first, jnp.full(n - 2, d), last])
    w = jnp.concatenate([gamma[None], jnp.zeros(n - 2), e[None]])
    x, z = solve_line(diagonal, e, b), solve_line(diagonal, e, w)
    along = (x[0] + x[-1] * e / gamma) / (1 + z[0] + z[-1] * e / gamma)
    return x - along * z

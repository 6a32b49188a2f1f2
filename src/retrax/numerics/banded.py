r"""Block banded systems: blocks of equal size, coupled to at most $w$ neighbours on either side.

Elimination goes along the band and carries a window of $w \times w$ blocks,

$$
\begin{aligned}
P_k &= S_{k,k} - C_{00}, \qquad U_{kq} = S_{k,k+q} - C_{0q}, \qquad L_{kq} = S_{k+q,k} - C_{q0}
                                                                              &&\text{(1)}\\
C_{a-1,b-1} &\leftarrow C_{ab} + L_{ka}P_k^{-1}U_{kb}, \qquad a, b = 1, \dots, w &&\text{(2)}\\
z_k &= b_k - \sum_q L_{k-q,q}P_{k-q}^{-1}z_{k-q}, \qquad
x_k = P_k^{-1}\Bigl(z_k - \sum_q U_{kq}x_{k+q}\Bigr)                             &&\text{(3)}
\end{aligned}
$$

without exchanging rows: the matrix is positive definite, or close to one that is. What is above the
diagonal comes as $w$ arrays, the $q$-th of which holds $S_{k,k+q}$ for all $k$.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from retrax.numerics.small_matrices import inverse

Blocks = Float[Array, "n m m"]
Block = Float[Array, "m m"]


class BandFactors(NamedTuple):
    r"""$P_k^{-1}$ of (1), $L_{kq}P_k^{-1}$ and $P_k^{-1}U_{kq}$ for $q = 1, \dots, w$."""

    pivots: Blocks
    lower: tuple[Blocks, ...]
    upper: tuple[Blocks, ...]


def factor(
    diagonal: Blocks, above: tuple[Blocks, ...], below: tuple[Blocks, ...] | None
) -> BandFactors:
    """Factor a matrix; without `below` it is symmetric."""
    width, nothing = len(above), jnp.zeros_like(diagonal[0])
    inside = range(1, width + 1)

    def pivot(window: list[list[Block]], here: tuple) -> tuple:
        a, right, down = here
        wide = [[*row, nothing] for row in window] + [[nothing] * (width + 1)]
        P = block_inverse(a - wide[0][0])
        U = [right[q - 1] - wide[0][q] for q in inside]  # (1)
        if down is None:
            ahead = [P @ u for u in U]
            behind = [x.T for x in ahead]
        else:
            behind = [(down[q - 1] - wide[q][0]) @ P for q in inside]
            ahead = [P @ u for u in U]
        window = [[wide[i][j] + behind[i - 1] @ U[j - 1] for j in inside] for i in inside]  # (2)
        return window, (P, () if down is None else tuple(behind), tuple(ahead))

    empty = [[nothing] * width for _ in inside]
    _, (pivots, lower, upper) = lax.scan(pivot, empty, (diagonal, above, below))
    if below is None:
        lower = tuple(jnp.swapaxes(u, 1, 2) for u in upper)
    return BandFactors(pivots, lower, upper)


def solve(factors: BandFactors, b: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """Solve for a right side."""
    width, nothing = len(factors.upper), jnp.zeros_like(b[0])

    def forward(behind: list[Array], here: tuple) -> tuple:
        b, P, lower = here
        z = b - behind[0] if width else b
        later = [*behind[1:], nothing]
        return [x + L @ z for x, L in zip(later, lower, strict=False)], P @ z

    def backward(ahead: list[Array], here: tuple) -> tuple:
        x, upper = here
        for U, other in zip(upper, ahead, strict=True):
            x = x - U @ other
        return [x, *ahead[:-1]] if width else [], x

    _, z = lax.scan(forward, [nothing] * width, (b, factors.pivots, factors.lower))
    _, x = lax.scan(backward, [nothing] * width, (z, factors.upper), reverse=True)
    return x  # (3)


def block_inverse(A: Block) -> Block:
    """Invert a matrix that is positive definite, or nearly so, without exchanging rows."""
    m = A.shape[0]
    if m <= 3:
        return inverse(A)
    a, b, c, d = A[:3, :3], A[:3, 3:], A[3:, :3], A[3:, 3:]
    first = inverse(a)
    left = c @ first
    last = block_inverse(d - left @ b)
    right = -first @ b @ last
    low = -last @ left
    top = jnp.concatenate([first - right @ left, right], axis=1)
    return jnp.concatenate([top, jnp.concatenate([low, last], axis=1)])

r"""Sparse systems of small blocks, solved in an order that is found once.

The unknowns are the impulses of joints. Two of them stand in one equation where their joints share
a body, so the matrix has the pattern of the graph of the joints. `Order.of` eliminates those first
that have the fewest neighbours: leaves of trees, ends of chains; what is left is as large as the
loops are many. Blocks are eliminated without pivoting, for the matrix is nearly symmetric and
positive, as $W\,\mathbb I^{-1}W^T$ is. Its diagonal is raised by $\rho_i = 10^{-13}S_{ii}$, so that
redundant rows do no harm; whoever solves does so again until the equations hold, and $\rho$ changes
nothing but how often.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.numerics.small_matrices import inverse

Block = Float[Array, "_ _"]
Vector = Float[Array, " _"]
Blocks = dict[tuple[int, int], Block]

_WRITTEN_OUT = 3
# The part of each diagonal entry that is added to it.
ADDED = 1e-13


class Order(NamedTuple):
    """In which order unknowns are eliminated, and which others each of them meets by then.

    **Attributes:** `pivots`: all unknowns; `later`: the neighbours of each that are still there.
    """

    pivots: tuple[int, ...]
    later: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, bodies: Sequence[Sequence[int]]) -> "Order":
        """Find it by minimum degree: `bodies` are those that each joint binds, ground left out."""
        near: dict[int, set[int]] = {
            i: {j for j, others in enumerate(bodies) if j != i and set(mine) & set(others)}
            for i, mine in enumerate(bodies)
        }
        pivots, later = [], []
        while near:
            pivot = min(near, key=lambda i: (len(near[i]), i))
            met = near.pop(pivot)
            for i in met:
                near[i] = (near[i] | met) - {i, pivot}
            pivots.append(pivot)
            later.append(tuple(sorted(met)))
        return cls(tuple(pivots), tuple(later))


class Factors(NamedTuple):
    """A matrix of blocks after elimination; `solve` uses it as often as needed."""

    order: Order
    pivots: dict[int, Block]
    lower: Blocks
    upper: Blocks

    def solve(self, b: Sequence[Vector]) -> list[Vector]:
        """Return the solution for the right side `b`, a vector for each unknown."""
        b = list(b)
        for p, later in zip(self.order.pivots, self.order.later, strict=True):
            for i in later:
                b[i] = b[i] - self.lower[i, p] @ b[p]
        for p, later in reversed(list(zip(*self.order, strict=True))):
            rest = b[p]
            for j in later:
                rest = rest - self.upper[p, j] @ b[j]
            b[p] = self.pivots[p] @ rest
        return b


def eliminate(order: Order, S: Blocks, symmetric: bool) -> Factors:
    r"""Eliminate the blocks of $S + \rho$; of a symmetric matrix those with $i \le j$ are read."""
    left = dict(S)
    pivots: dict[int, Block] = {}
    lower: Blocks = {}
    upper: Blocks = {}

    def minus(i: int, j: int, product: Block) -> None:
        left[i, j] = left[i, j] - product if (i, j) in left else -product

    for p, later in zip(order.pivots, order.later, strict=True):
        near = left[p, p] + jnp.diag(ADDED * jnp.diagonal(S[p, p]))
        if symmetric:
            pivots[p] = _mirror(unpivoted_inverse(_mirror(near)))
        else:
            pivots[p] = unpivoted_inverse(near)
        for i in later:
            upper[p, i] = left[p, i] if not symmetric or p < i else left[i, p].T
            below = upper[p, i].T if symmetric else left[i, p]
            lower[i, p] = below @ pivots[p]
        for i in later:
            for j in later:
                if not symmetric or i <= j:
                    minus(i, j, lower[i, p] @ upper[p, j])
    return Factors(order, pivots, lower, upper)


def _mirror(A: Block) -> Block:
    """Return a symmetric matrix from its upper half: nobody computes the entries below."""
    i, j = np.indices(A.shape)
    return A[np.minimum(i, j), np.maximum(i, j)]


def unpivoted_inverse(A: Block) -> Block:
    """Return the inverse of a small matrix by halving it: no comparisons, for positive ones."""
    n = A.shape[0]
    if n <= _WRITTEN_OUT:
        return inverse(A)
    k = n // 2 if n > 2 * _WRITTEN_OUT else _WRITTEN_OUT
    a, b, c, d = A[:k, :k], A[:k, k:], A[k:, :k], A[k:, k:]
    first = unpivoted_inverse(a)
    across, down = first @ b, c @ first
    second = unpivoted_inverse(d - c @ across)
    corner, side = across @ second, second @ down
    return jnp.concatenate(
        [
            jnp.concatenate([first + corner @ down, -corner], axis=1),
            jnp.concatenate([-side, second], axis=1),
        ]
    )

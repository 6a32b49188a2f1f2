r"""Many contacts between few bodies: rows that reach two bodies each, and matrices of blocks.

A contact reaches the bodies it is between and no others. Its rows are stored for these alone, and
the matrix of all velocities is a square of blocks, one for each pair of bodies,

$$ K = D + \sum_iW_i^TE_iV_i. \tag{1} $$

Elimination goes from body to body and passes by blocks that are zero, as most are. Everything is
written as loops, so that a program for many contacts is not longer than that for a few.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from retrax.numerics.jax_hints import keep_axis

Block = Float[Array, "b b"]
Blocks = Float[Array, "_ b b"]
Index = Int[Array, ""]
T = TypeVar("T")
# Contacts times velocities from which on loops are used: code written out is faster, but longer.
_MANY = 64
# Rows of fewer blocks are filled up to as many, so that the matrix is kept in memory.
_FEWEST = 4


class Couples(NamedTuple):
    """Which entries of a velocity each contact reaches.

    **Attributes:** `parts`: where the entries of each body start, and how many there are; they
    follow each other. `of`: the two parts that each contact reaches. One that reaches a single
    part has rows of zeros for the other.
    """

    parts: tuple[tuple[int, int], ...]
    of: tuple[tuple[int, int], ...]

    @property
    def are_many(self) -> bool:
        """Whether loops pay."""
        return len(self.of) * self.dim > _MANY

    @property
    def dim(self) -> int:
        """How many entries a velocity has."""
        start, size = self.parts[-1]
        return start + size

    @property
    def size(self) -> int:
        """How many entries the largest part has: those of a block."""
        return max(size for _, size in self.parts)

    @property
    def width(self) -> int:
        """How many parts a row has."""
        return min(len(self.parts), 2)

    @property
    def count(self) -> int:
        """How many blocks there are in a row of the matrix."""
        return max(len(self.parts), _FEWEST)

    @property
    def places(self) -> np.ndarray:
        """The entry of a velocity at each place of the blocks; padding has the number `dim`."""
        found = np.full((self.count, self.size), self.dim)
        for k, (start, size) in enumerate(self.parts):
            found[k, :size] = np.arange(start, start + size)
        return found

    def side(self, k: int) -> Int[Array, " m"]:
        """Return the first or the second part of all contacts."""
        return keep_axis(jnp.asarray([both[k] for both in self.of]))

    def take(self, x: Float[Array, "_ ..."], *sides: int) -> Float[Array, "m ..."]:
        """Return what belongs to the first or the second part of each contact.

        With two sides these are the blocks of a matrix between them.
        """
        first, *others = sides
        places = [[both[first], *(both[k] for k in others)] for both in self.of]
        flat = [p if not q else p * self.count + q[0] for p, *q in places]
        if len(set(flat)) == 1:
            return jnp.broadcast_to(x[flat[0]], (len(flat), *x.shape[1:]))
        return take(keep_axis(x), keep_axis(jnp.asarray(flat)))


def speeds_along(
    rows: Float[Array, "m a k"], xi: Float[Array, " n"], couples: Couples | None
) -> Float[Array, "m a"]:
    """Return what rows make of a velocity."""
    if couples is None:
        return jnp.einsum("iak,k->ia", rows, xi)
    return jnp.sum(rows * reach(xi, couples)[:, None, :], axis=2)


def reach(xi: Float[Array, " n"], couples: Couples) -> Float[Array, "m k"]:
    """Return the entries of a velocity that each contact reaches."""
    parts = in_parts(xi, couples)
    sides = [couples.take(parts, k) for k in range(couples.width)]
    return jnp.concatenate(sides, axis=1)


def impulse_of(
    rows: Float[Array, "m 3 k"], z: Float[Array, "m 3"], couples: Couples | None
) -> Float[Array, " n"]:
    """Return what impulses along rows add up to."""
    if couples is None:
        return jnp.einsum("iak,ia->k", rows, z)
    each = jnp.sum(rows * z[:, :, None], axis=1)
    total, b = jnp.zeros((couples.count, couples.size)), couples.size
    for k in range(couples.width):
        given = each[:, k * b : (k + 1) * b]
        total = total.at[couples.side(k)].add(given, mode="promise_in_bounds")
    return velocity_of(total, couples)


def spread(rows: Float[Array, "m a k"], couples: Couples | None) -> Float[Array, "m a n"]:
    """Return rows with an entry for every velocity."""
    if couples is None:
        return rows
    none = couples.width * couples.size
    where = np.full((len(couples.of), couples.dim), none)
    for i, both in enumerate(couples.of):
        for k, part in enumerate(both[: couples.width]):
            start, size = couples.parts[part]
            where[i, start : start + size] = k * couples.size + np.arange(size)
    filled = jnp.concatenate([rows, jnp.zeros((*rows.shape[:2], 1))], axis=2)
    return jnp.take_along_axis(filled, jnp.asarray(where)[:, None, :], axis=2)


def blocks_of(matrix: Float[Array, "n n"], couples: Couples) -> Blocks:
    """Return the blocks of a matrix, row by row; one where entries are missing on the diagonal."""
    flat, n = couples.places.reshape(-1), couples.dim
    filled = jnp.zeros((n + 1, n + 1)).at[:n, :n].set(matrix).at[n, n].set(1.0)
    square = filled[flat[:, None], flat[None, :]]
    absent = np.diag(flat == n)
    beside = (flat[:, None] == n) & (flat[None, :] == n) & ~absent
    square = jnp.where(beside, 0.0, square)
    b, count = couples.size, couples.count
    return square.reshape(count, b, count, b).transpose(0, 2, 1, 3).reshape(-1, b, b)


def carry_rows(
    rows: Float[Array, "m k"],
    function: Callable[[Float[Array, " n"]], Float[Array, " n"]],
    couples: Couples | None,
) -> Float[Array, "m k"]:
    """Return what a linear function that does not mix parts makes of rows."""
    if couples is None:
        return jax.vmap(function)(rows)
    b, count = couples.size, couples.count
    matrix = jax.vmap(function)(jnp.eye(couples.dim))
    own = blocks_of(matrix, couples)[:: count + 1]
    sides = [
        jnp.sum(rows[:, k * b : (k + 1) * b, None] * couples.take(own, k), axis=1)
        for k in range(couples.width)
    ]
    return jnp.concatenate(sides, axis=1)


def velocity_changes(
    rows: Float[Array, "m a k"], mobility: Float[Array, "n n"], couples: Couples
) -> Float[Array, "m a k"]:
    """Return the changes of the velocities of their own parts that impulses along rows make."""
    b, blocks = couples.size, blocks_of(mobility, couples)
    found = []
    for t in range(couples.width):
        total = jnp.zeros((*rows.shape[:2], b))
        for s in range(couples.width):
            block = couples.take(blocks, s, t)
            own = rows[:, :, s * b : (s + 1) * b]
            total = total + jnp.sum(own[:, :, :, None] * block[:, None], axis=2)
        found.append(total)
    return jnp.concatenate(found, axis=2)


def solve_with_contacts(
    D: Float[Array, "n n"],
    right: Float[Array, " n"],
    W: Float[Array, "m 3 k"],
    E: Float[Array, "m 3 3"],
    V: Float[Array, "m 3 k"],
    closed: Bool[Array, " m"],
    couples: Couples,
) -> Float[Array, " n"]:
    """Solve K x = right, with the contacts of (1) that are closed.

    The right side is the first column of one more block in each row.
    """
    b, count = couples.size, couples.count
    square = blocks_of(D, couples).reshape(count, count, b, b)
    sides = in_parts(right, couples)
    last = jnp.concatenate([sides[:, :, None], jnp.zeros((count, b, b - 1))], axis=2)
    A = jnp.concatenate([square, last[:, None]], axis=1).reshape(-1, b, b)
    A = _with_contacts(keep_axis(A), W, E, V, closed, couples)
    x = _substitution(_elimination(A, count), count)[count :: count + 1, :, 0]
    return velocity_of(x, couples)


def _with_contacts(
    A: Blocks,
    W: Float[Array, "m 3 k"],
    E: Float[Array, "m 3 3"],
    V: Float[Array, "m 3 k"],
    closed: Bool[Array, " m"],
    couples: Couples,
) -> Blocks:
    """Add the sum of (1)."""
    b, row, sides = couples.size, couples.count + 1, range(couples.width)
    where = [couples.side(k) for k in sides]

    def one(i: Index, A: Blocks) -> Blocks:
        def add(A: Blocks) -> Blocks:
            w, answered = take(W, i), take(E, i) @ take(V, i)
            for s in sides:
                for t in sides:
                    block = w[:, s * b : (s + 1) * b].T @ answered[:, t * b : (t + 1) * b]
                    place = take(where[s], i) * row + take(where[t], i)
                    A = A.at[place].add(block, mode="promise_in_bounds")
            return A

        return lax.cond(take(closed, i), add, lambda A: A, A)

    return count_through(0, len(W), one, A)


def _elimination(A: Blocks, count: int) -> Blocks:
    """Eliminate part after part, without exchanges; leave L U of each on the diagonal."""
    row = count + 1

    def eliminate(k: Index, A: Blocks) -> Blocks:
        LU = _factor(take(A, k * row + k))
        A = A.at[k * row + k].set(LU, mode="promise_in_bounds")

        def below(i: Index, A: Blocks) -> Blocks:
            own = take(A, i * row + k)

            def take_away(A: Blocks) -> Blocks:
                F = _divide(own, LU)

                def across(j: Index, A: Blocks) -> Blocks:
                    less = F @ take(A, k * row + j)
                    return A.at[i * row + j].add(-less, mode="promise_in_bounds")

                A = count_through(k + 1, count, across, A)
                less = F @ take(A, k * row + count)[:, 0]
                return A.at[i * row + count, :, 0].add(-less, mode="promise_in_bounds")

            return lax.cond(jnp.any(own != 0), take_away, lambda A: A, A)

        return count_through(k + 1, count, below, A)

    return count_through(0, count, eliminate, A)


def _substitution(A: Blocks, count: int) -> Blocks:
    """Put the solution in the place of the right side."""
    row = count + 1

    def substitute(steps: Index, A: Blocks) -> Blocks:
        k = count - 1 - steps

        def less(j: Index, x: Float[Array, " b"]) -> Float[Array, " b"]:
            return x - take(A, k * row + j) @ take(A, j * row + count)[:, 0]

        x = count_through(k + 1, count, less, take(A, k * row + count)[:, 0])
        x = _substitute(take(A, k * row + k), x)
        return A.at[k * row + count, :, 0].set(x, mode="promise_in_bounds")

    return count_through(0, count, substitute, A)


def _factor(D: Block) -> Block:
    """Return L and U of a matrix in one."""
    rows = list(D)
    for k in range(len(rows)):
        for i in range(k + 1, len(rows)):
            factor = rows[i][k] / rows[k][k]
            rows[i] = jnp.concatenate(
                [rows[i][:k], factor[None], rows[i][k + 1 :] - factor * rows[k][k + 1 :]]
            )
    return jnp.stack(rows)


def _divide(B: Block, LU: Block) -> Block:
    """Return B (L U)^-1, column by column."""
    b = len(LU)
    columns: list[Array] = []
    for j in range(b):
        left = B[:, j]
        for k in range(j):
            left = left - columns[k] * LU[k, j]
        columns.append(left / LU[j, j])
    for j in reversed(range(b)):
        for k in range(j + 1, b):
            columns[j] = columns[j] - columns[k] * LU[k, j]
    return jnp.stack(columns, axis=1)


def _substitute(LU: Block, y: Float[Array, " b"]) -> Float[Array, " b"]:
    """Solve L U x = y."""
    x = list(y)
    for i in range(len(x)):
        for k in range(i):
            x[i] = x[i] - LU[i, k] * x[k]
    for i in reversed(range(len(x))):
        for k in range(i + 1, len(x)):
            x[i] = x[i] - LU[i, k] * x[k]
        x[i] = x[i] / LU[i, i]
    return jnp.stack(x)


def in_parts(xi: Float[Array, " n"], couples: Couples) -> Float[Array, "count b"]:
    """Return a velocity part by part."""
    # One by one: native loops carry long vectors in memory, whose pieces would be loops too.
    entries = [lax.index_in_dim(xi, k, keepdims=False) for k in range(len(xi))]
    filled = [*entries, jnp.zeros(())]
    return jnp.stack([filled[k] for k in couples.places.reshape(-1)]).reshape(couples.places.shape)


def velocity_of(parts: Float[Array, "count b"], couples: Couples) -> Float[Array, " n"]:
    """Return a velocity from its parts."""
    return jnp.concatenate([parts[k, :size] for k, (_, size) in enumerate(couples.parts)])


def take(x: Array, where: Int[Array, "..."]) -> Array:
    """Return entries along the first axis, at places that lie within."""
    return x.at[where].get(mode="promise_in_bounds")


def count_through(first: int | Index, end: int, body: Callable[[Index, T], T], at: T) -> T:
    """Run a loop from a number to another one."""
    return lax.fori_loop(jnp.asarray(first, jnp.int32), jnp.asarray(end, jnp.int32), body, at)

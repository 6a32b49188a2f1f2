"""Lists of who is near whom: made anew when a node may move by half the skin.

A grid of cells as large as the reach of a pair finds them: nodes of one cell hang together in a
chain, and who is near a node lies in the 27 cells around it. Cells share buckets, twice as many as
there are nodes, so that a grid has no bounds. The work grows with the number of nodes and pairs.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from retrax.contact.node_contact import AbstractNodeContact, AbstractSpots, Looking
from retrax.contact.rows import Places

Scalar = Float[Array, ""]
Whole = Int[Array, ""]
Wholes = Int[Array, " n"]

# Cells farther from the origin than this many are taken for one.
_FARTHEST = float(1 << 20)
# What takes the three numbers of a cell to that of its bucket.
_STRIDES = (1, 37, 1369)
_AROUND = np.stack(np.meshgrid(*[[-1, 0, 1]] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
_NOBODY = -1


class Neighbours(NamedTuple):
    """Pairs of those that are near, all numbers floats.

    **Attributes:** `first`, `second`: the pairs, those of the first node first, as far as there
    are, then -1 and 0; `number`: how many were found, more than there is room for where the lists
    overflow; `places`: of the nodes when they were found; `skin`: how near they had to be.
    """

    first: Float[Array, " pairs"]
    second: Float[Array, " pairs"]
    number: Scalar
    places: Places
    skin: Scalar


class _Grid(NamedTuple):
    """The cell of each node, the first node of each bucket, and the next in the same bucket."""

    cell: Int[Array, "n 3"]
    head: Int[Array, " buckets"]
    after: Wholes


class _Lists(NamedTuple):
    first: Float[Array, " pairs"]
    second: Float[Array, " pairs"]
    source: Float[Array, " pairs"]
    number: Whole
    passed: Whole


def nobody(contact: AbstractNodeContact, places: Places) -> Neighbours:
    """Return lists that are to be made in the first step."""
    none = jnp.zeros(contact.length(len(places)))
    return Neighbours(
        none + _NOBODY, none, jnp.zeros(()), jnp.full_like(places, jnp.inf), contact.skin
    )


def farthest_move(near: Neighbours, places: Places) -> Scalar:
    """Return how far the node that has moved farthest is from where the lists were made."""
    return jnp.sqrt(jnp.max(jnp.sum((places - near.places) ** 2, axis=1)))


def find_pairs(
    contact: AbstractNodeContact, places: Places, skin: Scalar, old: Neighbours
) -> tuple[Neighbours, Float[Array, " pairs"]]:
    """Return all pairs whose surfaces are nearer than the skin.

    Beside them: where each was in the old lists, or -1.
    """
    n, room, look = len(places), contact.length(len(places)), contact.looking(places, skin)
    grid = _grid(look)
    firsts, seconds = old.first.astype(jnp.int32), old.second.astype(jnp.int32)
    known = jnp.minimum(old.number, float(room)).astype(jnp.int32)
    around = jnp.asarray(_AROUND, jnp.int32)

    def of(k: Whole, i: Whole) -> Bool[Array, ""]:
        """Return whether the old list has a pair of `i` there."""
        return (k < known) & (firsts[jnp.minimum(k, room - 1)] == i)

    def add(at: _Lists, i: Whole, j: Whole) -> _Lists:
        def other(k: Whole) -> Bool[Array, ""]:
            return of(k, i) & (seconds[jnp.minimum(k, room - 1)] != j)

        k = lax.while_loop(other, lambda k: k + 1, at.passed)
        source = jnp.where(of(k, i), k.astype(float), float(_NOBODY))
        return at._replace(
            first=at.first.at[at.number].set(i.astype(float), mode="drop"),
            second=at.second.at[at.number].set(j.astype(float), mode="drop"),
            source=at.source.at[at.number].set(source, mode="drop"),
            number=at.number + 1,
        )

    def beside(k: Whole, at: _Lists, i: Whole) -> _Lists:
        """Add those of one of the cells around."""
        cell = grid.cell[i] + around[k]

        def one(state: tuple[Whole, _Lists]) -> tuple[Whole, _Lists]:
            j, at = state
            own = grid.cell[j]
            here = (own[0] == cell[0]) & (own[1] == cell[1]) & (own[2] == cell[2])
            hit = lax.cond((j > i) & here, lambda: look.near(i, j), lambda: jnp.asarray(False))
            return grid.after[j], lax.cond(hit, lambda at: add(at, i, j), lambda at: at, at)

        start = grid.head[_bucket(cell, len(grid.head))], at
        return lax.while_loop(lambda state: state[0] >= 0, one, start)[1]

    def standing(k: Whole, at: _Lists, i: Whole) -> _Lists:
        assert look.near_other is not None
        hit = look.near_other(i, k)
        return lax.cond(hit, lambda at: add(at, i, k + n), lambda at: at, at)

    def one(i: Whole, at: _Lists) -> _Lists:
        passed = lax.while_loop(
            lambda k: (k < known) & (firsts[jnp.minimum(k, room - 1)] < i),
            lambda k: k + 1,
            at.passed,
        )
        at = at._replace(passed=passed)
        at = lax.fori_loop(zero, _whole(len(_AROUND)), lambda k, at: beside(k, at, i), at)
        if look.others == 0:
            return at
        return lax.fori_loop(zero, _whole(look.others), lambda k, at: standing(k, at, i), at)

    none, zero = jnp.full(room, float(_NOBODY)), _whole(0)
    start = _Lists(none, jnp.zeros(room), none, zero, zero)
    end = lax.fori_loop(zero, _whole(n), one, start)
    near = Neighbours(end.first, end.second, end.number.astype(float), places, skin)
    return near, end.source


def _grid(look: Looking) -> _Grid:
    n = len(look.centres)
    buckets = 1 << max(2 * n - 1, 1).bit_length()
    cell = jnp.floor(look.centres / look.size)
    cell = jnp.minimum(jnp.maximum(cell, -_FARTHEST), _FARTHEST).astype(jnp.int32)

    def hang(k: Whole, at: tuple[Array, Array]) -> tuple[Array, Array]:
        head, after = at
        i = n - 1 - k  # so that chains lead from low numbers to high ones
        b = _bucket(cell[i], buckets)
        return head.at[b].set(i), after.at[i].set(head[b])

    empty = jnp.full(buckets, _NOBODY, jnp.int32), jnp.full(n, _NOBODY, jnp.int32)
    return _Grid(cell, *lax.fori_loop(_whole(0), _whole(n), hang, empty))


def _bucket(cell: Int[Array, "3"], buckets: int) -> Whole:
    a, b, c = _STRIDES
    return (a * cell[0] + b * cell[1] + c * cell[2]) & (buckets - 1)


def _whole(k: int) -> Whole:
    return jnp.asarray(k, jnp.int32)


def spots_of(contact: AbstractNodeContact, near: Neighbours) -> AbstractSpots:
    """Return the spots of the lists."""
    first, second = jnp.maximum(near.first, 0.0), near.second
    return contact.spots(first.astype(jnp.int32), second.astype(jnp.int32), near.first >= 0)


def carry(x: Float[Array, "m 3"], source: Float[Array, " pairs"], kinds: int) -> Array:
    """Return numbers of the spots of old lists, such as impulses, in the order of new ones."""
    room = len(source)
    known = jnp.broadcast_to((source >= 0)[:, None], (room, 3))
    where = jnp.maximum(source, 0.0).astype(jnp.int32)
    parts = [jnp.where(known, x[k * room : (k + 1) * room][where], 0.0) for k in range(kinds)]
    rest = [x[kinds * room :]] if len(x) > kinds * room else []
    return jnp.concatenate(parts + rest)

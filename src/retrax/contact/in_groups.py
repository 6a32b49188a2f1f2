"""Pairs of the same two kinds of shapes, all at once: code for one of them, in a loop.

Their shapes and bodies are stacked, and the formulas are mapped along the new axis, which native
programs keep as a loop. Candidates come out pair by pair, as they do one after the other.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.contact.bodies import Placed
from retrax.contact.nearest import Points
from retrax.contact.shapes import AbstractSurface
from retrax.mechanics.contact import Frames
from retrax.numerics.jax_hints import keep_axis

Pair = tuple[AbstractSurface, AbstractSurface]
T = TypeVar("T")


class Pairs(NamedTuple):
    """Pairs of shapes, where the bodies are that carry them, and what there is of each.

    **Attributes:** `shapes`; `bodies`: the numbers of both; `counts`: of candidates; `there`: where
    all bodies are.
    """

    shapes: Sequence[Pair]
    bodies: Sequence[tuple[int, int]]
    counts: Sequence[int]
    there: Sequence[Placed]

    @property
    def groups(self) -> list[list[int]]:
        """The numbers of pairs that are alike, group by group."""
        found: dict[object, list[int]] = {}
        for k, ((a, b), both) in enumerate(zip(self.shapes, self.bodies, strict=True)):
            carried = tuple(self.there[i][3:] for i in both)
            found.setdefault((type(a), type(b), carried), []).append(k)
        return list(found.values())

    def each(
        self, one: Callable[..., tuple[Array, ...]], along: Frames | None, parts: Sequence[Array]
    ) -> tuple[Array, ...]:
        """Return what a function makes of all pairs, candidate by candidate.

        **Arguments:** `one`: takes two shapes, their bodies, whose parts of a velocity start at 0,
        the first tangents before, and the parts of both bodies; `parts`: of all bodies.
        """
        starts = np.concatenate([[0], np.cumsum(self.counts)])
        found: list[list[Array]] = []
        order: list[np.ndarray] = []
        for members in self.groups:
            count = self.counts[members[0]]
            places = starts[members][None] + np.arange(count)[:, None]
            before = None
            if along is not None:
                before = jnp.stack([along[:, 1][row] for row in places], axis=1)
            results = self._map(one, members, before, parts)
            for k, row in enumerate(places):
                found.append([x[:, k] for x in results])
                order.append(row)
        joined = [jnp.concatenate(same) for same in zip(*found, strict=True)]
        sorted_ = np.argsort(np.concatenate(order))
        if np.any(np.diff(sorted_) != 1):
            joined = [x[sorted_] for x in joined]
        return keep_axis(tuple(joined))

    def _map(
        self,
        one: Callable[..., tuple[Array, ...]],
        members: list[int],
        before: Float[Array, "c k 3"] | None,
        parts: Sequence[Array],
    ) -> tuple[Array, ...]:
        """Map a function along pairs that are alike."""
        given = []
        for side in (0, 1):
            shapes = [self.shapes[k][side] for k in members]
            bodies = [self.bodies[k][side] for k in members]
            there = [(self.there[i].R, self.there[i].x, parts[i]) for i in bodies]
            given.append((_stack(shapes, list(map(id, shapes))), _stack(there, bodies)))
        flags = [self.there[i]._replace(start=0) for i in self.bodies[members[0]]]

        def map_one(
            sides: list[tuple[AbstractSurface, tuple[Array, ...]]], before: Points | None
        ) -> tuple[Array, ...]:
            (a, (R, x, u)), (b, (Q, y, v)) = sides
            at, on = flags[0]._replace(R=R, x=x), flags[1]._replace(R=Q, x=y)
            return one(a, b, at, on, before, u, v)

        return jax.vmap(map_one)(given, keep_axis(before))


def _stack(things: Sequence[T], names: Sequence[int]) -> T:
    """Return one thing whose arrays are those of several, along a first axis.

    Things that have the same name are the same: they are stored once and looked up.
    """
    first = {name: k for k, name in reversed(list(enumerate(names)))}
    own = list(dict.fromkeys(names))
    where = np.array([own.index(name) for name in names])
    leaves = zip(*(jax.tree.leaves(things[first[name]]) for name in own), strict=True)

    def all_of(same: Sequence[Array]) -> Array:
        if len(same) == 1:
            return jnp.broadcast_to(same[0], (len(names), *jnp.shape(same[0])))
        stack = keep_axis(jnp.stack(same))
        if len(same) == len(names):
            return stack
        return stack.at[keep_axis(jnp.asarray(where))].get(mode="promise_in_bounds")

    return jax.tree.unflatten(jax.tree.structure(things[0]), [all_of(same) for same in leaves])

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
        self,
        one: Callable[..., tuple[Array, ...]],
        along: Frames | None,
        *more: Sequence[Float[Array, " b"]],
    ) -> tuple[Array, ...]:
        """Return what a function makes of all pairs, candidate by candidate.

        **Arguments:** `one`: takes two shapes and their bodies, whose parts of a velocity start at
        0, the first tangents before, and an array of each of `more`, which have one for each pair.
        """
        starts = np.concatenate([[0], np.cumsum(self.counts)])
        parts: list[list[Array]] = []
        order: list[np.ndarray] = []
        for members in self.groups:
            count = self.counts[members[0]]
            places = starts[members][None] + np.arange(count)[:, None]
            before = None
            if along is not None:
                before = jnp.stack([along[:, 1][row] for row in places], axis=1)
            given = [jnp.stack([x[k] for k in members]) for x in more]
            results = self._mapped(one, members, before, given)
            for k, row in enumerate(places):
                parts.append([x[:, k] for x in results])
                order.append(row)
        found = [jnp.concatenate(same) for same in zip(*parts, strict=True)]
        sorted_ = np.argsort(np.concatenate(order))
        if np.any(np.diff(sorted_) != 1):
            found = [x[sorted_] for x in found]
        return keep_axis(tuple(found))

    def _mapped(
        self,
        one: Callable[..., tuple[Array, ...]],
        members: list[int],
        before: Float[Array, "c k 3"] | None,
        more: list[Array],
    ) -> tuple[Array, ...]:
        """Map a function along pairs that are alike."""
        shapes = [_stacked([self.shapes[k][side] for k in members]) for side in (0, 1)]
        bodies = [[self.there[self.bodies[k][side]] for k in members] for side in (0, 1)]
        where = [(_stacked([x.R for x in s]), _stacked([x.x for x in s])) for s in bodies]
        first, second = (s[0]._replace(start=0) for s in bodies)

        def mapped(a, b, at, on, before, *more):
            R, x = at
            Q, y = on
            return one(a, b, first._replace(R=R, x=x), second._replace(R=Q, x=y), before, *more)

        given = keep_axis((*shapes, *where, before, *more))
        return jax.vmap(mapped)(*given)


def _stacked(things: Sequence[T]) -> T:
    """Return one thing whose arrays are those of several, along a first axis."""
    leaves = zip(*(jax.tree.leaves(x) for x in things), strict=True)
    return jax.tree.unflatten(jax.tree.structure(things[0]), [jnp.stack(same) for same in leaves])

"""Where a running loop is, and where its numbers lie in memory."""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from retrax.engine.program import Buffer, Value
from retrax.integrators.base import Memory, StepInfo
from retrax.numerics.checks import shape_and_dtype


class Interval(NamedTuple):
    """What happened between two saved states: iterations in all, the rest at its largest."""

    iterations: Int[Array, "*time"]
    residual: Float[Array, "*time"]
    increment: Float[Array, "*time"]


class Progress(NamedTuple):
    """The last good state, the steps behind it, and how the step after it failed, if one did.

    `memory` is what the last step hands to the next one; `None` before the first step, which has
    it made.
    """

    state: Any
    memory: Memory | None
    step: Int[Array, ""]
    failed: Bool[Array, ""]
    failure: StepInfo
    interval: Interval


# NumPy's scalars: on the host they cost nothing, and a JAX program takes them for arrays.
_YES: Any = np.bool_(True)
_NO: Any = np.bool_(False)
_ZERO: Any = np.float64(0.0)
_NONE: Any = np.int64(0)


def quiet() -> Interval:
    """Return an interval in which nothing has happened."""
    return Interval(_NONE, _ZERO, _ZERO)


def start(state: Any, memory: Memory | None = None) -> Progress:
    """Return a loop that has not taken a step."""
    went = StepInfo(_YES, _ZERO, _NONE, _ZERO, _YES)
    return Progress(state, memory, _NONE, _NO, went, quiet())


# The first step that failed and how it went; and what happened since the last saved state.
FAILURE = ("step", *StepInfo._fields)
INTERVAL = ("iterations", "residual", "increment")


class StepInputs(NamedTuple):
    """How many inputs of a step are parameters, and how many state, its time last; then comes h.

    An input is a number, or a buffer where an axis is kept. `memory` is the layout of what steps
    hand on.
    """

    params: int
    state: int
    memory: "Packing"

    def split(self, inputs: Sequence) -> tuple[Sequence, Sequence, Any]:
        return inputs[: self.params], inputs[self.params : self.params + self.state], inputs[-1]


def length(item: Value | Buffer) -> int:
    """Return how many numbers an input is."""
    return item.length if isinstance(item, Buffer) else 1


def places(items: Sequence) -> list[tuple[int, Any]]:
    """Return each item with the place of its first number."""
    ends = accumulate(length(x) for x in items)
    return [(end - length(x), x) for end, x in zip(ends, items, strict=True)]


class Packing:
    """Where each number of a pytree lies: leaves in order, entries in order, one row each.

    Rows have one column for each body: `rows[..., i, m]` is number `i` of body `m`.
    """

    def __init__(self, tree: Any):
        leaves, self.structure = jax.tree.flatten(tree)
        kinds = [shape_and_dtype(leaf) for leaf in leaves]
        self.shapes, self.dtypes = [shape for shape, _ in kinds], [dtype for _, dtype in kinds]
        ends = list(accumulate(math.prod(shape) for shape in self.shapes))
        self.size = ends[-1] if ends else 0
        # The shape of each leaf, and where its numbers begin and end.
        self.slots = list(zip(self.shapes, [0, *ends], ends, strict=False))

    @staticmethod
    def rows(tree: Any) -> np.ndarray:
        """Return the numbers of one body in one column."""
        leaves = [np.asarray(leaf, dtype=float).ravel() for leaf in jax.tree.leaves(tree)]
        return np.concatenate(leaves)[:, None] if leaves else np.empty((0, 1))

    def member_rows(self, tree: Any) -> np.ndarray:
        """Pack bodies stacked along the first axis of every leaf: one column each."""
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]
        rows = np.empty((self.size, len(leaves[0])))
        first = 0
        for leaf in leaves:
            flat = leaf.reshape(len(leaf), -1)
            rows[first : first + flat.shape[1]] = flat.T
            first += flat.shape[1]
        return rows

    def unpack(self, rows: np.ndarray) -> Any:
        """Return leaves of shape (..., bodies, *shape), as views, from rows (..., size, bodies)."""
        leaves = []
        *before, _, bodies = rows.shape
        for shape, first, last in self.slots:
            leaf = rows[..., first:last, :].reshape(*before, *shape, bodies)
            leaves.append(np.moveaxis(leaf, -1, len(before)))
        return jax.tree.unflatten(self.structure, leaves)

    def unpack_one(self, numbers: np.ndarray, copy: bool = False) -> Any:
        """Return leaves of shape (..., *shape) from the numbers (..., size) of one body.

        They are views of the numbers, unless a `copy` is asked for.
        """
        before = numbers.shape[:-1]
        leaves = [
            numbers[..., first:last].reshape(before + shape) for shape, first, last in self.slots
        ]
        if copy:
            leaves = [np.array(leaf) for leaf in leaves]
        return jax.tree.unflatten(self.structure, leaves)

    def trace(self, numbers: Sequence[Array]) -> Any:
        """Return the pytree of one body, from its numbers as JAX scalars."""
        leaves = []
        for (shape, first, last), dtype in zip(self.slots, self.dtypes, strict=True):
            entries = [x.astype(dtype) for x in numbers[first:last]]
            leaves.append(jnp.stack(entries).reshape(shape) if entries else jnp.zeros(shape, dtype))
        return jax.tree.unflatten(self.structure, leaves)

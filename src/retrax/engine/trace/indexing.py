"""Move entries about, which is free where the places are known while the program is built.

NumPy does reshapes, slices and the like on arrays of operands. Gathers and scatters ask JAX
where each entry goes, on arrays of numbered entries. A place that depends on the state is looked up
at run time: see `tables` and `scatters`. In small arrays an entry is replaced there.
"""

import math
from collections.abc import Callable, Sequence

import jax
import numpy as np
from jax.extend.core import JaxprEqn as Equation

from retrax.engine.axes.loops import Operands, entry
from retrax.engine.kinds import (
    DTYPE,
    Kind,
    Unscalarisable,
    bits,
    constant,
    dtype_of,
    greatest,
    is_unsigned,
    kind_of_variable,
    least,
)
from retrax.engine.program import Constant, Operand, Value, kind_of
from retrax.engine.trace.arithmetic import Arithmetic, single

# A place that is found at run time is searched among so many entries.
_SEARCHED = 512


def fill_value(kind: Kind, given: Constant | None) -> Operand:
    """Return what JAX has for an entry out of bounds, unless it is `given`."""
    if given is not None:
        return constant(given, kind)
    if kind == "float":
        return math.nan
    return greatest(kind) if kind == "bool" or is_unsigned(kind) else least(kind)


class Indexing:
    """Rules for reading and replacing entries by their index."""

    def __init__(self, arithmetic: Arithmetic):
        self.arithmetic, self.emit = arithmetic, arithmetic.emit

    def gather(self, equation: Equation, ins: list[Operands]) -> Operands:
        """Read at constant indices; a numbered array shows which entry goes where."""
        operand, indices = ins
        _require_constant(equation, indices)
        numbered = np.arange(operand.size).reshape(operand.shape)
        params = equation.params
        filled = params["mode"] == jax.lax.GatherScatterMode.FILL_OR_DROP
        with jax.ensure_compile_time_eval():
            typed = indices.astype(dtype_of(equation.invars[1]))
            how = {**params, "fill_value": -1} if filled else params
            places = np.asarray(equation.primitive.bind(numbered, typed, **how))
        if np.any((places < -filled) | (places >= operand.size)):
            raise Unscalarisable("'gather' has indices that are out of bounds")
        beyond = np.empty(1, object)
        beyond[0] = fill_value(kind_of_variable(equation.outvars[0]), params["fill_value"])
        return np.asarray(np.concatenate([operand.ravel(), beyond])[places], object)

    def scatter(self, equation: Equation, ins: list[Operands]) -> Operands:
        """Replace entries at constant indices, found on numbered arrays as for `gather`."""
        operand, indices, updates = ins
        old = np.arange(operand.size).reshape(operand.shape)
        new = np.arange(operand.size, operand.size + updates.size).reshape(updates.shape)
        places = self._scatter(equation, old, indices, new).astype(int)
        return np.asarray(np.concatenate([operand.ravel(), updates.ravel()])[places], object)

    def scatter_add(self, equation: Equation, ins: list[Operands]) -> Operands:
        """Add entries at constant indices; adding a single one shows where each goes."""
        operand, indices, updates = ins
        out = np.array(operand, object)
        nothing, one = np.zeros(operand.shape, int), np.zeros(updates.shape, int)
        for place in np.ndindex(*updates.shape):
            one[place] = 1
            for target in np.argwhere(self._scatter(equation, nothing, indices, one)):
                index = tuple(target)
                out[index] = self.emit("add", entry(out, index), entry(updates, place))
            one[place] = 0
        return out

    def _scatter(
        self, equation: Equation, old: np.ndarray, indices: Operands, new: np.ndarray
    ) -> np.ndarray:
        _require_constant(equation, indices)
        if bits(kind_of_variable(equation.invars[0])) < 16:
            # Too small for the numbers of all entries.
            dtype = dtype_of(equation.invars[0])
            raise Unscalarisable(f"it replaces entries of an array of type {dtype}")
        with jax.ensure_compile_time_eval():
            # In the types of the equation, which hold these whole numbers exactly.
            given = (old, indices, new)
            types = [DTYPE[kind_of_variable(v)] for v in equation.invars]
            typed = [x.astype(dtype) for x, dtype in zip(given, types, strict=True)]
            return np.asarray(equation.primitive.bind(*typed, **equation.params))

    def is_searched(self, ins: list[Operands]) -> bool:
        """Tell whether a part is replaced by comparing its place with all others."""
        x, update, *starts = ins
        sizes = [
            (n - m + 1) * math.prod(x.shape[axis:])
            for axis, (n, m) in enumerate(zip(x.shape, update.shape, strict=True))
            if isinstance(entry(starts[axis]), Value)
        ]
        return max(sizes, default=0) <= _SEARCHED

    def dynamic_update_slice(self, equation: Equation, ins: list[Operands]) -> Operands:
        x, update, *starts = ins
        return self._update(x, update, [entry(s) for s in starts])

    def _update(self, x: Operands, update: Operands, starts: Sequence[Operand]) -> Operands:
        """Replace a part of an array, from `starts` on, one axis after the other."""
        if not starts:
            return update
        start, *others = starts
        size = len(update)
        cases = []
        for k in range(len(x) - size + 1):
            if not isinstance(start, Value) and k != min(max(int(start), 0), len(x) - size):
                cases.append(x)
                continue
            new = np.array(x, object)
            for i in range(size):
                new[k + i, ...] = self._update(
                    np.asarray(x[k + i], object), np.asarray(update[i], object), others
                )
            cases.append(new)
        return self._choose(cases, start)

    def _choose(self, cases: Sequence[Operands], place: Operand) -> Operands:
        """Choose the case at a place; the first or the last one if the place is outside."""
        last = len(cases) - 1
        if not isinstance(place, Value):
            return cases[min(max(int(place), 0), last)]
        out = cases[-1]
        for k, case in reversed(list(enumerate(cases[:-1]))):
            here = self.emit("lt", place, constant(k + 1, kind_of(place)))
            out = self.arithmetic.entrywise("select", single(here), out, case)
        return out


def _require_constant(equation: Equation, indices: Operands) -> None:
    if any(isinstance(x, Value) for x in indices.ravel()):
        name = equation.primitive.name
        raise Unscalarisable(f"'{name}' has indices that depend on the state")


# Primitives that NumPy does on arrays of operands, from the parameters of the equation.


def broadcast_in_dim(
    x: Operands, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], **_: object
) -> Operands:
    expanded = [1] * len(shape)
    for source, target in enumerate(broadcast_dimensions):
        expanded[target] = x.shape[source]
    return np.broadcast_to(x.reshape(expanded), shape)


def pad(
    x: Operands, value: Operands, *, padding_config: Sequence[tuple[int, int, int]], **_: object
) -> Operands:
    shape = [
        lo + hi + n + max(n - 1, 0) * mid
        for n, (lo, hi, mid) in zip(x.shape, padding_config, strict=True)
    ]
    out = np.empty(shape, object)
    out[...] = value[()]
    # Negative padding cuts: entries that fall outside are left out.
    for index in np.ndindex(*x.shape):
        place = tuple(
            lo + i * (mid + 1) for i, (lo, _, mid) in zip(index, padding_config, strict=True)
        )
        if all(0 <= p < n for p, n in zip(place, shape, strict=True)):
            out[place] = x[index]
    return out


def _slice(
    x: Operands,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None,
    **_: object,
) -> Operands:
    steps = strides or (1,) * x.ndim
    return x[
        tuple(slice(a, b, s) for a, b, s in zip(start_indices, limit_indices, steps, strict=True))
    ]


def _unstack(x: Operands, *, axis: int = 0, **_: object) -> list[Operands]:
    parts = np.moveaxis(x, axis, 0)
    return [parts[i, ...] for i in range(len(parts))]


def _reshape(
    x: Operands, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, **_: object
) -> Operands:
    moved = x if dimensions is None else x.transpose(dimensions)
    return moved.reshape(new_sizes)


MOVES: dict[str, Callable[..., Operands | list[Operands]]] = {
    "broadcast_in_dim": broadcast_in_dim,
    "concatenate": lambda *arrays, dimension, **_: np.concatenate(arrays, axis=dimension),
    "expand_dims": lambda x, *, dimensions, **_: np.expand_dims(x, dimensions),
    "pad": pad,
    "reshape": _reshape,
    "rev": lambda x, *, dimensions, **_: np.flip(x, dimensions),
    "slice": _slice,
    "split": lambda x, *, sizes, axis, **_: np.split(x, np.cumsum(sizes)[:-1], axis=axis),
    "squeeze": lambda x, *, dimensions, **_: np.squeeze(x, axis=tuple(dimensions)),
    "stack": lambda *arrays, axis=0, **_: np.stack(arrays, axis=axis),
    "transpose": lambda x, *, permutation, **_: x.transpose(permutation),
    "unstack": _unstack,
}

"""Look entries up at places that are found at run time: `u[k]`, `jnp.interp`, `dynamic_slice`.

In a small array the entry is chosen by comparing places. Other arrays lie in memory, constant ones
as tables in the code, and the entry is loaded from its address. Places out of bounds are what JAX
makes of them: the nearest one within, or a fill value.
"""

import math
from collections.abc import Sequence
from copy import copy

import jax
import numpy as np
from jax.extend.core import JaxprEqn as Equation

from retrax.engine.axes.loops import KeptArray, Operands, entry
from retrax.engine.axes.rules import KeptRules, Plain
from retrax.engine.kinds import Unscalarisable, constant, kind_of_variable
from retrax.engine.program import Operand, Value, kind_of
from retrax.engine.trace.arithmetic import Arithmetic, single
from retrax.engine.trace.indexing import fill_value
from retrax.engine.trace.places import all_within, clamp

# An entry is chosen by comparing among so many places, of constants among so few.
_COMPARED, _COMPARED_CONSTANTS = 64, 4
# A window, and all indices of a gather, have at most so many entries.
_LARGEST = 512


class Tables:
    """Rules for reading at places that depend on the state."""

    def __init__(self, arithmetic: Arithmetic, kept: KeptRules):
        self.arithmetic, self.emit, self.kept = arithmetic, arithmetic.emit, kept

    def dynamic_slice(self, equation: Equation, ins: list[Plain]) -> Plain:
        """Read a window; one that would reach out of the array is moved into it."""
        x, *starts = ins
        sizes = equation.params["slice_sizes"]
        places = [
            clamp(self.emit, entry(_plain(start)), n - m)
            for start, n, m in zip(starts, x.shape, sizes, strict=True)
        ]
        return self.window(x, places, sizes)

    def gather(self, equation: Equation, ins: list[Plain]) -> Plain:
        """Read windows at places along some axes, one for each row of indices."""
        x, indices = ins
        how = _Gather(equation, x.shape)
        if isinstance(indices, KeptArray):
            return self._along_rows(how, x, indices)
        return self._rows(how, x, indices).transpose(how.order(indices.ndim - 1))

    def _along_rows(self, how: "_Gather", x: Plain, indices: KeptArray) -> KeptArray:
        """Read windows at many places, in a loop along the kept axis of the indices."""
        if indices.axis == indices.ndim - 1:
            raise Unscalarisable("it looks up entries at places along a long axis of their own")
        batched = how.batch_axis(indices.axis)
        if batched is not None:
            x, how = self._with_rows(x, batched), how.without(batched, indices.axis)
        elif isinstance(x, KeptArray):
            self.kept.loops.settle(x)
        elif _in_memory(x, axis := how.numbers.start_index_map[0]):
            x = self.kept.loops.keep(x, axis)

        def one(places: Operands, here: Operands | None = None) -> list[Operands]:
            return [self._rows(how, x if here is None else here, places)]

        arrays = [indices] if batched is None else [indices, x]
        (cells,) = self.kept.loops.along(indices.length, one, arrays)
        axis, order = how.kept_order(indices.ndim - 1, indices.axis)
        return KeptArray(cells.transpose(order), axis, indices.length)

    def _with_rows(self, x: Plain, axis: int) -> KeptArray:
        """Keep the axis of an array along which there is a row of indices for each entry."""
        if not isinstance(x, KeptArray):
            return self.kept.loops.keep(x, axis)
        if x.axis != axis:
            raise Unscalarisable("it looks up entries across a long axis")
        return x

    def _rows(self, how: "_Gather", x: Plain, indices: Operands) -> Operands:
        """Read a window for each row of indices; its axes come after those of the rows."""
        rows = indices.shape[:-1]
        if math.prod(rows) * math.prod(how.inner) > _LARGEST:
            raise Unscalarisable("'gather' looks up many entries at places that are not known")
        out = np.empty((*rows, *how.inner), object)
        for row in np.ndindex(*rows):
            starts: list[Operand] = [0] * len(x.shape)
            for axis, dim in how.batched:
                starts[axis] = row[dim]
            for k, axis in enumerate(how.places):
                starts[axis] = entry(indices, (*row, k))
            limits = [n - m for n, m in zip(x.shape, how.sizes, strict=True)]
            places = [clamp(self.emit, s, last) for s, last in zip(starts, limits, strict=True)]
            found = _plain(self.window(x, places, how.sizes)).reshape(how.inner)
            if how.fill is not None:
                inside = all_within(self.emit, starts, limits)
                found = self.arithmetic.entrywise("select", single(inside), single(how.fill), found)
            out[row] = found if how.inner else found[()]
        return out

    def window(self, x: Plain, places: Sequence[Operand], sizes: Sequence[int]) -> Plain:
        """Read a window from places on that lie within."""
        fixed = [0 if isinstance(p, Value) else int(p) for p in places]
        ends = [
            n if isinstance(p, Value) else k + m
            for p, k, n, m in zip(places, fixed, x.shape, sizes, strict=True)
        ]
        if isinstance(x, KeptArray):
            x = self.kept.slice(x, start_indices=fixed, limit_indices=ends, strides=None)
        else:
            x = x[tuple(map(slice, fixed, ends))]
        for axis, (place, size) in enumerate(zip(places, sizes, strict=True)):
            if isinstance(place, Value):
                x = self._along(x, axis, place, size)
        return x

    def _along(self, x: Plain, axis: int, place: Value, size: int) -> Operands:
        """Read `size` entries along an axis from a place on that lies within."""
        if size * math.prod(x.shape) // x.shape[axis] > _LARGEST:
            raise Unscalarisable("it reads a large part of an array at a place that is not known")
        if not isinstance(x, KeptArray) and not _in_memory(x, axis):
            windows = [
                x[(*[slice(None)] * axis, slice(k, k + size))]
                for k in range(x.shape[axis] - size + 1)
            ]
            return self._compare(windows, place)
        if not isinstance(x, KeptArray):
            x = self.kept.loops.keep(x, axis)
        if x.axis != axis:
            raise Unscalarisable("it looks up entries across a long axis")
        loops, whole = self.kept.loops, self.emit("int", place)
        parts = [loops.entry_at(x, self.emit("add", whole, k)) for k in range(size)]
        return np.stack(parts, axis)

    def _compare(self, cases: Sequence[Operands], place: Value) -> Operands:
        """Choose the case at a place by comparing."""
        out = cases[-1]
        for k, case in reversed(list(enumerate(cases[:-1]))):
            here = self.emit("lt", place, constant(k + 1, kind_of(place)))
            out = self.arithmetic.entrywise("select", single(here), out, case)
        return out


class _Gather:
    """How a gather reads: windows of `sizes` at `places`, axes of the operand.

    `batched` pairs axes of the operand with those of the indices that go along with them; `inner`
    is the shape of a window in the result, `fill` what stands for one out of bounds.
    """

    def __init__(self, equation: Equation, shape: Sequence[int]):
        params = equation.params
        self.numbers, self.sizes = params["dimension_numbers"], list(params["slice_sizes"])
        numbers = self.numbers
        self.places = list(numbers.start_index_map)
        pairs = (numbers.operand_batching_dims, numbers.start_indices_batching_dims)
        self.batched = list(zip(*pairs, strict=True))
        dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
        self.inner = [self.sizes[axis] for axis in range(len(shape)) if axis not in dropped]
        self.fill: Operand | None = None
        if params["mode"] == jax.lax.GatherScatterMode.FILL_OR_DROP:
            self.fill = fill_value(kind_of_variable(equation.outvars[0]), params["fill_value"])

    def batch_axis(self, row_axis: int) -> int | None:
        """Return the axis of the operand that goes along with an axis of the indices, if any."""
        return next((axis for axis, dim in self.batched if dim == row_axis), None)

    def without(self, axis: int, row_axis: int) -> "_Gather":
        """Read one entry along an axis of the operand and the axis of the indices beside it."""
        one = copy(self)
        one.sizes = [n for a, n in enumerate(self.sizes) if a != axis]
        one.places = [a - (a > axis) for a in self.places]
        one.batched = [(a - (a > axis), d - (d > row_axis)) for a, d in self.batched if a != axis]
        return one

    def order(self, rows: int) -> list[int]:
        """Return where the axes of rows and window, one after the other, go in the result."""
        offsets = [int(axis) for axis in self.numbers.offset_dims]
        ahead = [axis for axis in range(rows + len(offsets)) if axis not in offsets]
        return [int(k) for k in np.argsort([*ahead, *offsets])]

    def kept_order(self, rows: int, row_axis: int) -> tuple[int, list[int]]:
        """Return where a kept axis of the rows is in the result, and the order of all others."""
        order = self.order(rows)
        axis = order.index(row_axis)
        return axis, [k - (k > row_axis) for k in order if k != row_axis]


def depends_on_state(indices: Plain) -> bool:
    """Tell whether a place is known only at run time."""
    return isinstance(indices, KeptArray) or any(isinstance(x, Value) for x in indices.ravel())


def _in_memory(x: Operands, axis: int) -> bool:
    """Tell whether an array of operands is better read from memory."""
    known = not any(isinstance(entry, Value) for entry in x.ravel())
    return x.shape[axis] > (_COMPARED_CONSTANTS if known else _COMPARED)


def _plain(x: Plain) -> Operands:
    if isinstance(x, KeptArray):
        raise Unscalarisable("it looks up many entries at places along a long axis")
    return x

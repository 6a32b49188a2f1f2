"""Look entries up at places that are found at run time: `u[k]`, `jnp.interp`, `dynamic_slice`.

In a small array the entry is chosen by comparing places. Other arrays lie in memory, constant ones
as tables in the code, and the entry is loaded from its address. Places out of bounds are what JAX
makes of them: the nearest one within, or a fill value.
"""

import math
from collections.abc import Sequence

import jax
import numpy as np
from jax.extend.core import JaxprEqn as Equation

from retrax.engine.axes.loops import KeptArray, Operands, entry
from retrax.engine.axes.rules import KeptRules, Plain
from retrax.engine.kinds import Unscalarisable, constant, kind_of_variable
from retrax.engine.program import Operand, Value, kind_of
from retrax.engine.trace.arithmetic import Arithmetic, single
from retrax.engine.trace.indexing import fill_value

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
            self._clamped(entry(_plain(start)), n - m)
            for start, n, m in zip(starts, x.shape, sizes, strict=True)
        ]
        return self.window(x, places, sizes)

    def gather(self, equation: Equation, ins: list[Plain]) -> Operands:
        """Read windows at places along some axes, one for each row of indices."""
        x, indices = ins[0], _plain(ins[1])
        params, shape = equation.params, x.shape
        numbers, sizes = params["dimension_numbers"], params["slice_sizes"]
        rows = indices.shape[:-1]
        dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
        inner = [sizes[axis] for axis in range(len(shape)) if axis not in dropped]
        if math.prod(rows) * math.prod(inner) > _LARGEST:
            raise Unscalarisable("'gather' looks up many entries at places that are not known")
        fills = params["mode"] == jax.lax.GatherScatterMode.FILL_OR_DROP
        beyond = fill_value(kind_of_variable(equation.outvars[0]), params["fill_value"])
        out = np.empty((*rows, *inner), object)
        for row in np.ndindex(*rows):
            starts: list[Operand] = [0] * len(shape)
            for axis, dim in zip(
                numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True
            ):
                starts[axis] = row[dim]
            for k, axis in enumerate(numbers.start_index_map):
                starts[axis] = entry(indices, (*row, k))
            limits = [n - m for n, m in zip(shape, sizes, strict=True)]
            places = [self._clamped(s, last) for s, last in zip(starts, limits, strict=True)]
            found = _plain(self.window(x, places, sizes)).reshape(inner)
            if fills:
                inside = self._all_within(starts, limits)
                found = self.arithmetic.entrywise("select", single(inside), single(beyond), found)
            out[row] = found if inner else found[()]
        ahead = [axis for axis in range(out.ndim) if axis not in numbers.offset_dims]
        order = np.argsort([*ahead, *numbers.offset_dims])
        return out.transpose(order)

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
            return self._compared(windows, place)
        if not isinstance(x, KeptArray):
            x = self.kept.loops.keep(x, axis)
        if x.axis != axis:
            raise Unscalarisable("it looks up entries across a long axis")
        loops, whole = self.kept.loops, self.emit("int", place)
        parts = [loops.entry_at(x, self.emit("add", whole, k)) for k in range(size)]
        return np.stack(parts, axis)

    def _compared(self, cases: Sequence[Operands], place: Value) -> Operands:
        """Choose the case at a place by comparing."""
        out = cases[-1]
        for k, case in reversed(list(enumerate(cases[:-1]))):
            here = self.emit("lt", place, constant(k + 1, kind_of(place)))
            out = self.arithmetic.entrywise("select", single(here), out, case)
        return out

    def _clamped(self, place: Operand, last: int) -> Operand:
        """Move a place into the range from 0 to `last`."""
        if not isinstance(place, Value):
            return min(max(int(place), 0), last)
        if last == 0:
            return 0
        kind = kind_of(place)
        from_zero = self.emit("max", place, constant(0, kind))
        return self.emit("min", from_zero, constant(last, kind))

    def _all_within(self, places: Sequence[Operand], limits: Sequence[int]) -> Operand:
        """Tell whether all places are within their bounds."""
        within: Operand = True
        for place, last in zip(places, limits, strict=True):
            if isinstance(place, Value):
                low, high = constant(0, kind_of(place)), constant(last, kind_of(place))
                for test in (self.emit("ge", place, low), self.emit("le", place, high)):
                    within = self.emit("and", within, test)
            elif not 0 <= int(place) <= last:
                return False
        return within


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

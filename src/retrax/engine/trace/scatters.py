"""Replace and add entries at places that are found at run time: `x.at[k].set(v)`.

An array with a kept axis is copied to buffers of its own, and entries of those are replaced. The
pass `passes.in_place` drops the copy where nobody reads the old array again. A place out of bounds
leaves the array as it is, or is moved into it where JAX does so: nothing is written elsewhere.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np
from jax.extend import core as jex
from jax.extend.core import JaxprEqn as Equation
from jax.lax import GatherScatterMode

from retrax.engine.axes.loops import KeptArray, Operands, entry, slice_axis
from retrax.engine.axes.rules import KeptRules, Plain
from retrax.engine.kinds import Unscalarisable, Variable
from retrax.engine.program import Operand, Value, View
from retrax.engine.trace.arithmetic import Arithmetic, single
from retrax.engine.trace.places import Emit, all_within, clamp

# How an entry takes up a new number; `None` replaces it.
COMBINE: dict[str, str | None] = {
    "scatter": None,
    "scatter-add": "add",
    "scatter-mul": "mul",
    "scatter-min": "min",
    "scatter-max": "max",
}
# So many entries are replaced one by one; more of them in a loop.
_ONE_BY_ONE = 64
# An array of so many entries is not put into memory: places are compared.
_COMPARED = 64
# A kept axis that is shorter is taken apart again.
_SHORT = 16


class Scatters:
    """Rules for replacing entries of arrays in memory."""

    def __init__(self, arithmetic: Arithmetic, kept: KeptRules):
        self.arithmetic, self.emit = arithmetic, arithmetic.emit
        self.kept, self.loops = kept, kept.loops

    def scatter(self, equation: Equation, ins: Sequence[Plain]) -> Plain:
        """Replace windows of an array, one for each row of indices, in their order."""
        x, indices, updates = ins
        numbers = equation.params["dimension_numbers"]
        if numbers.operand_batching_dims:
            raise Unscalarisable("it replaces entries of many arrays at once")
        windows = list(numbers.update_window_dims)
        rows = [axis for axis in range(updates.ndim) if axis not in windows]
        inserted = set(numbers.inserted_window_dims)
        extents = iter(updates.shape[axis] for axis in windows)
        sizes = [1 if axis in inserted else next(extents) for axis in range(x.ndim)]
        places, kept = numbers.scatter_dims_to_operand_dims, (indices, updates)
        how = _How(places, sizes, COMBINE[equation.primitive.name], equation.params["mode"])
        # A window of updates has the axes of x, those of the rows before it.
        updates = _transpose(updates, [*rows, *windows])
        if isinstance(updates, KeptArray) and updates.axis >= len(rows):
            axis = [a for a in range(x.ndim) if a not in inserted][updates.axis - len(rows)]
            x = x if isinstance(x, KeptArray) else self.loops.keep(x, axis)
        if isinstance(x, KeptArray) and sizes[x.axis] > 1:
            return self._along(x, how, _plain(indices), updates)
        target = self._own(x, places, any(isinstance(a, KeptArray) for a in kept))
        change = _Change(self, target, how)
        many = math.prod(updates.shape) > _ONE_BY_ONE
        if rows and (many or any(isinstance(a, KeptArray) for a in (indices, updates))):
            self._in_order(change, indices, updates)
        else:
            change.all_rows(_plain(indices), _plain(updates))
        return self._result(change.target)

    def dynamic_update_slice(self, equation: Equation, ins: Sequence[Plain]) -> Plain:
        """Replace a window; one that would reach out of the array is moved into it."""
        x, update, *starts = ins
        where = np.empty(len(starts), object)
        where[:] = [entry(_plain(start)) for start in starts]
        axes = tuple(range(x.ndim))
        own = self._own(x, axes, True)
        assert isinstance(own, KeptArray)
        mode = GatherScatterMode.CLIP
        if not isinstance(update, KeptArray) and update.shape[own.axis] <= _SHORT:
            _Change(self, own, _How(axes, update.shape, None, mode)).all_rows(where, update)
            return self._result(own)
        if not isinstance(update, KeptArray):
            update = self.loops.keep(update, own.axis)
        if update.axis != own.axis:
            raise Unscalarisable("it replaces entries across a long axis")
        limits = [n - m for n, m in zip(x.shape, update.shape, strict=True)]
        where[:] = [clamp(self.emit, p, last) for p, last in zip(where, limits, strict=True)]
        sizes = [1 if axis == own.axis else n for axis, n in enumerate(update.shape)]
        change = _Change(self, own, _How(axes, sizes, None, mode))
        numbered = self.loops.keep(np.arange(update.length).astype(object), 0)

        def one(_: list[Operands], here: list[Operands]) -> tuple[list, list]:
            further, window = here
            starts = where.copy()
            first = self.emit("int", starts[own.axis])
            starts[own.axis] = self.emit("add", first, entry(further))
            change.row(starts, np.expand_dims(window, own.axis))
            return [], []

        self.loops.sequential(update.length, one, [], [numbered, update])
        return self._result(own)

    def _along(self, x: KeptArray, how: "_How", indices: Operands, updates: Plain) -> KeptArray:
        """Replace a window that goes along the kept axis: many entries, each in its own place."""
        starts = how.starts(indices.reshape(-1))
        if indices.size != len(how.axes) or isinstance(starts[x.axis], Value):
            raise Unscalarisable("it replaces parts of a long axis at places that are not known")
        within, places = how.range(self.emit, starts, x.shape)
        first, length = int(places.pop(x.axis)), how.sizes[x.axis]
        others = [size for axis, size in enumerate(how.sizes) if axis != x.axis]
        if not isinstance(updates, KeptArray):
            updates = self.loops.keep(updates.reshape(how.sizes), x.axis)
        if updates.length != length:
            raise Unscalarisable("it replaces entries across a long axis")
        new, cells = updates.cells.reshape(others), x.cells.copy()
        for offset in np.ndindex(*others):
            for cell, test in _candidates(self.emit, places, offset, cells.shape, within):
                cells[cell] = self._change(
                    _column(entry(cells, cell), x.length),
                    _column(entry(new, offset), length),
                    first,
                    lambda old, u, test=test: [how.new(self.arithmetic, test, old, u)],
                )
        return KeptArray(cells, x.axis, x.length)

    def _change(
        self, old: KeptArray, new: KeptArray, first: int, function: Callable[..., list[Operands]]
    ) -> View | Operand:
        """Let a part of a column, from the place `first` on, take up new numbers."""
        part = slice_axis(old, first, new.length)
        (made,) = self.loops.along(new.length, function, [part, new])
        if new.length == old.length:
            return entry(made)
        own = self.loops.in_own_buffers(old)
        targets = slice_axis(own, first, new.length).cells
        self.loops.copy(KeptArray(made, 0, new.length), list(targets.ravel()))
        return entry(own.cells)

    def _own(self, x: Plain, places: Sequence[int], many: bool) -> Plain:
        """Copy an array: to buffers, with an axis kept along which there are places, or not."""
        if not isinstance(x, KeptArray):
            if not many and x.size <= _COMPARED:
                return np.array(x, object)
            axis = max(places, key=lambda axis: x.shape[axis], default=0)
            x = self.loops.keep(x, axis)
        return self.loops.in_own_buffers(x)

    def _result(self, x: Plain) -> Plain:
        if not isinstance(x, KeptArray) or x.length >= _SHORT:
            return x
        return self.loops.scalars(x)

    def _in_order(self, change: "_Change", indices: Plain, updates: Plain) -> None:
        """Go along the rows in their order, so that sums have one."""
        kept = next((a for a in (indices, updates) if isinstance(a, KeptArray)), None)
        axis = 0 if kept is None else kept.axis
        if axis >= indices.ndim - 1:
            raise Unscalarisable("it replaces entries at places along a long axis of their own")
        along = [
            a if isinstance(a, KeptArray) else self.loops.keep(a, axis) for a in (indices, updates)
        ]
        if any(a.axis != axis for a in along) or axis:
            raise Unscalarisable("it mixes two long axes")

        def one(_: list[Operands], here: list[Operands]) -> tuple[list, list]:
            change.all_rows(*here)
            return [], []

        self.loops.sequential(along[0].length, one, [], along)


class _How:
    """How windows of `sizes` are replaced, at places along `axes`."""

    def __init__(
        self, axes: Sequence[int], sizes: Sequence[int], combine: str | None, mode: object
    ):
        self.axes, self.sizes, self.combine = axes, sizes, combine
        self.drops = mode == GatherScatterMode.FILL_OR_DROP

    def starts(self, row: Operands) -> Operands:
        """Return where a window begins along all axes, by its row of indices."""
        starts = np.zeros(len(self.sizes), object)
        for axis, place in zip(self.axes, row, strict=True):
            starts[axis] = place
        return starts

    def range(self, emit: Emit, starts: Operands, shape: Sequence[int]) -> tuple[Operand, list]:
        """Tell whether a window is replaced; move where it begins into the array."""
        limits = [n - m for n, m in zip(shape, self.sizes, strict=True)]
        within = all_within(emit, starts, limits) if self.drops else True
        places = [clamp(emit, s, last) for s, last in zip(starts, limits, strict=True)]
        return within, [emit("int", p) for p in places]

    def new(self, arithmetic: Arithmetic, test: Operand, old: Operands, x: Operands) -> Operands:
        """Let entries take up numbers where the test holds."""
        x = x if self.combine is None else arithmetic.entrywise(self.combine, old, x)
        return arithmetic.entrywise("select", single(test), old, x)


def _candidates(
    emit: Emit,
    places: Sequence[Operand],
    offset: Sequence[int],
    shape: Sequence[int],
    within: Operand,
) -> Iterator[tuple[tuple[int, ...], Operand]]:
    """List the cells that may lie at places, each with the test whether it does."""
    here = [emit("add", p, k) for p, k in zip(places, offset, strict=True)]
    columns = zip(here, shape, strict=True)
    for cell in product(*(range(n) if isinstance(p, Value) else (int(p),) for p, n in columns)):
        test = within
        for p, k in zip(here, cell, strict=True):
            if isinstance(p, Value):
                test = emit("and", test, emit("eq", p, k))
        if test is not False:
            yield cell, test


class _Change:
    """What becomes of an array: windows of it are replaced or added to, one after the other."""

    def __init__(self, rules: Scatters, target: Plain, how: _How):
        self.arithmetic, self.emit, self.loops = rules.arithmetic, rules.emit, rules.loops
        self.target, self.how = target, how

    def all_rows(self, indices: Operands, updates: Operands) -> None:
        """Replace a window for each row of indices, whose last axis has the places."""
        for row in np.ndindex(*indices.shape[:-1]):
            window = np.asarray(updates[row], object).reshape(self.how.sizes)
            self.row(self.how.starts(indices[row]), window)

    def row(self, starts: Operands, window: Operands) -> None:
        """Replace one window."""
        target = self.target
        within, places = self.how.range(self.emit, starts, target.shape)
        axis, cells = None, target
        if isinstance(target, KeptArray):
            axis, cells = target.axis, target.cells
        assert not isinstance(cells, KeptArray)
        others = [p for a, p in enumerate(places) if a != axis]
        for offset in np.ndindex(*self.how.sizes):
            across = [k for a, k in enumerate(offset) if a != axis]
            for cell, test in _candidates(self.emit, others, across, cells.shape, within):
                x = np.asarray(window[offset], object)
                if axis is None:
                    old = np.asarray(cells[cell], object)
                    cells[cell] = entry(self.how.new(self.arithmetic, test, old, x))
                else:
                    place = self.emit("add", places[axis], offset[axis])
                    self._store(cells[cell], place, x, test)

    def _store(self, view: View, place: Operand, x: Operands, test: Operand) -> None:
        """Let the entry of a view at a place take up a number where the test holds."""
        if self.how.combine is not None or test is not True:
            old = self.loops.entry_at(_column(view, view.length), place)
            x = self.how.new(self.arithmetic, test, old, x)
        self.loops.store_at(view, place, entry(x))


def _column(cell: View | Operand, length: int) -> KeptArray:
    """View one number of each thing as an array."""
    cells = np.empty((), object)
    cells[()] = cell
    return KeptArray(cells, 0, length)


def _transpose(x: Plain, order: list[int]) -> Plain:
    if not isinstance(x, KeptArray):
        return x.transpose(order)
    inner = [axis - (axis > x.axis) for axis in order if axis != x.axis]
    return KeptArray(x.cells.transpose(inner), order.index(x.axis), x.length)


def _plain(x: Plain) -> Operands:
    if isinstance(x, KeptArray):
        raise Unscalarisable("it replaces entries at places along a long axis of their own")
    return x


def replaces_at_run_time(jaxpr: jex.Jaxpr) -> bool:
    """Tell whether a function replaces entries of arrays at places that are not known."""
    varying: set[Variable] = set(jaxpr.invars)
    for equation in jaxpr.eqns:
        if varying.isdisjoint(x for x in equation.invars if isinstance(x, jex.Var)):
            continue
        varying.update(equation.outvars)
        if equation.primitive.name in COMBINE and equation.invars[1] in varying:
            return True
        if any(map(replaces_at_run_time, inner_jaxprs(equation))):
            return True
    return False


def inner_jaxprs(equation: Equation) -> Iterator[jex.Jaxpr]:
    """List the functions that an equation calls."""
    for parameter in equation.params.values():
        for x in parameter if isinstance(parameter, tuple) else (parameter,):
            if isinstance(x, jex.ClosedJaxpr):
                yield x.jaxpr
            elif isinstance(x, jex.Jaxpr):
                yield x

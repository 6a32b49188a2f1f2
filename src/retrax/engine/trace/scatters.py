"""Replace and add entries at places that are found at run time: `x.at[k].set(v)`.

An array with a kept axis is copied to buffers of its own, and entries of those are replaced. The
pass `passes.in_place` drops the copy where nobody reads the old array again. A place out of bounds
leaves the array as it is, or is moved into it where JAX does so: nothing is written elsewhere.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from jax.extend import core as jex
from jax.extend.core import JaxprEqn as Equation
from jax.lax import GatherScatterMode

from retrax.engine.axes.loops import KeptArray, Operands, entry
from retrax.engine.axes.rules import KeptRules, Plain
from retrax.engine.kinds import Unscalarisable, Variable
from retrax.engine.program import Operand, Value
from retrax.engine.trace.arithmetic import Arithmetic
from retrax.engine.trace.places import all_within, clamped

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
        change = _Change(
            self,
            self._own(x, places, any(isinstance(a, KeptArray) for a in kept)),
            places,
            sizes,
            COMBINE[equation.primitive.name],
            equation.params["mode"],
        )
        # A window of updates has the axes of x, those of the rows before it.
        updates = _transposed(updates, [*rows, *windows])
        many = math.prod(updates.shape) > _ONE_BY_ONE
        if isinstance(updates, KeptArray) and updates.axis >= len(rows):
            raise Unscalarisable("it replaces entries along a long axis at a place not known")
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
            _Change(self, own, axes, update.shape, None, mode).all_rows(where, update)
            return self._result(own)
        if not isinstance(update, KeptArray):
            update = self.loops.keep(update, own.axis)
        if update.axis != own.axis:
            raise Unscalarisable("it replaces entries across a long axis")
        limits = [n - m for n, m in zip(x.shape, update.shape, strict=True)]
        where[:] = [clamped(self.emit, p, last) for p, last in zip(where, limits, strict=True)]
        sizes = [1 if axis == own.axis else n for axis, n in enumerate(update.shape)]
        change = _Change(self, own, axes, sizes, None, mode)
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


class _Change:
    """What becomes of an array in memory: windows of it are replaced or added to."""

    def __init__(
        self,
        rules: Scatters,
        target: Plain,
        axes: Sequence[int],
        sizes: Sequence[int],
        combine: str | None,
        mode: GatherScatterMode,
    ):
        self.rules, self.emit, self.target = rules, rules.emit, target
        self.axes, self.sizes, self.combine, self.mode = axes, sizes, combine, mode

    def all_rows(self, indices: Operands, updates: Operands) -> None:
        """Replace a window for each row of indices, whose last axis has the places."""
        for row in np.ndindex(*indices.shape[:-1]):
            starts = np.zeros(len(self.sizes), object)
            for k, axis in enumerate(self.axes):
                starts[axis] = entry(indices, (*row, k))
            self.row(starts, np.asarray(updates[row], object).reshape(self.sizes))

    def row(self, starts: Operands, window: Operands) -> None:
        """Replace one window."""
        target = self.target
        limits = [n - m for n, m in zip(target.shape, self.sizes, strict=True)]
        drops = self.mode == GatherScatterMode.FILL_OR_DROP
        within = all_within(self.emit, starts, limits) if drops else True
        if within is False:
            return
        places = [clamped(self.emit, s, last) for s, last in zip(starts, limits, strict=True)]
        first = [self.emit("int", p) for p in places]
        for offset in np.ndindex(*self.sizes):
            here = [self.emit("add", p, k) for p, k in zip(first, offset, strict=True)]
            along = here.pop(target.axis) if isinstance(target, KeptArray) else None
            cells = target.cells if isinstance(target, KeptArray) else target
            columns = zip(here, cells.shape, strict=True)
            for cell in product(*(range(n) if isinstance(p, Value) else (p,) for p, n in columns)):
                test = within
                for p, k in zip(here, cell, strict=True):
                    if isinstance(p, Value):
                        test = self.emit("and", test, self.emit("eq", p, k))
                self._replace(cell, along, entry(window, offset), test)

    def _replace(
        self, cell: tuple[int, ...], place: Operand | None, x: Operand, test: Operand
    ) -> None:
        """Let an entry take up a number where the test holds: at a place, where it is in memory."""
        target, loops = self.target, self.rules.loops
        if self.combine is not None or test is not True:
            if isinstance(target, KeptArray):
                assert place is not None
                one = np.empty((), object)
                one[()] = target.cells[cell]
                old = entry(loops.entry_at(KeptArray(one, 0, target.length), place))
            else:
                old = entry(target, cell)
            x = x if self.combine is None else self.emit(self.combine, old, x)
            x = self.emit("select", test, old, x)
        if isinstance(target, KeptArray):
            assert place is not None
            loops.store_at(target.cells[cell], place, x)
        else:
            target[cell] = x


def _transposed(x: Plain, order: list[int]) -> Plain:
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
        if any(map(replaces_at_run_time, _inner(equation))):
            return True
    return False


def _inner(equation: Equation) -> Iterator[jex.Jaxpr]:
    """List the functions that an equation calls."""
    for parameter in equation.params.values():
        for x in parameter if isinstance(parameter, tuple) else (parameter,):
            if isinstance(x, jex.ClosedJaxpr):
                yield x.jaxpr
            elif isinstance(x, jex.Jaxpr):
                yield x

"""Arrays of which one axis is kept: not taken apart, but gone along by a loop.

An axis of many alike things (nodes of a rod, stages of a step) would make a program of as many
copies of the same lines. It stays in memory instead: of each thing the numbers are cells, and a
cell is a view of a row with one entry for each thing. Work on cells is done in a loop along the
axis; work that follows on the same axis joins the loop that is open, and what passes from one line
to the next within it never sees memory. Neighbours k-1 and k+1 are views with another offset.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, SupportsInt

import numpy as np

from retrax.engine.builder import Builder, same
from retrax.engine.kinds import Kind
from retrax.engine.program import Block, Each, Load, Operand, Row, Store, Value, View, kind_of

# An array of objects, each an operand.
Operands = Any

# So few entries are written one by one.
_FEW = 4


class Unscalarisable(Exception):
    """A function that cannot be turned into a scalar program; the message says why."""


class Kept:
    """An array with a kept axis: `cells`, without that axis, are views or numbers alike for all."""

    def __init__(self, cells: Operands, axis: SupportsInt, length: SupportsInt):
        self.cells, self.axis, self.length = cells, int(axis), int(length)

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.cells.shape[: self.axis], self.length, *self.cells.shape[self.axis :])

    @property
    def ndim(self) -> int:
        return self.cells.ndim + 1


class Flat:
    """An array of one axis: all cells of its first thing, then all of the second."""

    def __init__(self, things: Kept, packed: tuple[Row, Block] | None = None):
        self.things = things
        # The row where it lies as such, and the block that wrote it.
        self.packed = packed

    @property
    def shape(self) -> tuple[int]:
        return (self.things.length * self.things.cells.size,)


class _OpenLoop:
    def __init__(self, length: int, frame: Any):
        self.length, self.frame = length, frame
        self.reads: dict[View, Value] = {}
        self.made: dict[Row, Operand] = {}
        self.rows: dict[Operand, Row] = {}


class Loops:
    """The loops along kept axes of a program that is being built."""

    def __init__(self, build: Builder):
        self.build = build
        self._open: _OpenLoop | None = None
        self.inside = False

    def flush(self) -> None:
        """End the open loop: what it made can then be read at any place."""
        if self.inside:
            return
        loop, self._open = self._open, None
        if loop is not None:
            block, _ = loop.frame
            writes = tuple((_whole(row), x) for row, x in loop.made.items())
            reads = tuple((value, view) for view, value in loop.reads.items())
            self.build.append(Each(loop.length, reads, block, writes))

    def along(self, length: int, function: Callable, arrays: Sequence) -> list[Operands]:
        """Cells of what `function` returns at k, from the values of kept arrays at k."""
        if self.inside:
            raise Unscalarisable("it goes along two long axes at once")
        loop = self._ready(length, arrays)
        self.build.resume(loop.frame)
        self.inside = True
        outs = function(*(self._local(loop, x) if isinstance(x, Kept) else x for x in arrays))
        cells = [_each_cell(out, lambda x: self._written(loop, x)) for out in outs]
        self.inside = False
        loop.frame = self.build.suspend()
        return cells

    def _ready(self, length: int, arrays: Sequence) -> _OpenLoop:
        """The open loop if these arrays can be read in it, else a new one."""
        loop = self._open
        views = [c for x in arrays if isinstance(x, Kept) for c in x.cells.ravel()]
        if loop is not None:
            apart = any(
                isinstance(v, View) and v.row in loop.made and v != _whole(v.row) for v in views
            )
            if loop.length != length or apart:
                self.flush()
        if self._open is None:
            self.build.open()
            self._open = _OpenLoop(length, self.build.suspend())
        return self._open

    def _local(self, loop: _OpenLoop, array: Kept) -> Operands:
        def value(cell):
            if not isinstance(cell, View):
                return cell
            if cell.row in loop.made:
                return loop.made[cell.row]
            if cell not in loop.reads:
                loop.reads[cell] = self.build.value("float")
            return self._typed(loop.reads[cell], cell.row)

        return _each_cell(array.cells, value)

    def _typed(self, value: Value, row: Row) -> Operand:
        """Memory holds floats; whole numbers and truths are turned back."""
        return value if row.kind == "float" else self.build.emit(row.kind, value)

    def _require_narrow(self, entries: Sequence[Operand]) -> None:
        """Memory holds floats, which have no room for all digits of the longest whole numbers."""
        if any(self.build.is_wide(x) for x in entries):
            raise Unscalarisable("it keeps whole numbers of 64 bits along a long axis")

    def _written(self, loop: _OpenLoop, x: Operand) -> View | Operand:
        """Where the value x at k is kept: a row of its own, or where it was read from."""
        if not isinstance(x, Value):
            return x
        self._require_narrow([x])
        for view, value in loop.reads.items():
            if value == x:
                return view
        if x not in loop.rows:
            row = self.build.row(loop.length, kind_of(x))
            loop.rows[x] = row
            loop.made[row] = x
        return _whole(loop.rows[x])

    def sequential(
        self, length: int, function: Callable, initial: Operands, arrays: Sequence[Kept]
    ) -> tuple[list[Operands], list[Operands]]:
        """A loop in order that carries numbers: what it carries in the end, and cells it made."""
        if self.inside:
            raise Unscalarisable("it goes along two long axes at once")
        self.flush()
        carried = [_each_cell(x, lambda e: self.build.value(kind_of(e))) for x in initial]
        self.build.open()
        loop = _OpenLoop(length, None)
        self.inside = True
        local = [self._local(loop, x) for x in arrays]
        updated, outs = function(carried, local)
        cells = [_each_cell(out, lambda x: self._written(loop, x)) for out in outs]
        self.inside = False
        block = self.build.close()
        self.build.append(
            Each(
                length,
                tuple((value, view) for view, value in loop.reads.items()),
                block,
                tuple((_whole(row), x) for row, x in loop.made.items()),
                _flat(carried),
                _flat(initial),
                _flat(updated),
            )
        )
        return carried, cells

    def copy(self, source: Kept, targets: Sequence[View]) -> None:
        """Write the cells of an array, in order, to views."""
        self.flush()
        self.build.open()
        loop = _OpenLoop(source.length, None)
        values = self._local(loop, source).ravel()
        block = self.build.close()
        reads = tuple((value, view) for view, value in loop.reads.items())
        writes = tuple(zip(targets, values, strict=True))
        self.build.append(Each(source.length, reads, block, writes))

    def packed(self, array: Kept) -> Row:
        """A new row with all numbers of an array in C order."""
        if array.axis:
            raise Unscalarisable("a result has a long axis that is not its first")
        width = array.cells.size
        kinds: set[Kind] = {kind_of_cell(c) for c in array.cells.ravel()}
        kind: Kind = kinds.pop() if len(kinds) == 1 else "float"
        row = self.build.row(width * array.length, kind)
        self.copy(array, [View(row, c, width, array.length) for c in range(width)])
        return row

    def plain(self, flat: Flat) -> Kept:
        """A flat array as one row, packed where it has not been so far."""
        if flat.packed is None or not self.build.encloses(flat.packed[1]):
            row = self.packed(flat.things)
            flat.packed = row, self.build.block
        return stored_in(flat.packed[0])

    def keep(self, array: Operands, axis: int) -> Kept:
        """An array of operands as one with a kept axis."""
        array = np.moveaxis(array, axis, 0)
        cells = np.empty(array.shape[1:], object)
        for index in np.ndindex(*cells.shape):
            cells[index] = self._kept_cell([array[(k, *index)] for k in range(len(array))])
        return Kept(cells, axis, len(array))

    def _kept_cell(self, entries: list[Any]) -> View | Operand:
        kind = kind_of(entries[0])
        if all(x is entries[0] or same(x, entries[0]) for x in entries):
            return entries[0]
        self._require_narrow(entries)
        if not any(isinstance(x, Value) for x in entries):
            return _whole(self.build.row(len(entries), kind, tuple(float(x) for x in entries)))
        if self.inside:
            raise Unscalarisable("it makes a long axis inside a loop along another")
        row = self.build.row(len(entries), kind)
        start = 0
        for _, run in groupby(entries, key=lambda x: x if isinstance(x, Value) else repr(x)):
            alike = list(run)
            self._fill(View(row, start, 1, len(alike)), self.build.emit("float", alike[0]))
            start += len(alike)
        return _whole(row)

    def _fill(self, view: View, x: Operand) -> None:
        """The same number in all entries of a view."""
        if view.length > _FEW:
            self.build.append(Each(view.length, (), Block(), ((view, x),)))
            return
        for k in range(view.length):
            self.build.append(Store(view.row, view.offset + k, x))

    def scalars(self, array: Kept) -> Operands:
        """An array with a kept axis as one of operands, loaded one by one."""
        if self.inside:
            raise Unscalarisable("it takes single entries of a long axis inside a loop")
        self.flush()

        def loaded(cell, k):
            if not isinstance(cell, View):
                return cell
            out = self.build.value("float")
            self.build.append(Load(out, cell.row, cell.offset + k * cell.stride))
            return self._typed(out, cell.row)

        parts = [
            _each_cell(array.cells, lambda cell, k=k: loaded(cell, k)) for k in range(array.length)
        ]
        return np.stack(parts, axis=array.axis)


def kind_of_cell(cell: View | Operand) -> Kind:
    return cell.row.kind if isinstance(cell, View) else kind_of(cell)


def shifted(array: Kept, first: SupportsInt, length: SupportsInt, step: SupportsInt = 1) -> Kept:
    """Entries first, first + step, ... along the kept axis."""
    first, length, step = int(first), int(length), int(step)

    def moved(cell):
        if not isinstance(cell, View):
            return cell
        return View(cell.row, cell.offset + first * cell.stride, cell.stride * step, length)

    return Kept(_each_cell(array.cells, moved), array.axis, length)


def stacked(parts: Sequence[Kept]) -> Kept:
    """Arrays of the kept axis alone as the columns of one."""
    cells = np.empty(len(parts), object)
    cells[:] = [part.cells[()] for part in parts]
    return Kept(cells, 0, parts[0].length)


def stored_in(row: Row) -> Kept:
    """All entries of a row."""
    cells = np.empty((), object)
    cells[()] = _whole(row)
    return Kept(cells, 0, row.length)


def _whole(row: Row) -> View:
    return View(row, 0, 1, row.length)


def _each_cell(array: Operands, function: Callable) -> Operands:
    array = np.asarray(array, object)
    out = np.empty(array.shape, object)
    for index in np.ndindex(*array.shape):
        out[index] = function(array[index])
    return out


def _flat(arrays: Sequence[Operands]) -> tuple[Any, ...]:
    return tuple(x for a in arrays for x in np.asarray(a, object).ravel())

"""Keep an axis of an array as a loop instead of taking it apart.

An axis of many alike things (nodes of a rod, stages of a step) would make a program of as many
copies of the same lines. It stays in memory instead. The numbers of a thing are cells, and a cell
is a view of a buffer with one entry for each thing. Work on cells is a loop along the axis; work
that follows on the same axis joins the loop that is open, and what passes from one line to the
next within it never sees memory. Neighbours k-1 and k+1 are views with another offset.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, SupportsInt

import numpy as np
import numpy.typing as npt

from retrax.engine.builder import Builder, same
from retrax.engine.kinds import Kind, Unscalarisable
from retrax.engine.program import (
    Buffer,
    CodeBlock,
    Each,
    LoadAt,
    LoadEntry,
    Operand,
    StoreAt,
    StoreEntry,
    Value,
    View,
    kind_of,
)

# An array of objects, each an operand; NumPy cannot say so in its types.
Operands = npt.NDArray[Any]

# So few entries are written one by one.
_FEW = 4


class KeptArray:
    """An array with a kept axis: `cells`, without that axis, are views or numbers alike for all."""

    def __init__(self, cells: Operands, axis: SupportsInt, length: SupportsInt):
        self.cells, self.axis, self.length = cells, int(axis), int(length)

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.cells.shape[: self.axis], self.length, *self.cells.shape[self.axis :])

    @property
    def ndim(self) -> int:
        return self.cells.ndim + 1


class FlatArray:
    """An array of one axis: all cells of its first thing, then all of the second."""

    def __init__(self, things: KeptArray, packed: tuple[Buffer, CodeBlock] | None = None):
        self.things = things
        # The buffer where it lies as such, and the block that wrote it.
        self.packed = packed

    @property
    def shape(self) -> tuple[int]:
        return (self.things.length * self.things.cells.size,)


# An array of a jaxpr while its program is built.
ProgramArray = Operands | KeptArray | FlatArray


class _OpenLoop:
    """A loop that is being built; `frame` is its body while the builder is elsewhere."""

    def __init__(self, length: int, frame: tuple[CodeBlock, dict] | None = None):
        self.length, self.frame = length, frame or (CodeBlock(), {})
        self.reads: dict[View, Value] = {}
        self.made: dict[Buffer, Operand] = {}
        self.buffers: dict[Operand, Buffer] = {}


class AxisLoops:
    """Builds the loops along kept axes of a program."""

    def __init__(self, build: Builder):
        self.build = build
        self._open: _OpenLoop | None = None
        self.inside = False

    def flush(self) -> None:
        """End the open loop, so that what it made can be read at any place."""
        if self.inside:
            return
        loop, self._open = self._open, None
        if loop is not None:
            block, _ = loop.frame
            writes = tuple((_whole(buffer), x) for buffer, x in loop.made.items())
            reads = tuple((value, view) for view, value in loop.reads.items())
            self.build.append(Each(loop.length, reads, block, writes))

    def along(self, length: int, function: Callable, arrays: Sequence) -> list[Operands]:
        """Apply `function` to the values of kept arrays at every k; return its results' cells."""
        if self.inside:
            raise Unscalarisable("it goes along two long axes at once")
        loop = self._ready(length, arrays)
        self.build.resume(loop.frame)
        self.inside = True
        outs = function(*(self._local(loop, x) if isinstance(x, KeptArray) else x for x in arrays))
        cells = [_each_cell(out, lambda x: self._write(loop, x)) for out in outs]
        self.inside = False
        loop.frame = self.build.suspend()
        return cells

    def _ready(self, length: int, arrays: Sequence) -> _OpenLoop:
        """Go on with the open loop if these arrays can be read in it; else open a new one."""
        loop = self._open
        views = [c for x in arrays if isinstance(x, KeptArray) for c in x.cells.ravel()]
        if loop is not None:
            apart = any(
                isinstance(v, View) and v.buffer in loop.made and v != _whole(v.buffer)
                for v in views
            )
            if loop.length != length or apart:
                self.flush()
        if self._open is None:
            self.build.open()
            self._open = _OpenLoop(length, self.build.suspend())
        return self._open

    def _local(self, loop: _OpenLoop, array: KeptArray, as_stored: bool = False) -> Operands:
        """Read the numbers of a thing, as those of their kinds or as the floats in memory."""

        def value(cell):
            if not isinstance(cell, View):
                return cell
            if cell.buffer in loop.made:
                return loop.made[cell.buffer]
            if cell not in loop.reads:
                loop.reads[cell] = self.build.value("float")
            read = loop.reads[cell]
            return read if as_stored else self._convert(read, cell.buffer)

        return _each_cell(array.cells, value)

    def _convert(self, value: Value, buffer: Buffer) -> Operand:
        """Turn a float from memory back into a whole number or a truth."""
        return value if buffer.kind == "float" else self.build.emit(buffer.kind, value)

    def _require_narrow(self, entries: Sequence[Operand]) -> None:
        """Reject whole numbers with more digits than a float, which is what memory holds."""
        if any(self.build.is_wide(x) for x in entries):
            raise Unscalarisable("it keeps whole numbers of 64 bits along a long axis")

    def _write(self, loop: _OpenLoop, x: Operand) -> View | Operand:
        """Find a place for the value x at k: a buffer of its own, or where it was read from."""
        if not isinstance(x, Value):
            return x
        self._require_narrow([x])
        for view, value in loop.reads.items():
            if value == x:
                return view
        if x not in loop.buffers:
            buffer = self.build.buffer(loop.length, kind_of(x))
            loop.buffers[x] = buffer
            loop.made[buffer] = x
        return _whole(loop.buffers[x])

    def sequential(
        self,
        length: int,
        function: Callable[[list[Operands], list[Operands]], tuple[Sequence[Any], Sequence[Any]]],
        initial: Sequence[Operands],
        arrays: Sequence[KeptArray],
    ) -> tuple[list[Operands], list[Operands]]:
        """Loop in order, carrying numbers; return the last carry and the cells it made."""
        if self.inside:
            raise Unscalarisable("it goes along two long axes at once")
        self.flush()
        carried = [_each_cell(x, lambda e: self.build.value(kind_of(e))) for x in initial]
        self.build.open()
        loop = _OpenLoop(length)
        self.inside = True
        local = [self._local(loop, x) for x in arrays]
        updated, outs = function(carried, local)
        cells = [_each_cell(out, lambda x: self._write(loop, x)) for out in outs]
        self.inside = False
        block = self.build.close()
        self.build.append(
            Each(
                length,
                tuple((value, view) for view, value in loop.reads.items()),
                block,
                tuple((_whole(buffer), x) for buffer, x in loop.made.items()),
                _operands_in(carried),
                _operands_in(initial),
                _operands_in(updated),
            )
        )
        return carried, cells

    def copy(self, source: KeptArray, targets: Sequence[View]) -> None:
        """Write the cells of an array, in order, to views."""
        self.flush()
        self.build.open()
        loop = _OpenLoop(source.length)
        cells = source.cells.ravel()
        pairs = zip(cells, targets, strict=True)
        alike = all(kind_of_cell(cell) == target.buffer.kind for cell, target in pairs)
        values = self._local(loop, source, as_stored=alike).ravel()
        block = self.build.close()
        reads = tuple((value, view) for view, value in loop.reads.items())
        writes = tuple(zip(targets, values, strict=True))
        self.build.append(Each(source.length, reads, block, writes))

    def in_own_buffers(self, x: KeptArray) -> KeptArray:
        """Copy an array with a kept axis to buffers of its own."""
        own = self.new_buffers(x)
        self.copy(x, list(own.cells.ravel()))
        return own

    def new_buffers(self, like: KeptArray) -> KeptArray:
        """Make buffers for an array with a kept axis."""
        if self.inside:
            raise Unscalarisable("it makes a long axis inside a loop along another")
        cells = _each_cell(
            like.cells, lambda cell: _whole(self.build.buffer(like.length, kind_of_cell(cell)))
        )
        return KeptArray(cells, like.axis, like.length)

    def pack(self, array: KeptArray) -> Buffer:
        """Copy all numbers of an array to a new buffer, in C order."""
        if array.axis:
            raise Unscalarisable("a result has a long axis that is not its first")
        width = array.cells.size
        kinds: set[Kind] = {kind_of_cell(c) for c in array.cells.ravel()}
        kind: Kind = kinds.pop() if len(kinds) == 1 else "float"
        buffer = self.build.buffer(width * array.length, kind)
        self.copy(array, [View(buffer, c, width, array.length) for c in range(width)])
        return buffer

    def plain(self, flat: ProgramArray) -> Operands | KeptArray:
        """Pack a flat array into one buffer, once; return any other array as it is."""
        if not isinstance(flat, FlatArray):
            return flat
        if flat.packed is None or not self.build.encloses(flat.packed[1]):
            buffer = self.pack(flat.things)
            flat.packed = buffer, self.build.block
        return view_buffer(flat.packed[0])

    def keep(self, array: Operands, axis: int) -> KeptArray:
        """Turn an array of operands into one with a kept axis."""
        array = np.moveaxis(array, axis, 0)
        cells = np.empty(array.shape[1:], object)
        for index in np.ndindex(*cells.shape):
            cells[index] = self._kept_cell([entry(array, (k, *index)) for k in range(len(array))])
        return KeptArray(cells, axis, len(array))

    def _kept_cell(self, entries: list[Operand]) -> View | Operand:
        kind = kind_of(entries[0])
        if all(x is entries[0] or same(x, entries[0]) for x in entries):
            return entries[0]
        self._require_narrow(entries)
        known = [x for x in entries if not isinstance(x, Value)]
        if len(known) == len(entries):
            return _whole(self.build.buffer(len(entries), kind, tuple(float(x) for x in known)))
        if self.inside:
            raise Unscalarisable("it makes a long axis inside a loop along another")
        buffer = self.build.buffer(len(entries), kind)
        # Where most are one number, as the zeros of a matrix of blocks, all are written first.
        mostly = 2 * len(known) > len(entries) and all(same(x, known[0]) for x in known)
        if mostly:
            self._fill(_whole(buffer), self.build.emit("float", known[0]))
        start = 0
        for _, run in groupby(entries, key=lambda x: x if isinstance(x, Value) else repr(x)):
            alike = list(run)
            if not mostly or isinstance(alike[0], Value):
                self._fill(View(buffer, start, 1, len(alike)), self.build.emit("float", alike[0]))
            start += len(alike)
        return _whole(buffer)

    def _fill(self, view: View, x: Operand) -> None:
        """Write the same number to all entries of a view."""
        if view.length > _FEW:
            self.build.append(Each(view.length, (), CodeBlock(), ((view, x),)))
            return
        for k in range(view.length):
            self.build.append(StoreEntry(view.buffer, view.offset + k, x))

    def scalars(self, array: KeptArray) -> Operands:
        """Take an array with a kept axis apart: load its entries one by one."""
        if self.inside:
            raise Unscalarisable("it takes single entries of a long axis inside a loop")
        self.flush()

        def load(cell, k):
            if not isinstance(cell, View):
                return cell
            out = self.build.value("float")
            self.build.append(LoadEntry(out, cell.buffer, cell.offset + k * cell.stride))
            return self._convert(out, cell.buffer)

        parts = [
            _each_cell(array.cells, lambda cell, k=k: load(cell, k)) for k in range(array.length)
        ]
        if not parts:  # a slice of nothing
            return np.expand_dims(array.cells, array.axis).take([], axis=array.axis)
        return np.stack(parts, axis=array.axis)

    def entry_at(self, array: KeptArray, index: Operand) -> Operands:
        """Load the entry along the kept axis at a place that is found at run time."""
        if not self.inside:
            self.flush()

        def load(cell):
            if not isinstance(cell, View):
                return cell
            if self.inside and self._open is not None and cell.buffer in self._open.made:
                raise Unscalarisable("it looks up an entry of an array in the loop that makes it")
            out = self.build.value("float")
            self.build.append(LoadAt(out, cell, index))
            return self._convert(out, cell.buffer)

        return _each_cell(array.cells, load)

    def store_at(self, view: View, index: Operand, x: Operand) -> None:
        """Replace an entry of a buffer of its own at a place that is found at run time."""
        if not self.inside:
            self.flush()
        self._require_narrow([x])
        self.build.append(StoreAt(view, index, self.build.emit("float", x)))

    def settle(self, array: KeptArray) -> None:
        """End the open loop if it makes an array, so that it can be read at any place."""
        buffers = {cell.buffer for cell in array.cells.ravel() if isinstance(cell, View)}
        if self._open is not None and not buffers.isdisjoint(self._open.made):
            self.flush()

    def look_up(self, array: KeptArray, places: KeptArray) -> KeptArray:
        """Load the entries of an array, whose kept axis is the first, at many places."""
        self.settle(array)
        (cells,) = self.along(
            places.length, lambda place: [self.entry_at(array, entry(place))], [places]
        )
        return KeptArray(cells, 0, places.length)


def entry(array: Operands, index: tuple[int, ...] = ()) -> Operand:
    """Read one operand of an array."""
    found: Any = array[index]
    return found


def kind_of_cell(cell: View | Operand) -> Kind:
    return cell.buffer.kind if isinstance(cell, View) else kind_of(cell)


def slice_axis(
    array: KeptArray, first: SupportsInt, length: SupportsInt, step: SupportsInt = 1
) -> KeptArray:
    """Take the entries first, first + step, ... along the kept axis."""
    first, length, step = int(first), int(length), int(step)

    def move(cell):
        if not isinstance(cell, View):
            return cell
        return View(cell.buffer, cell.offset + first * cell.stride, cell.stride * step, length)

    return KeptArray(_each_cell(array.cells, move), array.axis, length)


def stack_columns(parts: Sequence[KeptArray]) -> KeptArray:
    """Make arrays of the kept axis alone the columns of one."""
    cells = np.empty(len(parts), object)
    cells[:] = [part.cells[()] for part in parts]
    return KeptArray(cells, 0, parts[0].length)


def stays(new: KeptArray, old: KeptArray) -> bool:
    """Tell whether two arrays are the same entries of memory."""
    pairs = zip(new.cells.ravel(), old.cells.ravel(), strict=True)
    return new.axis == old.axis and all(isinstance(a, View) and a == b for a, b in pairs)


def view_buffer(buffer: Buffer) -> KeptArray:
    """View all entries of a buffer as an array."""
    cells = np.empty((), object)
    cells[()] = _whole(buffer)
    return KeptArray(cells, 0, buffer.length)


def _whole(buffer: Buffer) -> View:
    return View(buffer, 0, 1, buffer.length)


def _each_cell(array: Operands, function: Callable) -> Operands:
    array = np.asarray(array, object)
    out = np.empty(array.shape, object)
    for index in np.ndindex(*array.shape):
        out[index] = function(array[index])
    return out


def _operands_in(arrays: Sequence[Operands]) -> tuple[Any, ...]:
    return tuple(x for a in arrays for x in np.asarray(a, object).ravel())

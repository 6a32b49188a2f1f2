"""Where buffers lie in memory: in columns, and in the buffer that they end up in.

**Columns.** The caller has the numbers of one thing next to each other: entry w k + c is number c
of thing k. A loop that takes eight things at once would gather its numbers from eight places. Where
every loop goes through a buffer in steps that are multiples of w, the buffer is stored as w columns
instead, and eight entries of a column are one load. Every column begins with a cache line, so that
such a load seldom needs two of them.

**Coalescing.** A buffer that is only copied to a column of a result is made where that column lies.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from math import gcd

from retrax.engine.passes.live import buffers_of
from retrax.engine.program import (
    Buffer,
    CodeBlock,
    Each,
    Instruction,
    LoadAt,
    LoadEntry,
    Operand,
    Program,
    StoreAt,
    StoreEntry,
    Value,
    View,
    inner_blocks,
    walk,
)

# The numbers in a cache line.
LINE = 8
# The numbers in a page of memory.
_PAGE = 512
# How many columns a buffer is stored as; one that is not here is stored as it is.
Widths = Mapping[Buffer, int]
# The result, and its column, that a buffer is made in.
Columns = dict[Buffer, tuple[Buffer, int]]


class MemoryPlan:
    """Where buffers lie in scratch memory, counted in numbers: `offsets`, and `size` in all.

    The plan is complete before a line of code is printed.
    """

    def __init__(self, widths: Widths):
        self.widths = widths
        self.offsets: dict[Buffer, int] = {}
        self.size = 0
        # Buffers that are made in a result, which may lie elsewhere in the next step.
        self.within: dict[Buffer, tuple[Buffer, int]] = {}
        # Memory that can be used again, by its length.
        self._free: dict[int, list[int]] = {}

    def extent(self, buffer: Buffer) -> int:
        """Count the numbers that a buffer takes in memory, with what fills its last cache lines."""
        return size_of(buffer, self.widths.get(buffer, 1))

    def place_of(self, buffer: Buffer, index: int) -> int:
        """Return where an entry lies in its buffer."""
        return place_of(buffer, index, self.widths.get(buffer, 1))

    def view_in_memory(self, view: View) -> View:
        """View the same entries where they lie in memory."""
        return view_in_columns(view, self.widths.get(view.buffer, 1))

    def reserve(self, buffer: Buffer) -> None:
        """Give a buffer memory that no other has had."""
        self.offsets[buffer], self.size = self.size, self.size + self.extent(buffer)

    def place(
        self, block: CodeBlock, outputs: Iterable[Operand | Buffer], given: Collection[Buffer]
    ) -> CodeBlock:
        """Find a place for all that a block makes; return the block without copies this saves.

        The memory of a buffer is used again after its last use, unless it is an output. An output
        has memory that no other buffer had before: it may change places with an input, and is then
        read while the next step begins. Buffers that are `given` lie elsewhere.
        """
        results = {x for x in outputs if isinstance(x, Buffer)}
        lasting = {*results, *given}
        block, columns = coalesce(block, results, given, self.widths)
        for buffer, (result, column) in columns.items():
            if result not in self.offsets:
                self.reserve(result)
            self.within[buffer] = result, self.place_of(result, column)
            self.offsets[buffer] = self.offsets[result] + self.place_of(result, column)
            lasting.add(buffer)
        touched = [list(_list_buffers(instruction)) for instruction in block.instructions]
        last = {buffer: k for k, buffers in enumerate(touched) for buffer in buffers}
        for k, buffers in enumerate(touched):
            for buffer in buffers:
                if buffer in self.offsets or buffer in given or buffer.table is not None:
                    continue
                if buffer in results:
                    self.reserve(buffer)
                else:
                    self._take(buffer)
            for buffer in sorted(set(buffers), key=lambda buffer: buffer.number):
                if last[buffer] == k and buffer in self.offsets and buffer not in lasting:
                    self._free.setdefault(self.extent(buffer), []).append(self.offsets[buffer])
        return block

    def _take(self, buffer: Buffer) -> None:
        free = self._free.get(self.extent(buffer))
        if free:
            self.offsets[buffer] = free.pop()
        else:
            self.reserve(buffer)


def _list_buffers(instruction: Instruction) -> Iterator[Buffer]:
    """List the buffers that an instruction reads and writes, in the order of its code."""
    if isinstance(instruction, LoadEntry | StoreEntry):
        yield instruction.buffer
    if isinstance(instruction, LoadAt | StoreAt):
        yield instruction.view.buffer
    if isinstance(instruction, Each):
        yield from (view.buffer for _, view in instruction.reads)
    for block in inner_blocks(instruction):
        for inner in block.instructions:
            yield from _list_buffers(inner)
    if isinstance(instruction, Each):
        yield from (view.buffer for view, _ in instruction.writes)


def widths(program: Program, alike: Iterable[tuple[Buffer, Buffer]]) -> Widths:
    """Find the buffers that can be stored in columns; pairs that are `alike` in the same way."""
    found: dict[Buffer, int] = {}
    blocks = (program.block, program.memory.opening)
    for instruction in chain.from_iterable(walk(block) for block in blocks):
        if isinstance(instruction, Each):
            views = [view for _, view in instruction.reads]
            for view in (*views, *(view for view, _ in instruction.writes)):
                if view.length > 1:
                    found[view.buffer] = gcd(found.get(view.buffer, 0), view.stride)
        elif isinstance(instruction, LoadAt | StoreAt):
            view = instruction.view
            found[view.buffer] = gcd(found.get(view.buffer, 0), view.stride)
    for a, b in alike:
        found[a] = found[b] = gcd(found.get(a, 0), found.get(b, 0))
    return {
        buffer: width
        for buffer, width in found.items()
        if width > 1 and buffer.table is None and buffer.length % width == 0
    }


def view_in_columns(view: View, width: int) -> View:
    """View the same entries of a buffer that is stored in columns."""
    if width == 1:
        return view
    step = view.stride // width if view.length > 1 else 1
    return View(view.buffer, place_of(view.buffer, view.offset, width), step, view.length)


def place_of(buffer: Buffer, index: int, width: int) -> int:
    """Return where an entry of a buffer is stored."""
    thing, column = divmod(index, width)
    return column * _fill_line(buffer.length // width) + thing


def size_of(buffer: Buffer, width: int) -> int:
    """Count the numbers that the memory of a buffer has room for."""
    return width * _fill_line(buffer.length // width)


def _fill_line(length: int) -> int:
    """Return the length of a column with what fills its last cache line.

    It is a line more where columns would be pages apart and compete for the same cache.
    """
    filled = -(-length // LINE) * LINE
    return filled if filled % _PAGE else filled + LINE


def coalesce(
    block: CodeBlock, results: Collection[Buffer], given: Collection[Buffer], widths: Widths
) -> tuple[CodeBlock, Columns]:
    """Drop loops that only copy buffers to results; return where those buffers are made.

    Buffers that are `given`, constant, or written again later keep their own memory.
    """
    kept: list[Instruction] = []
    columns: Columns = {}
    later: set[Buffer] = {*given, *results}
    for instruction in reversed(block.instructions):
        moved = _find_copies(instruction, results, widths)
        if moved is None or any(buffer in later or buffer in columns for buffer in moved):
            kept.append(instruction)
            later |= buffers_of(CodeBlock([instruction]))[1]
        else:
            columns |= moved
    return CodeBlock(kept[::-1]), columns


def _find_copies(
    instruction: object, results: Collection[Buffer], widths: Widths
) -> Columns | None:
    """Find the buffers that a loop copies as they are to all columns of results, or `None`."""
    if not isinstance(instruction, Each) or instruction.body.instructions or instruction.carried:
        return None
    sources = dict(instruction.reads)
    columns: Columns = {}
    for view, operand in instruction.writes:
        source = sources.get(operand) if isinstance(operand, Value) else None
        width = widths.get(view.buffer, 1)
        if source is None or view.buffer not in results or source.buffer.table is not None:
            return None
        column = View(view.buffer, view.offset, width, view.buffer.length // width)
        if view != column or source != View(source.buffer, 0, 1, source.buffer.length):
            return None
        columns[source.buffer] = view.buffer, view.offset
    whole = len(columns) == len(instruction.writes) and not any(map(widths.__contains__, columns))
    return columns if whole and view.offset < width else None

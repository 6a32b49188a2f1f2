"""Rows that hold several numbers of each thing lie column by column while a body moves.

The caller has the numbers of one thing next to each other: entry w k + c is number c of thing k. A
loop that takes eight things at once would gather its numbers from eight places. Where every loop
goes through a row in steps that are multiples of w, the row is stored as w columns instead, and
eight entries of a column are one load. Every column begins with a cache line, so that such a load
seldom needs two of them.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from math import gcd

from retrax.engine.passes.live import rows_of
from retrax.engine.program import Block, Each, Program, Row, Value, View, walk

# The numbers in a cache line.
LINE = 8
# The numbers in a page of memory.
_PAGE = 512
# How many columns a row is stored as; one that is not here is stored as it is.
Widths = Mapping[Row, int]


def widths(program: Program, alike: Iterable[tuple[Row, Row]]) -> Widths:
    """The rows of a program that can be stored in columns; pairs that are `alike` in one way."""
    found: dict[Row, int] = {}
    blocks = [program.block, *([program.memory.opening] if program.memory else ())]
    for instruction in chain.from_iterable(walk(block) for block in blocks):
        if isinstance(instruction, Each):
            views = [view for _, view in instruction.reads]
            for view in (*views, *(view for view, _ in instruction.writes)):
                if view.length > 1:
                    found[view.row] = gcd(found.get(view.row, 0), view.stride)
    for a, b in alike:
        found[a] = found[b] = gcd(found.get(a, 0), found.get(b, 0))
    return {
        row: width
        for row, width in found.items()
        if width > 1 and row.table is None and row.length % width == 0
    }


def stored(view: View, width: int) -> View:
    """The same entries of a row that is stored in columns."""
    if width == 1:
        return view
    step = view.stride // width if view.length > 1 else 1
    return View(view.row, place_of(view.row, view.offset, width), step, view.length)


def place_of(row: Row, index: int, width: int) -> int:
    """Where an entry of a row is stored."""
    thing, column = divmod(index, width)
    return column * _filled(row.length // width) + thing


def size_of(row: Row, width: int) -> int:
    """How many numbers the memory of a row has room for."""
    return width * _filled(row.length // width)


def _filled(length: int) -> int:
    """The length of a column with what fills its last cache line, where the next one begins.

    A line more where columns would otherwise be pages apart and compete for the same cache.
    """
    filled = -(-length // LINE) * LINE
    return filled if filled % _PAGE else filled + LINE


# The result and its column that a row is made in.
Homes = dict[Row, tuple[Row, int]]


def settled(
    block: Block, results: Collection[Row], given: Collection[Row], widths: Widths
) -> tuple[Block, Homes]:
    """The block without loops that only copy rows to results, and where those rows are made.

    Rows that are `given`, constant, or written again later keep their own memory.
    """
    kept, homes = [], {}
    later: set[Row] = {*given, *results}
    for instruction in reversed(block.instructions):
        moved = _moved(instruction, results, widths)
        if moved is None or any(row in later or row in homes for row in moved):
            kept.append(instruction)
            later |= rows_of(Block([instruction]))[1]
        else:
            homes |= moved
    return Block(kept[::-1]), homes


def _moved(instruction: object, results: Collection[Row], widths: Widths) -> Homes | None:
    """The rows that a loop copies as they are to all columns of results, or `None`."""
    if not isinstance(instruction, Each) or instruction.body.instructions or instruction.carried:
        return None
    sources = dict(instruction.reads)
    homes: Homes = {}
    for view, operand in instruction.writes:
        source = sources.get(operand) if isinstance(operand, Value) else None
        width = widths.get(view.row, 0)
        if source is None or view.row not in results or source.row.table is not None:
            return None
        column = View(view.row, view.offset, width, view.row.length // max(width, 1))
        if view != column or source != View(source.row, 0, 1, source.row.length):
            return None
        homes[source.row] = view.row, view.offset
    whole = len(homes) == len(instruction.writes) and not any(row in widths for row in homes)
    return homes if whole and view.offset < width else None

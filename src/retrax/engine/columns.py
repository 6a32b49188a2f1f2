"""Rows that hold several numbers of each thing lie column by column while a body moves.

The caller has the numbers of one thing next to each other: entry w k + c is number c of thing k. A
loop that takes eight things at once would gather its numbers from eight places. Where every loop
goes through a row in steps that are multiples of w, the row is stored as w columns instead, and
eight entries of a column are one load. Every column begins with a cache line, so that such a load
seldom needs two of them.
"""

from collections.abc import Iterable, Mapping
from itertools import chain
from math import gcd

from retrax.engine.program import Each, Program, Row, View, walk

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

"""Rows that end as a column of a result are made where that column lies, and not copied there."""

from collections.abc import Collection

from retrax.engine.columns import Widths
from retrax.engine.live import rows_of
from retrax.engine.program import Block, Each, Row, Value, View

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

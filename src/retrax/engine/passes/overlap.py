"""What instructions read and write in memory, and whether two of them may change places."""

from collections.abc import Iterable

from retrax.engine.program import (
    CodeBlock,
    Each,
    Instruction,
    LoadAt,
    LoadEntry,
    StoreAt,
    StoreEntry,
    View,
    walk,
)

# Views by the numbers of their buffers.
_Views = dict[int, list[View]]


def list_accesses(instruction: Instruction) -> tuple[list[View], list[View]]:
    """List what an instruction, with all that it holds, reads and writes in memory."""
    reads, writes = [], []
    for x in walk(CodeBlock([instruction])):
        match x:
            case Each():
                reads += [view for _, view in x.reads]
                writes += [view for view, _ in x.writes]
            case LoadEntry():
                reads.append(View(x.buffer, x.index, 1, 1))
            case LoadAt():
                reads.append(x.view)
            case StoreEntry():
                writes.append(View(x.buffer, x.index, 1, 1))
            case StoreAt():
                writes.append(x.view)
    return reads, writes


class Footprint:
    """What an instruction reads and writes in memory."""

    def __init__(self, instruction: Instruction):
        reads, writes = list_accesses(instruction)
        self.reads, self.writes = _by_buffer(reads), _by_buffer(writes)

    def meets(self, other: "Footprint") -> bool:
        """Return whether one instruction writes what the other reads or writes."""
        return (
            _overlap(self.writes, other.reads)
            or _overlap(self.reads, other.writes)
            or _overlap(self.writes, other.writes)
        )


def _by_buffer(views: Iterable[View]) -> _Views:
    found: _Views = {}
    for view in views:
        found.setdefault(view.buffer.number, []).append(view)
    return found


def _overlap(some: _Views, others: _Views) -> bool:
    if not some or not others or some.keys().isdisjoint(others):
        return False
    common = some.keys() & others.keys()
    return any(not apart(a, b) for k in common for a in some[k] for b in others[k])


def apart(a: View, b: View) -> bool:
    """Return whether two views have no entry in common, as far as is easy to see."""
    if a.buffer.number != b.buffer.number:
        return True
    columns = a.stride == b.stride and (a.offset - b.offset) % a.stride != 0
    (first, last), (other_first, other_last) = _ends(a), _ends(b)
    return columns or last < other_first or other_last < first


def _ends(view: View) -> tuple[int, int]:
    ends = view.offset, view.offset + view.stride * (view.length - 1)
    return min(ends), max(ends)

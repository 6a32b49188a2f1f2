"""What instructions read and write in memory, and whether two of them may change places."""

from retrax.engine.program import (
    CodeBlock,
    Each,
    Instruction,
    LoadAt,
    LoadEntry,
    StoreEntry,
    View,
    walk,
)


def touched(instruction: Instruction) -> tuple[list[View], list[View]]:
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
    return reads, writes


def meet(one: Instruction, other: Instruction) -> bool:
    """Return whether one instruction writes what the other reads or writes."""
    reads, writes = touched(one)
    other_reads, other_writes = touched(other)
    pairs = [(writes, other_reads), (reads, other_writes), (writes, other_writes)]
    return any(not apart(a, b) for some, others in pairs for a in some for b in others)


def apart(a: View, b: View) -> bool:
    """Return whether two views have no entry in common, as far as is easy to see."""
    if a.buffer != b.buffer:
        return True
    columns = a.stride == b.stride and (a.offset - b.offset) % a.stride != 0
    (first, last), (other_first, other_last) = _ends(a), _ends(b)
    return columns or last < other_first or other_last < first


def _ends(view: View) -> tuple[int, int]:
    ends = view.offset, view.offset + view.stride * (view.length - 1)
    return min(ends), max(ends)

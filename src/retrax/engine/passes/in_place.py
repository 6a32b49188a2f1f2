"""Change arrays where they lie, instead of a copy, if nobody reads the old ones again.

`x.at[k].set(v)` is a copy of x, and a store to it. A loop that carries x copies the result back to
where the next round reads it, and a choice copies that of the chosen block. If x and its copies are
never needed at the same time, they can be one buffer, and the copies go: what is left is the store.

Two buffers are in each other's way if one is written while the other still has something to be
read, unless that is a copy between them. Copies whose buffers are not in each other's way are
dropped one after the other, and the buffers become one.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from retrax.engine.passes.live import buffers_of
from retrax.engine.passes.overlap import list_accesses
from retrax.engine.program import (
    Buffer,
    Choose,
    CodeBlock,
    Each,
    Instruction,
    LoadAt,
    LoadEntry,
    Operand,
    Operation,
    Program,
    Repeat,
    StoreAt,
    StoreEntry,
    View,
    While,
    inner_blocks,
    stores_at,
    walk,
)

# A buffer that is copied as a whole, and where to.
_Copy = tuple[Buffer, Buffer]


def in_place(program: Program) -> Program:
    """Drop copies of arrays that are changed at places found at run time, or chosen."""
    memory = program.memory
    opening = _in_place(memory.opening, (*program.inputs, *memory.first))
    ports = (*program.inputs, *program.outputs, *memory.items, *memory.last)
    block = _in_place(program.block, ports)
    return replace(program, block=block, memory=replace(memory, opening=opening))


def _in_place(block: CodeBlock, ports: Iterable[object]) -> CodeBlock:
    chosen = (x.buffers for x in walk(block) if isinstance(x, Choose))
    if not stores_at(block) and not any(chosen):
        return block
    fixed = {x for x in ports if isinstance(x, Buffer)}
    ways = _Ways()
    ways.before(block, ways.bits(fixed))
    names = _Names()
    for source, target in chain.from_iterable(map(_copies, _loops(block))):
        if not fixed.isdisjoint((source, target)) or source.table is not None:
            continue
        some, others = names.alike(source), names.alike(target)
        if some is not others and not any(ways.meet(a, b) for a in some for b in others):
            names.join(source, target)
    return _note_choices(_rename(block, names))


def _loops(block: CodeBlock) -> Iterator[Each]:
    return (x for x in walk(block) if isinstance(x, Each))


def _copies(loop: Each) -> Iterator[_Copy]:
    """List the buffers that a loop copies as they are."""
    sources: dict[Operand, View] = dict(loop.reads)
    for view, operand in loop.writes:
        source = sources.get(operand)
        if source is None or not (_is_whole(source) and _is_whole(view)):
            continue
        a, b = source.buffer, view.buffer
        if (a.length, a.kind) == (b.length, b.kind):
            yield a, b


def _is_whole(view: View) -> bool:
    return (view.offset, view.stride, view.length) == (0, 1, view.buffer.length)


# A set of buffers, as the bits of a whole number.
_Bits = int


class _Ways:
    """Which buffers are in each other's way, found by going back through the code."""

    def __init__(self) -> None:
        self._bits: dict[Buffer, _Bits] = {}
        self._pairs: dict[_Bits, _Bits] = {}
        self._loops: dict[int, _Footprint] = {}

    def meet(self, a: Buffer, b: Buffer) -> bool:
        one, other = self._bit(a), self._bit(b)
        met = self._pairs.get(one, 0) & other or self._pairs.get(other, 0) & one
        return bool(met)

    def bits(self, buffers: Iterable[Buffer]) -> _Bits:
        """Return a set of buffers."""
        found = 0
        for buffer in buffers:
            found |= self._bit(buffer)
        return found

    def _bit(self, buffer: Buffer) -> _Bits:
        bit = self._bits.get(buffer)
        if bit is None:
            bit = self._bits[buffer] = 1 << len(self._bits)
        return bit

    def _write(self, bit: _Bits, needed: _Bits) -> None:
        self._pairs[bit] = self._pairs.get(bit, 0) | (needed & ~bit)

    def before(self, block: CodeBlock, needed: _Bits) -> _Bits:
        """Return the buffers that are needed before a block, given those needed after it."""
        for instruction in reversed(block.instructions):
            if not isinstance(instruction, Operation):
                needed = self._before(instruction, needed)
        return needed

    def _before(self, instruction: Instruction, needed: _Bits) -> _Bits:
        match instruction:
            case LoadEntry(buffer=buffer):
                return needed | self._bit(buffer)
            case LoadAt(view=view):
                return needed | self._bit(view.buffer)
            case StoreEntry(buffer=buffer):
                self._write(self._bit(buffer), needed)
            case StoreAt(view=view):
                self._write(self._bit(view.buffer), needed)
            case Each():
                return self._before_each(instruction, needed)
            case Choose():
                found = 0
                for block in instruction.blocks:
                    found |= self.before(block, needed)
                return found
            case While() | Repeat():
                return self._before_loop(instruction, needed)
        return needed

    def _before_loop(self, loop: While | Repeat, needed: _Bits) -> _Bits:
        """Return what is needed before a loop: a round's needs last over the round before too."""
        head = needed
        while True:
            now = needed | self.before(loop.body, head)
            if isinstance(loop, While):
                now = self.before(loop.condition, now)
            if not now & ~head:
                return head
            head = head | now

    def _before_each(self, loop: Each, needed: _Bits) -> _Bits:
        """Return what is needed before a loop of writes: all that it reads, but not its copies."""
        own = self._loops.get(id(loop))
        if own is None:
            own = self._loops[id(loop)] = _Footprint(loop, self)
        while_it_runs = needed | own.read
        if own.stored:
            self.before(loop.body, while_it_runs | own.stored | own.written)
        for bit, copied in own.writes:
            self._write(bit, (while_it_runs | own.written | own.stored) & ~copied)
        return (needed & ~(own.replaced & ~own.stored)) | own.read


class _Footprint:
    """The buffers that a loop reads and writes; each that it writes, with those it copies there."""

    def __init__(self, loop: Each, ways: _Ways) -> None:
        looked_up, stored = buffers_of(loop.body)
        written = {view.buffer for view, _ in loop.writes}
        self.read = ways.bits(view.buffer for _, view in loop.reads) | ways.bits(looked_up)
        self.stored, self.written = ways.bits(stored), ways.bits(written)
        self.replaced = ways.bits(view.buffer for view, _ in loop.writes if _is_whole(view))
        copies = set(_copies(loop))
        self.writes = [
            (ways.bits([to]), ways.bits(source for source, target in copies if target == to))
            for to in written
        ]


class _Names:
    """Buffers that have become one."""

    def __init__(self) -> None:
        self._alike: dict[Buffer, list[Buffer]] = {}

    def alike(self, buffer: Buffer) -> list[Buffer]:
        return self._alike.setdefault(buffer, [buffer])

    def join(self, a: Buffer, b: Buffer) -> None:
        some, others = self.alike(a), self.alike(b)
        some += others
        for buffer in others:
            self._alike[buffer] = some

    def of(self, buffer: Buffer) -> Buffer:
        return self.alike(buffer)[0]


def _rename(block: CodeBlock, names: _Names) -> CodeBlock:
    """Give buffers that have become one the same name; drop copies between them."""

    def at(view: View) -> View:
        return replace(view, buffer=names.of(view.buffer))

    kept: list[Instruction] = []
    for instruction in block.instructions:
        match instruction:
            case LoadEntry() | StoreEntry():
                instruction = replace(instruction, buffer=names.of(instruction.buffer))
            case LoadAt() | StoreAt():
                instruction = replace(instruction, view=at(instruction.view))
            case Each():
                reads: dict[Operand, View] = {v: at(view) for v, view in instruction.reads}
                writes = [(at(view), x) for view, x in instruction.writes]
                changed = tuple((view, x) for view, x in writes if reads.get(x) != view)
                if not (changed or instruction.carried or instruction.body.instructions):
                    continue
                instruction = replace(
                    instruction,
                    reads=tuple((value, at(view)) for value, view in instruction.reads),
                    body=_rename(instruction.body, names),
                    writes=changed,
                )
            case _:
                for inner in inner_blocks(instruction):
                    inner.instructions = _rename(inner, names).instructions
        kept.append(instruction)
    return CodeBlock(kept)


def _note_choices(block: CodeBlock) -> CodeBlock:
    """Note for each choice which of the buffers that its blocks write others see."""
    users = _uses(block)
    for choice in walk(block):
        if isinstance(choice, Choose):
            seen: set[Buffer] = set()
            for inner in choice.blocks:
                own = _uses(inner)
                seen |= {buffer for buffer in buffers_of(inner)[1] if users[buffer] > own[buffer]}
            choice.buffers = tuple(sorted(seen, key=lambda buffer: buffer.number))
    return block


def _uses(block: CodeBlock) -> Counter[Buffer]:
    """Count the views of each buffer that a block reads or writes."""
    uses: Counter[Buffer] = Counter()
    for instruction in block.instructions:
        for views in list_accesses(instruction):
            uses.update(view.buffer for view in views)
    return uses

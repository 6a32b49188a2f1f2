"""Join loops along one axis, so that what passes from one to the next never sees memory.

While a program is traced, work joins the loop that is open; a sum, or work on neighbours, closes
it. What comes later may still belong to it. A loop goes up through the block to the loop of the
same length with which it shares most numbers, unless something on the way makes what it reads,
reads or writes what it writes. Scalars that it needs go along.

Every number that the joined loops have in common passes through `stored`, a fence: no product is
taken together with a sum of the other loop, and no expression is shared. All bits stay as they are.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TypeGuard

from retrax.engine.passes.in_place import in_place
from retrax.engine.passes.live import live
from retrax.engine.passes.overlap import Footprint, apart
from retrax.engine.program import (
    Buffer,
    CodeBlock,
    Each,
    Instruction,
    LoadAt,
    Operand,
    Operation,
    Program,
    Value,
    View,
    free_values,
    inner_blocks,
    kind_of,
    outputs_of,
    walk,
)


def fuse(program: Program) -> Program:
    """Join loops wherever that saves a way through memory."""
    if not program.has_buffers:
        return program
    program = in_place(program)
    memory = program.memory
    opening = _fuse(memory.opening, _buffers(memory.first))
    block = _fuse(program.block, _buffers((*program.outputs, *memory.last)))
    return live(replace(program, block=block, memory=replace(memory, opening=opening)))


def _buffers(items: Iterable[object]) -> set[Buffer]:
    return {x for x in items if isinstance(x, Buffer)}


def _fuse(block: CodeBlock, results: Collection[Buffer] = ()) -> CodeBlock:
    """Join the loops of a block; copies to its results are left to the plan of the memory."""
    done = _Joining()
    for instruction in block.instructions:
        if not isinstance(instruction, Each):
            for inner in inner_blocks(instruction):
                inner.instructions = _fuse(inner).instructions
            done.append(instruction)
        elif instruction.in_order or _copies(instruction, results) or not done.takes(instruction):
            done.append(instruction)
    return done.block()


def _copies(loop: Each, results: Collection[Buffer]) -> bool:
    return not loop.body.instructions and all(view.buffer in results for view, _ in loop.writes)


# The length of a loop, and a view by the number of its buffer.
_Place = tuple[int, int, int, int]


def _place(loop: Each, view: View) -> _Place:
    return loop.length, view.buffer.number, view.offset, view.stride


class _Joining:
    """A block while loops are joined.

    An instruction has a slot, and so have scalars that have gone up before it.
    """

    def __init__(self) -> None:
        self.slots: list[list[Instruction]] = []
        # Where values are made, by their numbers; slots with more than scalars, what they touch.
        self.made: dict[int, int] = {}
        self.prints: dict[int, Footprint] = {}
        # Slots of loops that can take others, by their length and what they read or write.
        self.hosts: dict[_Place, list[int]] = {}

    def block(self) -> CodeBlock:
        return CodeBlock([x for slot in self.slots for x in slot])

    def append(self, instruction: Instruction) -> None:
        slot = len(self.slots)
        self.slots.append([instruction])
        for value in outputs_of(instruction):
            self.made[value.number] = slot
        if not isinstance(instruction, Operation):
            self.prints[slot] = Footprint(instruction)
        if isinstance(instruction, Each) and not instruction.in_order:
            self._offer(slot, instruction)

    def _offer(self, slot: int, host: Each) -> None:
        for view in (*(view for _, view in host.reads), *(view for view, _ in host.writes)):
            self.hosts.setdefault(_place(host, view), []).append(slot)

    def takes(self, loop: Each) -> bool:
        """Move a loop into an earlier one, if one can take it; return whether it has moved."""
        hosts = {k for _, view in loop.reads for k in self.hosts.get(_place(loop, view), ())}
        if not hosts:
            return False
        first = min(hosts)
        scalars, lowest = self._needs(loop, first)
        own, best = Footprint(loop), (0, -1)
        for slot in reversed(self.prints):
            if slot <= lowest or slot < first:
                break
            if slot in hosts:
                best = max(best, (_count_shared(self._host(slot), loop), slot))
            if own.meets(self.prints[slot]):
                break
        shared, slot = best
        if not shared:
            return False
        self._raise([x for x in scalars if self.made[x.out.number] > slot], slot)
        joined = self.slots[slot][-1] = _join(self._host(slot), loop)
        self.prints[slot] = Footprint(joined)
        self._offer(slot, loop)
        return True

    def _host(self, slot: int) -> Each:
        host = self.slots[slot][-1]
        assert isinstance(host, Each)
        return host

    def _needs(self, loop: Each, first: int) -> tuple[list[Operation], int]:
        """List the scalars behind slot `first` that a loop needs, and the slot it cannot pass."""
        scalars: dict[int, Operation] = {}
        lowest, waiting = -1, list(free_values(loop))
        while waiting:
            value = waiting.pop()
            slot = self.made.get(value.number, -1)
            if slot <= first or value.number in scalars:
                continue
            maker = next((x for x in self.slots[slot] if value in outputs_of(x)), None)
            if isinstance(maker, Operation):
                scalars[value.number] = maker
                waiting += [x for x in maker.operands if isinstance(x, Value)]
            else:
                lowest = max(lowest, slot)
        return list(scalars.values()), lowest

    def _raise(self, scalars: list[Operation], slot: int) -> None:
        """Move scalars before the instruction of a slot, in the order in which they are."""
        moved = {x.out.number for x in scalars}
        for k in sorted({self.made[number] for number in moved}):
            for x in list(self.slots[k]):
                if isinstance(x, Operation) and x.out.number in moved:
                    self.slots[k].remove(x)
                    self.slots[slot].insert(-1, x)
                    self.made[x.out.number] = slot


def _count_shared(host: Each, loop: Each) -> int:
    """Count the numbers a round of both loops would have in common; 0 if they cannot be one."""
    made = {view for view, _ in host.writes}
    written = {view.buffer for view in made}
    read = {view.buffer for _, view in host.reads} | _look_up(host)
    views = [view for _, view in loop.reads]
    targets = [view for view, _ in loop.writes]
    if (
        any(view.buffer in written and view not in made for view in views)
        or any(view.buffer in read for view in targets)
        or any(not apart(view, other) for view in targets for other in made)
        or not _look_up(loop).isdisjoint(written)
    ):
        return 0
    known = _round_memory(host)
    common = [known[view] for view in views if view in known]
    # LLVM takes two fences around one number for the same.
    fenced = {x.operands[0] for x in host.body.instructions if _is_fence(x)}
    return 0 if any(x in fenced for x in common) else len(common)


def _look_up(loop: Each) -> set[Buffer]:
    return {x.view.buffer for x in walk(loop.body) if isinstance(x, LoadAt)}


def _is_fence(instruction: Instruction) -> TypeGuard[Operation]:
    return isinstance(instruction, Operation) and instruction.name == "stored"


def _join(host: Each, loop: Each) -> Each:
    """Put the rounds of one loop behind those of another, with a fence between them."""
    known = _round_memory(host)
    passed: list[Instruction] = []
    for value, view in loop.reads:
        if view in known:
            x = known[view]
            passed.append(Operation("stored" if kind_of(x) == "float" else "float", (x,), value))
    reads = tuple((value, view) for value, view in loop.reads if view not in known)
    body = [*host.body.instructions, *passed, *loop.body.instructions]
    return Each(host.length, (*host.reads, *reads), CodeBlock(body), (*host.writes, *loop.writes))


def _round_memory(loop: Each) -> dict[View, Operand]:
    """Return what a round has of memory: the numbers that it reads and those that it makes."""
    return {view: value for value, view in loop.reads} | dict(loop.writes)

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

from retrax.engine.passes.live import live
from retrax.engine.passes.overlap import apart, meet
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
    made_by,
    walk,
)


def fuse(program: Program) -> Program:
    """Join loops wherever that saves a way through memory."""
    if not program.has_buffers:
        return program
    memory = program.memory
    opening = _fused(memory.opening, _buffers(memory.first))
    block = _fused(program.block, _buffers((*program.outputs, *memory.last)))
    return live(replace(program, block=block, memory=replace(memory, opening=opening)))


def _buffers(items: Iterable[object]) -> set[Buffer]:
    return {x for x in items if isinstance(x, Buffer)}


def _fused(block: CodeBlock, results: Collection[Buffer] = ()) -> CodeBlock:
    """Join the loops of a block; copies to its results are left to the plan of the memory."""
    done: list[Instruction] = []
    for instruction in block.instructions:
        if not isinstance(instruction, Each):
            for inner in inner_blocks(instruction):
                inner.instructions = _fused(inner).instructions
        if not isinstance(instruction, Each) or _copies(instruction, results):
            done.append(instruction)
        elif not _joins(instruction, done):
            done.append(instruction)
    return CodeBlock(done)


def _copies(loop: Each, results: Collection[Buffer]) -> bool:
    return not loop.body.instructions and all(view.buffer in results for view, _ in loop.writes)


def _joins(loop: Each, before: list[Instruction]) -> bool:
    """Move a loop into one of those before it, if one can take it; return whether it has moved."""
    if loop.carried:
        return False
    needed = set(free_values(loop))
    raised: list[int] = []
    best: tuple[int, int, list[int]] | None = None
    for place in reversed(range(len(before))):
        host = before[place]
        if isinstance(host, Operation):
            if host.out in needed:
                raised.append(place)
                needed.update(x for x in host.operands if isinstance(x, Value))
            continue
        if not needed.isdisjoint(made_by(host)):
            break
        if isinstance(host, Each) and not host.carried and host.length == loop.length:
            shared = _shared(host, loop)
            if shared > (best[0] if best else 0):
                best = shared, place, list(raised)
        if meet(host, loop):
            break
    if best is None:
        return False
    _, place, raised = best
    host = before[place]
    assert isinstance(host, Each)
    before[place] = _joined(host, loop)
    scalars = [before[k] for k in sorted(raised)]
    for k in sorted(raised, reverse=True):
        del before[k]
    before[place:place] = scalars
    return True


def _shared(host: Each, loop: Each) -> int:
    """Count the numbers a round of both loops would have in common; 0 if they cannot be one."""
    made = {view for view, _ in host.writes}
    written = {view.buffer for view in made}
    read = {view.buffer for _, view in host.reads} | _looked_up(host)
    views = [view for _, view in loop.reads]
    targets = [view for view, _ in loop.writes]
    if (
        any(view.buffer in written and view not in made for view in views)
        or any(view.buffer in read for view in targets)
        or any(not apart(view, other) for view in targets for other in made)
        or not _looked_up(loop).isdisjoint(written)
    ):
        return 0
    known = _known(host)
    common = [known[view] for view in views if view in known]
    # LLVM takes two fences around one number for the same.
    fenced = {x.operands[0] for x in host.body.instructions if _is_fence(x)}
    return 0 if any(x in fenced for x in common) else len(common)


def _looked_up(loop: Each) -> set[Buffer]:
    return {x.view.buffer for x in walk(loop.body) if isinstance(x, LoadAt)}


def _is_fence(instruction: Instruction) -> TypeGuard[Operation]:
    return isinstance(instruction, Operation) and instruction.name == "stored"


def _joined(host: Each, loop: Each) -> Each:
    """Put the rounds of one loop behind those of another, with a fence between them."""
    known = _known(host)
    passed: list[Instruction] = []
    for value, view in loop.reads:
        if view in known:
            x = known[view]
            passed.append(Operation("stored" if kind_of(x) == "float" else "float", (x,), value))
    reads = tuple((value, view) for value, view in loop.reads if view not in known)
    body = [*host.body.instructions, *passed, *loop.body.instructions]
    return Each(host.length, (*host.reads, *reads), CodeBlock(body), (*host.writes, *loop.writes))


def _known(loop: Each) -> dict[View, Operand]:
    """What a round has of memory: the numbers that it reads and those that it makes."""
    return {view: value for value, view in loop.reads} | dict(loop.writes)

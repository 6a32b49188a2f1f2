"""Remove instructions that no result depends on."""

from collections.abc import Iterable
from dataclasses import replace

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
    Value,
    While,
    walk,
)


def live(program: Program) -> Program:
    """Remove dead instructions, loop variables and choices from a program."""
    needed: set[Value | Buffer] = set(_values(program.outputs))
    needed.update(_values(program.memory.last))
    opening = _sweep(program.memory.opening, set(_values(program.memory.first)), {})
    memory = replace(program.memory, opening=opening)
    return replace(program, block=_sweep(program.block, needed, {}), memory=memory)


# The loop variables that were found to be live, by the identity of their loop. Loops in loops are
# swept several times, with more and more that is needed.
_Wanted = dict[int, set[int]]


def _values(operands: Iterable[Operand | Buffer]) -> Iterable[Value | Buffer]:
    return (x for x in operands if isinstance(x, Value | Buffer))


def buffers_of(block: CodeBlock) -> tuple[set[Buffer], set[Buffer]]:
    """Find the buffers that a block reads, and those that it writes."""
    read, written = set(), set()
    for instruction in walk(block):
        match instruction:
            case Each():
                read |= {view.buffer for _, view in instruction.reads}
                written |= {view.buffer for view, _ in instruction.writes}
            case LoadEntry():
                read.add(instruction.buffer)
            case LoadAt():
                read.add(instruction.view.buffer)
            case StoreEntry():
                written.add(instruction.buffer)
            case StoreAt():
                written.add(instruction.view.buffer)
    return read, written


def _sweep(block: CodeBlock, needed: set[Value | Buffer], known: _Wanted) -> CodeBlock:
    """Select the live instructions of a block; add what they read to `needed`."""
    kept: list[Instruction] = []
    for instruction in reversed(block.instructions):
        match instruction:
            case Operation(operands=operands, out=out):
                if out not in needed:
                    continue
                needed.update(_values(operands))
            case Choose(outs=outs, buffers=buffers):
                if needed.isdisjoint(outs) and needed.isdisjoint(buffers):
                    continue
                instruction = _sweep_choice(instruction, needed, known)
            case While() | Repeat():
                # A buffer written in one round may be read in the next.
                inside, written = buffers_of(instruction.body)
                if isinstance(instruction, While):
                    inside |= buffers_of(instruction.condition)[0]
                if needed.isdisjoint(instruction.carried) and needed.isdisjoint(written):
                    continue
                needed |= inside
                instruction = _sweep_loop(instruction, needed, known)
            case LoadEntry(out=out, buffer=buffer):
                if out not in needed:
                    continue
                needed.add(buffer)
            case LoadAt(out=out, view=view, index=index):
                if out not in needed:
                    continue
                needed.add(view.buffer)
                needed.update(_values([index]))
            case StoreEntry(buffer=buffer, operand=operand):
                if buffer not in needed:
                    continue
                needed.update(_values([operand]))
            case StoreAt(view=view, index=index, operand=operand):
                if view.buffer not in needed:
                    continue
                needed.update(_values([index, operand]))
            case Each():
                instruction = _sweep_each(instruction, needed, known)
                if instruction is None:
                    continue
        kept.append(instruction)
    return CodeBlock(kept[::-1])


def _sweep_each(loop: Each, needed: set[Value | Buffer], known: _Wanted) -> Each | None:
    writes = tuple((view, x) for view, x in loop.writes if view.buffer in needed)
    read, stored = buffers_of(loop.body)
    if not writes and needed.isdisjoint(loop.carried) and needed.isdisjoint(stored):
        return None
    if stored:
        # A buffer written in one round may be read in the next.
        needed |= read
    needed.update(_values(x for _, x in writes))
    needed.update(_values((*loop.updated, *loop.initial)))
    body = _sweep(loop.body, needed, known)
    reads = tuple((v, view) for v, view in loop.reads if v in needed)
    needed.update(view.buffer for _, view in reads)
    return Each(loop.length, reads, body, writes, loop.carried, loop.initial, loop.updated)


def _sweep_choice(choice: Choose, needed: set[Value | Buffer], known: _Wanted) -> Choose:
    wanted = [k for k, out in enumerate(choice.outs) if out in needed]
    results = tuple(tuple(r[k] for k in wanted) for r in choice.results)
    blocks = []
    for block, result in zip(choice.blocks, results, strict=True):
        needed.update(_values(result))
        blocks.append(_sweep(block, needed, known))
    needed.update(_values([choice.index]))
    outs = tuple(choice.outs[k] for k in wanted)
    buffers = tuple(buffer for buffer in choice.buffers if buffer in needed)
    return Choose(choice.index, tuple(blocks), results, outs, buffers)


def _sweep_loop(
    loop: While | Repeat, needed: set[Value | Buffer], known: _Wanted
) -> While | Repeat:
    """Loop variables are live if used after the loop, by its test, or by live loop variables."""
    wanted = known.get(id(loop), set())
    while True:
        inside = set(needed)
        if isinstance(loop, While):
            inside.update(_values([loop.test]))
        wanted = wanted | {k for k, v in enumerate(loop.carried) if v in inside}
        inside.update(_values(loop.updated[k] for k in wanted))
        body = _sweep(loop.body, inside, known)
        condition = _sweep(loop.condition, inside, known) if isinstance(loop, While) else None
        grown = wanted | {k for k, v in enumerate(loop.carried) if v in inside}
        if grown == wanted:
            break
        wanted = grown
        needed.update(loop.carried[k] for k in wanted)
    known[id(loop)] = wanted
    order = sorted(wanted)
    carried = tuple(loop.carried[k] for k in order)
    initial = tuple(loop.initial[k] for k in order)
    updated = tuple(loop.updated[k] for k in order)
    needed.update(inside)
    needed.update(_values(initial))
    if isinstance(loop, While):
        assert condition is not None
        return While(carried, initial, condition, loop.test, body, updated)
    for row in loop.tables:
        needed.update(_values(row))
    return Repeat(carried, initial, loop.columns, loop.tables, body, updated)

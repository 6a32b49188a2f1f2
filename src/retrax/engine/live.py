"""Removal of instructions that no result depends on."""

from collections.abc import Iterable

from retrax.engine.program import (
    Block,
    Choose,
    Instruction,
    Operand,
    Operation,
    Program,
    Repeat,
    Value,
    While,
)


def live(program: Program) -> Program:
    """The program without dead instructions, loop variables and choices."""
    needed = set(_values(program.outputs))
    return Program(program.inputs, program.outputs, _swept(program.block, needed))


def _values(operands: Iterable[Operand]) -> Iterable[Value]:
    return (x for x in operands if isinstance(x, Value))


def _swept(block: Block, needed: set[Value]) -> Block:
    """The live instructions of a block; `needed` grows by what they read."""
    kept: list[Instruction] = []
    for instruction in reversed(block.instructions):
        match instruction:
            case Operation(operands=operands, out=out):
                if out not in needed:
                    continue
                needed.update(_values(operands))
            case Choose(outs=outs):
                if needed.isdisjoint(outs):
                    continue
                instruction = _swept_choice(instruction, needed)
            case While() | Repeat():
                if needed.isdisjoint(instruction.carried):
                    continue
                instruction = _swept_loop(instruction, needed)
        kept.append(instruction)
    return Block(kept[::-1])


def _swept_choice(choice: Choose, needed: set[Value]) -> Choose:
    wanted = [k for k, out in enumerate(choice.outs) if out in needed]
    results = tuple(tuple(r[k] for k in wanted) for r in choice.results)
    blocks = []
    for block, result in zip(choice.blocks, results, strict=True):
        needed.update(_values(result))
        blocks.append(_swept(block, needed))
    needed.update(_values([choice.index]))
    return Choose(choice.index, tuple(blocks), results, tuple(choice.outs[k] for k in wanted))


def _swept_loop(loop: While | Repeat, needed: set[Value]) -> While | Repeat:
    """Loop variables are live if used after the loop, by its test, or by live loop variables."""
    wanted: set[int] = set()
    while True:
        inside = set(needed)
        if isinstance(loop, While):
            inside.update(_values([loop.test]))
        wanted |= {k for k, v in enumerate(loop.carried) if v in inside}
        inside.update(_values(loop.updated[k] for k in wanted))
        body = _swept(loop.body, inside)
        condition = _swept(loop.condition, inside) if isinstance(loop, While) else None
        grown = wanted | {k for k, v in enumerate(loop.carried) if v in inside}
        if grown == wanted:
            break
        wanted = grown
        needed.update(loop.carried[k] for k in wanted)
    order = sorted(wanted)
    pick = lambda xs: tuple(xs[k] for k in order)  # noqa: E731
    carried, initial, updated = pick(loop.carried), pick(loop.initial), pick(loop.updated)
    needed.update(inside)
    needed.update(_values(initial))
    if isinstance(loop, While):
        assert condition is not None
        return While(carried, initial, condition, loop.test, body, updated)
    for row in loop.tables:
        needed.update(_values(row))
    return Repeat(carried, initial, loop.columns, loop.tables, body, updated)

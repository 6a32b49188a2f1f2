"""Which operations are written inside the one that uses them, as a part of its expression."""

from collections import Counter
from collections.abc import Iterable

from retrax.engine.program import (
    CodeBlock,
    Operand,
    Operation,
    Value,
    inner_blocks,
    operands_of,
    walk,
)


def uses(blocks: Iterable[CodeBlock], outputs: Iterable[object]) -> Counter[Value]:
    """Count how often values are read."""
    found: Counter[Value] = Counter(x for x in outputs if isinstance(x, Value))
    for block in blocks:
        for instruction in walk(block):
            found.update(x for x in operands_of(instruction) if isinstance(x, Value))
    return found


def find_inlinable(block: CodeBlock, used: Counter[Value]) -> set[Value]:
    """Find values that one operation of the same block reads, and nothing else.

    All operations are pure, so that it does not matter when they are done within their block.
    """
    found: set[Value] = set()
    made: set[Operand] = set()
    for instruction in block.instructions:
        for inner in inner_blocks(instruction):
            found |= find_inlinable(inner, used)
        if isinstance(instruction, Operation):
            found.update(
                x
                for x in instruction.operands
                if isinstance(x, Value) and x in made and used[x] == 1
            )
            made.add(instruction.out)
    return found


def hoist(block: CodeBlock, given: Iterable[object]) -> tuple[CodeBlock, CodeBlock]:
    """Part a block into what depends only on what is given, the same in all steps, and the rest."""
    known = {x for x in given if isinstance(x, Value)}
    same, rest = CodeBlock(), CodeBlock()
    for instruction in block.instructions:
        values = [x for x in operands_of(instruction) if isinstance(x, Value)]
        if isinstance(instruction, Operation) and values and known.issuperset(values):
            known.add(instruction.out)
            same.instructions.append(instruction)
        else:
            rest.instructions.append(instruction)
    return same, rest

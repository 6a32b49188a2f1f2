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


def inlined(block: CodeBlock, used: Counter[Value]) -> set[Value]:
    """Find values that one operation of the same block reads, and nothing else.

    All operations are pure, so that it does not matter when they are done within their block.
    """
    found: set[Value] = set()
    made: set[Operand] = set()
    for instruction in block.instructions:
        for inner in inner_blocks(instruction):
            found |= inlined(inner, used)
        if isinstance(instruction, Operation):
            found.update(
                x
                for x in instruction.operands
                if isinstance(x, Value) and x in made and used[x] == 1
            )
            made.add(instruction.out)
    return found

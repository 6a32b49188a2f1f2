"""How much work a block is, and which of it can be shared out."""

from retrax.engine.program import CodeBlock, Each, Operation, inner_blocks, walk


def work(block: CodeBlock) -> tuple[list[tuple[int, int]], int]:
    """List loops whose rounds can be shared out, as lengths and operations of a round.

    And count the operations of everything else. Loads and stores count as operations; what is
    inside a loop that ends by a test counts once.
    """
    shared, alike = [], 0
    for instruction in block.instructions:
        if isinstance(instruction, Each):
            operations = sum(1 for x in walk(instruction.body) if isinstance(x, Operation))
            operations += len(instruction.reads) + len(instruction.writes)
            if instruction.in_order:
                alike += instruction.length * operations
            else:
                shared.append((instruction.length, operations))
            continue
        alike += 1
        for inner in inner_blocks(instruction):
            inner_shared, inner_alike = work(inner)
            shared += inner_shared
            alike += inner_alike
    return shared, alike

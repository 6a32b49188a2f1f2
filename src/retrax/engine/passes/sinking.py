"""Do the work that only one side of a choice needs only where that side is chosen.

`jnp.where(small, series, closed)` computes both. If what is made for one side alone calls a
function of the C library, it sinks into a block of its own, which runs only if some body, or some
thing along a kept axis, takes that side.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import count

from retrax.engine.kinds import Kind, constant
from retrax.engine.program import (
    Choose,
    CodeBlock,
    Instruction,
    Operand,
    Operation,
    Program,
    Value,
    While,
    inner_blocks,
    made_by,
    operands_of,
    walk,
)

# Operations that take longer than a branch.
COSTLY = frozenset(
    "sin cos tan sinh cosh tanh exp exp2 expm1 log log1p power cbrt arcsin arccos arctan "
    "arctan2 arcsinh arccosh arctanh erf erfc nextafter rem".split()
)

_Users = dict[Value, list[Operation | None]]


def sink(program: Program) -> Program:
    """Move costly sides of choices into blocks of their own."""
    users: _Users = {}
    blocks, memory = (program.block, program.memory.opening), program.memory
    made = [x.number for block in blocks for i in walk(block) for x in made_by(i)]
    numbers = count(1 + max([*made, *(x.number for x in (*program.inputs, *memory.items))]))

    def fresh(like: Value) -> Value:
        return Value(next(numbers), like.kind)

    for operand in (*program.outputs, *memory.last):
        _note(users, operand, None)
    for instruction in walk(program.block):
        reader = instruction if isinstance(instruction, Operation) else None
        for operand in operands_of(instruction):
            _note(users, operand, reader)
    return replace(program, block=_block(program.block, users, fresh))


def is_costly(block: CodeBlock) -> bool:
    """Whether a block takes longer than a branch; a loop not chosen may not even end."""
    return any(
        isinstance(x, While) or (isinstance(x, Operation) and x.name in COSTLY) for x in walk(block)
    )


def zero_of(kind: Kind) -> Operand:
    return constant(0, kind)


def _note(users: _Users, operand: object, reader: Operation | None) -> None:
    if isinstance(operand, Value):
        users.setdefault(operand, []).append(reader)


def _block(block: CodeBlock, users: _Users, fresh: Callable[[Value], Value]) -> CodeBlock:
    for instruction in block.instructions:
        for inner in inner_blocks(instruction):
            inner.instructions = _block(inner, users, fresh).instructions
    selects = [x for x in block.instructions if isinstance(x, Operation) and x.name == "select"]
    for predicate in dict.fromkeys(x.operands[0] for x in selects):
        for side in (0, 1):
            block = _moved(block, predicate, side, users, fresh)
    return block


def _moved(
    block: CodeBlock, predicate: Operand, side: int, users: _Users, fresh: Callable[[Value], Value]
) -> CodeBlock:
    """Move what only `side` of the choices by `predicate` needs into inner blocks."""
    here = {id(x) for x in block.instructions}

    def chosen(reader: Operation, value: Value) -> bool:
        """Whether the reader, of this block, takes the value only where the predicate says so."""
        p, *cases = reader.operands
        wanted = reader.name == "select" and p == predicate and cases[side] == value
        return wanted and cases[1 - side] != value and id(reader) in here

    apart: set[Value] = set()
    for x in reversed(block.instructions):
        if isinstance(x, Operation) and x.out in users and x.out != predicate:
            readers = users[x.out]
            if all(r is not None and (r.out in apart or chosen(r, x.out)) for r in readers):
                apart.add(x.out)
    # What needs a value that comes after the first choice waits for the next round.
    moved: list[Operation] = []
    late: set[Value] = set()
    chosen_once = False
    for x in block.instructions:
        needs = [o for o in operands_of(x) if _is_value(o)]
        if isinstance(x, Operation) and x.out in apart and late.isdisjoint(needs):
            moved.append(x)
            continue
        chosen_once = chosen_once or not apart.isdisjoint(needs)
        if chosen_once:
            late.update(made_by(x))
    if not is_costly(CodeBlock(list(moved))):
        return block
    outs = {x.out for x in moved}
    results = [v for v in outs if any(r is not None and r.out not in outs for r in users[v])]
    rest = _with_choice(block, predicate, side, moved, sorted(results, key=_number), fresh)
    return _moved(rest, predicate, side, users, fresh)


def _with_choice(block, predicate, side, moved, results, fresh) -> CodeBlock:
    names = {value: fresh(value) for value in results}
    done: tuple[Operand, ...] = tuple(results)
    idle: tuple[Operand, ...] = tuple(zero_of(v.kind) for v in results)
    blocks = [CodeBlock(), CodeBlock()]
    blocks[side] = CodeBlock(list(moved))
    choice = Choose(
        predicate,
        tuple(blocks),
        tuple(done if k == side else idle for k in (0, 1)),
        tuple(names[v] for v in results),
    )
    out: list[Instruction] = []
    inside = {id(x) for x in moved}
    # As early as it can be, so that nothing that follows is cut in two by a branch.
    waits = {predicate, *(o for x in moved for o in x.operands)} - {x.out for x in moved}
    waits = {x for x in waits if _is_value(x)} & {
        value for x in block.instructions for value in made_by(x)
    }
    placed = not waits
    if placed:
        out.append(choice)
    for x in block.instructions:
        if id(x) in inside:
            continue
        if isinstance(x, Operation):
            x.operands = tuple(names.get(o, o) if _is_value(o) else o for o in x.operands)
        out.append(x)
        waits.difference_update(made_by(x))
        if not waits and not placed:
            out.append(choice)
            placed = True
    return CodeBlock(out)


def _number(value: Value) -> int:
    return value.number


def _is_value(operand: Operand) -> bool:
    return isinstance(operand, Value)

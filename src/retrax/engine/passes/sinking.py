"""Do the work that only one side of a choice needs only where that side is chosen.

`jnp.where(small, series, closed)` computes both. If what is made for one side alone calls a
function of the C library, it sinks into a block of its own, which runs only if some body, or some
thing along a kept axis, takes that side.
"""

from collections.abc import Callable
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count
from math import inf

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
    operands_of,
    outputs_of,
    walk,
)

# Operations that take longer than a branch.
COSTLY = frozenset(
    "sin cos tan sinh cosh tanh exp exp2 expm1 log log1p power cbrt arcsin arccos arctan "
    "arctan2 arcsinh arccosh arctanh erf erfc nextafter rem".split()
)

# So many others take as long as a branch that goes the wrong way.
_SHORT = 100

_Users = dict[Value, list[Operation | None]]
_Places = dict[Value, tuple[int, Operation]]


def sink(program: Program) -> Program:
    """Move costly sides of choices into blocks of their own."""
    users: _Users = {}
    blocks, memory = (program.block, program.memory.opening), program.memory
    made = [x.number for block in blocks for i in walk(block) for x in outputs_of(i)]
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
    """Return whether a block takes longer than a branch; a loop not chosen may not even end."""
    count = 0
    for x in walk(block):
        if isinstance(x, While) or (isinstance(x, Operation) and x.name in COSTLY):
            return True
        count += 1
    return count > _SHORT


def zero_of(kind: Kind) -> Operand:
    return constant(0, kind)


def _note(users: _Users, operand: object, reader: Operation | None) -> None:
    if isinstance(operand, Value):
        users.setdefault(operand, []).append(reader)


def _block(block: CodeBlock, users: _Users, fresh: Callable[[Value], Value]) -> CodeBlock:
    for instruction in block.instructions:
        for inner in inner_blocks(instruction):
            inner.instructions = _block(inner, users, fresh).instructions
    choices: dict[Operand, list[Operation]] = {}
    for x in block.instructions:
        if isinstance(x, Operation) and x.name == "select":
            choices.setdefault(x.operands[0], []).append(x)
    places = _places(block)
    for predicate, selects in choices.items():
        for side in (0, 1):
            while moved := _costly_side(selects, predicate, side, users, places):
                outs = {x.out for x in moved}
                read_outside = [
                    v for v in outs if any(r is not None and r.out not in outs for r in users[v])
                ]
                results = sorted(read_outside, key=_number)
                block = _with_choice(block, predicate, side, moved, results, users, fresh)
                places = _places(block)
    return block


def _places(block: CodeBlock) -> _Places:
    """Return where in its block each value is made, and by which operation."""
    made = enumerate(block.instructions)
    return {x.out: (k, x) for k, x in made if isinstance(x, Operation)}


def _costly_side(
    selects: list[Operation], predicate: Operand, side: int, users: _Users, places: _Places
) -> list[Operation]:
    """Return what only `side` of the choices by `predicate` needs, if it is worth a branch.

    Goes back from the choices, latest operations first, to what nothing else reads. What comes
    after the first choice may need its outcome, and waits for the next round.
    """

    def is_chosen(reader: Operation, value: Value) -> bool:
        """Return whether the reader, of this block, takes the value only by the predicate."""
        p, *cases = reader.operands
        wanted = reader.name == "select" and p == predicate and cases[side] == value
        here = places.get(reader.out)
        return wanted and cases[1 - side] != value and here is not None and here[1] is reader

    waiting: list[int] = []
    at: dict[int, Operation] = {}

    def consider(operand: Operand) -> None:
        place = places.get(operand) if isinstance(operand, Value) else None
        if place is not None and place[0] not in at and operand != predicate:
            at[place[0]] = place[1]
            heappush(waiting, -place[0])

    for select in selects:
        consider(select.operands[1 + side])
    apart: dict[Value, int] = {}
    first: float = inf
    while waiting:
        k = -heappop(waiting)
        value = at[k].out
        readers = users.get(value, [None])
        if all(r is not None and (r.out in apart or is_chosen(r, value)) for r in readers):
            apart[value] = k
            outside = [places[r.out][0] for r in readers if r is not None and r.out not in apart]
            first = min([first, *outside])
            for operand in at[k].operands:
                consider(operand)
    moved = [at[k] for k in sorted(apart.values()) if k < first]
    return moved if any(x.name in COSTLY for x in moved) else []


def _with_choice(block, predicate, side, moved, results, users, fresh) -> CodeBlock:
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
    inside = {id(x) for x in moved}
    readers = {id(r) for v in results for r in users[v] if r is not None} - inside
    out: list[Instruction] = []
    placed = False
    for x in block.instructions:
        key = id(x)
        if key in inside:
            continue
        if key in readers:
            assert isinstance(x, Operation)
            if not placed:
                out.append(choice)
                placed = True
            x.operands = tuple(names.get(o, o) if _is_value(o) else o for o in x.operands)
        out.append(x)
    return CodeBlock(out)


def _number(value: Value) -> int:
    return value.number


def _is_value(operand: Operand) -> bool:
    return isinstance(operand, Value)

"""Scalar programs: what is left of a step when every small array is taken apart.

A program is a block of instructions on scalars. Most are arithmetic; a few are control flow that
was kept as such: a loop that runs while a condition holds (Newton's method), a loop of known
length (the substeps of a composition), a choice between blocks. Building a program folds
constants, drops additions of zero and multiplications by one, shares equal expressions, and
`live` removes what no result depends on.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from retrax.engine.kinds import Constant, Kind, kind_of_constant


@dataclass(frozen=True, slots=True)
class Value:
    """A scalar computed at run time: an input, or the result of an instruction."""

    number: int
    kind: Kind


Operand = Value | Constant


@dataclass(slots=True)
class Operation:
    """`out = name(*operands)`: one scalar operation."""

    name: str
    operands: tuple[Operand, ...]
    out: Value


@dataclass(slots=True)
class While:
    """Repeat `body` while `test`, the result of `condition`, holds.

    `carried` are the loop's own variables: `initial` before the first round, `updated` after each.
    """

    carried: tuple[Value, ...]
    initial: tuple[Operand, ...]
    condition: "CodeBlock"
    test: Operand
    body: "CodeBlock"
    updated: tuple[Operand, ...]


@dataclass(slots=True)
class Repeat:
    """Run `body` once for each row of constant `tables`; `columns` are its values in a round."""

    carried: tuple[Value, ...]
    initial: tuple[Operand, ...]
    columns: tuple[Value, ...]
    tables: tuple[tuple[Constant, ...], ...]
    body: "CodeBlock"
    updated: tuple[Operand, ...]


@dataclass(slots=True)
class Choose:
    """Run one of `blocks`, the one numbered `index`; `outs` take its `results`.

    `buffers` are those that blocks write and that others read or write too.
    """

    index: Operand
    blocks: tuple["CodeBlock", ...]
    results: tuple[tuple[Operand, ...], ...]
    outs: tuple[Value, ...]
    buffers: tuple["Buffer", ...] = ()


@dataclass(frozen=True, slots=True)
class Buffer:
    """Numbers in memory, one for each of many alike things: nodes of a rod, stages of a step.

    `table` holds them where they are constants.
    """

    number: int
    length: int
    kind: Kind = "float"
    table: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class View:
    """Entries offset, offset + stride, ... of a buffer: `length` of them."""

    buffer: Buffer
    offset: int
    stride: int
    length: int


@dataclass(slots=True)
class LoadEntry:
    """`out` is one entry of a buffer."""

    out: Value
    buffer: Buffer
    index: int


@dataclass(slots=True)
class LoadAt:
    """`out` is the entry of a view at a place found at run time, which lies within it."""

    out: Value
    view: View
    index: Operand


@dataclass(slots=True)
class StoreEntry:
    """One entry of a buffer becomes `operand`."""

    buffer: Buffer
    index: int
    operand: Operand


@dataclass(slots=True)
class StoreAt:
    """The entry of a view at a place found at run time, which lies within it, becomes `operand`."""

    view: View
    index: Operand
    operand: Operand


@dataclass(slots=True)
class Each:
    """Run `body` once for each k: `reads` are its values of views at k, `writes` go to views at k.

    Where nothing is `carried` from one k to the next, and the body stores nothing at places of its
    own, the rounds are independent of each other and may run side by side. No buffer is both read
    and written at k in one loop.
    """

    length: int
    reads: tuple[tuple[Value, View], ...]
    body: "CodeBlock"
    writes: tuple[tuple[View, Operand], ...]
    carried: tuple[Value, ...] = ()
    initial: tuple[Operand, ...] = ()
    updated: tuple[Operand, ...] = ()

    @property
    def in_order(self) -> bool:
        """Whether a round may need what the rounds before it have done."""
        return bool(self.carried) or stores_at(self.body)


Instruction = Operation | While | Repeat | Choose | LoadEntry | LoadAt | StoreEntry | StoreAt | Each


@dataclass(slots=True)
class CodeBlock:
    """Instructions in order."""

    instructions: list[Instruction] = field(default_factory=list)


@dataclass(slots=True)
class Memory:
    """What a step hands to the next one besides the state, such as the forces where it ended.

    A step reads `items`. Before the first step the block `opening` makes them, as `first`; after
    each step they are what it has left in `last`.
    """

    items: tuple[Value | Buffer, ...] = ()
    opening: "CodeBlock" = field(default_factory=lambda: CodeBlock())
    first: tuple[Operand | Buffer, ...] = ()
    last: tuple[Operand | Buffer, ...] = ()


@dataclass(slots=True)
class Program:
    """A function of scalars and buffers: `inputs` to `outputs`.

    An output that is a buffer of the caller's has been written when the block is done.
    """

    inputs: tuple[Value | Buffer, ...]
    outputs: tuple[Operand | Buffer, ...]
    block: CodeBlock
    memory: Memory = field(default_factory=Memory)

    @property
    def has_buffers(self) -> bool:
        """Whether some of its numbers are in memory, one axis of an array kept as a loop.

        Constant tables are not: they belong to the code.
        """
        held = any(isinstance(x, Buffer) for x in (*self.inputs, *self.memory.items))
        return held or any(_touches_memory(x) for x in walk(self.block))

    @property
    def is_large(self) -> bool:
        """Whether the state or the parameters of a body are in memory, along a kept axis."""
        return any(isinstance(x, Buffer) for x in self.inputs)

    def count(self) -> int:
        """Return the number of scalar operations, loop bodies counted once."""
        return sum(1 for instruction in walk(self.block) if isinstance(instruction, Operation))


def _touches_memory(instruction: Instruction) -> bool:
    if isinstance(instruction, LoadAt):
        return instruction.view.buffer.table is None
    return isinstance(instruction, LoadEntry | StoreEntry | StoreAt | Each)


def stores_at(block: CodeBlock) -> bool:
    """Tell whether a block writes at places that are found at run time."""
    return any(isinstance(x, StoreAt) for x in walk(block))


def walk(block: CodeBlock) -> Iterable[Instruction]:
    """Go through all instructions, those of inner blocks before the one that holds them."""
    for instruction in block.instructions:
        for inner in inner_blocks(instruction):
            yield from walk(inner)
        yield instruction


def inner_blocks(instruction: Instruction) -> tuple[CodeBlock, ...]:
    match instruction:
        case While():
            return (instruction.condition, instruction.body)
        case Repeat() | Each():
            return (instruction.body,)
        case Choose():
            return instruction.blocks
    return ()


def outputs_of(instruction: Instruction) -> Sequence[Value]:
    """List the values that an instruction makes, without those of its inner blocks."""
    match instruction:
        case Operation() | LoadEntry() | LoadAt():
            return (instruction.out,)
        case While():
            return instruction.carried
        case Repeat():
            return (*instruction.carried, *instruction.columns)
        case Choose():
            return instruction.outs
        case Each():
            return (*instruction.carried, *(value for value, _ in instruction.reads))
    return ()


def operands_of(instruction: Instruction) -> Sequence[Operand]:
    """List the operands that an instruction reads, without those of its inner blocks."""
    match instruction:
        case Operation(_, operands, _):
            return operands
        case While():
            return (*instruction.initial, *instruction.updated, instruction.test)
        case Repeat():
            tables = (x for row in instruction.tables for x in row)
            return (*instruction.initial, *instruction.updated, *tables)
        case Choose():
            return (instruction.index, *(x for r in instruction.results for x in r))
        case Each():
            written = (x for _, x in instruction.writes)
            return (*instruction.initial, *instruction.updated, *written)
        case StoreEntry():
            return (instruction.operand,)
        case LoadAt():
            return (instruction.index,)
        case StoreAt():
            return (instruction.index, instruction.operand)
    return ()


def free_values(loop: Each) -> list[Value]:
    """List the values that a loop uses and does not make."""
    made = {value for value, _ in loop.reads} | set(loop.carried)
    used: list[Operand] = [x for _, x in loop.writes]
    for instruction in walk(loop.body):
        used += operands_of(instruction)
        made.update(outputs_of(instruction))
    return list(dict.fromkeys(x for x in used if isinstance(x, Value) and x not in made))


def numbers(items: Iterable[Any]) -> list[Any]:
    """Require inputs or outputs without buffers."""
    if any(isinstance(x, Buffer) for x in items):
        raise TypeError("a program with buffers runs natively only")
    return list(items)


def kind_of(operand: Operand) -> Kind:
    return operand.kind if isinstance(operand, Value) else kind_of_constant(operand)

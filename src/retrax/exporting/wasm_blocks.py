"""Write blocks, loops and choices of a program as instructions of WebAssembly."""

import struct
from collections.abc import Sequence

from retrax.engine.kinds import Constant, Kind
from retrax.engine.passes.placement import MemoryPlan
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
    Repeat,
    StoreAt,
    StoreEntry,
    Value,
    View,
    While,
    kind_of,
)
from retrax.exporting.wasm_encoding import F64, I32, Code
from retrax.exporting.wasm_operations import MACHINE, WasmOperations

# Deeper expressions go through a local variable, so that writing them needs no deep recursion.
_DEEPEST = 60


class WasmBlocks:
    """Writes the blocks of a program.

    **Arguments:**

    - `inlined`: values that are computed inside the one expression that uses them.
    - `addresses`: places in memory, in bytes, of buffers that do not lie in scratch memory.
    - `work`: the place of scratch memory; `end`: the first byte that nothing uses.
    - `imports`: the functions that the module calls; those that blocks need are added.
    """

    def __init__(
        self,
        code: Code,
        plan: MemoryPlan,
        inlined: set[Value],
        addresses: dict[Buffer, int],
        work: int,
        end: int,
        imports: list[tuple[str, int]],
    ):
        self.code, self.plan, self.addresses = code, plan, addresses
        self.operations = WasmOperations(code, self.push, imports)
        self.data: list[tuple[int, bytes]] = []
        self.end = end
        self._work, self._inlined = work, inlined
        self._locals: dict[Value, int] = {}
        self._pending: dict[Value, tuple[Operation, int]] = {}

    def local(self, value: Value) -> int:
        """Return the local variable of a value."""
        if value not in self._locals:
            self._locals[value] = self.code.local(self.operations.machine(value.kind))
        return self._locals[value]

    def let(self, value: Value, local: int) -> None:
        self._locals[value] = local

    def push(self, operand: Operand, kind: Kind | None = None) -> None:
        """Leave an operand on the stack."""
        if not isinstance(operand, Value):
            self.operations.constant(operand, kind or kind_of(operand))
        elif operand in self._pending:
            operation, _ = self._pending[operand]
            self.operations.operation(operation.name, operation.operands)
        else:
            self.code.get(self.local(operand))

    def number(self, operand: Operand) -> None:
        """Leave an operand on the stack as a float."""
        kind = kind_of(operand)
        if kind == "float":
            self.push(operand)
        elif not isinstance(operand, Value):
            self.code.f64(float(operand))
        else:
            self.operations.operation("float", [operand])

    def block(self, block: CodeBlock) -> None:
        for instruction in block.instructions:
            self.instruction(instruction)

    def instruction(self, instruction: Instruction) -> None:
        code = self.code
        match instruction:
            case Operation():
                self._operation(instruction)
            case While():
                self._while(instruction)
            case Repeat():
                self._repeat(instruction)
            case Choose():
                self._choose(instruction)
            case Each():
                self._each(instruction)
            case LoadEntry(out, buffer, index):
                code.i32(0)
                code.load(F64, self.address(buffer) + 8 * self.plan.place_of(buffer, index))
                code.set(self.local(out))
            case LoadAt(out, view, index):
                self._address_at(self.plan.view_in_memory(view), index)
                code.load(F64, 0)
                code.set(self.local(out))
            case StoreEntry(buffer, index, operand):
                code.i32(0)
                self.number(operand)
                code.store(self.address(buffer) + 8 * self.plan.place_of(buffer, index))
            case StoreAt(view, index, operand):
                self._address_at(self.plan.view_in_memory(view), index)
                self.number(operand)
                code.store(0)

    def _operation(self, operation: Operation) -> None:
        depth = 1 + max(
            (self._pending[x][1] for x in operation.operands if x in self._pending), default=0
        )
        if operation.out in self._inlined and depth < _DEEPEST:
            self._pending[operation.out] = operation, depth
            return
        self.operations.operation(operation.name, operation.operands)
        self.code.set(self.local(operation.out))

    def update(self, carried: Sequence[Value], updated: Sequence[Operand]) -> None:
        """Assign all at once: everything is on the stack before anything is written."""
        pairs = [(v, x) for v, x in zip(carried, updated, strict=True) if v != x]
        for value, operand in pairs:
            self.push(operand, value.kind)
        for value, _ in reversed(pairs):
            self.code.set(self.local(value))

    def _while(self, loop: While) -> None:
        code = self.code
        self.update(loop.carried, loop.initial)
        code.begin("block")
        code.begin("loop")
        self.block(loop.condition)
        self.push(loop.test, "bool")
        code.op("i32.eqz")
        code.branch(1, conditional=True)
        self.block(loop.body)
        self.update(loop.carried, loop.updated)
        code.branch(0)
        code.op("end")
        code.op("end")

    def _count_rounds(self) -> int:
        """Begin a loop; return the local that counts its rounds in bytes."""
        counter = self.code.local(I32)
        self.code.i32(0)
        self.code.set(counter)
        self.code.begin("loop")
        return counter

    def _again(self, counter: int, length: int) -> None:
        """End a round, and go on if there are more."""
        code = self.code
        code.get(counter)
        code.i32(8)
        code.op("i32.add")
        code.tee(counter)
        code.i32(8 * length)
        code.op("i32.ne")
        code.branch(0, conditional=True)
        code.op("end")

    def _repeat(self, loop: Repeat) -> None:
        code = self.code
        self.update(loop.carried, loop.initial)
        if not loop.tables:
            return
        counter = self._count_rounds()
        for column, values in zip(loop.columns, zip(*loop.tables, strict=True), strict=True):
            code.get(counter)
            code.load(self.operations.machine(column.kind), self._table(values, column.kind))
            code.set(self.local(column))
        self.block(loop.body)
        self.update(loop.carried, loop.updated)
        self._again(counter, len(loop.tables))

    def _table(self, values: Sequence[Constant], kind: Kind) -> int:
        """Put constants in memory, eight bytes each; return where they begin."""
        place = self.end
        form = "<d" if self.operations.machine(kind) == F64 else "<q"
        numbers = [float(x) if form == "<d" else (int(x) + 2**63) % 2**64 - 2**63 for x in values]
        self.data.append((place, b"".join(struct.pack(form, x) for x in numbers)))
        self.end += 8 * len(values)
        return place

    def _choose(self, choice: Choose) -> None:
        code, kind = self.code, kind_of(choice.index)
        last = len(choice.blocks) - 1
        for k, (block, results) in enumerate(zip(choice.blocks, choice.results, strict=True)):
            if k < last:
                self.push(choice.index, kind)
                self.operations.constant(k, kind)
                code.op("i32.eq" if MACHINE[kind] == I32 else "i64.eq")
                code.begin("if")
            self.block(block)
            for value, result in zip(choice.outs, results, strict=True):
                self.push(result, value.kind)
                code.set(self.local(value))
            if k < last:
                code.op("else")
        for _ in range(last):
            code.op("end")

    def _each(self, loop: Each) -> None:
        code = self.code
        self.update(loop.carried, loop.initial)
        if not loop.length:
            return
        counter = self._count_rounds()
        for value, view in loop.reads:
            self._index(counter, self.plan.view_in_memory(view))
            code.load(F64, self._offset(self.plan.view_in_memory(view)))
            code.set(self.local(value))
        self.block(loop.body)
        for view, operand in loop.writes:
            self._index(counter, self.plan.view_in_memory(view))
            self.number(operand)
            code.store(self._offset(self.plan.view_in_memory(view)))
        self.update(loop.carried, loop.updated)
        self._again(counter, loop.length)

    def _index(self, counter: int, view: View) -> None:
        """Leave the address of an entry on the stack, less the offset of its view."""
        code = self.code
        code.get(counter)
        if view.stride != 1:
            code.i32(view.stride)
            code.op("i32.mul")
        if view.stride < 0:  # addresses have no sign: here the offset is added first
            code.i32(self.address(view.buffer) + 8 * view.offset)
            code.op("i32.add")

    def _offset(self, view: View) -> int:
        return 0 if view.stride < 0 else self.address(view.buffer) + 8 * view.offset

    def _address_at(self, view: View, index: Operand) -> None:
        """Leave the address of the entry at a place found at run time on the stack."""
        code = self.code
        self.push(index, "int")
        if not isinstance(index, Value) or MACHINE[kind_of(index)] != I32:
            code.op("i32.wrap_i64")
        code.i32(8 * view.stride)
        code.op("i32.mul")
        code.i32(self.address(view.buffer) + 8 * view.offset)
        code.op("i32.add")

    def address(self, buffer: Buffer) -> int:
        """Return the first byte of a buffer."""
        if buffer in self.addresses:
            return self.addresses[buffer]
        if buffer.table is not None:
            self.addresses[buffer] = self._table(buffer.table, "float")
            return self.addresses[buffer]
        if buffer in self.plan.within:
            result, first = self.plan.within[buffer]
            return self.address(result) + 8 * first
        return self._work + 8 * self.plan.offsets[buffer]

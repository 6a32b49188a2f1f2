"""The memory of a body while it moves: its buffers, found at the start, left to the caller.

Numbers live in registers; buffers stay in memory from step to step. Those that are stored in
columns (`passes.placement`) are copied from the caller's order at the start, and back where a state
is saved and at the end. What a step hands to the next one goes to the caller with each state.
A step makes new buffers beside the old ones, since it may fail; then the two change places.
"""

from collections.abc import Sequence
from itertools import count
from typing import ClassVar

from retrax.engine.llvm.blocks import BlockPrinter
from retrax.engine.passes.placement import LINE, MemoryPlan, widths
from retrax.engine.program import (
    Buffer,
    CodeBlock,
    Each,
    Operand,
    Program,
    Value,
    View,
    numbers,
)
from retrax.engine.progress import StepInputs, length, places


class StepPorts:
    """What the program of a step takes and makes, by what it is for."""

    def __init__(self, program: Program, inputs: StepInputs):
        self.params, self.state, self.h = inputs.split(program.inputs)
        self.info: Sequence[Operand] = numbers(program.outputs[inputs.state : -1])
        (self.finite,) = numbers(program.outputs[-1:])
        self.time: Value = self.state[-1]
        self.size = sum(length(x) for x in self.state)
        new = program.outputs[: inputs.state]
        self.numbers: list[tuple[int, Value]] = [
            (k, x) for k, x in places(self.state[:-1]) if isinstance(x, Value)
        ]
        self.buffers: list[tuple[int, Buffer]] = [
            (k, x) for k, x in places(self.state) if isinstance(x, Buffer)
        ]
        memory = self.memory = program.memory
        self.memory_numbers: list[tuple[int, Value]] = [
            (k, x) for k, x in places(memory.items) if isinstance(x, Value)
        ]
        self.memory_buffers: list[tuple[int, Buffer]] = [
            (k, x) for k, x in places(memory.items) if isinstance(x, Buffer)
        ]
        # Numbers that go from step to step in registers, and what a step makes of them.
        self.carried = [value for _, value in (*self.numbers, *self.memory_numbers)]
        self.new_numbers: list[Operand] = [
            x for x in (*new[:-1], *memory.last) if not isinstance(x, Buffer)
        ]
        # Buffers that the next step reads, and where a step, or the opening, has made them.
        self.renewed = _buffers((*self.state, *memory.items), (*new, *memory.last))
        assert len({x for pair in self.renewed for x in pair}) == 2 * len(self.renewed)
        self.opened = _buffers(memory.items, memory.first)
        self.given = [x for x in (*self.params, *self.state) if isinstance(x, Buffer)]


def _buffers(old: Sequence[object], new: Sequence[object]) -> list[tuple[Buffer, Buffer]]:
    pairs = zip(old, new, strict=True)
    return [(a, b) for a, b in pairs if isinstance(a, Buffer) and isinstance(b, Buffer)]


class PlannedStep:
    """The plan of a step's memory, and its blocks with what the plan has made of them."""

    def __init__(self, program: Program, step: StepPorts):
        self.plan = plan = MemoryPlan(widths(program, (*step.renewed, *step.opened)))
        for buffer in step.given:
            if buffer in plan.widths:
                plan.reserve(buffer)
        memory, remembered = step.memory, [buffer for _, buffer in step.memory_buffers]
        for buffer in remembered:
            plan.reserve(buffer)
        given = (*step.given, *remembered)
        self.opening = plan.place(memory.opening, memory.first, given)
        self.block = plan.place(program.block, (*program.outputs, *memory.last), given)
        self.used = program.has_buffers


class BodyMemory:
    """Prints how the buffers of a body are found, saved, renewed and left to the caller.

    What a step has made takes the place of what it was made from: where `swaps`, the two change
    places, or else it is copied.
    """

    swaps: ClassVar[bool] = True

    def __init__(self, printer: BlockPrinter, step: StepPorts, planned: PlannedStep):
        self.printer, self.step, self.planned = printer, step, planned
        self.out, self.access, self.plan = printer.out, printer.buffers, planned.plan
        # Where the caller has the numbers of buffers that are stored in columns, in his order.
        self._callers: dict[Buffer, Buffer] = {}
        # Where buffers begin that are at the caller's.
        self._homes: dict[Buffer, str] = {}
        self._numbering = count(-1, -1)

    def find(self) -> None:
        """Find buffers of the caller where the caller has them, all others in scratch memory."""
        out = self.out
        if self.planned.used:
            self._find_scratch()
        for array, items in self.arrays():
            for place, buffer in places(items):
                if isinstance(buffer, Buffer):
                    where = out.let(f"getelementptr double, ptr %{array}, i64 {place}")
                    self._find_buffer(buffer, where)
        for place, buffer in self.step.memory_buffers:
            row = place if out.lanes == 1 else out.let(f"mul i64 {place}, %stride")
            where = out.let(f"getelementptr double, ptr %memory, i64 {row}")
            self._callers[buffer] = self._elsewhere(buffer, where)
            self.access.addresses[buffer] = self.access.scratch(buffer, "row")

    def arrays(self) -> tuple[tuple[str, Sequence[Value | Buffer]], ...]:
        """Return arrays of the caller's whose buffers stay where they are, and what is in them."""
        return ("params", self.step.params), ("state", self.step.state)

    def _find_scratch(self) -> None:
        """Take scratch memory from the heap; it begins with a cache line."""
        out = self.out
        out.declarations |= {"declare ptr @malloc(i64)", "declare void @free(ptr)"}
        out.declarations.add("declare ptr @llvm.ptrmask.p0.i64(ptr, i64)")
        size = self.plan.size * out.lanes + LINE
        out.line(f"%heap = call ptr @malloc(i64 {8 * size})")
        end = out.let(f"getelementptr double, ptr %heap, i64 {LINE - 1}")
        out.line(f"%scratch = call ptr @llvm.ptrmask.p0.i64(ptr {end}, i64 {-8 * LINE})")

    def _leave_scratch(self) -> None:
        self.out.line("call void @free(ptr %heap)")

    def _return(self, result: str) -> None:
        self.out.line(f"ret i64 {result}")

    def _find_buffer(self, buffer: Buffer, address: str) -> None:
        if buffer not in self.plan.widths:
            self.access.addresses[buffer] = self._homes[buffer] = address
            return
        callers = self._callers[buffer] = self._elsewhere(buffer, address)
        self.access.addresses[buffer] = self.access.scratch(buffer, "row")
        self._rearrange(callers, buffer)

    def open(self, time: str) -> list[str]:
        """Make the memory of the first step, at the time in a register.

        Its buffers go to the caller; its numbers are in the registers that come back.
        """
        step, out = self.step, self.out
        outside = dict(out.renamed)
        out.renamed |= {value: f"%start.{value.number}" for _, value in step.numbers}
        out.renamed[step.time] = time
        self.printer.block(self.planned.opening)
        numbers = [out.name(x, "float") for x in step.memory.first if not isinstance(x, Buffer)]
        out.renamed = outside
        for buffer, first in step.opened:
            self._copy(first, self._callers[buffer])
        return numbers

    def take_up(self) -> None:
        """Copy the buffers of the memory from the caller."""
        for _, buffer in self.step.memory_buffers:
            self._copy(self._callers[buffer], buffer)

    def hand_over(self) -> None:
        """Copy the buffers of the memory to the caller."""
        for _, buffer in self.step.memory_buffers:
            self._copy(buffer, self._callers[buffer])

    def save(self, buffer: Buffer, target: str) -> None:
        """Write a buffer in the order of the caller to an address."""
        self._copy(buffer, self._elsewhere(buffer, target))

    def renew(self) -> None:
        """Give the next step what this one has made, unless both change places."""
        if self.swaps:
            return
        for buffer, new in self.step.renewed:
            whole = buffer.length if buffer not in self.plan.widths else self.plan.extent(buffer)
            self.access.copy(self.access.addresses[buffer], self.access.address(new), whole)

    def pairs(self) -> list[tuple[str, str]]:
        """Return where the first step's buffers, and the ones it makes, begin, if they swap."""
        places = self.access.addresses
        return [(places[a], self.access.address(b)) for a, b in self.step.renewed if self.swaps]

    def stand(self, old: str, new: str) -> None:
        """Let the buffers of a step, and those that it makes, begin where these registers say."""
        if self.swaps:
            for k, (buffer, made) in enumerate(self.step.renewed):
                self.access.addresses[buffer] = f"%{old}.{k}"
                self.access.addresses[made] = f"%{new}.{k}"

    def leave(self, result: str) -> None:
        """Return `result`, with the buffers in the order of the caller."""
        for _, buffer in self.step.buffers:
            if buffer in self._callers:
                self._rearrange(buffer, self._callers[buffer])
            elif self.swaps:
                where = self.access.addresses[buffer]
                self.access.copy(self._homes[buffer], where, buffer.length)
        if self.planned.used:
            self._leave_scratch()
        self._return(result)

    def _elsewhere(self, buffer: Buffer, address: str) -> Buffer:
        """Return a buffer of the same length in the order of the caller, at an address."""
        other = Buffer(next(self._numbering), buffer.length, buffer.kind)
        self.access.addresses[other] = address
        if self.access.bodies > 1:
            self.access.rows.add(other)
        return other

    def _copy(self, source: Buffer, target: Buffer) -> None:
        """Copy a buffer to one of the same length, each in the order in which it is stored."""
        stored_alike = source not in self.plan.widths and target not in self.plan.widths
        if not stored_alike or self.access.bodies > 1:
            self._rearrange(source, target)
        else:
            access = self.access
            access.copy(access.address(target), access.address(source), source.length)

    def _rearrange(self, source: Buffer, target: Buffer) -> None:
        """Copy a buffer to one that is stored in another order."""
        widths = self.plan.widths
        width = widths.get(source) or widths.get(target, 1)
        columns = [(c, width, source.length // width) for c in range(width)]
        values = [Value(next(self._numbering), "float") for _ in columns]
        reads = tuple((v, View(source, *c)) for v, c in zip(values, columns, strict=True))
        writes = tuple((View(target, *c), v) for v, c in zip(values, columns, strict=True))
        self.out.renamed |= {v: f"%{self.out.fresh('moved')}" for v in values}
        self.printer.instruction(Each(source.length // width, reads, CodeBlock(), writes))

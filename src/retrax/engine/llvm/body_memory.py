"""The memory of a body while it moves: its buffers, found at the start, left to the caller.

Numbers of the state live in registers; buffers stay in memory from step to step. Those that are
stored in columns (`passes.placement`) are copied from the caller's order at the start, and back
where a state is saved and at the end.
"""

from collections.abc import Sequence
from itertools import count

from retrax.engine.llvm.blocks import BlockPrinter
from retrax.engine.passes.placement import LINE, MemoryPlan, widths
from retrax.engine.program import (
    Buffer,
    CodeBlock,
    Each,
    Memory,
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
        self.new_numbers: list[Operand] = [x for x in new[:-1] if not isinstance(x, Buffer)]
        self.buffers: list[tuple[int, Buffer]] = [
            (k, x) for k, x in places(self.state) if isinstance(x, Buffer)
        ]
        self.memory = program.memory or Memory((), CodeBlock(), (), ())
        news = [x for x in new if isinstance(x, Buffer)]
        moved = zip((buffer for _, buffer in self.buffers), news, strict=True)
        # Buffers that the next step reads, and where a step, or the opening, has made them.
        remembered = zip(self.memory.buffers, self.memory.last, strict=True)
        self.renewed: list[tuple[Buffer, Buffer]] = [*moved, *remembered]
        self.opened: list[tuple[Buffer, Buffer]] = list(
            zip(self.memory.buffers, self.memory.first, strict=True)
        )
        self.given = [x for x in (*self.params, *self.state) if isinstance(x, Buffer)]


class PlannedStep:
    """The plan of a step's memory, and its blocks with what the plan has made of them."""

    def __init__(self, program: Program, step: StepPorts):
        self.plan = plan = MemoryPlan(widths(program, (*step.renewed, *step.opened)))
        for buffer in step.given:
            if buffer in plan.widths:
                plan.reserve(buffer)
        memory = step.memory
        for buffer in memory.buffers:
            plan.reserve(buffer)
        given = (*step.given, *memory.buffers)
        self.opening = plan.place(memory.opening, memory.first, given)
        self.block = plan.place(program.block, (*program.outputs, *memory.last), given)
        self.used = program.has_buffers


class BodyMemory:
    """Prints how the buffers of a body are found, saved, renewed and left to the caller."""

    def __init__(self, printer: BlockPrinter, step: StepPorts, planned: PlannedStep):
        self.printer, self.step, self.planned = printer, step, planned
        self.out, self.access, self.plan = printer.out, printer.buffers, planned.plan
        # Where the caller has the numbers of buffers that are stored in columns, in his order.
        self._callers: dict[Buffer, Buffer] = {}
        self._numbering = count(-1, -1)

    def find(self) -> None:
        """Buffers of the caller are where the caller has them, all others in scratch memory."""
        out = self.out
        if self.planned.used:
            out.declarations |= {"declare ptr @malloc(i64)", "declare void @free(ptr)"}
            out.declarations.add("declare ptr @llvm.ptrmask.p0.i64(ptr, i64)")
            # The scratch memory begins with a cache line.
            out.line(f"%memory = call ptr @malloc(i64 {8 * (self.plan.size + LINE)})")
            end = out.let(f"getelementptr double, ptr %memory, i64 {LINE - 1}")
            out.line(f"%scratch = call ptr @llvm.ptrmask.p0.i64(ptr {end}, i64 {-8 * LINE})")
        for array, items in (("params", self.step.params), ("state", self.step.state)):
            for place, buffer in places(items):
                if isinstance(buffer, Buffer):
                    where = out.let(f"getelementptr double, ptr %{array}, i64 {place}")
                    self._find_buffer(buffer, where)

    def _find_buffer(self, buffer: Buffer, address: str) -> None:
        if buffer not in self.plan.widths:
            self.access.addresses[buffer] = address
            return
        callers = self._callers[buffer] = self._elsewhere(buffer, address)
        self.access.addresses[buffer] = self.access.scratch(buffer, "row")
        self._rearrange(callers, buffer)

    def open(self, time: str) -> None:
        """Make what the first step remembers, at the time in a register."""
        step, out, access = self.step, self.out, self.access
        for buffer in step.memory.buffers:
            access.addresses[buffer] = access.scratch(buffer, "row")
        outside = dict(out.renamed)
        out.renamed |= {value: f"%start.{value.number}" for _, value in step.numbers}
        out.renamed[step.time] = time
        self.printer.block(self.planned.opening)
        out.renamed = outside
        for buffer, first in step.opened:
            access.copy(access.addresses[buffer], access.address(first), self.plan.extent(buffer))

    def save(self, buffer: Buffer, target: str) -> None:
        """Write a buffer in the order of the caller to an address."""
        if buffer in self._callers:
            self._rearrange(buffer, self._elsewhere(buffer, target))
        else:
            self.access.copy(target, self.access.addresses[buffer], buffer.length)

    def renew(self) -> None:
        """Give the next step what this one has made."""
        for buffer, new in self.step.renewed:
            whole = buffer.length if buffer not in self.plan.widths else self.plan.extent(buffer)
            self.access.copy(self.access.addresses[buffer], self.access.address(new), whole)

    def leave(self, result: str) -> None:
        """Return `result`, with the buffers in the order of the caller."""
        for _, buffer in self.step.buffers:
            if buffer in self._callers:
                self._rearrange(buffer, self._callers[buffer])
        if self.planned.used:
            self.out.line("call void @free(ptr %memory)")
        self.out.line(f"ret i64 {result}")

    def _elsewhere(self, buffer: Buffer, address: str) -> Buffer:
        """A buffer of the same length in the order of the caller, at an address."""
        other = Buffer(next(self._numbering), buffer.length, buffer.kind)
        self.access.addresses[other] = address
        return other

    def _rearrange(self, source: Buffer, target: Buffer) -> None:
        """Copy a buffer to one that is stored in another order."""
        widths = self.plan.widths
        width = widths.get(source) or widths[target]
        columns = [(c, width, source.length // width) for c in range(width)]
        values = [Value(next(self._numbering), "float") for _ in columns]
        reads = tuple((v, View(source, *c)) for v, c in zip(values, columns, strict=True))
        writes = tuple((View(target, *c), v) for v, c in zip(values, columns, strict=True))
        self.out.renamed |= {v: f"%{self.out.fresh('moved')}" for v in values}
        self.printer.instruction(Each(source.length // width, reads, CodeBlock(), writes))

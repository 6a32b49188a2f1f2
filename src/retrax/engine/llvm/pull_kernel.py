"""The loop of a pullback: from the cotangents at the end of a stretch of steps to its start.

`run` has the arguments of a time loop, of which some mean something else here:

    params  [P][members]              parameters, as in a time loop
    state   [L + 1][members]          what is carried, and the time at which the run started
    memory  [steps][S][members]       the states before each step, their times left aside
    out     [records][C][members]     what is added to the cotangents at the end of each record

The stretch has `records` times `every` steps, the first of them number `start`; the last one comes
first. `run` returns 0, or 1 where the number at `flag` told it to stop.
"""

from dataclasses import replace
from itertools import chain
from typing import ClassVar

from retrax.engine.derivative_programs import PullInputs
from retrax.engine.llvm.blocks import BlockPrinter
from retrax.engine.llvm.body_memory import BodyMemory, PlannedStep, StepPorts
from retrax.engine.llvm.emitter import Emitter
from retrax.engine.llvm.kernel import TimeLoop
from retrax.engine.llvm.memory import BufferAccess
from retrax.engine.program import Buffer, CodeBlock, Each, Operation, Program, Value, View
from retrax.engine.progress import Packing, StepInputs, length, places


def assemble_pull(program: Program, inputs: PullInputs, lanes: int, shared: bool) -> str:
    """Make the LLVM module with the function `run` of a pullback, for blocks of `lanes` bodies."""
    return PullLoop(program, inputs, lanes, shared).module()


class PullLoop(TimeLoop):
    """The template of a kernel that goes backwards, with the program of a pullback in it."""

    def __init__(self, program: Program, inputs: PullInputs, lanes: int, shared: bool):
        first, last = inputs.params, inputs.params + inputs.point
        self.point = program.inputs[first:last]
        self.own = program.inputs[:first]
        # As a step: of the point as a parameter, and with the time that nothing is made of.
        time = program.inputs[last + inputs.carried]
        whole = replace(program, outputs=(*program.outputs, time, True))
        ports = StepInputs(last, inputs.carried + 1, Packing(()))
        self.out, self.shared = Emitter(lanes), shared
        self.step = StepPorts(whole, ports)
        self.planned = PlannedStep(whole, self.step)
        self.width = sum(map(length, self.point))
        # Cotangents come first among what is carried, in the order of the point.
        self.sources = dict(places(self.step.state[: inputs.point]))
        self.sums = {x: self._sum(x) for x in self.sources.values() if isinstance(x, Buffer)}
        access = BufferAccess(self.out, self.planned.plan)
        self.printer = BlockPrinter(self.out, access, self._goes_on)
        self.memory = _PullMemory(self.printer, self.step, self.planned, self.own)
        self.vector = self.out.type("float")

    def _sum(self, buffer: Buffer) -> Buffer:
        """Return a place for the sum of a carried buffer and what is added to it."""
        plan = self.planned.plan
        other = Buffer(-1_000_000 - buffer.number, buffer.length)
        if buffer in plan.widths:
            plan.widths = {**plan.widths, other: plan.widths[buffer]}
        plan.reserve(other)
        return other

    def _entry(self) -> None:
        out = self.out
        out.begin("entry")
        self.memory.find()
        for place, value in places(self.own):
            if isinstance(value, Value):
                self._parameter(place, value)
        for place, value in self.step.numbers:
            self._load(f"%start.{value.number}", "state", place)
        h = out.copy(out.splat("%h", "float"), "float")
        out.line(f"{out.name(self.step.h)} = {h}")
        self._load("%t0", "state", self.step.size - 1)
        out.line("%steps = mul i64 %records, %every")
        out.line("br label %ready")
        out.begin("ready")
        out.line("br label %records.head")

    def _records(self) -> None:
        """Print the loop over records, the last one first: add what belongs to its end, go back."""
        out = self.out
        out.begin("records.head")
        out.line("%left = phi i64 [ %records, %ready ], [ %record, %gone ]")
        out.line("%k.record = phi i64 [ %steps, %ready ], [ %k.step, %gone ]")
        for value in self.step.carried:
            start, here = f"%start.{value.number}", out.name(value)
            self._merge(f"at.{value.number}", "float", (start, "ready"), (here, "gone"))
        out.line("%more.records = icmp sgt i64 %left, 0")
        out.line("br i1 %more.records, label %add, label %finish")
        out.begin("add")
        out.line("%record = sub i64 %left, 1")
        added = self._add_cotangents()
        out.line("br label %added")
        out.begin("added")
        out.line("br label %steps.head")
        self._back(added)
        out.begin("gone")
        out.line("br label %records.head")
        out.begin("finish")
        for place, value in self.step.numbers:
            self._store(f"%at.{value.number}", "state", str(place))
        self.memory.leave("0")
        out.begin("told")
        self.memory.leave("1")

    def _add_cotangents(self) -> dict[Value, str]:
        """Return cotangents with what is added to them at the end of a record."""
        out, registers = self.out, {}
        first = out.let(f"mul i64 %record, {self.width}")
        for place, item in self.sources.items():
            row = out.let(f"add i64 {first}, {place}")
            if isinstance(item, Value):
                more = self._load(f"%{out.fresh('more')}", "out", row)
                here = f"%at.{item.number}"
                registers[item] = out.let(f"fadd {self.vector} {here}, {more}")
            else:
                self.memory.add(item, self._place("out", row), self.sums[item])
        return registers

    def _back(self, added: dict[Value, str]) -> None:
        """Print the loop over the steps of a record, the last one first."""
        out, head, latch = self.out, "added", "step.next"
        out.begin("steps.head")
        out.line(f"%j = phi i64 [ %every, %{head} ], [ %j.next, %{latch} ]")
        out.line(f"%k.step = phi i64 [ %k.record, %{head} ], [ %k.next, %{latch} ]")
        for value, new in zip(self.step.carried, self.step.new_numbers, strict=True):
            at = added.get(value, f"%at.{value.number}")
            end = out.name(new, "float")
            self._merge(out.name(value)[1:], "float", (at, head), (end, latch))
        out.line("%more.steps = icmp sgt i64 %j, 0")
        out.line("br i1 %more.steps, label %step, label %gone")
        out.begin("step")
        out.line("%j.next = sub i64 %j, 1")
        out.line("%k.next = sub i64 %k.step, 1")
        time = self._time(out.let("add i64 %start, %k.next"))
        out.line(f"{out.name(self.step.time)} = {out.copy(time, 'float')}")
        first = out.let(f"mul i64 %k.next, {self.width + 1}")
        for place, item in places(self.point):
            row = out.let(f"add i64 {first}, {place}")
            if isinstance(item, Value):
                self._load(out.name(item), "memory", row)
            else:
                self.memory.arrive(item, self._place("memory", row))
        self.printer.block(self.planned.block)
        self.memory.renew()
        out.line(f"br label %{latch}")
        out.begin(latch)
        out.line(f"br i1 {self._stop_signal()}, label %told, label %steps.head, !prof !0")


class _PullMemory(BodyMemory):
    """The memory of a body that goes back: another point is in it in every step.

    Cotangents are added to buffers between steps, so these stay where they are.
    """

    swaps: ClassVar[bool] = False

    def __init__(
        self,
        printer: BlockPrinter,
        step: StepPorts,
        planned: PlannedStep,
        own: tuple[Value | Buffer, ...],
    ):
        super().__init__(printer, step, planned)
        self.own = own

    def arrays(self) -> tuple:
        return ("params", self.own), ("state", self.step.state)

    def arrive(self, buffer: Buffer, where: str) -> None:
        """Have a buffer of the point where the caller has it for this step."""
        self._find_buffer(buffer, where)

    def add(self, buffer: Buffer, more: str, total: Buffer) -> None:
        """Add what the caller has at an address to a buffer."""
        other = self._elsewhere(buffer, more)
        width = self.plan.widths.get(buffer, 1)
        columns = [(c, width, buffer.length // width) for c in range(width)]
        here, there, both = (
            [Value(next(self._numbering), "float") for _ in columns] for _ in "abc"
        )
        self.out.renamed |= {v: f"%{self.out.fresh('sum')}" for v in chain(here, there, both)}
        reads = [(v, View(buffer, *c)) for v, c in zip(here, columns, strict=True)]
        reads += [(v, View(other, *c)) for v, c in zip(there, columns, strict=True)]
        body = CodeBlock(
            [Operation("add", (a, b), c) for a, b, c in zip(here, there, both, strict=True)]
        )
        writes = tuple((View(total, *c), v) for v, c in zip(both, columns, strict=True))
        self.printer.instruction(Each(buffer.length // width, tuple(reads), body, writes))
        self._copy(total, buffer)

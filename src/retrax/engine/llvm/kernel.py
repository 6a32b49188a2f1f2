"""The time loop around a step, as an LLVM function.

`run` takes bodies through `records` times `every` steps. In memory every quantity of a body is a
row and the bodies are columns, `lanes` of them to a block:

    params [P][members], state [S][members], memory [M][members], out [records][S][members], ...

The last row of `state` is the time at which a body started; its own time is that plus k h. Where
all bodies share their parameters, `params` is one column. A body with buffers, of which an axis is
kept, fills a block by itself: then `members` is 1, and its buffers stay in memory while it moves,
those of several columns in another order: see `passes.placement`.

In `memory` is what the step before the last saved state hands to the next one. Where `open` is not
zero, `run` makes it from the state before it takes the first step.

The number at `flag` is looked at after every step. Where it is not zero `run` returns how many
records it has filled; only these count then, and `memory`.
"""

from retrax.engine.kinds import Kind
from retrax.engine.llvm.blocks import BlockPrinter, short_axes
from retrax.engine.llvm.body_memory import BodyMemory, PlannedStep, StepPorts
from retrax.engine.llvm.emitter import Emitter
from retrax.engine.llvm.memory import BufferAccess
from retrax.engine.program import Operand, Program, Value, kind_of
from retrax.engine.progress import FAILURE, INTERVAL, StepInputs, places
from retrax.integrators.base import StepInfo

HEADER = (
    "define internal i64 @block(ptr noalias %params, ptr noalias %state, ptr noalias %memory, "
    "ptr noalias %out, ptr noalias %interval, ptr noalias %failure, double %h, i64 %start, "
    "i64 %records, i64 %every, i64 %stride, i64 %open, ptr %flag)"
)

ATTRIBUTES = (
    # Without this LLVM halves vectors of eight on processors that have them.
    'attributes #0 = { "min-legal-vector-width"="512" "prefer-vector-width"="512" }',
    '!0 = !{!"branch_weights", i32 1, i32 1000000}',
)


def assemble(program: Program, inputs: StepInputs, lanes: int, shared: bool) -> str:
    """Return the LLVM module with the function `run` for blocks of `lanes` bodies.

    `shared` says whether all bodies have the same parameters.
    """
    return TimeLoop(program, inputs, lanes, shared).module()


class TimeLoop:
    """The template of a kernel, with the program of a step in its middle."""

    def __init__(self, program: Program, inputs: StepInputs, lanes: int, shared: bool):
        self.out, self.shared = Emitter(lanes), shared
        self.step = StepPorts(program, inputs)
        self.planned = PlannedStep(program, self.step)
        self.printer, self.memory = self._printers()
        self.printer.short = short_axes(program)
        self.vector = self.out.type("float")

    def _printers(self) -> tuple[BlockPrinter, BodyMemory]:
        """Return the printer of the blocks of the program, and the memory of a body."""
        access = BufferAccess(self.out, self.planned.plan)
        printer = BlockPrinter(self.out, access, self._goes_on)
        return printer, BodyMemory(printer, self.step, self.planned)

    def module(self) -> str:
        """Return the text of the whole module."""
        out = self.out
        self._entry()
        self._records()
        parts = [
            *out.globals,
            *sorted(out.declarations),
            f"{HEADER} #0 {{",
            *out.lines,
            "}",
            self._blocks(),
            *ATTRIBUTES,
        ]
        return "\n".join(parts)

    def _entry(self) -> None:
        """Find the body in memory: its parameters, its state, whether it has failed before."""
        out = self.out
        out.begin("entry")
        self.memory.find()
        for place, value in places(self.step.params):
            if isinstance(value, Value):
                self._parameter(place, value)
        for place, value in self.step.numbers:
            self._load(f"%start.{value.number}", "state", place)
        h = out.copy(out.splat("%h", "float"), "float")
        out.line(f"{out.name(self.step.h)} = {h}")
        self._load("%t0", "state", self.step.size - 1)
        self._take_up_memory()
        # A body that has failed before stays where it is.
        failed_at = self._load("%failed.at", "failure", 0)
        out.line(f"%alive.start = fcmp uno {self.vector} {failed_at}, {failed_at}")
        self._pairs = self.memory.pairs()
        out.line("br label %ready")
        out.begin("ready")
        out.line("br label %records.head")

    def _take_up_memory(self) -> None:
        """Have the memory of the first step made, if the caller has none; then take it up."""
        out, step = self.out, self.step
        if not step.memory.items:
            return
        out.line(f"br i1 {out.let('icmp ne i64 %open, 0')}, label %opening, label %opened")
        out.begin("opening")
        made = self.memory.open(self._time("%start"))
        for (place, _), register in zip(step.memory_numbers, made, strict=True):
            self._store(register, "memory", str(place))
        out.line("br label %opened")
        out.begin("opened")
        for place, value in step.memory_numbers:
            self._load(f"%start.{value.number}", "memory", place)
        self.memory.take_up()

    def _records(self) -> None:
        """Print the loop over records: take `every` steps, then save.

        The registers of the state are `at` here, the step's own inputs inside the loop over steps.
        """
        out = self.out
        out.begin("records.head")
        out.line("%record = phi i64 [ 0, %ready ], [ %record.next, %saved ]")
        out.line("%k.record = phi i64 [ %start, %ready ], [ %k.step, %saved ]")
        self._merge("alive.record", "bool", ("%alive.start", "ready"), ("%alive", "saved"))
        for value in self.step.carried:
            start, step = f"%start.{value.number}", out.name(value)
            self._merge(f"at.{value.number}", "float", (start, "ready"), (step, "saved"))
        for k, (old, new) in enumerate(self._pairs):
            out.line(f"%rows.{k} = phi ptr [ {old}, %ready ], [ %now.{k}, %saved ]")
            out.line(f"%spares.{k} = phi ptr [ {new}, %ready ], [ %spare.{k}, %saved ]")
        out.line("%more.records = icmp slt i64 %record, %records")
        out.line("br i1 %more.records, label %steps.head, label %finish")
        self._steps()
        out.begin("save")
        first = self._first_row(self.step.size)
        for place, value in self.step.numbers:
            self._store(out.name(value), "out", out.let(f"add i64 {first}, {place}"))
        for place, buffer in self.step.buffers:
            target = self._place("out", out.let(f"add i64 {first}, {place}"))
            self.memory.save(buffer, target)
        for place, value in self.step.memory_numbers:
            self._store(out.name(value), "memory", str(place))
        self.memory.hand_over()
        time = self._time("%k.step")
        self._store(time, "out", out.let(f"add i64 {first}, {self.step.size - 1}"))
        first = self._first_row(len(INTERVAL))
        for i, name in enumerate(INTERVAL):
            self._store(f"%{name}", "interval", out.let(f"add i64 {first}, {i}"))
        out.line("%record.next = add i64 %record, 1")
        out.line("br label %saved")
        out.begin("saved")
        out.line("br label %records.head")
        out.begin("finish")
        self.memory.stand("rows", "spares")
        for place, value in self.step.numbers:
            self._store(f"%at.{value.number}", "state", str(place))
        self.memory.leave("%record")

    def _steps(self) -> None:
        """Print the loop over the steps of a record, with the program of a step inside."""
        out = self.out
        out.begin("steps.head")
        head, latch = "records.head", "step.next"
        out.line(f"%j = phi i64 [ 0, %{head} ], [ %j.next, %{latch} ]")
        out.line(f"%k.step = phi i64 [ %k.record, %{head} ], [ %k.next, %{latch} ]")
        self._merge("alive", "bool", ("%alive.record", head), ("%alive.next", latch))
        for value in self.step.carried:
            at, new = f"%at.{value.number}", f"%next.{value.number}"
            self._merge(out.name(value)[1:], "float", (at, head), (new, latch))
        for name in INTERVAL:
            self._merge(name, "float", (self._since(name), head), (f"%{name}.next", latch))
        for k in range(len(self._pairs)):
            out.line(f"%now.{k} = phi ptr [ %rows.{k}, %{head} ], [ %spare.{k}, %{latch} ]")
            out.line(f"%spare.{k} = phi ptr [ %spares.{k}, %{head} ], [ %now.{k}, %{latch} ]")
        self.memory.stand("now", "spare")
        out.line("%more.steps = icmp slt i64 %j, %every")
        out.line("br i1 %more.steps, label %step, label %save")
        out.begin("step")
        out.line(f"{out.name(self.step.time)} = {out.copy(self._time('%k.step'), 'float')}")
        self.printer.active = "%alive"
        self.printer.block(self.planned.block)
        self._judge()

    def _judge(self) -> None:
        """Move the body by a good step; write a bad one down and leave the body where it is.

        Where all bodies of the block took a good step, as they nearly always do, nothing is
        selected and the next step need not wait for the verdict.
        """
        out = self.out
        b, v = out.type("bool"), self.vector
        names = dict(zip(StepInfo._fields, self.step.info, strict=True))
        conditions = (self._truth(names["in_chart"]), self._truth(self.step.finite), "%alive")
        good = self._truth(names["converged"])
        for condition in conditions:
            good = out.let(f"and {b} {good}, {condition}", "good")
        number = {name: self._number(value) for name, value in names.items()}
        pairs = list(zip(self.step.carried, self.step.new_numbers, strict=True))
        moved = {f"next.{old.number}": out.name(new, "float") for old, new in pairs}
        moved["iterations.next"] = out.let(f"fadd {v} %iterations, {number['iterations']}")
        for name in ("residual", "increment"):
            exceeds = out.let(f"fcmp ogt {v} {number[name]}, %{name}")
            larger = out.let(f"select {b} {exceeds}, {v} {number[name]}, {v} %{name}")
            moved[f"{name}.next"] = larger
        stayed = {f"next.{old.number}": out.name(old) for old in self.step.carried}
        stayed |= {f"{name}.next": f"%{name}" for name in INTERVAL}
        out.line("%k.next = add i64 %k.step, 1")
        out.line("%j.next = add i64 %j, 1")
        bad = out.let(f"xor {b} {good}, {out.name(True)}")
        out.line(f"br i1 {out.any(bad)}, label %failed, label %moved, !prof !0")
        out.begin("moved")
        self.memory.renew()
        out.line("br label %step.next")
        out.begin("failed")
        kept = {
            name: out.let(f"select {b} {good}, {v} {moved[name]}, {v} {stayed[name]}")
            for name in moved
        }
        if out.lanes > 1:
            self.memory.renew()
        fails = out.let(f"and {b} {bad}, %alive")
        number["step"] = out.splat(out.let("sitofp i64 %k.step to double"), "float")
        for row, name in enumerate(FAILURE):
            old = self._load(f"%{out.fresh('old')}", "failure", row)
            self._store(
                out.let(f"select {b} {fails}, {v} {number[name]}, {v} {old}"), "failure", str(row)
            )
        out.line(f"br i1 {out.any(good)}, label %step.next, label %stop")
        out.begin("step.next")
        self._merge("alive.next", "bool", (out.name(True), "moved"), (good, "failed"))
        for name in moved:
            self._merge(name, "float", (moved[name], "moved"), (kept[name], "failed"))
        self._next_step()
        out.begin("told")
        self.memory.stand("spare", "now")
        self.memory.leave("%record")
        self.memory.stand("now", "spare")
        out.begin("stop")
        for place, value in self.step.numbers:
            self._store(kept[f"next.{value.number}"], "state", str(place))
        self.memory.leave("%record")

    def _next_step(self) -> None:
        """Go on, unless told to stop."""
        line = f"br i1 {self._stop_signal()}, label %told, label %steps.head, !prof !0"
        self.out.line(line)

    def _first_row(self, width: int) -> str:
        """Return where the rows of a record with `width` rows begin."""
        return self.out.let(f"mul i64 %record, {width}")

    def _since(self, name: str) -> str:
        """Return what has happened since the last record when the steps to the next one begin."""
        return self.out.name(0.0)

    def _goes_on(self, test: str) -> str:
        """End a loop inside a step that is told to stop, and the step with it."""
        out = self.out
        return out.let(f"and i1 {test}, {out.let(f'xor i1 {self._stop_signal()}, true')}")

    def _stop_signal(self) -> str:
        out = self.out
        told = out.let("load atomic i32, ptr %flag monotonic, align 4")
        return out.let(f"icmp ne i32 {told}, 0")

    def _blocks(self) -> str:
        """Print the function that is called from outside: all blocks from `first` up to `last`."""
        arrays = ("params", "state", "memory", "out", "interval", "failure")
        moved = "\n".join(
            f"  %{a}.here = getelementptr double, ptr %{a}, i64 "
            + ("0" if a == "params" and self.shared else "%column")
            for a in arrays
        )
        passed = ", ".join(f"ptr %{a}.here" for a in arrays)
        scalars = "double %h, i64 %start, i64 %records, i64 %every, i64 %stride, i64 %open"
        bounds = "i64 %first, i64 %last, ptr %flag"
        return f"""
define i64 @run({", ".join(f"ptr %{a}" for a in arrays)}, {scalars}, {bounds}) #0 {{
entry:
  br label %head
head:
  %b = phi i64 [ %first, %entry ], [ %b.next, %body ]
  %filled = phi i64 [ 0, %entry ], [ %done, %body ]
  %more = icmp slt i64 %b, %last
  br i1 %more, label %body, label %exit
body:
  %column = mul i64 %b, {self.out.lanes}
{moved}
  %done = call i64 @block({passed}, {scalars}, ptr %flag)
  %b.next = add i64 %b, 1
  br label %head
exit:
  ret i64 %filled
}}
"""

    def _merge(self, name: str, kind: Kind, *sources: tuple[str, str]) -> None:
        out = self.out
        incoming = ", ".join(f"[ {register}, %{label} ]" for register, label in sources)
        out.line(f"%{name} = phi {out.type(kind)} {incoming}")

    def _time(self, k: str) -> str:
        """Return t0 + k h in every lane."""
        out = self.out
        elapsed = out.let(f"fmul double {out.let(f'sitofp i64 {k} to double')}, %h")
        return out.let(f"fadd {self.vector} %t0, {out.splat(elapsed, 'float')}")

    def _truth(self, operand: Operand) -> str:
        return self.out.name(operand, "bool")

    def _number(self, operand: Operand) -> str:
        out = self.out
        kind = kind_of(operand)
        if kind == "float":
            return out.name(operand)
        return out.let(out.convert(out.name(operand), kind, "float"))

    def _place(self, array: str, row: str | int) -> str:
        out = self.out
        offset = out.let(f"mul i64 {row}, %stride")
        return out.let(f"getelementptr double, ptr %{array}, i64 {offset}")

    def _load(self, register: str, array: str, row: int | str) -> str:
        self.out.line(f"{register} = load {self.vector}, ptr {self._place(array, row)}, align 8")
        return register

    def _parameter(self, row: int, value: Value) -> None:
        """Load a parameter, stored as a float; convert whole numbers and truths back."""
        out = self.out
        if self.shared:
            place = out.let(f"getelementptr double, ptr %params, i64 {row}")
            stored = out.splat(out.let(f"load double, ptr {place}, align 8"), "float")
        else:
            stored = self._load(f"%{out.fresh('stored')}", "params", row)
        same = value.kind == "float"
        typed = out.copy(stored, "float") if same else out.convert(stored, "float", value.kind)
        out.line(f"{out.name(value)} = {typed}")

    def _store(self, register: str, array: str, row: str) -> None:
        self.out.line(f"store {self.vector} {register}, ptr {self._place(array, row)}, align 8")

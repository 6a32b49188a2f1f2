"""The time loop around a step, as an LLVM function.

`run` takes bodies through `records` times `every` steps. In memory every quantity of a body is a
row and the bodies are columns, `lanes` of them to a block:

    params [P][members], state [S][members], memory [M][members], out [records][S][members], ...

The last row of `state` is the time at which a body started; its own time is that plus k h. Where
all bodies share their parameters, `params` is one column. A body with buffers, of which an axis is
kept, fills a block by itself: then `members` is 1, and its buffers stay in memory while it moves,
those of several columns in another order: see `passes.placement`.

What a step hands to the next one is in `memory` as it is at the last filled record. Where `open` is
not zero, `run` makes it from the state before the first step.

The number at `flag` is looked at after every step. Where it is not zero `run` returns how many
records it has filled; only these count then, and `memory`.
"""

from retrax.engine.llvm.body_rows import BodyRows
from retrax.engine.passes.placement import LINE
from retrax.engine.program import Buffer, Program, Value, kind_of
from retrax.engine.progress import FAILURE, INTERVAL, StepInputs, places
from retrax.integrators.base import StepInfo

HEADER = (
    "define internal i64 @block(ptr noalias %params, ptr noalias %state, ptr noalias %memory, "
    "ptr noalias %out, ptr noalias %interval, ptr noalias %failure, double %h, i64 %start, "
    "i64 %records, i64 %every, i64 %stride, i64 %open, ptr %flag)"
)


def assemble(program: Program, layout: StepInputs, lanes: int, shared: bool) -> str:
    """The LLVM module with the function `run` for blocks of `lanes` bodies.

    `shared` says whether all bodies have the same parameters.
    """
    return _Kernel(program, layout, lanes, shared).module()


class _Kernel(BodyRows):
    def __init__(self, program: Program, layout: StepInputs, lanes: int, shared: bool):
        super().__init__(program, layout, lanes)
        self.shared = shared
        new = (*self.new[:-1], *program.memory.last)
        self.carried = [*self.numbers, *self.memory_numbers]
        self.moved = [x for x in new if not isinstance(x, Buffer)]
        self.info = program.outputs[layout.state : -1]
        self.finite = program.outputs[-1]
        self.vector = self.type("float")

    def module(self) -> str:
        self.begin("entry")
        self.find_buffers()
        for place, value in places(self.params):
            if isinstance(value, Value):
                self.parameter(place, value)
        for place, value in self.numbers:
            self.load(f"%start.{value.number}", "state", place)
        self.line(f"{self.name(self.h)} = {self.copy(self.splat('%h', 'float'), 'float')}")
        self.t0 = self.load("%t0", "state", self.size - 1)
        if self.memory.items:
            self._open(self.time("%start"))
        # A body that has failed before stays where it is.
        failed_at = self.load("%failed.at", "failure", 0)
        self.line(f"%alive.start = fcmp uno {self.vector} {failed_at}, {failed_at}")
        self.line("br label %ready")
        self.begin("ready")
        self.line("br label %records.head")
        self._records()
        body = "\n".join(self.lines).replace("SCRATCH", str(8 * (self.scratch_size + LINE)))
        parts = [
            *self.globals,
            *sorted(self.declarations),
            f"{HEADER} #0 {{",
            body,
            "}",
            self._blocks(),
            # Without this LLVM halves vectors of eight on processors that have them.
            'attributes #0 = { "min-legal-vector-width"="512" "prefer-vector-width"="512" }',
            '!0 = !{!"branch_weights", i32 1, i32 1000000}',
        ]
        return "\n".join(parts)

    def _open(self, time: str) -> None:
        """Make the memory of the first step, if the caller has none; then take it up."""
        self.find_memory()
        opens = self.let("icmp ne i64 %open, 0")
        self.line(f"br i1 {opens}, label %opening, label %opened")
        self.begin("opening")
        outside = dict(self.renamed)
        self.renamed |= {value: f"%start.{value.number}" for _, value in self.numbers}
        self.renamed[self.state[-1]] = time
        self.outermost(self.memory.opening, self.memory.first)
        for (place, item), first in zip(places(self.memory.items), self.memory.first, strict=True):
            if isinstance(item, Buffer) and isinstance(first, Buffer):
                self.transfer(first, self.homes[item])
            elif not isinstance(first, Buffer):
                self.store(self.name(first, "float"), "memory", str(place))
        self.renamed = outside
        self.line("br label %opened")
        self.begin("opened")
        for place, value in self.memory_numbers:
            self.load(f"%start.{value.number}", "memory", place)
        for _, buffer in self.memory_buffers:
            self.transfer(self.homes[buffer], buffer)

    # The loop over records: saves, then takes `every` steps; the registers of the state are
    # `at` here, the step's own inputs inside the loop over steps.

    def _records(self) -> None:
        self.begin("records.head")
        self.line("%record = phi i64 [ 0, %ready ], [ %record.next, %saved ]")
        self.line("%k.record = phi i64 [ %start, %ready ], [ %k.step, %saved ]")
        self.merge("alive.record", "bool", ("%alive.start", "ready"), ("%alive", "saved"))
        for _, value in self.carried:
            start, step = f"%start.{value.number}", self.name(value)
            self.merge(f"at.{value.number}", "float", (start, "ready"), (step, "saved"))
        self.line("%more.records = icmp slt i64 %record, %records")
        self.line("br i1 %more.records, label %steps.head, label %finish")
        self._steps()
        self.begin("save")
        first = self.let(f"mul i64 %record, {self.size}")
        for place, value in self.numbers:
            self.store(self.name(value), "out", self.let(f"add i64 {first}, {place}"))
        for place, buffer in self.buffers:
            target = self.place("out", self.let(f"add i64 {first}, {place}"))
            if buffer in self.homes:
                self.rearrange(buffer, self.elsewhere(buffer, target))
            else:
                self.copy_buffer(target, self.addresses[buffer], buffer.length)
        for place, value in self.memory_numbers:
            self.store(self.name(value), "memory", str(place))
        for _, buffer in self.memory_buffers:
            self.transfer(buffer, self.homes[buffer])
        time = self.time("%k.step")
        self.store(time, "out", self.let(f"add i64 {first}, {self.size - 1}"))
        first = self.let(f"mul i64 %record, {len(INTERVAL)}")
        for i, name in enumerate(INTERVAL):
            self.store(f"%{name}", "interval", self.let(f"add i64 {first}, {i}"))
        self.line("%record.next = add i64 %record, 1")
        self.line("br label %saved")
        self.begin("saved")
        self.line("br label %records.head")
        self.begin("finish")
        for place, value in self.numbers:
            self.store(f"%at.{value.number}", "state", str(place))
        self.leave("%record")

    def _steps(self) -> None:
        self.begin("steps.head")
        head, latch = "records.head", "step.next"
        self.line(f"%j = phi i64 [ 0, %{head} ], [ %j.next, %{latch} ]")
        self.line(f"%k.step = phi i64 [ %k.record, %{head} ], [ %k.next, %{latch} ]")
        self.merge("alive", "bool", ("%alive.record", head), ("%alive.next", latch))
        for _, value in self.carried:
            at, new = f"%at.{value.number}", f"%next.{value.number}"
            self.merge(self.name(value)[1:], "float", (at, head), (new, latch))
        zero = self.name(0.0)
        for name in INTERVAL:
            self.merge(name, "float", (zero, head), (f"%{name}.next", latch))
        self.line("%more.steps = icmp slt i64 %j, %every")
        self.line("br i1 %more.steps, label %step, label %save")
        self.begin("step")
        self.line(f"{self.name(self.state[-1])} = {self.copy(self.time('%k.step'), 'float')}")
        self.active = "%alive"
        self.outermost(self.program.block, (*self.program.outputs, *self.memory.last))
        self._judge()

    def _judge(self) -> None:
        """A good step moves the body; a bad one is written down and the body stays where it is.

        Where all bodies of the block took a good step, as they nearly always do, nothing is
        selected and the next step need not wait for the verdict.
        """
        b, v = self.type("bool"), self.vector
        names = dict(zip(StepInfo._fields, self.info, strict=True))
        conditions = (self.truth(names["in_chart"]), self.truth(self.finite), "%alive")
        good = self.truth(names["converged"])
        for condition in conditions:
            good = self.let(f"and {b} {good}, {condition}", "good")
        number = {name: self.number(value) for name, value in names.items()}
        pairs = list(zip(self.carried, self.moved, strict=True))
        moved = {f"next.{old.number}": self.name(new, "float") for (_, old), new in pairs}
        moved["iterations.next"] = self.let(f"fadd {v} %iterations, {number['iterations']}")
        for name in ("residual", "increment"):
            exceeds = self.let(f"fcmp ogt {v} {number[name]}, %{name}")
            larger = self.let(f"select {b} {exceeds}, {v} {number[name]}, {v} %{name}")
            moved[f"{name}.next"] = larger
        stayed = {f"next.{old.number}": self.name(old) for _, old in self.carried}
        stayed |= {f"{name}.next": f"%{name}" for name in INTERVAL}
        self.line("%k.next = add i64 %k.step, 1")
        self.line("%j.next = add i64 %j, 1")
        bad = self.let(f"xor {b} {good}, {self.name(True)}")
        self.line(f"br i1 {self.any(bad)}, label %failed, label %moved, !prof !0")
        self.begin("moved")
        new_buffers = [x for x in self.new[:-1] if isinstance(x, Buffer)]
        moved_buffers = zip((buffer for _, buffer in self.buffers), new_buffers, strict=True)
        for buffer, new in (*moved_buffers, *self.remembered()):
            self.copy_buffer(
                self.addresses[buffer],
                self.address(new),
                buffer.length if buffer not in self.widths else self.room(buffer),
            )
        self.line("br label %step.next")
        self.begin("failed")
        kept = {
            name: self.let(f"select {b} {good}, {v} {moved[name]}, {v} {stayed[name]}")
            for name in moved
        }
        fails = self.let(f"and {b} {bad}, %alive")
        number["step"] = self.splat(self.let("sitofp i64 %k.step to double"), "float")
        for row, name in enumerate(FAILURE):
            old = self.load(f"%{self.fresh('old')}", "failure", row)
            self.store(
                self.let(f"select {b} {fails}, {v} {number[name]}, {v} {old}"), "failure", str(row)
            )
        self.line(f"br i1 {self.any(good)}, label %step.next, label %stop")
        self.begin("step.next")
        self.merge("alive.next", "bool", (self.name(True), "moved"), (good, "failed"))
        for name in moved:
            self.merge(name, "float", (moved[name], "moved"), (kept[name], "failed"))
        self.line(f"br i1 {self._told_to_stop()}, label %told, label %steps.head, !prof !0")
        self.begin("told")
        self.leave("%record")
        self.begin("stop")
        for place, value in self.numbers:
            self.store(kept[f"next.{value.number}"], "state", str(place))
        self.leave("%record")

    def going_on(self, test: str) -> str:
        """Inside a step a loop that is told to stop ends, and the step with it."""
        return self.let(f"and i1 {test}, {self.let(f'xor i1 {self._told_to_stop()}, true')}")

    def _told_to_stop(self) -> str:
        told = self.let("load atomic i32, ptr %flag monotonic, align 4")
        return self.let(f"icmp ne i32 {told}, 0")

    def _blocks(self) -> str:
        """The function that is called from outside: all blocks from `first` up to `last`."""
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
  %column = mul i64 %b, {self.lanes}
{moved}
  %done = call i64 @block({passed}, {scalars}, ptr %flag)
  %b.next = add i64 %b, 1
  br label %head
exit:
  ret i64 %filled
}}
"""

    def merge(self, name: str, kind, *sources: tuple[str, str]) -> None:
        incoming = ", ".join(f"[ {register}, %{label} ]" for register, label in sources)
        self.line(f"%{name} = phi {self.type(kind)} {incoming}")

    def time(self, k: str) -> str:
        """t0 + k h in every lane."""
        elapsed = self.let(f"fmul double {self.let(f'sitofp i64 {k} to double')}, %h")
        return self.let(f"fadd {self.vector} {self.t0}, {self.splat(elapsed, 'float')}")

    def truth(self, operand) -> str:
        return self.name(operand, "bool")

    def number(self, operand) -> str:
        kind = kind_of(operand)
        if kind == "float":
            return self.name(operand)
        return self.let(self.converted(self.name(operand), kind, "float"))

    def place(self, array: str, row: str | int) -> str:
        offset = self.let(f"mul i64 {row}, %stride")
        return self.let(f"getelementptr double, ptr %{array}, i64 {offset}")

    def load(self, register: str, array: str, row: int) -> str:
        self.line(f"{register} = load {self.vector}, ptr {self.place(array, row)}, align 8")
        return register

    def parameter(self, row: int, value: Value) -> None:
        """Parameters are stored as floats; whole numbers and truths are turned back."""
        if self.shared:
            place = self.let(f"getelementptr double, ptr %params, i64 {row}")
            stored = self.splat(self.let(f"load double, ptr {place}, align 8"), "float")
        else:
            stored = self.load(f"%{self.fresh('stored')}", "params", row)
        same = value.kind == "float"
        typed = self.copy(stored, "float") if same else self.converted(stored, "float", value.kind)
        self.line(f"{self.name(value)} = {typed}")

    def store(self, register: str, array: str, row: str) -> None:
        self.line(f"store {self.vector} {register}, ptr {self.place(array, row)}, align 8")

"""The time loop around a step, as an LLVM function.

`run` takes bodies through `records` times `every` steps. In memory every quantity of a body is a
row and the bodies are columns, `lanes` of them to a block:

    params [P][members], state [S][members], out [records][S][members], ...

The last row of `state` is the time at which a body started; its own time is that plus k h. Where
all bodies share their parameters, `params` is one column.
"""

from collections.abc import Sequence
from typing import NamedTuple

from retrax.engine.llvm import Assembly
from retrax.engine.program import Program, Value, kind_of
from retrax.integrators.base import StepInfo


class Layout(NamedTuple):
    """Which inputs of a step are what: parameters, then the state with its time last, then h."""

    params: int
    state: int

    def split(self, inputs: Sequence) -> tuple[Sequence, Sequence, Value]:
        return inputs[: self.params], inputs[self.params : self.params + self.state], inputs[-1]


FAILURE = ("step", *StepInfo._fields)
INTERVAL = ("iterations", "residual", "increment")
HEADER = (
    "define internal i64 @block(ptr noalias %params, ptr noalias %state, ptr noalias %out, "
    "ptr noalias %interval, ptr noalias %failure, double %h, i64 %start, "
    "i64 %records, i64 %every, i64 %stride)"
)


def assemble(program: Program, layout: Layout, lanes: int, shared: bool) -> str:
    """The LLVM module with the function `run` for blocks of `lanes` bodies.

    `shared` says whether all bodies have the same parameters.
    """
    return _Kernel(program, layout, lanes, shared).module()


class _Kernel(Assembly):
    def __init__(self, program: Program, layout: Layout, lanes: int, shared: bool):
        super().__init__(lanes)
        self.program = program
        self.shared = shared
        self.params, self.state, self.h = layout.split(program.inputs)
        self.new = program.outputs[: layout.state]
        self.info = program.outputs[layout.state :]
        self.vector = self.type("float")

    def module(self) -> str:
        self.begin("entry")
        for row, value in enumerate(self.params):
            self.parameter(row, value)
        start = [f"%start.{i}" for i in range(len(self.state) - 1)]
        for row, register in enumerate(start):
            self.load(register, "state", row)
        self.line(f"{self.name(self.h)} = {self.copy(self.splat('%h', 'float'), 'float')}")
        self.t0 = self.load("%t0", "state", len(self.state) - 1)
        # A body that has failed before stays where it is.
        failed_at = self.load("%failed.at", "failure", 0)
        self.line(f"%alive.start = fcmp uno {self.vector} {failed_at}, {failed_at}")
        self.line("br label %records.head")
        self._records(start)
        body = "\n".join(self.lines)
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

    # The loop over records: saves, then takes `every` steps; the registers of the state are
    # `at` here, the step's own inputs inside the loop over steps.

    def _records(self, start: list[str]) -> None:
        rows = range(len(self.state) - 1)
        self.begin("records.head")
        self.line("%record = phi i64 [ 0, %entry ], [ %record.next, %save ]")
        self.line("%k.record = phi i64 [ %start, %entry ], [ %k.step, %save ]")
        self.merge("alive.record", "bool", ("%alive.start", "entry"), ("%alive", "save"))
        for i in rows:
            step = self.name(self.state[i])
            self.merge(f"at.{i}", "float", (start[i], "entry"), (step, "save"))
        self.line("%more.records = icmp slt i64 %record, %records")
        self.line("br i1 %more.records, label %steps.head, label %finish")
        self._steps()
        self.begin("save")
        first = self.let(f"mul i64 %record, {len(self.state)}")
        for i in rows:
            self.store(self.name(self.state[i]), "out", self.let(f"add i64 {first}, {i}"))
        time = self.time("%k.step")
        self.store(time, "out", self.let(f"add i64 {first}, {len(self.state) - 1}"))
        first = self.let(f"mul i64 %record, {len(INTERVAL)}")
        for i, name in enumerate(INTERVAL):
            self.store(f"%{name}", "interval", self.let(f"add i64 {first}, {i}"))
        self.line("%record.next = add i64 %record, 1")
        self.line("br label %records.head")
        self.begin("finish")
        for i in rows:
            self.store(f"%at.{i}", "state", str(i))
        self.line("ret i64 %record")

    def _steps(self) -> None:
        self.begin("steps.head")
        head, latch = "records.head", "step.next"
        self.line(f"%j = phi i64 [ 0, %{head} ], [ %j.next, %{latch} ]")
        self.line(f"%k.step = phi i64 [ %k.record, %{head} ], [ %k.next, %{latch} ]")
        self.merge("alive", "bool", ("%alive.record", head), ("%alive.next", latch))
        for i, value in enumerate(self.state[:-1]):
            self.merge(self.name(value)[1:], "float", (f"%at.{i}", head), (f"%next.{i}", latch))
        zero = self.name(0.0)
        for name in INTERVAL:
            self.merge(name, "float", (zero, head), (f"%{name}.next", latch))
        self.line("%more.steps = icmp slt i64 %j, %every")
        self.line("br i1 %more.steps, label %step, label %save")
        self.begin("step")
        self.line(f"{self.name(self.state[-1])} = {self.copy(self.time('%k.step'), 'float')}")
        self.active = "%alive"
        self.block(self.program.block)
        self._judge()

    def _judge(self) -> None:
        """A good step moves the body; a bad one is written down and the body stays where it is.

        Where all bodies of the block took a good step, as they nearly always do, nothing is
        selected and the next step need not wait for the verdict.
        """
        b, v = self.type("bool"), self.vector
        names = dict(zip(StepInfo._fields, self.info, strict=True))
        conditions = (self.truth(names["in_chart"]), self._all_finite(), "%alive")
        good = self.truth(names["converged"])
        for condition in conditions:
            good = self.let(f"and {b} {good}, {condition}", "good")
        number = {name: self.number(value) for name, value in names.items()}
        moved = {f"next.{i}": self.name(value, "float") for i, value in enumerate(self.new[:-1])}
        moved["iterations.next"] = self.let(f"fadd {v} %iterations, {number['iterations']}")
        for name in ("residual", "increment"):
            exceeds = self.let(f"fcmp ogt {v} {number[name]}, %{name}")
            larger = self.let(f"select {b} {exceeds}, {v} {number[name]}, {v} %{name}")
            moved[f"{name}.next"] = larger
        stayed = {f"next.{i}": self.name(value) for i, value in enumerate(self.state[:-1])}
        stayed |= {f"{name}.next": f"%{name}" for name in INTERVAL}
        self.line("%k.next = add i64 %k.step, 1")
        self.line("%j.next = add i64 %j, 1")
        judged = self.label
        bad = self.let(f"xor {b} {good}, {self.name(True)}")
        self.line(f"br i1 {self.any(bad)}, label %failed, label %step.next, !prof !0")
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
        self.merge("alive.next", "bool", (self.name(True), judged), (good, "failed"))
        for name in moved:
            self.merge(name, "float", (moved[name], judged), (kept[name], "failed"))
        self.line("br label %steps.head")
        self.begin("stop")
        for i in range(len(self.state) - 1):
            self.store(kept[f"next.{i}"], "state", str(i))
        self.line("ret i64 %record")

    def _all_finite(self) -> str:
        """Whether all numbers of the new state are finite: then their sum is."""
        total, *rest = (self.name(x, "float") for x in self.new[:-1])
        for x in rest:
            total = self.let(f"fadd {self.vector} {total}, {x}")
        return self.let(self._isfinite("float", self.vector, [total], ()))

    def _blocks(self) -> str:
        """The function that is called from outside: all blocks from `first` up to `last`."""
        arrays = ("params", "state", "out", "interval", "failure")
        moved = "\n".join(
            f"  %{a}.here = getelementptr double, ptr %{a}, i64 "
            + ("0" if a == "params" and self.shared else "%column")
            for a in arrays
        )
        passed = ", ".join(f"ptr %{a}.here" for a in arrays)
        scalars = "double %h, i64 %start, i64 %records, i64 %every, i64 %stride"
        return f"""
define i64 @run({", ".join(f"ptr %{a}" for a in arrays)}, {scalars}, i64 %first, i64 %last) #0 {{
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
  %done = call i64 @block({passed}, {scalars})
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
        return self.let(self._float(kind, self.type(kind), [self.name(operand)], ()))

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
        convert = {"float": self.copy(stored, "float")}
        if value.kind != "float":
            convert[value.kind] = getattr(self, f"_{value.kind}")(
                "float", self.vector, [stored], ()
            )
        self.line(f"{self.name(value)} = {convert[value.kind]}")

    def store(self, register: str, array: str, row: str) -> None:
        self.line(f"store {self.vector} {register}, ptr {self.place(array, row)}, align 8")

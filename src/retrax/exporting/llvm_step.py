"""A step as an LLVM module for any machine: the functions that the header of the C sources names.

All numbers of parameters and state are doubles in order, so that the structs of the header are
arrays here.
"""

import struct
from collections.abc import Sequence
from itertools import count

from retrax.engine.llvm.blocks import BlockPrinter
from retrax.engine.llvm.emitter import Emitter, literal
from retrax.engine.llvm.memory import BufferAccess
from retrax.engine.program import Buffer, Each, Operand, Value, kind_of
from retrax.exporting.columns import rearranging
from retrax.exporting.model import Field, StepModel, owners


class _InTurn(BlockPrinter):
    """Prints loops along axes one thing after the other: small machines have no vectors."""

    def _each(self, loop: Each) -> None:
        self._each_in_turn(loop, 1)


class LlvmStep:
    """Prints the module; `long` is the type of that name in the C of the machine."""

    def __init__(self, model: StepModel, long: str):
        self.model, self.ports, self.long = model, model.ports, long
        self.out = Emitter()
        self.access = BufferAccess(self.out, model.planned.plan)
        self.printer = _InTurn(self.out, self.access)
        self._numbering = count(-1, -1)

    def module(self) -> str:
        """Return the text of the whole module."""
        model, out, n = self.model, self.out, self.model.name
        self._entry()
        self._open()
        self._steps()
        self._leave()
        state = [x for field in model.state for x in field.values]
        rest = [0.0] * (model.places.memory - len(state) - 1)
        tables = {
            "params": [x for field in model.params for x in field.values],
            "start": [*state, model.time.values[0], *rest],
        }
        constants = [
            f"@{name} = private unnamed_addr constant [{len(table)} x double] "
            f"[{', '.join('double ' + literal(x, 'float') for x in table)}]"
            for name, table in tables.items()
        ]
        out.declarations |= {
            "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
        }
        header = (
            f"define i32 @{n}_run(ptr noalias %p, ptr noalias %s, double %h, {self.long} %steps, "
            "ptr noalias %info) {"
        )
        branch = '!0 = !{!"branch_weights", i32 1, i32 1000000}'
        return "\n".join(
            [
                *constants,
                *out.globals,
                *sorted(out.declarations),
                header,
                *out.lines,
                "}",
                self._others(tables),
                branch,
            ]
        )

    def _others(self, tables: dict[str, list[float]]) -> str:
        n, at = self.model.name, self.model.places
        copies = "\n".join(
            f"  call void @llvm.memcpy.p0.p0.i64(ptr %{to}, ptr @{name}, i64 "
            f"{8 * len(tables[name])}, i1 false)"
            for to, name in (("p", "params"), ("s", "start"))
        )
        return f"""
define i32 @{n}_step(ptr %p, ptr %s, double %h, ptr %info) {{
  %status = call i32 @{n}_run(ptr %p, ptr %s, double %h, {self.long} 1, ptr %info)
  ret i32 %status
}}
define void @{n}_defaults(ptr %p, ptr %s) {{
  call void @llvm.memset.p0.i64(ptr %s, i8 0, i64 {8 * at.size}, i1 false)
{copies}
  ret void
}}
define void @{n}_restart(ptr %s) {{
  %clock = getelementptr double, ptr %s, i64 {at.clock_h}
  store double 0.0, ptr %clock
  %remembers = getelementptr double, ptr %s, i64 {at.remembers}
  store double 0.0, ptr %remembers
  ret void
}}
"""

    def _place(self, pointer: str, k: int) -> str:
        return self.out.let(f"getelementptr double, ptr %{pointer}, i64 {k}")

    def _load(self, pointer: str, k: int) -> str:
        return self.out.let(f"load double, ptr {self._place(pointer, k)}, align 8")

    def _store(self, number: str, pointer: str, k: int) -> None:
        self.out.line(f"store double {number}, ptr {self._place(pointer, k)}, align 8")

    def _entry(self) -> None:
        """Find parameters, state and clock."""
        out, ports, at = self.out, self.ports, self.model.places
        out.begin("entry")
        for value in ports.carried:
            out.line(f"%at.{value.number} = alloca double")
        for name in ("residual", "increment"):
            out.line(f"%{name} = alloca double")
            out.line(f"store double 0.0, ptr %{name}")
        for name, first in (("converged", 1), ("in_chart", 1), ("iterations", 0), ("status", 0)):
            out.line(f"%{name} = alloca i32")
            out.line(f"store i32 {first}, ptr %{name}")
        out.line(f"%done = alloca {self.long}")
        out.line(f"store {self.long} 0, ptr %done")
        out.line(f"%scratch = getelementptr double, ptr %s, i64 {at.work}")
        out.line(f"{out.name(ports.h)} = {out.copy('%h', 'float')}")
        self._find("p", ports.params, self.model.params)
        self._find("s", ports.state[:-1], self.model.state)
        for _, buffer in ports.memory_buffers:
            self.access.addresses[buffer] = self.access.scratch(buffer)
        time, start, h, steps = (
            self._load("s", k) for k in (at.time, at.clock_start, at.clock_h, at.clock_steps)
        )
        told = out.let(f"fadd double {start}, {out.let(f'fmul double {steps}, {h}')}")
        other = out.let(f"fcmp une double {h}, %h")
        moved = out.let(f"fcmp une double {told}, {time}")
        anew = out.let(f"or i1 {other}, {moved}")
        out.line(f"%clock.start = select i1 {anew}, double {time}, double {start}")
        out.line(f"%clock.steps = select i1 {anew}, double 0.0, double {steps}")
        out.line(f"%time.start = {out.copy(time, 'float')}")
        self._store("%clock.start", "s", at.clock_start)
        self._store("%h", "s", at.clock_h)

    def _find(self, pointer: str, items: Sequence[Value | Buffer], among: Sequence[Field]) -> None:
        out = self.out
        for item, (field, k) in zip(items, owners(items, among), strict=True):
            place = field.first + k
            if isinstance(item, Buffer):
                where = self._place(pointer, place)
                if item in self.model.planned.plan.widths:
                    self.access.addresses[item] = self.access.scratch(item)
                    self._rearrange(self._elsewhere(item, where), item)
                else:
                    self.access.addresses[item] = where
                continue
            stored = self._load(pointer, place)
            if pointer == "s":
                out.line(f"store double {stored}, ptr %at.{item.number}")
            elif item.kind == "float":
                out.line(f"{out.name(item)} = {out.copy(stored, 'float')}")
            else:
                out.line(f"{out.name(item)} = {out.convert(stored, 'float', item.kind)}")

    def _elsewhere(self, buffer: Buffer, address: str) -> Buffer:
        other = Buffer(next(self._numbering), buffer.length, buffer.kind)
        self.access.addresses[other] = address
        return other

    def _rearrange(self, source: Buffer, target: Buffer) -> None:
        """Copy a buffer to one that is stored in another order."""
        loop = rearranging(source, target, self.model.planned.plan.widths, self._numbering)
        self.out.renamed |= {v: f"%{self.out.fresh('moved')}" for v, _ in loop.reads}
        self.printer.instruction(loop)

    def _copy(self, source: Buffer, target: Buffer) -> None:
        plan = self.model.planned.plan
        if plan.widths.get(source, 1) != plan.widths.get(target, 1):
            self._rearrange(source, target)
            return
        size = plan.extent(source) if source in plan.widths else source.length
        self.access.copy(self.access.address(target), self.access.address(source), size)

    def _open(self) -> None:
        """Have the memory of the first step made; take it up."""
        out, ports, at = self.out, self.ports, self.model.places
        memory = ports.memory
        if not memory.items:
            return
        kept = self._load("s", at.remembers)
        out.line(f"br i1 {out.let(f'fcmp oeq double {kept}, 0.0')}, label %open, label %opened")
        out.begin("open")
        outside = dict(out.renamed)
        for _, value in ports.numbers:
            out.renamed[value] = out.let(f"load double, ptr %at.{value.number}")
        out.renamed[ports.time] = "%time.start"
        self.printer.block(self.model.planned.opening)
        numbers = [x for x in memory.first if not isinstance(x, Buffer)]
        for k, number in enumerate(numbers):
            self._store(out.name(number, "float"), "s", at.memory + k)
        out.renamed = outside
        for buffer, first in ports.opened:
            self._copy(first, buffer)
        self._store(literal(1.0, "float"), "s", at.remembers)
        out.line("br label %opened")
        out.begin("opened")
        for k, (_, value) in enumerate(ports.memory_numbers):
            out.line(f"store double {self._load('s', at.memory + k)}, ptr %at.{value.number}")

    def _time(self, done: str) -> str:
        out = self.out
        passed = out.let(f"sitofp {self.long} {done} to double")
        steps = out.let(f"fadd double %clock.steps, {passed}")
        return out.let(f"fadd double %clock.start, {out.let(f'fmul double {steps}, %h')}")

    def _steps(self) -> None:
        """Print the loop over steps, which ends before one that fails."""
        out, ports = self.out, self.ports
        out.line("br label %head")
        out.begin("head")
        done = out.let(f"load {self.long}, ptr %done")
        more = out.let(f"icmp slt {self.long} {done}, %steps")
        out.line(f"br i1 {more}, label %step, label %leave")
        out.begin("step")
        for value in ports.carried:
            out.line(f"{out.name(value)} = load double, ptr %at.{value.number}")
        out.line(f"{out.name(ports.time)} = {out.copy(self._time(done), 'float')}")
        self.printer.block(self.model.planned.block)
        self._judge()
        new = [out.name(x, "float") for x in ports.new_numbers]
        for value, register in zip(ports.carried, new, strict=True):
            out.line(f"store double {register}, ptr %at.{value.number}")
        for buffer, made in ports.renewed:
            self._copy(made, buffer)
        following = out.let(f"add {self.long} {done}, 1")
        out.line(f"store {self.long} {following}, ptr %done")
        out.line("br label %head")

    def _number(self, operand: Operand) -> str:
        out, kind = self.out, kind_of(operand)
        if not isinstance(operand, Value):
            return literal(float(operand), "float")
        return (
            out.name(operand)
            if kind == "float"
            else out.let(out.convert(out.name(operand), kind, "float"))
        )

    def _judge(self) -> None:
        out, info = self.out, self.model.info
        for name in ("residual", "increment"):
            number, old = self._number(getattr(info, name)), out.let(f"load double, ptr %{name}")
            larger = out.let(f"fcmp ugt double {number}, {old}")
            chosen = out.let(f"select i1 {larger}, double {number}, double {old}")
            out.line(f"store double {chosen}, ptr %{name}")
        taken = out.let(f"fptosi double {self._number(info.iterations)} to i32")
        total = out.let(f"add i32 {out.let('load i32, ptr %iterations')}, {taken}")
        out.line(f"store i32 {total}, ptr %iterations")
        tests = (("converged", info.converged), ("in_chart", info.in_chart))
        for k, (name, test) in enumerate((*tests, ("", self.ports.finite))):
            truth = out.name(test, "bool")
            if name:
                out.line(f"store i32 {out.let(f'zext i1 {truth} to i32')}, ptr %{name}")
            failed, good = out.fresh("failed"), out.fresh("good")
            out.line(f"br i1 {truth}, label %{good}, label %{failed}")
            out.begin(failed)
            out.line(f"store i32 {k + 1}, ptr %status")
            out.line("br label %leave")
            out.begin(good)

    def _leave(self) -> None:
        """Write the state where the last good step has led."""
        out, model, ports, at = self.out, self.model, self.ports, self.model.places
        out.begin("leave")
        places = owners(ports.state[:-1], model.state)
        for item, (field, k) in zip(ports.state[:-1], places, strict=True):
            if isinstance(item, Value):
                moved = out.let(f"load double, ptr %at.{item.number}")
                self._store(moved, "s", field.first + k)
            elif item in model.planned.plan.widths:
                self._copy(item, self._elsewhere(item, self._place("s", field.first + k)))
        for k, (_, value) in enumerate(ports.memory_numbers):
            moved = out.let(f"load double, ptr %at.{value.number}")
            self._store(moved, "s", at.memory + k)
        done = out.let(f"load {self.long}, ptr %done")
        passed = out.let(f"sitofp {self.long} {done} to double")
        self._store(out.let(f"fadd double %clock.steps, {passed}"), "s", at.clock_steps)
        self._store(self._time(done), "s", at.time)
        out.line("br i1 " + out.let("icmp eq ptr %info, null") + ", label %end, label %tell")
        out.begin("tell")
        for k, name in enumerate(("residual", "increment")):
            self._store(out.let(f"load double, ptr %{name}"), "info", k)
        for k, name in enumerate(("converged", "iterations", "in_chart")):
            number = out.let(f"load i32, ptr %{name}")
            place = out.let(f"getelementptr i32, ptr %info, i64 {k + 4}")
            out.line(f"store i32 {number}, ptr {place}")
        out.line("br label %end")
        out.begin("end")
        out.line(f"ret i32 {out.let('load i32, ptr %status')}")


def section_sizes(code: bytes) -> dict[str, int]:
    """Return the sizes of the sections of an ELF file with code and constants, by name."""
    wide = code[4] == 2
    order = "<" if code[5] == 1 else ">"
    table, entry, number, names = (
        struct.unpack_from(f"{order}Q", code, 0x28)[0] if wide
        else struct.unpack_from(f"{order}I", code, 0x20)[0],
        *struct.unpack_from(f"{order}HHH", code, 0x3A if wide else 0x2E),
    )  # fmt: skip
    form, pick = (f"{order}IIQQQQIIQQ", (0, 4, 5)) if wide else (f"{order}10I", (0, 4, 5))
    rows = [struct.unpack_from(form, code, table + k * entry) for k in range(number)]
    strings = rows[names][pick[1]]
    sizes: dict[str, int] = {}
    for row in rows:
        start = strings + row[pick[0]]
        name = code[start : code.index(b"\0", start)].decode()
        if name.startswith((".text", ".rodata")):
            sizes[name] = sizes.get(name, 0) + row[pick[2]]
    return sizes

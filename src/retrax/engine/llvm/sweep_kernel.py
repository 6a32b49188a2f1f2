"""A program repeated along columns: the same for all of them, or with something carried along.

`run` takes a table with three whole numbers for each array: its address, how many numbers lie
between two of its rows, and how many between what one round reads or writes and the next does. Rows
are numbers and columns are members, `lanes` of them to a block, as in a time loop:

    shared   [A]                  numbers that are the same for all members and all rounds
    carried  [C][members]         what one round leaves to the next; renewed at the end
    reads    [R][rounds, members] each an array of its own
    writes   [W][rounds, members]

Of a function of one column there is one round and every column is a member. A recursion along the
stages of a problem has a round for each stage, and a member for each problem.
"""

from itertools import pairwise
from typing import NamedTuple

from retrax.engine.kinds import Unscalarisable
from retrax.engine.llvm.blocks import BlockPrinter
from retrax.engine.llvm.emitter import Emitter
from retrax.engine.llvm.kernel import ATTRIBUTES
from retrax.engine.llvm.memory import BufferAccess
from retrax.engine.passes.placement import MemoryPlan, widths
from retrax.engine.program import Buffer, Operand, Program, Value, kind_of


class Ports(NamedTuple):
    """How many inputs are shared, carried, and read from each array; and how many are written."""

    shared: int
    carried: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]


def assemble_sweep(program: Program, ports: Ports, lanes: int) -> str:
    """Return the LLVM module with the function `run` for blocks of `lanes` members."""
    return _Sweep(program, ports, lanes).module()


class _Sweep:
    def __init__(self, program: Program, ports: Ports, lanes: int):
        if any(isinstance(x, Buffer) for x in (*program.inputs, *program.outputs)):
            raise Unscalarisable("an array along a long axis goes in or comes out")
        self.program, self.ports, self.out = program, ports, Emitter(lanes)
        self.plan = MemoryPlan(widths(program, ()))
        self.block = self.plan.place(program.block, program.outputs, ())
        self.printer = BlockPrinter(self.out, BufferAccess(self.out, self.plan))
        self.vector = self.out.type("float")
        self.shared, self.carried, *self.reads = _parts(
            program.inputs, (ports.shared, ports.carried, *ports.reads)
        )
        self.renewed, *self.writes = _parts(program.outputs, (ports.carried, *ports.writes))
        self.read_arrays = range(2, 2 + len(self.reads))
        first = 2 + len(self.reads)
        self.write_arrays = range(first, first + len(self.writes))

    def module(self) -> str:
        out = self.out
        out.begin("entry")
        if self.plan.size:
            size = self.plan.size * out.lanes
            out.line(f"%scratch = alloca [{size} x double], align 64")
        for array in range(2 + len(self.reads) + len(self.writes)):
            self._look_up(array)
        for row, value in enumerate(self.shared):
            self._load_shared(row, value)
        out.line("br label %blocks")
        out.begin("blocks")
        out.line("%b = phi i64 [ %first, %entry ], [ %b.next, %end ]")
        out.line("%more.blocks = icmp slt i64 %b, %last")
        out.line("br i1 %more.blocks, label %open, label %exit")
        self._open()
        self._rounds()
        out.begin("exit")
        out.line("ret void")
        header = "define void @run(ptr %table, i64 %rounds, i64 %members, i64 %first, i64 %last)"
        return "\n".join(
            [
                *out.globals,
                *sorted(out.declarations),
                f"{header} #0 {{",
                *out.lines,
                "}",
                *ATTRIBUTES,
            ]
        )

    def _look_up(self, array: int) -> None:
        """Take the address, the row and the round of an array from the table."""
        out = self.out
        for k, name in enumerate(("address", "row", "round")):
            place = out.let(f"getelementptr i64, ptr %table, i64 {3 * array + k}")
            out.line(f"%{name}.{array} = load i64, ptr {place}")
        out.line(f"%base.{array} = inttoptr i64 %address.{array} to ptr")

    def _load_shared(self, row: int, value: Value) -> None:
        out = self.out
        place = out.let(f"getelementptr double, ptr %base.0, i64 {row}")
        stored = out.splat(out.let(f"load double, ptr {place}, align 8"), "float")
        self._name(value, stored)

    def _open(self) -> None:
        """Find the members of a block; the last block may take some of the one before again."""
        out = self.out
        out.begin("open")
        out.line(f"%wanted = mul i64 %b, {out.lanes}")
        out.line(f"%fits = sub i64 %members, {out.lanes}")
        out.line("%over = icmp sgt i64 %wanted, %fits")
        out.line("%latest = select i1 %over, i64 %fits, i64 %wanted")
        out.line("%none = icmp slt i64 %latest, 0")
        out.line("%column = select i1 %none, i64 0, i64 %latest")
        for row in range(len(self.carried)):
            out.line(f"%start.{row} = {self._load(1, row, '%column')}")
        out.line("br label %rounds.head")

    def _rounds(self) -> None:
        out = self.out
        out.begin("rounds.head")
        out.line("%k = phi i64 [ 0, %open ], [ %k.next, %latch ]")
        for row, (value, new) in enumerate(zip(self.carried, self.renewed, strict=True)):
            end = out.name(new, "float")
            out.line(
                f"{out.name(value)} = phi {self.vector} [ %start.{row}, %open ], [ {end}, %latch ]"
            )
        out.line("%more.rounds = icmp slt i64 %k, %rounds")
        out.line("br i1 %more.rounds, label %round, label %end")
        out.begin("round")
        for array, values in zip(self.read_arrays, self.reads, strict=True):
            where = self._at(array)
            for row, value in enumerate(values):
                self._name(value, out.let(self._load(array, row, where)))
        self.printer.block(self.block)
        for array, operands in zip(self.write_arrays, self.writes, strict=True):
            where = self._at(array)
            for row, operand in enumerate(operands):
                self._store(operand, array, row, where)
        out.line("%k.next = add i64 %k, 1")
        out.line("br label %latch")
        out.begin("latch")
        out.line("br label %rounds.head")
        out.begin("end")
        for row, value in enumerate(self.carried):
            self._store(value, 1, row, "%column")
        out.line("%b.next = add i64 %b, 1")
        out.line("br label %blocks")

    def _at(self, array: int) -> str:
        """Return where the columns of this round begin."""
        moved = self.out.let(f"mul i64 %k, %round.{array}")
        return self.out.let(f"add i64 %column, {moved}")

    def _place(self, array: int, row: int, where: str) -> str:
        out = self.out
        offset = out.let(f"mul i64 %row.{array}, {row}")
        whole = out.let(f"add i64 {offset}, {where}")
        return out.let(f"getelementptr double, ptr %base.{array}, i64 {whole}")

    def _load(self, array: int, row: int, where: str) -> str:
        return f"load {self.vector}, ptr {self._place(array, row, where)}, align 8"

    def _store(self, operand: Operand, array: int, row: int, where: str) -> None:
        out, kind = self.out, kind_of(operand)
        number = out.name(operand, "float") if kind == "float" else out.name(operand)
        if kind != "float":
            number = out.let(out.convert(number, kind, "float"))
        place = self._place(array, row, where)
        out.line(f"store {self.vector} {number}, ptr {place}, align 8")

    def _name(self, value: Value, register: str) -> None:
        """Give an input the number in a register, of its own kind."""
        out = self.out
        if value.kind == "float":
            out.line(f"{out.name(value)} = {out.copy(register, 'float')}")
        else:
            out.line(f"{out.name(value)} = {out.convert(register, 'float', value.kind)}")


def _parts(items: tuple, counts: tuple[int, ...]) -> list[tuple]:
    """Cut items into pieces of these lengths."""
    ends = [0]
    for count in counts:
        ends.append(ends[-1] + count)
    assert ends[-1] == len(items)
    return [items[a:b] for a, b in pairwise(ends)]

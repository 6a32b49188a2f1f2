"""The rows of a body while it moves: found at the start, remembered, left to the caller."""

from itertools import count

from retrax.engine.llvm.blocks import Assembly
from retrax.engine.passes.placement import LINE, widths
from retrax.engine.program import Block, Each, Memory, Program, Row, Value, View
from retrax.engine.progress import Layout, length, places


class BodyRows(Assembly):
    """What a step takes and makes, and the memory of those of its inputs that are rows."""

    def __init__(self, program: Program, layout: Layout, lanes: int):
        super().__init__(lanes)
        self.program = program
        self.params, self.state, self.h = layout.split(program.inputs)
        self.new = program.outputs[: layout.state]
        self.size = sum(length(x) for x in self.state)
        # The numbers of the state that live in registers, and the rows that stay in memory.
        self.numbers = [(k, x) for k, x in places(self.state[:-1]) if isinstance(x, Value)]
        self.rows = [(k, x) for k, x in places(self.state) if isinstance(x, Row)]
        self.memory = program.memory or Memory((), Block(), (), ())
        news = [x for x in self.new if isinstance(x, Row)]
        moved = zip((row for _, row in self.rows), news, strict=True)
        self.widths = widths(program, (*moved, *self.remembered(), *self.opened()))
        # Rows in columns, and where the caller has the same numbers in his order.
        self.homes: dict[Row, Row] = {}
        self.numbering = count(-1, -1)

    def remembered(self) -> list[tuple[Row, Row]]:
        """What a step remembers, and where it leaves it to the next one."""
        return list(zip(self.memory.rows, self.memory.last, strict=True))

    def opened(self) -> list[tuple[Row, Row]]:
        """What a step remembers, and where the first one finds it."""
        return list(zip(self.memory.rows, self.memory.first, strict=True))

    def open(self, time: str) -> None:
        """Make what the first step remembers, at the time in a register."""
        for row in self.memory.rows:
            self.addresses[row] = self._new_address(row)
        outside = dict(self.renamed)
        self.renamed |= {value: f"%start.{value.number}" for _, value in self.numbers}
        self.renamed[self.state[-1]] = time
        self.outermost(self.memory.opening, self.memory.first)
        self.renamed = outside
        for row, first in self.opened():
            self.copy_row(self.addresses[row], self.address(first), self.room(row))

    def find_rows(self) -> None:
        """Rows of the caller are where the caller has them, all others in scratch memory."""
        if self.program.has_rows:
            self.declarations |= {"declare ptr @malloc(i64)", "declare void @free(ptr)"}
            self.declarations.add("declare ptr @llvm.ptrmask.p0.i64(ptr, i64)")
            # The scratch memory begins with a cache line.
            self.line("%memory = call ptr @malloc(i64 SCRATCH)")
            end = self.let(f"getelementptr double, ptr %memory, i64 {LINE - 1}")
            self.line(f"%scratch = call ptr @llvm.ptrmask.p0.i64(ptr {end}, i64 {-8 * LINE})")
        for array, items in (("params", self.params), ("state", self.state)):
            for place, row in places(items):
                if isinstance(row, Row):
                    self._find_row(
                        row, self.let(f"getelementptr double, ptr %{array}, i64 {place}")
                    )

    def _find_row(self, row: Row, address: str) -> None:
        if row not in self.widths:
            self.addresses[row] = address
            return
        home = self.homes[row] = self.elsewhere(row, address)
        self.addresses[row] = self._new_address(row)
        self.rearrange(home, row)

    def _new_address(self, row: Row) -> str:
        first = self.new_memory(row)
        return self.let(f"getelementptr double, ptr %scratch, i64 {first}", "row")

    def elsewhere(self, row: Row, address: str) -> Row:
        """A row of the same length in the order of the caller, at an address."""
        other = Row(next(self.numbering), row.length, row.kind)
        self.addresses[other] = address
        return other

    def rearrange(self, source: Row, target: Row) -> None:
        """Copy a row to one that is stored in another order."""
        width = self.widths.get(source) or self.widths[target]
        columns = [(c, width, source.length // width) for c in range(width)]
        values = [Value(next(self.numbering), "float") for _ in columns]
        reads = tuple((v, View(source, *c)) for v, c in zip(values, columns, strict=True))
        writes = tuple((View(target, *c), v) for v, c in zip(values, columns, strict=True))
        self.renamed |= {v: f"%{self.fresh('moved')}" for v in values}
        self.instruction(Each(source.length // width, reads, Block(), writes))

    def leave(self, result: str) -> None:
        """Return `result`, with the rows in the order of the caller."""
        for _, row in self.rows:
            if row in self.homes:
                self.rearrange(row, self.homes[row])
        if self.program.has_rows:
            self.line("call void @free(ptr %memory)")
        self.line(f"ret i64 {result}")

    def copy_row(self, target: str, source: str, count: int) -> None:
        function = "llvm.memcpy.p0.p0.i64"
        self.declarations.add(f"declare void @{function}(ptr, ptr, i64, i1)")
        arguments = f"ptr {target}, ptr {source}, i64 {8 * count}, i1 false"
        self.line(f"call void @{function}({arguments})")

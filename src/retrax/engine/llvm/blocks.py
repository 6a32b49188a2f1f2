"""A scalar program as LLVM assembly: blocks, loops and choices around the operations."""

from collections.abc import Iterable, Sequence

from retrax.engine.kinds import Kind
from retrax.engine.llvm.memory import Buffers
from retrax.engine.llvm.operations import SCALAR, literal
from retrax.engine.passes.live import buffers_of
from retrax.engine.passes.placement import coalesced, place_of
from retrax.engine.passes.sinking import is_costly, zero_of
from retrax.engine.program import (
    Buffer,
    Choose,
    CodeBlock,
    Each,
    Instruction,
    LoadEntry,
    Operand,
    Operation,
    Repeat,
    StoreEntry,
    Value,
    While,
    kind_of,
    made_by,
    operands_of,
    walk,
)

# Things along a kept axis that are worked on side by side.
_WIDTH = 8
# So many things need no loop.
_SHORT = 16


class Assembly(Buffers):
    """LLVM instructions on values of `lanes` lanes, in static single assignment form."""

    def __init__(self, lanes: int = 1):
        super().__init__(lanes)
        # The lanes that matter: a loop does not wait for the others.
        self.active: str | None = None

    def outermost(self, block: CodeBlock, outputs: Iterable[Operand | Buffer]) -> None:
        """A whole program: the memory of a buffer is given to others after its last use."""
        kept = {x for x in outputs if isinstance(x, Buffer)}
        block, homes = coalesced(block, kept, self.addresses, self.widths)
        for buffer, (result, column) in homes.items():
            if result not in self.scratch:
                self.scratch[result] = self.new_memory(result)
            first = place_of(result, column, self.widths[result])
            self.scratch[buffer] = self.scratch[result] + first
            kept.add(buffer)
        touched = [set[Buffer]().union(*buffers_of(CodeBlock([one]))) for one in block.instructions]
        last = {buffer: k for k, buffers in enumerate(touched) for buffer in buffers}
        for k, instruction in enumerate(block.instructions):
            self.instruction(instruction)
            for buffer in sorted(touched[k], key=lambda buffer: buffer.number):
                if last[buffer] == k and buffer in self.scratch and buffer not in kept:
                    self.spare.setdefault(self.room(buffer), []).append(self.scratch[buffer])

    def block(self, block: CodeBlock) -> None:
        for instruction in block.instructions:
            self.instruction(instruction)

    def instruction(self, instruction: Instruction) -> None:
        match instruction:
            case Operation(name, operands, out):
                self.line(f"{self.name(out)} = {self.operation(name, operands)}")
            case While():
                self._while(instruction)
            case Repeat():
                self._repeat(instruction)
            case Choose():
                self._choose(instruction)
            case Each():
                self._each(instruction)
            case LoadEntry(out, buffer, index):
                self.line(f"{self.name(out)} = load double, ptr {self.single(buffer, index)}")
            case StoreEntry(buffer, index, operand):
                number = self.name(operand, "float")
                self.line(f"store double {number}, ptr {self.single(buffer, index)}")

    def _phi(self, value: Value, *sources: tuple[str, str]) -> None:
        incoming = ", ".join(f"[ {register}, %{label} ]" for register, label in sources)
        self.line(f"{self.name(value)} = phi {self.type(value.kind)} {incoming}")

    def _while(self, loop: While) -> None:
        head, body, done = self.fresh("while"), self.fresh("body"), self.fresh("done")
        latch, before = self.fresh("latch"), self.label
        self.line(f"br label %{head}")
        self.begin(head)
        kept = [f"%{self.fresh('kept')}" if self.lanes > 1 else None for _ in loop.carried]
        for value, initial, updated, k in zip(
            loop.carried, loop.initial, loop.updated, kept, strict=True
        ):
            after = k or self.name(updated, value.kind)
            self._phi(value, (self.name(initial, value.kind), before), (after, latch))
        # A lane that is done stays done: its test is false for good, since nothing it reads moves.
        self.block(loop.condition)
        test = self.name(loop.test, "bool")
        if self.lanes > 1 and self.active:
            test = self.let(f"and {self.type('bool')} {test}, {self.active}")
        more = self.going_on(self.any(test))
        self.line(f"br i1 {more}, label %{body}, label %{done}")
        self.begin(body)
        self.block(loop.body)
        self.line(f"br label %{latch}")
        self.begin(latch)
        for value, updated, k in zip(loop.carried, loop.updated, kept, strict=True):
            if k is not None:
                t = self.type(value.kind)
                new = self.name(updated, value.kind)
                self.line(
                    f"{k} = select {self.type('bool')} {test}, {t} {new}, {t} {self.name(value)}"
                )
        self.line(f"br label %{head}")
        self.begin(done)

    def going_on(self, test: str) -> str:
        """Whether a loop that may never end goes on, where its own test says so."""
        return test

    def _repeat(self, loop: Repeat) -> None:
        head, body, done = self.fresh("repeat"), self.fresh("body"), self.fresh("done")
        latch, before, count = self.fresh("latch"), self.label, len(loop.tables)
        counter, following = f"%{self.fresh('round')}", f"%{self.fresh('next')}"
        self.line(f"br label %{head}")
        self.begin(head)
        self.line(f"{counter} = phi i64 [ 0, %{before} ], [ {following}, %{latch} ]")
        for value, initial, updated in zip(loop.carried, loop.initial, loop.updated, strict=True):
            initial, updated = self.name(initial, value.kind), self.name(updated, value.kind)
            self._phi(value, (initial, before), (updated, latch))
        more = self.let(f"icmp ult i64 {counter}, {count}")
        self.line(f"br i1 {more}, label %{body}, label %{done}")
        self.begin(body)
        for column, values in zip(loop.columns, zip(*loop.tables, strict=True), strict=True):
            self._lookup(column, values, counter)
        self.block(loop.body)
        self.line(f"br label %{latch}")
        self.begin(latch)
        self.line(f"{following} = add i64 {counter}, 1")
        self.line(f"br label %{head}")
        self.begin(done)

    def _lookup(self, column: Value, values: Sequence[Operand], counter: str) -> None:
        scalar, table = SCALAR[column.kind], f"@table.{len(self.globals)}"
        entries = ", ".join(f"{scalar} {literal(v, column.kind)}" for v in values)
        array = f"[{len(values)} x {scalar}]"
        self.globals.append(f"{table} = private unnamed_addr constant {array} [{entries}]")
        place = self.let(f"getelementptr {array}, ptr {table}, i64 0, i64 {counter}")
        one = self.let(f"load {scalar}, ptr {place}")
        wide = self.splat(one, column.kind)
        t = self.type(column.kind)
        true = self.name(True) if self.lanes > 1 else "true"
        self.line(
            f"{self.name(column)} = select {self.type('bool')} {true}, {t} {wide}, {t} {wide}"
        )

    def _choose(self, choice: Choose) -> None:
        """Blocks have no side effects: cheap ones all run, costly ones where a lane needs them."""
        kind, b = kind_of(choice.index), self.type("bool")
        tests = [
            self.let(f"icmp eq {self.type(kind)} {self.name(choice.index)}, {self.name(k, kind)}")
            for k in range(len(choice.blocks))
        ]
        results = [
            self._chosen(
                block, test, [(out.kind, x) for out, x in zip(choice.outs, row, strict=True)]
            )
            for block, test, row in zip(choice.blocks, tests, choice.results, strict=True)
        ]
        for j, out in enumerate(choice.outs):
            t, chosen = self.type(out.kind), results[-1][j]
            for k in reversed(range(len(results) - 1)):
                text = f"select {b} {tests[k]}, {t} {results[k][j]}, {t} {chosen}"
                if k:
                    chosen = self.let(text)
                else:
                    self.line(f"{self.name(out)} = {text}")

    def _chosen(
        self, block: CodeBlock, test: str, results: Sequence[tuple[Kind, Operand]]
    ) -> list[str]:
        """The results of a block, which do not matter in lanes where the test is false."""
        if not is_costly(block):
            self.block(block)
            return [self.name(x, kind) for kind, x in results]
        run, end, done, before = *(self.fresh(x) for x in ("costly", "end", "done")), self.label
        # Called unlikely, or else LLVM moves the calls out of the branch again.
        self.line(f"br i1 {self.any(test)}, label %{run}, label %{done}, !prof !0")
        self.begin(run)
        outside = self.active
        if self.lanes > 1:
            # A loop inside does not wait for lanes that have chosen otherwise.
            both = f"and {self.type('bool')} {test}, {outside}"
            self.active = self.let(both) if outside else test
        self.block(block)
        self.active = outside
        names = [self.name(x, kind) for kind, x in results]
        self.line(f"br label %{end}")
        self.begin(end)
        self.line(f"br label %{done}")
        self.begin(done)
        return [
            self.let(
                f"phi {self.type(kind)} [ {name}, %{end} ], "
                f"[ {self.name(zero_of(kind), kind)}, %{before} ]"
            )
            for (kind, _), name in zip(results, names, strict=True)
        ]

    def _each(self, loop: Each) -> None:
        """Independent rounds run `_WIDTH` at a time, the last ones again where they do not fill."""
        side_by_side = not loop.carried and self.lanes == 1
        if side_by_side and loop.length <= _SHORT:
            self._each_at_once(loop)
            return
        width = _WIDTH if side_by_side else 1
        outside = self._widen(loop, width)
        head, body, done = self.fresh("each"), self.fresh("body"), self.fresh("done")
        latch, before, count = self.fresh("latch"), self.label, -(-loop.length // width)
        counter, following = f"%{self.fresh('block')}", f"%{self.fresh('next')}"
        self.line(f"br label %{head}")
        self.begin(head)
        self.line(f"{counter} = phi i64 [ 0, %{before} ], [ {following}, %{latch} ]")
        for value, first, then in zip(loop.carried, loop.initial, loop.updated, strict=True):
            initial, updated = self.name(first, value.kind), self.name(then, value.kind)
            self._phi(value, (initial, before), (updated, latch))
        more = self.let(f"icmp ult i64 {counter}, {count}")
        self.line(f"br i1 {more}, label %{body}, label %{done}")
        self.begin(body)
        scaled = self.let(f"mul i64 {counter}, {width}")
        beyond = self.let(f"icmp ugt i64 {scaled}, {loop.length - width}")
        k = self.let(f"select i1 {beyond}, i64 {loop.length - width}, i64 {scaled}")
        for value, view in loop.reads:
            self.read(value, view, k)
        self.block(loop.body)
        for view, operand in loop.writes:
            self.write(view, operand, k)
        self.line(f"br label %{latch}")
        self.begin(latch)
        self.line(f"{following} = add i64 {counter}, 1")
        self.line(f"br label %{head}")
        self.begin(done)
        self.lanes, self.active, self.renamed = outside

    def _each_at_once(self, loop: Each) -> None:
        """A short axis without a loop: vectors of eight, then of four, two and one.

        No entry is written twice, so that what is written can be read again without waiting.
        """
        made = [value for value, _ in loop.reads]
        made += [value for instruction in walk(loop.body) for value in made_by(instruction)]
        start = 0
        while start < loop.length:
            width = min(_WIDTH, 1 << ((loop.length - start).bit_length() - 1))
            outside = self._widen(loop, width)
            self.renamed |= {value: f"%{self.fresh('v')}" for value in made}
            for value, view in loop.reads:
                self.read(value, view, str(start))
            self.block(loop.body)
            for view, operand in loop.writes:
                self.write(view, operand, str(start))
            self.lanes, self.active, self.renamed = outside
            start += width

    def _widen(self, loop: Each, width: int) -> tuple:
        """Work on `width` things at once; what it was before."""
        outside = (self.lanes, self.active, dict(self.renamed))
        scalars = {value: self.name(value) for value in _free(loop)} if width > 1 else {}
        self.lanes = width
        if width > 1:
            self.active = None
            self.renamed |= {v: self.splat(name, v.kind) for v, name in scalars.items()}
        return outside


def _free(loop: Each) -> list[Value]:
    """The values that a loop uses and does not make."""
    made = {value for value, _ in loop.reads} | set(loop.carried)
    used: list[Operand] = [x for _, x in loop.writes]
    for instruction in walk(loop.body):
        used += operands_of(instruction)
        made.update(made_by(instruction))
    return list(dict.fromkeys(x for x in used if isinstance(x, Value) and x not in made))

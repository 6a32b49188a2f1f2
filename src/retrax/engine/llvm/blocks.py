"""Print blocks, loops and choices of a program as LLVM assembly."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

from retrax.engine.kinds import Constant, Kind
from retrax.engine.llvm.emitter import SCALAR, Emitter, literal
from retrax.engine.llvm.host import lanes
from retrax.engine.llvm.memory import BufferAccess
from retrax.engine.passes.live import buffers_of
from retrax.engine.passes.sinking import is_costly, zero_of
from retrax.engine.program import (
    Buffer,
    Choose,
    CodeBlock,
    Each,
    Instruction,
    LoadAt,
    LoadEntry,
    Operand,
    Operation,
    Program,
    Repeat,
    StoreAt,
    StoreEntry,
    Value,
    While,
    free_values,
    kind_of,
    outputs_of,
    walk,
)

# So many things need no loop; in programs of more operations than `_LONG`, fewer: their code is as
# long as the processor can fetch, and takes long to compile.
SHORT, SHORT_IN_LONG, _LONG = 16, 8, 10_000


def short_axes(program: Program) -> int:
    """Return up to which length axes need no loop in a program."""
    return SHORT if program.count() <= _LONG else SHORT_IN_LONG


class BlockPrinter:
    """Prints blocks with an emitter: their operations, loops and choices.

    `goes_on` turns the test of a loop that may never end into one that also hears from outside.
    """

    def __init__(
        self,
        out: Emitter,
        buffers: BufferAccess,
        goes_on: Callable[[str], str] = lambda test: test,
    ):
        self.out, self.buffers, self.goes_on = out, buffers, goes_on
        self.short = SHORT
        # The lanes that matter: a loop does not wait for the others.
        self.active: str | None = None

    def block(self, block: CodeBlock) -> None:
        for instruction in block.instructions:
            self.instruction(instruction)

    def instruction(self, instruction: Instruction) -> None:
        out = self.out
        match instruction:
            case Operation(name, operands, result):
                out.line(f"{out.name(result)} = {out.operation(name, operands)}")
            case While():
                self._while(instruction)
            case Repeat():
                self._repeat(instruction)
            case Choose():
                self._choose(instruction)
            case Each():
                self._each(instruction)
            case LoadEntry(result, buffer, index):
                self.buffers.load(result, buffer, index)
            case LoadAt(result, view, index):
                self.buffers.read_at(result, view, index)
            case StoreEntry(buffer, index, operand):
                self.buffers.store(buffer, index, operand)
            case StoreAt(view, index, operand):
                self.buffers.write_at(view, index, operand)

    def _phi(self, value: Value, *sources: tuple[str, str]) -> None:
        out = self.out
        incoming = ", ".join(f"[ {register}, %{label} ]" for register, label in sources)
        out.line(f"{out.name(value)} = phi {out.type(value.kind)} {incoming}")

    def _while(self, loop: While) -> None:
        out = self.out
        head, body, done = out.fresh("while"), out.fresh("body"), out.fresh("done")
        latch, before = out.fresh("latch"), out.label
        out.line(f"br label %{head}")
        out.begin(head)
        kept = [f"%{out.fresh('kept')}" if out.lanes > 1 else None for _ in loop.carried]
        for value, initial, updated, k in zip(
            loop.carried, loop.initial, loop.updated, kept, strict=True
        ):
            after = k or out.name(updated, value.kind)
            self._phi(value, (out.name(initial, value.kind), before), (after, latch))
        # A lane that is done stays done: its test is false for good, since nothing it reads moves.
        self.block(loop.condition)
        test = out.name(loop.test, "bool")
        if out.lanes > 1 and self.active:
            test = out.let(f"and {out.type('bool')} {test}, {self.active}")
        more = self.goes_on(out.any(test))
        out.line(f"br i1 {more}, label %{body}, label %{done}")
        out.begin(body)
        with self._going(buffers_of(loop.body)[1], test):
            self.block(loop.body)
        out.line(f"br label %{latch}")
        out.begin(latch)
        for value, updated, k in zip(loop.carried, loop.updated, kept, strict=True):
            if k is not None:
                t = out.type(value.kind)
                new = out.name(updated, value.kind)
                out.line(
                    f"{k} = select {out.type('bool')} {test}, {t} {new}, {t} {out.name(value)}"
                )
        out.line(f"br label %{head}")
        out.begin(done)

    @contextmanager
    def _going(self, buffers: Collection[Buffer], test: str) -> Iterator[None]:
        """Keep what a loop carries in memory where bodies are done and others go on.

        These are the `buffers` it writes that have been written before. So it is with the block of
        a choice, where some bodies have chosen another.
        """
        out, outside = self.out, self.buffers.going
        if out.lanes > 1:
            b, masks = out.type("bool"), dict(outside)
            carried = self.buffers.written.intersection(buffers)
            for buffer in sorted(carried, key=lambda buffer: buffer.number):
                before = outside.get(buffer)
                masks[buffer] = out.let(f"and {b} {before}, {test}") if before else test
            self.buffers.going = masks
        yield
        self.buffers.going = outside

    @contextmanager
    def _count_rounds(
        self, loop: Repeat | Each, names: tuple[str, str], count: int | str
    ) -> Iterator[str]:
        """Print a loop of `count` rounds around what is printed inside; yield the counter."""
        out = self.out
        head, body, done = out.fresh(names[0]), out.fresh("body"), out.fresh("done")
        latch, before = out.fresh("latch"), out.label
        counter, following = f"%{out.fresh(names[1])}", f"%{out.fresh('following')}"
        out.line(f"br label %{head}")
        out.begin(head)
        out.line(f"{counter} = phi i64 [ 0, %{before} ], [ {following}, %{latch} ]")
        for value, first, then in zip(loop.carried, loop.initial, loop.updated, strict=True):
            initial, updated = out.name(first, value.kind), out.name(then, value.kind)
            self._phi(value, (initial, before), (updated, latch))
        more = out.let(f"icmp ult i64 {counter}, {count}")
        out.line(f"br i1 {more}, label %{body}, label %{done}")
        out.begin(body)
        yield counter
        out.line(f"br label %{latch}")
        out.begin(latch)
        out.line(f"{following} = add i64 {counter}, 1")
        out.line(f"br label %{head}")
        out.begin(done)

    def _repeat(self, loop: Repeat) -> None:
        with self._count_rounds(loop, ("repeat", "round"), len(loop.tables)) as counter:
            for column, values in zip(loop.columns, zip(*loop.tables, strict=True), strict=True):
                self._lookup(column, values, counter)
            self.block(loop.body)

    def _lookup(self, column: Value, values: Sequence[Constant], counter: str) -> None:
        out = self.out
        scalar, table = SCALAR[column.kind], f"@table.{len(out.globals)}"
        entries = ", ".join(f"{scalar} {literal(v, column.kind)}" for v in values)
        array = f"[{len(values)} x {scalar}]"
        out.globals.append(f"{table} = private unnamed_addr constant {array} [{entries}]")
        place = out.let(f"getelementptr {array}, ptr {table}, i64 0, i64 {counter}")
        one = out.let(f"load {scalar}, ptr {place}")
        wide = out.splat(one, column.kind)
        t = out.type(column.kind)
        true = out.name(True) if out.lanes > 1 else "true"
        out.line(f"{out.name(column)} = select {out.type('bool')} {true}, {t} {wide}, {t} {wide}")

    def _choose(self, choice: Choose) -> None:
        """Print a choice: blocks that write nothing others see all run if they are cheap.

        Costly ones and those that write run where a lane needs them.
        """
        out = self.out
        kind, b = kind_of(choice.index), out.type("bool")
        tests = [
            out.let(f"icmp eq {out.type(kind)} {out.name(choice.index)}, {out.name(k, kind)}")
            for k in range(len(choice.blocks))
        ]
        results = [
            self._print_block(choice, block, test, row)
            for block, test, row in zip(choice.blocks, tests, choice.results, strict=True)
        ]
        for j, result in enumerate(choice.outs):
            t, chosen = out.type(result.kind), results[-1][j]
            for k in reversed(range(len(results) - 1)):
                text = f"select {b} {tests[k]}, {t} {results[k][j]}, {t} {chosen}"
                if k:
                    chosen = out.let(text)
                else:
                    out.line(f"{out.name(result)} = {text}")

    def _print_block(
        self, choice: Choose, block: CodeBlock, test: str, row: Sequence[Operand]
    ) -> list[str]:
        """Print a block of a choice; its results do not matter in lanes where the test is false."""
        out = self.out
        results: list[tuple[Kind, Operand]] = [
            (value.kind, x) for value, x in zip(choice.outs, row, strict=True)
        ]
        writes = not buffers_of(block)[1].isdisjoint(choice.buffers)
        if not writes and not is_costly(block):
            self.block(block)
            return [out.name(x, kind) for kind, x in results]
        run, end, done, before = *(out.fresh(x) for x in ("costly", "end", "done")), out.label
        # Called unlikely, or else LLVM moves the calls out of the branch again.
        out.line(f"br i1 {out.any(test)}, label %{run}, label %{done}, !prof !0")
        out.begin(run)
        outside = self.active
        if out.lanes > 1:
            # A loop inside does not wait for lanes that have chosen otherwise.
            both = f"and {out.type('bool')} {test}, {outside}"
            self.active = out.let(both) if outside else test
        with self._going(choice.buffers, test):
            self.block(block)
        self.active = outside
        names = [out.name(x, kind) for kind, x in results]
        out.line(f"br label %{end}")
        out.begin(end)
        out.line(f"br label %{done}")
        out.begin(done)
        return [
            out.let(
                f"phi {out.type(kind)} [ {name}, %{end} ], "
                f"[ {out.name(zero_of(kind), kind)}, %{before} ]"
            )
            for (kind, _), name in zip(results, names, strict=True)
        ]

    def _each(self, loop: Each) -> None:
        """Print independent rounds, several at a time, the last ones again if they do not fill."""
        out = self.out
        side_by_side = not loop.in_order and out.lanes == 1
        if side_by_side and loop.length <= self.short:
            self._each_at_once(loop)
            return
        if self.buffers.going and not loop.in_order:
            self._each_of_some(loop)
            return
        self._each_in_turn(loop, lanes() if side_by_side else 1)

    def _each_in_turn(self, loop: Each, width: int) -> None:
        out = self.out
        last, rounds = loop.length - width, -(-loop.length // width)
        first, own = (None, rounds) if loop.in_order else self._share(rounds)
        with self._widen(loop, width), self._count_rounds(loop, ("each", "block"), own) as counter:
            block = counter if first is None else out.let(f"add i64 {counter}, {first}")
            scaled = out.let(f"mul i64 {block}, {width}")
            beyond = out.let(f"icmp ugt i64 {scaled}, {last}")
            k = out.let(f"select i1 {beyond}, i64 {last}, i64 {scaled}")
            self._round(loop, k)

    def _share(self, rounds: int) -> tuple[str | None, int | str]:
        """Return which of the rounds are run here: the first, if not all are, and how many."""
        return None, rounds

    def _each_of_some(self, loop: Each) -> None:
        """Print a loop that keeps nothing as it was while all bodies go on, as they mostly do."""
        out, going = self.out, self.buffers.going
        masks = {going[view.buffer] for view, _ in loop.writes if view.buffer in going}
        if not masks:
            self._each_in_turn(loop, 1)
            return
        some, every, done = (out.fresh(x) for x in ("some", "every", "done"))
        every_mask = sorted(masks)
        mask = every_mask[0]
        for other in every_mask[1:]:
            mask = out.let(f"and {out.type('bool')} {mask}, {other}")
        stopped = out.let(f"xor {out.type('bool')} {mask}, {out.name(True)}")
        out.line(f"br i1 {out.any(stopped)}, label %{some}, label %{every}")
        for label, masked in ((every, {}), (some, going)):
            out.begin(label)
            self.buffers.going = masked
            with self._widen(loop, 1):
                out.renamed |= {value: f"%{out.fresh('v')}" for value in _loop_values(loop)}
                self._each_in_turn(loop, 1)
            out.line(f"br label %{done}")
        self.buffers.going = going
        out.begin(done)

    def _round(self, loop: Each, k: str) -> None:
        """Print one round along a kept axis: entries from k on, as many as there are lanes."""
        for value, view in loop.reads:
            self.buffers.read(value, view, k)
        self.block(loop.body)
        self._write(loop, k)

    def _write(self, loop: Each, k: str) -> None:
        for view, operand in loop.writes:
            self.buffers.write(view, operand, k)

    def _each_at_once(self, loop: Each) -> None:
        """Print a short axis without a loop: whole vectors, then halves, down to one entry.

        No entry is written twice, so that what is written can be read again without waiting.
        """
        out = self.out
        made, start = _loop_values(loop), 0
        while start < loop.length:
            width = min(lanes(), 1 << ((loop.length - start).bit_length() - 1))
            with self._widen(loop, width):
                out.renamed |= {value: f"%{out.fresh('v')}" for value in made}
                self._round(loop, str(start))
            start += width

    @contextmanager
    def _widen(self, loop: Each, width: int) -> Iterator[None]:
        """Work on `width` things at once inside."""
        out = self.out
        lanes, active, renamed = out.lanes, self.active, dict(out.renamed)
        if width > 1:
            scalars = {value: out.name(value) for value in free_values(loop)}
            out.lanes = width
            self.active = None
            out.renamed |= {v: out.splat(name, v.kind) for v, name in scalars.items()}
        yield
        out.lanes, self.active, out.renamed = lanes, active, renamed


def _loop_values(loop: Each) -> list[Value]:
    """Return the values that a round makes."""
    inside = (value for instruction in walk(loop.body) for value in outputs_of(instruction))
    return [*(value for value, _ in loop.reads), *inside]

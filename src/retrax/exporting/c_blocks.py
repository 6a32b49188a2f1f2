"""Print blocks, loops and choices of a program as statements of C99."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from retrax.engine.kinds import Constant, Kind
from retrax.engine.passes.placement import MemoryPlan
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
    Repeat,
    StoreAt,
    StoreEntry,
    Value,
    View,
    While,
    kind_of,
)
from retrax.exporting.c_operations import ATOM, COperations, Text
from retrax.exporting.comments import Comments

_INDENT = "    "
# A longer expression is given a name of its own.
_LONGEST = 84


class CBlocks:
    """Prints the blocks of a program.

    **Arguments:**

    - `used`: how often values are read.
    - `inlined`: values that are written inside the one expression that uses them.
    - `names`: the variables that inputs are found in.
    - `addresses`: where buffers begin that do not lie in scratch memory.
    """

    def __init__(
        self,
        operations: COperations,
        plan: MemoryPlan,
        comments: Comments,
        used: Counter[Value],
        inlined: set[Value],
        names: Mapping[Value, str],
        addresses: dict[Buffer, str],
    ):
        self.operations, self.plan, self.comments = operations, plan, comments
        self.addresses = addresses
        self.lines: list[str] = []
        self.tables: list[str] = []
        self._used, self._inlined = used, inlined
        self._known: dict[Value, Text] = {v: Text(name) for v, name in names.items()}
        self._depth, self._count = 1, 0

    def line(self, text: str) -> None:
        self.lines.append(f"{_INDENT * self._depth}{text}" if text else "")

    def fresh(self, stem: str = "x") -> str:
        self._count += 1
        return f"{stem}{self._count}"

    def text(self, operand: Operand, kind: Kind | None = None) -> Text:
        """Return the expression that stands for an operand."""
        if isinstance(operand, Value):
            return self._known[operand]
        return self.operations.literal(operand, kind or kind_of(operand))

    def name(self, operand: Operand) -> str:
        return self.text(operand).text

    def number(self, operand: Operand) -> str:
        """Return an operand as a float."""
        kind = kind_of(operand)
        if kind == "float":
            return self.name(operand)
        if not isinstance(operand, Value):
            return self.operations.literal(float(operand), "float").text
        return self.operations.operation("float", kind, [self.text(operand)]).text

    def rename(self, value: Value, name: str) -> None:
        self._known[value] = Text(name)

    def let(self, value: Value, text: Text, constant: bool = True) -> None:
        """Declare the variable of a value."""
        name = self.fresh()
        const = "const " if constant else ""
        self.line(f"{const}{self.operations.type(value.kind)} {name} = {text.text};")
        self._known[value] = Text(name)

    @contextmanager
    def indent(self) -> Iterator[None]:
        self._depth += 1
        yield
        self._depth -= 1

    @contextmanager
    def braces(self, head: str) -> Iterator[None]:
        self.line(f"{head} {{")
        with self.indent():
            yield
        self.line("}")

    def block(self, block: CodeBlock) -> None:
        for instruction in block.instructions:
            self.instruction(instruction)

    def instruction(self, instruction: Instruction) -> None:
        match instruction:
            case Operation():
                self._operation(instruction)
            case While():
                self._while(instruction)
            case Repeat():
                self._repeat(instruction)
            case Choose():
                self._choose(instruction)
            case Each():
                self._each(instruction)
            case LoadEntry(out, buffer, index):
                self.let(out, Text(self._place(buffer, self.plan.place_of(buffer, index))))
            case LoadAt(out, view, index):
                self.let(out, Text(self._at(view, f"(size_t){self.text(index).within(ATOM)}")))
            case StoreEntry(buffer, index, operand):
                place = self._place(buffer, self.plan.place_of(buffer, index))
                self.line(f"{place} = {self.number(operand)};")
            case StoreAt(view, index, operand):
                place = self._at(view, f"(size_t){self.text(index).within(ATOM)}")
                self.line(f"{place} = {self.number(operand)};")

    def _operation(self, operation: Operation) -> None:
        kind = kind_of(operation.operands[1 if operation.name == "select" else 0])
        x = [self.text(o) for o in operation.operands]
        text = self.operations.operation(operation.name, kind, x)
        if operation.out in self._inlined and len(text.text) <= _LONGEST:
            self._known[operation.out] = text
            return
        for line in self.comments.before(operation):
            self.line(line)
        self.let(operation.out, text)

    def _begin(self, carried: Sequence[Value], initial: Sequence[Operand]) -> None:
        started = [(v, self.text(x, v.kind)) for v, x in zip(carried, initial, strict=True)]
        for value, text in started:
            self.let(value, text, constant=False)

    def update(self, carried: Sequence[Value], updated: Sequence[Operand]) -> None:
        """Assign what the next round begins with; what would be overwritten too early is kept."""
        pairs = [(v, x) for v, x in zip(carried, updated, strict=True) if v is not x and v != x]
        before: dict[Value, Text] = {}
        done: set[Value] = set()
        for value, _ in pairs:
            done.add(value)
            later = [x for v, x in pairs if v not in done]
            if value in later:  # another variable takes its old value
                kept = self.fresh("old")
                self.line(f"const {self.operations.type(value.kind)} {kept} = {self.name(value)};")
                before[value] = Text(kept)
        for value, operand in pairs:
            old = before.get(operand) if isinstance(operand, Value) else None
            text = old or self.text(operand, value.kind)
            self.line(f"{self.name(value)} = {text.text};")

    def _while(self, loop: While) -> None:
        self._begin(loop.carried, loop.initial)
        self.comments.interrupt()
        with self.braces("for (;;)"):
            self.block(loop.condition)
            self.line(f"if (!({self.text(loop.test, 'bool').text})) break;")
            self.block(loop.body)
            self.update(loop.carried, loop.updated)
        self.comments.interrupt()

    def _table(self, values: Sequence[Constant], kind: Kind) -> str:
        """Declare an array of constants before the function."""
        name, literal = self.fresh("table"), self.operations.literal
        numbers = ", ".join(literal(x, kind).text for x in values)
        kept = f"static const {self.operations.type(kind)} {name}[{len(values)}]"
        self.tables.append(f"{kept} = {{{numbers}}};")
        return name

    def _repeat(self, loop: Repeat) -> None:
        self._begin(loop.carried, loop.initial)
        k = self.fresh("k")
        self.comments.interrupt()
        with self.braces(f"for (size_t {k} = 0; {k} < {len(loop.tables)}; ++{k})"):
            for column, values in zip(loop.columns, zip(*loop.tables, strict=True), strict=True):
                if not self._used[column]:
                    continue
                self.let(column, Text(f"{self._table(values, column.kind)}[{k}]"))
            self.block(loop.body)
            self.update(loop.carried, loop.updated)
        self.comments.interrupt()

    def _choose(self, choice: Choose) -> None:
        for value in choice.outs:
            name = self.fresh()
            self.line(f"{self.operations.type(value.kind)} {name};")
            self._known[value] = Text(name)
        index, kind = self.text(choice.index), kind_of(choice.index)
        last = len(choice.blocks) - 1
        for k, (block, results) in enumerate(zip(choice.blocks, choice.results, strict=True)):
            if kind == "bool" and last == 1:
                test = f"!({index.text})"
            else:
                test = f"{index.within(10)} == {self.operations.literal(k, kind).text}"
            head = f"if ({test})" if k == 0 else "else" if k == last else f"else if ({test})"
            self.comments.interrupt()
            with self.braces(head):
                self.block(block)
                for value, result in zip(choice.outs, results, strict=True):
                    self.line(f"{self.name(value)} = {self.text(result, value.kind).text};")
        self.comments.interrupt()

    def _each(self, loop: Each) -> None:
        self._begin(loop.carried, loop.initial)
        k = self.fresh("k")
        self.comments.interrupt()
        with self.braces(f"for (size_t {k} = 0; {k} < {loop.length}; ++{k})"):
            for value, view in loop.reads:
                if self._used[value] or not loop.body.instructions:
                    self.let(value, Text(self._at(view, k)))
            self.block(loop.body)
            for view, operand in loop.writes:
                self.line(f"{self._at(view, k)} = {self.number(operand)};")
            self.update(loop.carried, loop.updated)
        self.comments.interrupt()

    def base(self, buffer: Buffer) -> tuple[str, int]:
        """Return an array, and the place in it where a buffer begins."""
        if buffer in self.addresses:
            return self.addresses[buffer], 0
        if buffer.table is not None:
            self.addresses[buffer] = self._table(buffer.table, "float")
            return self.addresses[buffer], 0
        if buffer in self.plan.within:
            result, first = self.plan.within[buffer]
            where, before = self.base(result)
            return where, before + first
        return "work", self.plan.offsets[buffer]

    def _place(self, buffer: Buffer, place: int) -> str:
        where, before = self.base(buffer)
        return f"{where}[{before + place}]"

    def _at(self, view: View, k: str) -> str:
        """Return the entry of a view that belongs to k, where it is stored."""
        view = self.plan.view_in_memory(view)
        where, before = self.base(view.buffer)
        offset = before + view.offset
        if view.stride < 0:
            return (
                f"{where}[{offset} - {k}]"
                if view.stride == -1
                else (f"{where}[{offset} - {-view.stride} * {k}]")
            )
        scaled = k if view.stride == 1 else f"{view.stride} * {k}"
        return f"{where}[{offset} + {scaled}]" if offset else f"{where}[{scaled}]"

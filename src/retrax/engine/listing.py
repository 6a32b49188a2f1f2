"""Print a scalar program as text that people can read."""

from collections.abc import Iterator, Mapping

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
    View,
    While,
)

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "eq": "==", "ne": "!=", "and": "and", "or": "or", "xor": "xor", "rem": "%", "shl": "<<",
}  # fmt: skip


def listing(program: Program, names: Mapping[int, str] | None = None) -> str:
    """Print a program, a line for each instruction; `names` are its inputs', by position."""
    known: dict[Value | Buffer, str] = {
        v: (names or {}).get(k, f"x{k}") for k, v in enumerate(program.inputs)
    }
    return "\n".join(_Listing(known).lines(program))


class _Listing:
    def __init__(self, known: dict[Value | Buffer, str]):
        self.known = known

    def name(self, x: Operand | Buffer) -> str:
        if not isinstance(x, Value | Buffer):
            return repr(x)
        letter = "v" if isinstance(x, Value) else "buffer"
        return self.known.setdefault(x, f"{letter}{len(self.known)}")

    def at(self, view: View, index: str = "k") -> str:
        """Return the entry of a view that belongs to k, or to another index."""
        k = {1: index, -1: f"-{index}"}.get(view.stride, f"{view.stride} {index}")
        return f"{self.name(view.buffer)}[{k}{f' + {view.offset}' if view.offset else ''}]"

    def names(self, operands) -> str:
        return ", ".join(self.name(x) for x in operands)

    def lines(self, program: Program) -> Iterator[str]:
        yield f"program({self.names(program.inputs)}):"
        yield from self.block(program.block, "    ")
        yield f"    return {self.names(program.outputs)}"

    def block(self, block: CodeBlock, indent: str) -> Iterator[str]:
        for instruction in block.instructions:
            for line in self.instruction(instruction):
                yield indent + line

    def instruction(self, instruction: Instruction) -> Iterator[str]:
        match instruction:
            case Operation(name, operands, out):
                yield f"{self.name(out)} = {self.expression(name, operands)}"
            case While():
                yield f"{self.names(instruction.carried)} = {self.names(instruction.initial)}"
                yield "while:"
                yield from self.block(instruction.condition, "    ")
                yield f"    stop unless {self.name(instruction.test)}"
                yield from self.block(instruction.body, "    ")
                yield f"    {self.names(instruction.carried)} = {self.names(instruction.updated)}"
            case Repeat():
                yield f"{self.names(instruction.carried)} = {self.names(instruction.initial)}"
                yield f"for {self.names(instruction.columns)} in {len(instruction.tables)} rows:"
                yield from self.block(instruction.body, "    ")
                yield f"    {self.names(instruction.carried)} = {self.names(instruction.updated)}"
            case LoadEntry(out, buffer, index):
                yield f"{self.name(out)} = {self.name(buffer)}[{index}]"
            case LoadAt(out, view, index):
                yield f"{self.name(out)} = {self.at(view, self.name(index))}"
            case StoreEntry(buffer, index, operand):
                yield f"{self.name(buffer)}[{index}] = {self.name(operand)}"
            case StoreAt(view, index, operand):
                yield f"{self.at(view, self.name(index))} = {self.name(operand)}"
            case Each():
                yield from self.each(instruction)
            case Choose():
                outs = self.names(instruction.outs)
                branches = zip(instruction.blocks, instruction.results, strict=True)
                for k, (block, results) in enumerate(branches):
                    yield f"if {self.name(instruction.index)} == {k}:"
                    yield from self.block(block, "    ")
                    yield f"    {outs} = {self.names(results)}"

    def each(self, loop: Each) -> Iterator[str]:
        if loop.carried:
            yield f"{self.names(loop.carried)} = {self.names(loop.initial)}"
        yield f"{'for k in order' if loop.in_order else 'for each k'} below {loop.length}:"
        for value, view in loop.reads:
            yield f"    {self.name(value)} = {self.at(view)}"
        yield from self.block(loop.body, "    ")
        for view, operand in loop.writes:
            yield f"    {self.at(view)} = {self.name(operand)}"
        if loop.carried:
            yield f"    {self.names(loop.carried)} = {self.names(loop.updated)}"

    def expression(self, name: str, operands: tuple[Operand, ...]) -> str:
        x = [self.name(o) for o in operands]
        if name in _INFIX:
            return f"{x[0]} {_INFIX[name]} {x[1]}"
        if name == "select":
            return f"{x[2]} if {x[0]} else {x[1]}"
        return f"-{x[0]}" if name == "neg" else f"{name}({', '.join(x)})"

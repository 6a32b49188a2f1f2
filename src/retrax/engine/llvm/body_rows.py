"""The buffers of a body while it moves: found at the start, remembered, left to the caller."""

from collections.abc import Iterable
from itertools import count

from retrax.engine.llvm.blocks import Assembly
from retrax.engine.passes.placement import LINE, widths
from retrax.engine.program import Buffer, CodeBlock, Each, Program, Value, View
from retrax.engine.progress import StepInputs, length, places


class BodyRows(Assembly):
    """What a step takes and makes, and the memory of those of its inputs that are buffers."""

    def __init__(self, program: Program, layout: StepInputs, lanes: int):
        super().__init__(lanes)
        self.program = program
        self.params, self.state, self.h = layout.split(program.inputs)
        self.new = program.outputs[: layout.state]
        self.size = sum(length(x) for x in self.state)
        # The numbers of the state that live in registers, and the buffers that stay in memory.
        self.numbers = [(k, x) for k, x in places(self.state[:-1]) if isinstance(x, Value)]
        self.buffers = [(k, x) for k, x in places(self.state) if isinstance(x, Buffer)]
        self.memory = program.memory
        self.memory_numbers = [(k, x) for k, x in places(self.memory.items) if isinstance(x, Value)]
        self.memory_buffers = [
            (k, x) for k, x in places(self.memory.items) if isinstance(x, Buffer)
        ]
        news = [x for x in self.new if isinstance(x, Buffer)]
        moved = zip((buffer for _, buffer in self.buffers), news, strict=True)
        self.widths = widths(program, (*moved, *self.remembered(), *self.opened()))
        # Buffers in columns, and where the caller has the same numbers in his order.
        self.homes: dict[Buffer, Buffer] = {}
        self.numbering = count(-1, -1)

    def remembered(self) -> list[tuple[Buffer, Buffer]]:
        """The buffers of the memory, and where a step leaves them to the next one."""
        return _buffers(zip(self.memory.items, self.memory.last, strict=True))

    def opened(self) -> list[tuple[Buffer, Buffer]]:
        """The buffers of the memory, and where they are made before the first step."""
        return _buffers(zip(self.memory.items, self.memory.first, strict=True))

    def find_memory(self) -> None:
        """The memory of a step is in scratch memory; the caller has that of the last record."""
        for place, buffer in self.memory_buffers:
            address = self.let(f"getelementptr double, ptr %memory, i64 {place}")
            self.homes[buffer] = self.elsewhere(buffer, address)
            self.addresses[buffer] = self._new_address(buffer)

    def find_buffers(self) -> None:
        """Buffers of the caller are where the caller has them, all others in scratch memory."""
        if self.program.has_buffers:
            self.declarations |= {"declare ptr @malloc(i64)", "declare void @free(ptr)"}
            self.declarations.add("declare ptr @llvm.ptrmask.p0.i64(ptr, i64)")
            # The scratch memory begins with a cache line.
            self.line("%heap = call ptr @malloc(i64 SCRATCH)")
            end = self.let(f"getelementptr double, ptr %heap, i64 {LINE - 1}")
            self.line(f"%scratch = call ptr @llvm.ptrmask.p0.i64(ptr {end}, i64 {-8 * LINE})")
        for array, items in (("params", self.params), ("state", self.state)):
            for place, buffer in places(items):
                if isinstance(buffer, Buffer):
                    self._find_buffer(
                        buffer, self.let(f"getelementptr double, ptr %{array}, i64 {place}")
                    )

    def _find_buffer(self, buffer: Buffer, address: str) -> None:
        if buffer not in self.widths:
            self.addresses[buffer] = address
            return
        home = self.homes[buffer] = self.elsewhere(buffer, address)
        self.addresses[buffer] = self._new_address(buffer)
        self.rearrange(home, buffer)

    def _new_address(self, buffer: Buffer) -> str:
        first = self.new_memory(buffer)
        return self.let(f"getelementptr double, ptr %scratch, i64 {first}", "row")

    def elsewhere(self, buffer: Buffer, address: str) -> Buffer:
        """A buffer of the same length in the order of the caller, at an address."""
        other = Buffer(next(self.numbering), buffer.length, buffer.kind)
        self.addresses[other] = address
        return other

    def transfer(self, source: Buffer, target: Buffer) -> None:
        """Copy a buffer to one of the same length, in whatever order each of them is stored."""
        if source in self.widths or target in self.widths:
            self.rearrange(source, target)
        else:
            self.copy_buffer(self.address(target), self.address(source), source.length)

    def rearrange(self, source: Buffer, target: Buffer) -> None:
        """Copy a buffer to one that is stored in another order."""
        width = self.widths.get(source) or self.widths[target]
        columns = [(c, width, source.length // width) for c in range(width)]
        values = [Value(next(self.numbering), "float") for _ in columns]
        reads = tuple((v, View(source, *c)) for v, c in zip(values, columns, strict=True))
        writes = tuple((View(target, *c), v) for v, c in zip(values, columns, strict=True))
        self.renamed |= {v: f"%{self.fresh('moved')}" for v in values}
        self.instruction(Each(source.length // width, reads, CodeBlock(), writes))

    def leave(self, result: str) -> None:
        """Return `result`, with the buffers in the order of the caller."""
        for _, buffer in self.buffers:
            if buffer in self.homes:
                self.rearrange(buffer, self.homes[buffer])
        if self.program.has_buffers:
            self.line("call void @free(ptr %heap)")
        self.line(f"ret i64 {result}")

    def copy_buffer(self, target: str, source: str, count: int) -> None:
        function = "llvm.memcpy.p0.p0.i64"
        self.declarations.add(f"declare void @{function}(ptr, ptr, i64, i1)")
        arguments = f"ptr {target}, ptr {source}, i64 {8 * count}, i1 false"
        self.line(f"call void @{function}({arguments})")


def _buffers(pairs: Iterable[tuple[object, object]]) -> list[tuple[Buffer, Buffer]]:
    return [(a, b) for a, b in pairs if isinstance(a, Buffer) and isinstance(b, Buffer)]

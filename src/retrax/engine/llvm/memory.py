"""Buffers in memory: where their entries are, and how they are read and written."""

from retrax.engine.llvm.operations import Operations, literal
from retrax.engine.passes.placement import Widths, place_of, size_of, stored
from retrax.engine.program import Buffer, Operand, Value, View, kind_of


class Buffers(Operations):
    """Operations, and buffers of numbers that they load and store.

    Buffers are the caller's, tables, or parts of one scratch memory that are used again.
    """

    def __init__(self, lanes: int = 1):
        super().__init__(lanes)
        # Where buffers are: those of the caller, and those in scratch memory, by first entry.
        self.addresses: dict[Buffer, str] = {}
        self.widths: Widths = {}
        self.scratch: dict[Buffer, int] = {}
        self.scratch_size = 0
        self.spare: dict[int, list[int]] = {}

    def entry(self, buffer: Buffer, index: str) -> str:
        """The address of an entry of a buffer."""
        return self.let(f"getelementptr double, ptr {self.address(buffer)}, i64 {index}")

    def single(self, buffer: Buffer, index: int) -> str:
        """The address of an entry that is known here."""
        return self.entry(buffer, str(place_of(buffer, index, self.widths.get(buffer, 1))))

    def address(self, buffer: Buffer) -> str:
        """Where a buffer begins; one that has no place yet gets one."""
        if buffer in self.addresses:
            return self.addresses[buffer]
        if buffer.table is not None:
            entries = ", ".join(f"double {literal(x, 'float')}" for x in buffer.table)
            name = f"@row.{buffer.number}"
            self.globals.append(
                f"{name} = private unnamed_addr constant [{buffer.length} x double] [{entries}]"
            )
            self.addresses[buffer] = name
            return name
        if buffer not in self.scratch:
            spare = self.spare.get(self.room(buffer))
            self.scratch[buffer] = spare.pop() if spare else self.new_memory(buffer)
        return self.let(f"getelementptr double, ptr %scratch, i64 {self.scratch[buffer]}")

    def new_memory(self, buffer: Buffer) -> int:
        """The first entry of a part of scratch memory that no buffer has had."""
        first, self.scratch_size = self.scratch_size, self.scratch_size + self.room(buffer)
        return first

    def room(self, buffer: Buffer) -> int:
        """How many numbers a buffer takes in memory."""
        return size_of(buffer, self.widths.get(buffer, 1))

    def _stored(self, view: View) -> View:
        return stored(view, self.widths.get(view.buffer, 1))

    def _places(self, view: View, k: str) -> list[str]:
        """The addresses of the entries k, k + 1, ... of a view in memory, one for each lane."""
        first = self.let(f"mul i64 {k}, {view.stride}")
        return [
            self.entry(
                view.buffer, self.let(f"add i64 {first}, {view.offset + lane * view.stride}")
            )
            for lane in range(self.lanes if view.stride != 1 else 1)
        ]

    def read(self, value: Value, view: View, k: str) -> None:
        view, vector = self._stored(view), self.type("float")
        places = self._places(view, k)
        if view.stride == 1 or self.lanes == 1:
            self.line(f"{self.name(value)} = load {vector}, ptr {places[0]}, align 8")
            return
        gathered = "poison"
        for lane, place in enumerate(places):
            one = self.let(f"load double, ptr {place}")
            text = f"insertelement {vector} {gathered}, double {one}, i64 {lane}"
            if lane == self.lanes - 1:
                self.line(f"{self.name(value)} = {text}")
            else:
                gathered = self.let(text)

    def write(self, view: View, operand: Operand, k: str) -> None:
        kind, vector = kind_of(operand), self.type("float")
        number = self.name(operand)
        if kind != "float":
            number = self.let(self.converted(number, kind, "float"))
        view = self._stored(view)
        places = self._places(view, k)
        if view.stride == 1 or self.lanes == 1:
            self.line(f"store {vector} {number}, ptr {places[0]}, align 8")
            return
        for lane, place in enumerate(places):
            one = self.let(f"extractelement {vector} {number}, i64 {lane}")
            self.line(f"store double {one}, ptr {place}")

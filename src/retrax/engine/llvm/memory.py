"""Buffers as LLVM sees them: where they begin, and how their entries are loaded and stored."""

from collections.abc import Iterator

from retrax.engine.llvm.emitter import Emitter, literal
from retrax.engine.passes.placement import MemoryPlan
from retrax.engine.program import Buffer, Operand, Value, View, kind_of


class BufferAccess:
    """Loads and stores of buffers: those of the caller, tables, and those in scratch memory.

    With bodies in lanes an entry in scratch memory is a vector, a number of each body; an entry of
    the caller's is a part of a row, and tables are the same for all.
    """

    def __init__(self, out: Emitter, plan: MemoryPlan):
        self.out, self.plan, self.bodies = out, plan, out.lanes
        # Registers and globals: where the caller's buffers and the tables begin.
        self.addresses: dict[Buffer, str] = {}
        # Buffers of the caller whose entries are rows of bodies.
        self.rows: set[Buffer] = set()
        # What has been stored to so far; and, in a loop, for which bodies a buffer may change.
        self.written: set[Buffer] = set()
        self.going: dict[Buffer, str] = {}

    def address(self, buffer: Buffer) -> str:
        """Return where a buffer begins."""
        if buffer in self.addresses:
            return self.addresses[buffer]
        if buffer.table is None:
            return self.scratch(buffer)
        entries = ", ".join(f"double {literal(x, 'float')}" for x in buffer.table)
        name = f"@row.{buffer.number}"
        self.out.globals.append(
            f"{name} = private unnamed_addr constant [{buffer.length} x double] [{entries}]"
        )
        self.addresses[buffer] = name
        return name

    def scratch(self, buffer: Buffer, stem: str = "x") -> str:
        """Return where the plan has put a buffer in scratch memory."""
        where, before = self._base(buffer)
        return self.out.let(f"getelementptr double, ptr {where}, i64 {before * self.bodies}", stem)

    def entry(self, buffer: Buffer, first: int, further: str | None = None) -> str:
        """Return the address of an entry by its place in memory: the `first`, or `further` on."""
        out = self.out
        if buffer in self.rows:
            index = str(first) if further is None else out.let(f"add i64 {further}, {first}")
            row = out.let(f"mul i64 {index}, %stride")
            return out.let(f"getelementptr double, ptr {self.address(buffer)}, i64 {row}")
        where, before = self._base(buffer)
        several = self.bodies > 1 and buffer.table is None
        number = f"[{self.bodies} x double]" if several else "double"
        place = out.let(f"getelementptr {number}, ptr {where}, i64 {before + first}")
        if further is None:
            return place
        return out.let(f"getelementptr {number}, ptr {place}, i64 {further}")

    def _base(self, buffer: Buffer) -> tuple[str, int]:
        """Return an address, and how many entries behind it a buffer begins."""
        if buffer in self.addresses or buffer.table is not None:
            return self.address(buffer), 0
        if buffer in self.plan.within:
            result, first = self.plan.within[buffer]
            where, before = self._base(result)
            return where, before + first
        return "%scratch", self.plan.offsets[buffer]

    def single(self, buffer: Buffer, index: int) -> str:
        """Return the address of an entry that is known here."""
        return self.entry(buffer, self.plan.place_of(buffer, index))

    def load(self, value: Value, buffer: Buffer, index: int) -> None:
        """Load an entry that is known here."""
        out, place = self.out, self.single(buffer, index)
        if self.bodies > 1 and buffer.table is not None:
            one = out.let(f"load double, ptr {place}")
            out.line(f"{out.name(value)} = {out.copy(out.splat(one, 'float'), 'float')}")
            return
        out.line(f"{out.name(value)} = load {out.type('float')}, ptr {place}, align 8")

    def store(self, buffer: Buffer, index: int, operand: Operand) -> None:
        """Store to an entry that is known here."""
        self._store(buffer, self.out.name(operand, "float"), self.single(buffer, index))

    def _store(self, buffer: Buffer, number: str, place: str) -> None:
        out, vector = self.out, self.out.type("float")
        self.written.add(buffer)
        if buffer in self.going:
            old = out.let(f"load {vector}, ptr {place}, align 8")
            mask = f"{out.type('bool')} {self.going[buffer]}"
            number = out.let(f"select {mask}, {vector} {number}, {vector} {old}")
        out.line(f"store {vector} {number}, ptr {place}, align 8")

    def _places(self, view: View, k: str) -> list[str]:
        """Return the addresses of the entries k, k + 1, ... of a view in memory, one a lane.

        These are the lanes, unless bodies are in them.
        """
        out = self.out
        further = k if view.stride == 1 else out.let(f"mul i64 {k}, {view.stride}")
        things = out.lanes if view.stride != 1 and self.bodies == 1 else 1
        return [
            self.entry(view.buffer, view.offset + n * view.stride, further) for n in range(things)
        ]

    def read(self, value: Value, view: View, k: str) -> None:
        """Load the entries of a view from k on, one for each lane."""
        out = self.out
        view, vector = self.plan.view_in_memory(view), out.type("float")
        places = self._places(view, k)
        if self.bodies > 1 and view.buffer.table is not None:
            one = out.let(f"load double, ptr {places[0]}")
            out.line(f"{out.name(value)} = {out.copy(out.splat(one, 'float'), 'float')}")
            return
        if len(places) == 1:
            out.line(f"{out.name(value)} = load {vector}, ptr {places[0]}, align 8")
            return
        gathered = "poison"
        for lane, place in enumerate(places):
            one = out.let(f"load double, ptr {place}")
            text = f"insertelement {vector} {gathered}, double {one}, i64 {lane}"
            if lane == out.lanes - 1:
                out.line(f"{out.name(value)} = {text}")
            else:
                gathered = out.let(text)

    def read_at(self, value: Value, view: View, index: Operand) -> None:
        """Load the entry of a view at an index, one of its own for each lane."""
        out, vector = self.out, self.out.type("float")
        loaded = "poison"
        for lane, where in enumerate(self._places_at(view, index)):
            text = f"load double, ptr {where}"
            if out.lanes > 1:
                one = out.let(text)
                text = f"insertelement {vector} {loaded}, double {one}, i64 {lane}"
            if lane == out.lanes - 1:
                out.line(f"{out.name(value)} = {text}")
            else:
                loaded = out.let(text)

    def write_at(self, view: View, index: Operand, operand: Operand) -> None:
        """Store to the entry of a view at an index, one of its own for each body."""
        out, vector, number = self.out, self.out.type("float"), self.out.name(operand, "float")
        self.written.add(view.buffer)
        mask = self.going.get(view.buffer)
        for lane, where in enumerate(self._places_at(view, index)):
            one = number
            if out.lanes > 1:
                one = out.let(f"extractelement {vector} {number}, i64 {lane}")
            if mask is not None:
                old = out.let(f"load double, ptr {where}")
                goes = out.let(f"extractelement {out.type('bool')} {mask}, i64 {lane}")
                one = out.let(f"select i1 {goes}, double {one}, double {old}")
            out.line(f"store double {one}, ptr {where}")

    def _places_at(self, view: View, index: Operand) -> Iterator[str]:
        """Return the addresses of the entries of a view at an index that each lane has itself."""
        out = self.out
        view, places = self.plan.view_in_memory(view), out.name(index, "int")
        for lane in range(out.lanes):
            place = places
            if out.lanes > 1:
                place = out.let(f"extractelement {out.type('int')} {places}, i64 {lane}")
            further = out.let(f"mul i64 {place}, {view.stride}")
            where = self.entry(view.buffer, view.offset, further)
            if self.bodies > 1 and view.buffer.table is None:
                where = out.let(f"getelementptr double, ptr {where}, i64 {lane}")
            yield where

    def write(self, view: View, operand: Operand, k: str) -> None:
        """Store to the entries of a view from k on, one for each lane; memory holds floats."""
        out = self.out
        kind, vector = kind_of(operand), out.type("float")
        number = out.name(operand)
        if kind != "float":
            number = out.let(out.convert(number, kind, "float"))
        view = self.plan.view_in_memory(view)
        places = self._places(view, k)
        if len(places) == 1:
            self._store(view.buffer, number, places[0])
            return
        for lane, place in enumerate(places):
            one = out.let(f"extractelement {vector} {number}, i64 {lane}")
            out.line(f"store double {one}, ptr {place}")

    def copy(self, target: str, source: str, count: int) -> None:
        """Copy `count` numbers from one address to another."""
        function = "llvm.memcpy.p0.p0.i64"
        self.out.declarations.add(f"declare void @{function}(ptr, ptr, i64, i1)")
        arguments = f"ptr {target}, ptr {source}, i64 {8 * count * self.bodies}, i1 false"
        self.out.line(f"call void @{function}({arguments})")

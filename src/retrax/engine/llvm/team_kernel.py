"""The time loop of one large body whose loops are shared out to several threads.

It is the loop of `kernel`. All threads of the team run it side by side: they share out the rounds
along kept axes and all do everything else. A round does the same whoever runs it, so the bits do
not depend on the number of threads. Threads meet (`meeting`) only where one reads what another has
written since they last met, or writes what another has read; loops that carry numbers along the
axis are run by all, and the first thread alone writes what they make.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from retrax.engine.llvm.blocks import BlockPrinter
from retrax.engine.llvm.body_memory import BodyMemory
from retrax.engine.llvm.emitter import Emitter
from retrax.engine.llvm.kernel import ATTRIBUTES, TimeLoop
from retrax.engine.llvm.meeting import SCRATCH, meeting
from retrax.engine.llvm.memory import BufferAccess
from retrax.engine.passes.overlap import apart, list_accesses
from retrax.engine.passes.placement import MemoryPlan
from retrax.engine.program import (
    Buffer,
    Choose,
    CodeBlock,
    Each,
    Instruction,
    Program,
    Repeat,
    StoreEntry,
    View,
    While,
)
from retrax.engine.progress import StepInputs

_HEADER = (
    "define i64 @work(ptr %params, ptr %state, ptr %memory, ptr %out, ptr %interval, ptr %failure, "
    "double %h, i64 %start, i64 %records, i64 %every, i64 %stride, i64 %open, i64 %me, i64 %team, "
    "ptr %place, ptr %flag)"
)


def assemble_team(program: Program, inputs: StepInputs) -> tuple[str, int]:
    """Return the LLVM module with the function `work`, which every thread of a team calls.

    And how many numbers the scratch memory has that the caller puts at the meeting place.
    """
    loop = TeamLoop(program, inputs, lanes=1, shared=True)
    return loop.module(), loop.planned.plan.size


class TeamLoop(TimeLoop):
    """The time loop as one thread of a team runs it."""

    printer: "TeamPrinter"

    def _printers(self) -> tuple["TeamPrinter", BodyMemory]:
        access = TeamAccess(self.out, self.planned.plan)
        printer = TeamPrinter(self.out, access, self._goes_on)
        return printer, TeamMemory(printer, self.step, self.planned)

    def module(self) -> str:
        out = self.out
        self._entry()
        self._records()
        parts = [
            meeting(),
            *out.globals,
            *sorted(out.declarations),
            f"{_HEADER} #0 {{",
            "begin:",
            "  %size = alloca i64, align 8",
            "  store i64 %team, ptr %size, align 8",
            "  %told.at = alloca i64, align 8",
            "  store i64 0, ptr %told.at, align 8",
            "  %first = icmp eq i64 %me, 0",
            "  br label %entry",
            *out.lines,
            "}",
            *ATTRIBUTES,
        ]
        return "\n".join(parts)

    def _judge(self) -> None:
        self.printer.settle()
        super()._judge()

    def _next_step(self) -> None:
        """Let the first thread go on alone where the team is to part."""
        out = self.out
        self.printer.settle()
        size = out.let("load i64, ptr %size, align 8")
        out.line(f"call void @review(ptr %place, i64 %me, i64 {size})")
        told = out.let("load i64, ptr %told.at, align 8")
        parts = out.let(f"icmp eq i64 {told}, 2")
        out.line(f"store i64 {out.let(f'select i1 {parts}, i64 1, i64 {size}')}, ptr %size")
        stays = out.let(f"and i1 {parts}, %first")
        goal = out.let(f"select i1 {stays}, i64 0, i64 {told}")
        out.line(f"switch i64 {goal}, label %told [ i64 0, label %steps.head i64 2, label %gone ]")
        out.begin("gone")
        out.line("ret i64 0")

    def _stop_signal(self) -> str:
        """Return the message that the threads got where they last met, so that all do the same."""
        out = self.out
        return out.let(f"icmp eq i64 {out.let('load i64, ptr %told.at, align 8')}, 1")


class TeamAccess(BufferAccess):
    """Buffers that a team works on."""

    def meet(self) -> None:
        """Have all threads wait for each other."""
        out = self.out
        size = out.let("load i64, ptr %size, align 8")
        told = out.let(f"call i64 @meet(ptr %place, i64 %me, i64 {size}, ptr %flag)")
        out.line(f"store i64 {told}, ptr %told.at, align 8")

    def share(self, count: int) -> tuple[str, str]:
        """Return the first of `count` things that is this thread's, and how many are."""
        out = self.out
        size = out.let("load i64, ptr %size, align 8")
        first, after = (
            out.let(f"udiv i64 {out.let(f'mul i64 {k}, {count}')}, {size}")
            for k in ("%me", out.let("add i64 %me, 1"))
        )
        return first, out.let(f"sub i64 {after}, {first}")

    def copy(self, target: str, source: str, count: int) -> None:
        """Copy `count` numbers from one address to another, each thread its own."""
        out = self.out
        function = "llvm.memcpy.p0.p0.i64"
        out.declarations.add(f"declare void @{function}(ptr, ptr, i64, i1)")
        first, own = self.share(count)
        there, here = (
            out.let(f"getelementptr double, ptr {where}, i64 {first}") for where in (target, source)
        )
        length = out.let(f"mul i64 {own}, 8")
        out.line(f"call void @{function}(ptr {there}, ptr {here}, i64 {length}, i1 false)")


class TeamPrinter(BlockPrinter):
    """Prints blocks so that threads share out the rounds along kept axes."""

    def __init__(self, out: Emitter, access: TeamAccess, goes_on: Callable[[str], str]):
        super().__init__(out, access, goes_on)
        self.access = access
        # What threads have read and written since they last met.
        self._reads: list[View] = []
        self._writes: list[View] = []
        self._inside = False  # a round, in which each thread goes its own way
        self._parts: set[int] = set()  # blocks at whose end the threads have met

    def settle(self) -> None:
        """Have the threads meet, unless nothing has happened since they last did."""
        if self._reads or self._writes:
            self.meet()

    def meet(self) -> None:
        """Have the threads meet."""
        self.access.meet()
        self._reads, self._writes = [], []

    def block(self, block: CodeBlock) -> None:
        super().block(block)
        if id(block) in self._parts:
            self.settle()

    def instruction(self, instruction: Instruction) -> None:
        if self._inside or not any(list_accesses(instruction)):
            super().instruction(instruction)
            return
        match instruction:
            case While():
                self._apart(instruction, instruction.condition, instruction.body)
            case Repeat():
                self._apart(instruction, instruction.body)
            case Choose():
                self._apart(instruction, *instruction.blocks)
            case _:
                self._in_order(instruction)

    def _apart(self, instruction: Instruction, *blocks: CodeBlock) -> None:
        """Print a block that runs many times or not at all, between two meetings of the threads."""
        self.settle()
        self._parts |= {id(block) for block in blocks}
        super().instruction(instruction)

    def _in_order(self, instruction: Instruction) -> None:
        reads, writes = list_accesses(instruction)
        before = [*self._reads, *self._writes]
        if self._conflict(reads, self._writes) or self._conflict(writes, before):
            self.settle()
        self._reads += reads
        self._writes += writes
        loop = instruction if isinstance(instruction, Each) and not instruction.carried else None
        if isinstance(instruction, StoreEntry) or (loop is not None and loop.length <= self.short):
            with self._alone():
                super().instruction(instruction)
        else:
            super().instruction(instruction)

    def _conflict(self, some: list[View], others: list[View]) -> bool:
        return any(self._touch(a, b) for a in some for b in others)

    def _touch(self, a: View, b: View) -> bool:
        """Return whether two views may lie in the same memory, which is used again and again."""
        if a.buffer == b.buffer:
            return not apart(a, b)
        plan: MemoryPlan = self.access.plan
        if a.buffer not in plan.offsets or b.buffer not in plan.offsets:
            return False
        first, second = plan.offsets[a.buffer], plan.offsets[b.buffer]
        return first < second + plan.extent(b.buffer) and second < first + plan.extent(a.buffer)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let only the first thread do what is printed inside."""
        out = self.out
        only, done = out.fresh("only"), out.fresh("done")
        out.line(f"br i1 %first, label %{only}, label %{done}")
        out.begin(only)
        yield
        out.line(f"br label %{done}")
        out.begin(done)

    def _share(self, rounds: int) -> tuple[str, str]:
        return self.access.share(rounds)

    def _round(self, loop: Each, k: str) -> None:
        self._inside = True
        super()._round(loop, k)
        self._inside = False

    def _write(self, loop: Each, k: str) -> None:
        if not loop.carried:
            super()._write(loop, k)
        elif loop.writes:
            with self._alone():
                super()._write(loop, k)


class TeamMemory(BodyMemory):
    """The memory of a body, which the threads of a team share."""

    printer: TeamPrinter

    def find(self) -> None:
        super().find()
        self.printer.settle()

    def open(self, time: str) -> list[str]:
        made = super().open(time)
        self.printer.settle()
        return made

    def save(self, buffer: Buffer, target: str) -> None:
        super().save(buffer, target)
        self.printer.settle()

    def leave(self, result: str) -> None:
        self.printer.meet()
        super().leave(result)

    def _copy(self, source: Buffer, target: Buffer) -> None:
        self.printer.settle()
        super()._copy(source, target)
        self.printer.meet()

    def _find_scratch(self) -> None:
        """Find scratch memory, which the caller of all threads has put at the meeting place."""
        where = self.out.let(f"getelementptr i64, ptr %place, i64 {SCRATCH}")
        self.out.line(f"%scratch = load ptr, ptr {where}, align 8")

    def _leave_scratch(self) -> None:
        """Do nothing: the scratch memory is the caller's."""

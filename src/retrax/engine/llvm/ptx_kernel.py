"""The time loop of a step as a kernel for GPUs, in LLVM assembly.

It is the loop of `kernel`, with other threads around it. Most members have a thread to themselves:
member m is thread m, and its numbers stay in registers for all steps of a launch. Memory is laid
out as on a processor, quantities are rows and members are columns, so that the threads of a warp
read and write neighbours.

A member with buffers, of which an axis is kept, has several lanes of a warp to itself. They share
out the rounds of a loop along that axis and all do everything else; buffers lie in the memory that
a multiprocessor shares. Then every member is in one piece:

    state [members][S], memory [members][M], out [records][members][S], ...

A launch may end between two records. Where `begun` is not zero, it takes up the statistics of the
interval where the launch before has left them; such a launch has one record.
"""

import math
from collections.abc import Sequence

from retrax.engine.llvm.blocks import BlockPrinter
from retrax.engine.llvm.body_memory import BodyMemory, PlannedStep
from retrax.engine.llvm.emitter import Emitter
from retrax.engine.llvm.kernel import TimeLoop
from retrax.engine.llvm.memory import BufferAccess
from retrax.engine.passes.placement import MemoryPlan
from retrax.engine.passes.work import work
from retrax.engine.program import (
    Each,
    Instruction,
    Program,
    StoreAt,
    StoreEntry,
    kind_of,
    numbers,
    stores_at,
)
from retrax.engine.progress import FAILURE, INTERVAL, StepInputs, length

WARP = 32
# Parameters that all members share are arguments of the kernel: so many numbers fit.
_MOST_ARGUMENTS = 400
# Bytes of buffers that fit into the shared memory of a multiprocessor; more lie in global memory.
SHARED_BYTES = 200 * 1024
# Warps of a multiprocessor that has registers for all that such a member needs.
_WARPS = 8
# So many rounds of a copy are read before they are written.
_ROUNDS = 16
_BARRIER = "declare void @llvm.nvvm.bar.warp.sync(i32)"
_INDICES = ("tid", "ctaid", "ntid")


class KernelLayout:
    """How a kernel wants its arguments: what the one who launches it has to know.

    **Attributes:**

    - `lanes`: how many threads a member has; where there are several it is in one piece in memory.
    - `inline`: how many parameters are arguments of the kernel; 0 where they are in memory.
    - `shared_bytes`: of shared memory the members of a warp need.
    - `heap`: how many numbers a member needs of memory that it shares with none; 0 for most.
    - `state`, `memory`: how many numbers these are.
    """

    def __init__(self, loop: "GPUTimeLoop"):
        step, plan = loop.step, loop.planned.plan
        self.lanes = loop.lanes
        self.inline = loop.inline
        fits = 8 * plan.size <= SHARED_BYTES
        self.shared_bytes = (
            8 * plan.size * (WARP // self.lanes) if loop.planned.used and fits else 0
        )
        self.heap = plan.size if loop.planned.used and not fits else 0
        self.state = step.size
        self.memory = loop.inputs.memory.size

    @property
    def pieces(self) -> bool:
        """Whether every member is in one piece in memory, and not a column of rows."""
        return self.lanes > 1


def assemble_kernel(program: Program, inputs: StepInputs, shared: bool) -> tuple[str, KernelLayout]:
    """Return the LLVM module with the kernel `run`, and how it is launched.

    `shared` says whether all members have the same parameters.
    """
    loop = GPUTimeLoop(program, inputs, shared)
    layout = KernelLayout(loop)
    return loop.kernel(layout), layout


class GPUTimeLoop(TimeLoop):
    """The time loop of one member, in a thread or in a warp."""

    def __init__(self, program: Program, inputs: StepInputs, shared: bool):
        self.inputs = inputs
        super().__init__(program, inputs, 1, shared)
        few = 0 < inputs.params <= _MOST_ARGUMENTS
        self.inline = inputs.params if shared and few and not self.planned.used else 0

    def _printers(self) -> tuple[BlockPrinter, BodyMemory]:
        self.lanes, plan = lanes_for(self.planned), self.planned.plan
        if self.planned.used:
            printer = WarpPrinter(self.out, WarpAccess(self.out, plan, self.lanes))
        else:
            printer = BlockPrinter(self.out, BufferAccess(self.out, plan))
        return printer, WarpMemory(printer, self.step, self.planned)

    def kernel(self, layout: KernelLayout) -> str:
        """Return the text of the whole module."""
        out, step = self.out, self.step
        self._entry()
        self._records()
        arrays = ("params", "state", "memory", "out", "interval", "failure", "heap")
        widths = (
            sum(length(x) for x in step.params),
            layout.state,
            layout.memory,
            layout.state,
            len(INTERVAL),
            len(FAILURE),
            layout.heap,
        )
        arguments, found = [], []
        for name, width in zip(arrays, widths, strict=True):
            if name == "params" and self.inline:
                arguments.append(f"ptr byval([{self.inline} x double]) align 8 %params")
                continue
            arguments.append(f"ptr addrspace(1) %{name}.global")
            alone = name == "params" and self.shared
            first = "0" if alone else f"%{name}.first" if self.planned.used else "%member"
            if not alone and self.planned.used:
                found.append(f"  %{name}.first = mul i64 %member, {width}")
            found += [
                f"  %{name}.all = addrspacecast ptr addrspace(1) %{name}.global to ptr",
                f"  %{name} = getelementptr double, ptr %{name}.all, i64 {first}",
            ]
        for row, name in enumerate(INTERVAL):
            found += [
                f"  %{name}.row = mul i64 {row}, %stride",
                f"  %{name}.place = getelementptr double, ptr %interval, i64 %{name}.row",
                f"  %{name}.old = load double, ptr %{name}.place, align 8",
                f"  %{name}.since = select i1 %goes.on, double %{name}.old, double 0.0",
            ]
        numbers = ("start", "records", "every", "stride", "members", "open", "begun")
        arguments += ["double %h", *(f"i64 %{name}" for name in numbers)]
        each = self.lanes.bit_length() - 1
        own = (
            f"  %lane.number = and i32 %tid, {self.lanes - 1}",
            "  %lane = zext i32 %lane.number to i64",
            f"  %side = lshr i32 %tid, {each}",
            "  %neighbour = zext i32 %side to i64",
            f"  %first.lane = and i32 %tid, {WARP - self.lanes}",
            f"  %mates = shl i32 {(1 << self.lanes) - 1 if self.lanes < WARP else -1}, %first.lane",
            "  %goes.on = icmp ne i64 %begun, 0",
        )
        if layout.shared_bytes:
            out.globals.append("@rows = external addrspace(3) global [0 x double], align 64")
        return _module(out, arguments, [*own, *found], each)

    def _first_row(self, width: int) -> str:
        if not self.planned.used:
            return super()._first_row(width)
        return self.out.let(f"mul i64 {self.out.let('mul i64 %record, %members')}, {width}")

    def _since(self, name: str) -> str:
        return f"%{name}.since"

    def _stop_signal(self) -> str:
        """Return false: a launch is short, and signals are heard after it."""
        return "false"


def _module(out: Emitter, arguments: Sequence[str], first: Sequence[str], each: int = 0) -> str:
    """Make a module with the kernel `run` of `out.lines`; 2 to the `each` threads are a member."""
    read = "@llvm.nvvm.read.ptx.sreg"
    parts = [
        'target triple = "nvptx64-nvidia-cuda"',
        *out.globals,
        *sorted(out.declarations | {f"declare i32 {read}.{index}.x()" for index in _INDICES}),
        f"define ptx_kernel void @run({', '.join(arguments)}) nounwind {{",
        "begin:",
        *(f"  %{index} = call i32 {read}.{index}.x()" for index in _INDICES),
        "  %before = mul i32 %ctaid, %ntid",
        "  %thread = add i32 %before, %tid",
        f"  %index = lshr i32 %thread, {each}",
        "  %member = zext i32 %index to i64",
        "  %there = icmp slt i64 %member, %members",
        "  br i1 %there, label %found, label %nobody",
        "nobody:",
        "  ret void",
        "found:",
        *first,
        "  br label %entry",
        *out.lines,
        "}",
        '!0 = !{!"branch_weights", i32 1, i32 1000000}',
    ]
    return "\n".join(parts)


def lanes_for(planned: PlannedStep) -> int:
    """Return the number of lanes of a member: several where it has buffers.

    With few lanes less of what all of them do is done again, with many fewer members must fit into
    shared memory at the same time. The numbers agree with what was measured on rods and strings.
    """
    if not planned.used or 8 * planned.plan.size > SHARED_BYTES:
        return WARP if planned.used else 1
    shared, alike = work(planned.block)

    def seconds(lanes: int) -> float:
        members = WARP // lanes
        warps = min(_WARPS, SHARED_BYTES // (8 * planned.plan.size * members))
        rounds = sum(-(-length // lanes) * work for length, work in shared)
        return math.inf if warps == 0 else (rounds + alike) / (members * warps)

    return min((32, 16, 8, 4), key=seconds)


def assemble_function(program: Program, widths: Sequence[int]) -> str:
    """Return the LLVM module with the kernel `run`: a function of the numbers of each member.

    Its inputs come from arrays of `widths` numbers a member, its outputs are rows of floats.
    """
    out = Emitter()
    out.begin("entry")
    inputs = iter(numbers(program.inputs))
    for k, width in enumerate(widths):
        first = out.let(f"mul i64 %member, {width}")
        for j in range(width):
            place = out.let(f"add i64 {first}, {j}")
            at = out.let(f"getelementptr double, ptr addrspace(1) %array.{k}, i64 {place}")
            loaded = out.let(f"load double, ptr addrspace(1) {at}, align 8")
            out.line(f"{out.name(next(inputs))} = {out.copy(loaded, 'float')}")
    BlockPrinter(out, BufferAccess(out, MemoryPlan({}))).block(program.block)
    for row, operand in enumerate(numbers(program.outputs)):
        number = out.name(operand, "float")
        if kind_of(operand) != "float":
            number = out.let(out.convert(out.name(operand), kind_of(operand), "float"))
        place = out.let(f"add i64 {out.let(f'mul i64 %members, {row}')}, %member")
        at = out.let(f"getelementptr double, ptr addrspace(1) %out, i64 {place}")
        out.line(f"store double {number}, ptr addrspace(1) {at}, align 8")
    out.line("ret void")
    arguments = [f"ptr addrspace(1) %array.{k}" for k in range(len(widths))]
    arguments += ["ptr addrspace(1) %out", "i64 %members"]
    return _module(out, arguments, [])


class WarpAccess(BufferAccess):
    """Buffers of a member whose lanes work together."""

    def __init__(self, out: Emitter, plan: MemoryPlan, lanes: int):
        super().__init__(out, plan)
        self.lanes = lanes

    def meet(self) -> None:
        """Have all lanes wait for each other: what one has written, the others see."""
        self.out.declarations.add(_BARRIER)
        self.out.line("call void @llvm.nvvm.bar.warp.sync(i32 %mates)")

    def own(self, length: int, first: str) -> str:
        """Return the place of this lane, from `first` on; those beyond the end take the last."""
        out = self.out
        k = out.let(f"add i64 %lane, {first}")
        beyond = out.let(f"icmp ugt i64 {k}, {length - 1}")
        return out.let(f"select i1 {beyond}, i64 {length - 1}, i64 {k}")

    def copy(self, target: str, source: str, count: int) -> None:
        """Copy `count` numbers from one address to another, each lane its own."""
        out, rounds = self.out, -(-count // self.lanes)
        self.meet()
        for first in range(0, rounds, _ROUNDS):
            moved = []
            for k in range(first, min(first + _ROUNDS, rounds)):
                place = self.own(count, str(self.lanes * k))
                here = out.let(f"getelementptr double, ptr {source}, i64 {place}")
                moved.append((place, out.let(f"load double, ptr {here}, align 8")))
            for place, number in moved:
                there = out.let(f"getelementptr double, ptr {target}, i64 {place}")
                out.line(f"store double {number}, ptr {there}, align 8")
        self.meet()


class WarpPrinter(BlockPrinter):
    """Prints blocks so that the lanes of a warp share out the rounds along kept axes."""

    def __init__(self, out: Emitter, buffers: WarpAccess):
        super().__init__(out, buffers)
        self.access, self.lanes = buffers, buffers.lanes
        self._apart = False  # inside a round each lane goes its own way

    def instruction(self, instruction: Instruction) -> None:
        alone = isinstance(instruction, StoreEntry | StoreAt) and not self._apart
        if alone:
            self.access.meet()
        super().instruction(instruction)
        if alone:
            self.access.meet()

    def _each(self, loop: Each) -> None:
        out = self.out
        if self._apart:
            with self._count_rounds(loop, ("each", "thing"), loop.length) as k:
                self._round(loop, k)
            return
        self.access.meet()
        # Lanes that store at places of their own do so together, round by round.
        self._apart = not stores_at(loop.body)
        if loop.in_order:
            with self._count_rounds(loop, ("each", "thing"), loop.length) as k:
                self._round(loop, k)
        elif loop.length <= self.lanes:
            self._round(loop, self.access.own(loop.length, "0"))
        else:
            with self._count_rounds(
                loop, ("each", "block"), -(-loop.length // self.lanes)
            ) as block:
                first = out.let(f"mul i64 {block}, {self.lanes}")
                self._round(loop, self.access.own(loop.length, first))
        self._apart = False
        self.access.meet()


class WarpMemory(BodyMemory):
    """The memory of a member: buffers where the threads of a multiprocessor share it.

    They stay where they are, so that the compiler knows which memory that is.
    """

    swaps = False

    def _find_scratch(self) -> None:
        out = self.out
        if 8 * self.plan.size > SHARED_BYTES:
            out.line("%scratch = getelementptr double, ptr %heap, i64 0")
            return
        out.line("%rows = addrspacecast ptr addrspace(3) @rows to ptr")
        first = out.let(f"mul i64 %neighbour, {self.plan.size}")
        out.line(f"%scratch = getelementptr double, ptr %rows, i64 {first}")

    def _leave_scratch(self) -> None:
        """Do nothing: shared memory ends with the launch."""

    def _return(self, result: str) -> None:
        self.out.line("ret void")

"""The time loop of a step as a kernel for GPUs, in LLVM assembly.

It is the loop of `kernel`, with other threads around it. Most members have a thread to themselves:
member m is thread m, and its numbers stay in registers for all steps of a launch. Memory is laid
out as on a processor, quantities are rows and members are columns, so that the threads of a warp
read and write neighbours.

A member with buffers, of which an axis is kept, has a warp to itself. Its lanes share out the
rounds of a loop along that axis and all do everything else; buffers lie in the memory that a
multiprocessor shares. Then every member is in one piece:

    state [members][S], memory [members][M], out [records][members][S], ...

A launch may end between two records. Where `begun` is not zero, it takes up the statistics of the
interval where the launch before has left them; such a launch has one record.
"""

from retrax.engine.llvm.blocks import BlockPrinter
from retrax.engine.llvm.body_memory import BodyMemory
from retrax.engine.llvm.emitter import Emitter
from retrax.engine.llvm.kernel import TimeLoop
from retrax.engine.llvm.memory import BufferAccess
from retrax.engine.program import Each, Instruction, Program, StoreEntry
from retrax.engine.progress import FAILURE, INTERVAL, StepInputs, length

WARP = 32
# Parameters that all members share are arguments of the kernel: so many numbers fit.
_MOST_ARGUMENTS = 400
# Bytes of buffers that fit into the shared memory of a multiprocessor; more lie in global memory.
SHARED_BYTES = 200 * 1024
# A copy of more rounds is a loop.
_ROUNDS = 16
_BARRIER = "declare void @llvm.nvvm.bar.warp.sync(i32)"
_INDICES = ("tid", "ctaid", "ntid")


class KernelLayout:
    """How a kernel wants its arguments: what the one who launches it has to know.

    **Attributes:**

    - `warps`: whether a member has a warp to itself, and is in one piece in memory.
    - `inline`: how many parameters are arguments of the kernel; 0 where they are in memory.
    - `shared_bytes`: of shared memory a member needs.
    - `heap`: how many numbers a member needs of memory that it shares with none; 0 for most.
    - `state`, `memory`: how many numbers these are.
    """

    def __init__(self, loop: "GPUTimeLoop"):
        step, plan = loop.step, loop.planned.plan
        self.warps = loop.planned.used
        self.inline = loop.inline
        bytes_needed = 8 * plan.size if self.warps else 0
        self.shared_bytes = bytes_needed if bytes_needed <= SHARED_BYTES else 0
        self.heap = plan.size if bytes_needed > SHARED_BYTES else 0
        self.state = step.size
        self.memory = loop.inputs.memory.size


def assemble_kernel(
    program: Program, inputs: StepInputs, shared: bool
) -> tuple[str, KernelLayout]:
    """The LLVM module with the kernel `run`, and how it is launched.

    `shared` says whether all members have the same parameters.
    """
    loop = GPUTimeLoop(program, inputs, shared)
    layout = KernelLayout(loop)
    return loop.kernel(layout), layout


class GPUTimeLoop(TimeLoop):
    """The time loop of one member, in a thread or in a warp."""

    attributes = "nounwind"

    def __init__(self, program: Program, inputs: StepInputs, shared: bool):
        self.inputs = inputs
        super().__init__(program, inputs, 1, shared)
        few = 0 < inputs.params <= _MOST_ARGUMENTS
        self.inline = inputs.params if shared and few and not self.planned.used else 0

    def _printers(self) -> tuple[BlockPrinter, BodyMemory]:
        if not self.planned.used:
            access = BufferAccess(self.out, self.planned.plan)
            printer = BlockPrinter(self.out, access)
        else:
            printer = WarpPrinter(self.out, WarpAccess(self.out, self.planned.plan))
        return printer, WarpMemory(printer, self.step, self.planned)

    def kernel(self, layout: KernelLayout) -> str:
        """All of it, as LLVM reads it."""
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
        read = "@llvm.nvvm.read.ptx.sreg"
        scratch = "@rows = external addrspace(3) global [0 x double], align 64"
        member = (
            "  %member = sext i32 %ctaid to i64\n  %lane = sext i32 %tid to i64"
            if self.planned.used
            else "  %before = mul i32 %ctaid, %ntid\n  %thread = add i32 %before, %tid\n"
            "  %member = zext i32 %thread to i64"
        )
        parts = [
            'target triple = "nvptx64-nvidia-cuda"',
            *([scratch] if layout.shared_bytes else []),
            *out.globals,
            *sorted(out.declarations | {f"declare i32 {read}.{index}.x()" for index in _INDICES}),
            f"define ptx_kernel void @run({', '.join(arguments)}) #0 {{",
            "begin:",
            *(f"  %{index} = call i32 {read}.{index}.x()" for index in _INDICES),
            member,
            "  %goes.on = icmp ne i64 %begun, 0",
            "  %there = icmp slt i64 %member, %members",
            "  br i1 %there, label %found, label %nobody",
            "nobody:",
            "  ret void",
            "found:",
            *found,
            "  br label %entry",
            *out.lines,
            "}",
            f"attributes #0 = {{ {self.attributes} }}",
            '!0 = !{!"branch_weights", i32 1, i32 1000000}',
        ]
        return "\n".join(parts)

    def _first_row(self, width: int) -> str:
        if not self.planned.used:
            return super()._first_row(width)
        return self.out.let(f"mul i64 {self.out.let('mul i64 %record, %members')}, {width}")

    def _since(self, name: str) -> str:
        return f"%{name}.since"

    def _told_to_stop(self) -> str:
        """A launch is short, and heard after."""
        return "false"


class WarpAccess(BufferAccess):
    """Buffers of a member whose lanes work together."""

    def meet(self) -> None:
        """Have all lanes wait for each other: what one has written, the others see."""
        self.out.declarations.add(_BARRIER)
        self.out.line("call void @llvm.nvvm.bar.warp.sync(i32 -1)")

    def own(self, length: int, first: str) -> str:
        """The place of this lane, counted from `first` on; those beyond the end take the last."""
        out = self.out
        k = out.let(f"add i64 %lane, {first}")
        beyond = out.let(f"icmp ugt i64 {k}, {length - 1}")
        return out.let(f"select i1 {beyond}, i64 {length - 1}, i64 {k}")

    def copy(self, target: str, source: str, count: int) -> None:
        """Copy `count` numbers from one address to another, each lane its own."""
        out, rounds = self.out, -(-count // WARP)
        self.meet()
        for first in range(0, rounds, _ROUNDS):
            moved = []
            for k in range(first, min(first + _ROUNDS, rounds)):
                place = self.own(count, str(WARP * k))
                here = out.let(f"getelementptr double, ptr {source}, i64 {place}")
                moved.append((place, out.let(f"load double, ptr {here}, align 8")))
            for place, number in moved:
                there = out.let(f"getelementptr double, ptr {target}, i64 {place}")
                out.line(f"store double {number}, ptr {there}, align 8")
        self.meet()


class WarpPrinter(BlockPrinter):
    """Prints blocks so that the lanes of a warp share out the rounds along kept axes."""

    buffers: WarpAccess

    def __init__(self, out: Emitter, buffers: WarpAccess):
        super().__init__(out, buffers)
        self._apart = False  # inside a round each lane goes its own way

    def instruction(self, instruction: Instruction) -> None:
        alone = isinstance(instruction, StoreEntry) and not self._apart
        if alone:
            self.buffers.meet()
        super().instruction(instruction)
        if alone:
            self.buffers.meet()

    def _each(self, loop: Each) -> None:
        out = self.out
        if self._apart:
            with self._counted(loop, ("each", "thing"), loop.length) as k:
                self._round(loop, k)
            return
        self.buffers.meet()
        self._apart = True
        if loop.carried:
            with self._counted(loop, ("each", "thing"), loop.length) as k:
                self._round(loop, k)
        elif loop.length <= WARP:
            self._round(loop, self.buffers.own(loop.length, "0"))
        else:
            with self._counted(loop, ("each", "block"), -(-loop.length // WARP)) as block:
                first = out.let(f"mul i64 {block}, {WARP}")
                self._round(loop, self.buffers.own(loop.length, first))
        self._apart = False
        self.buffers.meet()


class WarpMemory(BodyMemory):
    """The memory of a member: buffers where the threads of a multiprocessor share it."""

    def _find_scratch(self) -> None:
        out = self.out
        if 8 * self.plan.size > SHARED_BYTES:
            out.line("%scratch = getelementptr double, ptr %heap, i64 0")
            return
        out.line("%scratch = addrspacecast ptr addrspace(3) @rows to ptr")

    def _leave_scratch(self) -> None:
        """Shared memory ends with the launch."""

    def _return(self, result: str) -> None:
        self.out.line("ret void")

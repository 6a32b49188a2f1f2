"""Run the assembly of a GPU kernel on the processor, one function call for each of its threads.

The lanes of a warp are threads of Python here that wait for each other at every barrier, so that a
lane that reads what another has not yet written shows.
"""

import ctypes
import re
import threading

import numpy as np

from retrax.engine.llvm.machine_code import Compiled
from retrax.engine.llvm.ptx_kernel import WARP, assemble_kernel
from retrax.engine.progress import FAILURE, INTERVAL, Packing

_BARRIER = ctypes.CFUNCTYPE(None)
_INDICES = ("tid", "ctaid", "ntid")


def on_host(assembly):
    """The same function for this processor: thread indices, rows and barrier are arguments."""
    text = assembly.replace('target triple = "nvptx64-nvidia-cuda"\n', "")
    text = re.sub(r"ptr byval\(\[\d+ x double\]\) align 8", "ptr", text)
    text = re.sub(
        r"= addrspacecast ptr addrspace\(1\) (\S+) to ptr", r"= bitcast ptr \1 to ptr", text
    )
    text = text.replace("ptr addrspace(1)", "ptr").replace("define ptx_kernel", "define")
    text = re.sub(r"@rows = .*\n", "", text)
    text = text.replace(
        "addrspacecast ptr addrspace(3) @rows to ptr", "bitcast ptr %the.rows to ptr"
    )
    text = re.sub(r"declare .*@llvm\.nvvm\..*\n", "", text)
    for index in _INDICES:
        text = text.replace(
            f"call i32 @llvm.nvvm.read.ptx.sreg.{index}.x()", f"add i32 %the.{index}, 0"
        )
    text = text.replace(
        "call void @llvm.nvvm.bar.warp.sync(i32 %mates)", "call void %the.barrier()"
    )
    more = ", ".join(f"i32 %the.{index}" for index in _INDICES)
    return text.replace("i64 %begun)", f"i64 %begun, {more}, ptr %the.rows, ptr %the.barrier)")


class Emulator:
    """All members on the processor, as a launch of the kernel takes them on."""

    def __init__(self, program, inputs, system, integrator, states, h, shared=True):
        assembly, self.layout = assemble_kernel(program, inputs, shared)
        self._code = Compiled(on_host(assembly))
        kinds = [ctypes.c_void_p] * 7 + [ctypes.c_double] + [ctypes.c_int64] * 7
        kinds += [ctypes.c_int32] * 3 + [ctypes.c_void_p] * 2
        self._run = ctypes.CFUNCTYPE(None, *kinds)(self._code.address("run"))
        self.members, self.h, self.step = len(states.t), h, 0
        self.packing = Packing(_first(states))
        method = Packing.rows(integrator)
        if shared:
            self.params = np.concatenate([Packing.rows(system), method])
        else:
            own = Packing(_first(system)).member_rows(system)
            self.params = np.concatenate([own, np.tile(method, (1, self.members))])
        self.state = self.packing.member_rows(states)
        self.memory = np.empty((self.layout.memory, self.members))
        self.failure = np.full((len(FAILURE), self.members), np.nan)
        self.heap = np.empty((self.members, self.layout.heap))
        if self.layout.pieces:
            arrays = ("state", "memory", "failure") + (() if shared else ("params",))
            for name in arrays:
                setattr(self, name, np.ascontiguousarray(getattr(self, name).T))
        self.interval = np.empty(0)

    def run(self, records, every, begun=False):
        """Saved states [record, row, member] and statistics, of one launch."""
        n, warps = self.members, self.layout.pieces
        rows = (self.layout.state, len(INTERVAL))
        shapes = [(records, n, r) if warps else (records, r, n) for r in rows]
        out = np.full(shapes[0], np.nan)
        self.interval = self.interval if begun else np.full(shapes[1], np.nan)
        arrays = (self.params, self.state, self.memory, out, self.interval, self.failure, self.heap)
        numbers = (self.step, records, every, 1 if warps else n, n, self.step == 0, begun)
        given = [*(x.ctypes.data for x in arrays), self.h, *map(int, numbers)]
        for member in range(n):
            self._member(given, member)
        self.step += records * every
        turned = (0, 2, 1) if warps else (0, 1, 2)
        return out.transpose(turned), self.interval.transpose(turned)

    def _member(self, given, member):
        nothing = _BARRIER(lambda: None)
        if not self.layout.pieces:
            self._run(
                *given, member % 4, member // 4, 4, None, ctypes.cast(nothing, ctypes.c_void_p)
            )
            return
        rows = np.full(self.layout.shared_bytes // 8 + 8, np.nan)
        mates = self.layout.lanes
        warp, neighbour = divmod(member, WARP // mates)
        meeting = threading.Barrier(mates)
        barrier = _BARRIER(lambda: meeting.wait(60) and None)
        place = ctypes.cast(barrier, ctypes.c_void_p)
        lanes = [
            threading.Thread(
                target=self._run, args=(*given, lane, warp, WARP, rows.ctypes.data, place)
            )
            for lane in range(neighbour * mates, (neighbour + 1) * mates)
        ]
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()


def _first(tree):
    import jax

    return jax.tree.map(lambda x: x[0], tree)

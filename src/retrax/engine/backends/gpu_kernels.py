"""Kernels on a card: that of a step, small helpers, and functions of the numbers of members."""

import ctypes
import hashlib
from collections.abc import Sequence
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from retrax.engine.backends.cuda import Card, Function, card
from retrax.engine.llvm.machine_code import store_code, stored_code
from retrax.engine.llvm.ptx import architecture, compile_ptx, compiler
from retrax.engine.llvm.ptx_kernel import assemble_function, assemble_kernel
from retrax.engine.program import Program
from retrax.engine.progress import StepInputs

# Threads of a block, and registers of a thread, found by measuring: with fewer registers more
# threads share a multiprocessor. Long programs would store too much elsewhere.
BLOCK = 128
_REGISTERS, _LONG = 128, 4000
# Copies numbers of all members, each in one piece, to rows or to where they belong in a piece.
_PLACE = """
target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
define ptx_kernel void @run(ptr addrspace(1) %target, ptr addrspace(1) %source, i64 %width,
                            i64 %count, i64 %row, i64 %column) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %ctaid = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %ntid = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %own = zext i32 %tid to i64
  %block = zext i32 %ctaid to i64
  %threads = zext i32 %ntid to i64
  %before = mul i64 %block, %threads
  %k = add i64 %before, %own
  %there = icmp ult i64 %k, %count
  br i1 %there, label %copy, label %done
copy:
  %member = udiv i64 %k, %width
  %number = urem i64 %k, %width
  %across = mul i64 %number, %row
  %along = mul i64 %member, %column
  %to = add i64 %across, %along
  %from.place = getelementptr double, ptr addrspace(1) %source, i64 %k
  %to.place = getelementptr double, ptr addrspace(1) %target, i64 %to
  %x = load double, ptr addrspace(1) %from.place, align 8
  store double %x, ptr addrspace(1) %to.place, align 8
  br label %done
done:
  ret void
}
"""


class GPUKernel:
    """The kernel of a step, for every card that runs it."""

    def __init__(self, program: Program, inputs: StepInputs, shared: bool):
        self._assembly, self.layout = assemble_kernel(program, inputs, shared)
        self.operations = program.count()
        self.on = cache(self._on)

    def _on(self, gpu: Card) -> Function:
        layout = self.layout
        few = not layout.pieces and self.operations < _LONG
        return _load(gpu, self._assembly, layout.shared_bytes, _REGISTERS if few else None)


def _load(
    gpu: Card, assembly: str, shared_bytes: int = 0, registers: int | None = None
) -> Function:
    """Load a kernel onto a card, its machine code from disk where it has been compiled before."""
    about = f"{compiler()} for {gpu.capability} with {registers} registers"
    key = hashlib.sha256(f"{about}\n{assembly}".encode()).hexdigest()
    code = stored_code(key)
    if code is None:
        code = gpu.assemble(compile_ptx(assembly, architecture(gpu.capability)), registers)
        store_code(key, code)
    return Function(gpu, code, "run", shared_bytes)


@cache
def place_function(gpu: Card) -> Function:
    return _load(gpu, _PLACE)


class GPUFunction:
    """A function of the numbers of a member, for all members that lie on a card."""

    def __init__(self, program: Program, widths: Sequence[int]):
        self._assembly = assemble_function(program, widths)
        self._rows, self._on = len(program.outputs), cache(_load)

    def __call__(self, arrays: Sequence[jax.Array]) -> np.ndarray:
        """Return the outputs [row, member] at arrays that have a first axis of members."""
        (device,), members = arrays[0].devices(), len(arrays[0])
        gpu = card(device.local_hardware_id)
        out = jnp.zeros(self._rows * members, device=device).block_until_ready()
        for array in arrays:
            array.block_until_ready()
        places = [ctypes.c_uint64(address_of(x)) for x in (*arrays, out)]
        function = self._on(gpu, self._assembly)
        function.launch(-(-members // BLOCK), BLOCK, [*places, ctypes.c_int64(members)])
        gpu.wait()
        result = np.empty((self._rows, members))
        gpu.to_host(address_of(out), result)
        return result


def member_of(tree: Any, k: int) -> Any:
    """Return member k of arrays on a card that have a first axis of members."""

    def fetch(array: jax.Array) -> np.ndarray:
        (device,) = array.devices()
        one = np.empty(array.shape[1:])
        start = address_of(array.block_until_ready()) + one.nbytes * k
        card(device.local_hardware_id).to_host(start, one)
        return one

    return jax.tree.map(fetch, tree)


def address_of(array: jax.Array) -> int:
    """Return where the numbers of an array lie on its card."""
    return array.unsafe_buffer_pointer()

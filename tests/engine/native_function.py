"""A function as machine code, run on given numbers: what the engine makes of a potential."""

import ctypes

import jax
import llvmlite.binding as llvm
import numpy as np

from retrax.engine.llvm.blocks import BlockPrinter
from retrax.engine.llvm.emitter import Emitter
from retrax.engine.llvm.memory import BufferAccess
from retrax.engine.passes.live import live
from retrax.engine.passes.placement import MemoryPlan
from retrax.engine.passes.sinking import sink
from retrax.engine.program import Buffer, Value, kind_of
from retrax.engine.trace.scalarise import scalarise


def function_of(program, lanes):
    """`run(in, out)`: the program once, for `lanes` bodies with their numbers side by side.

    Returns the assembly, and how many numbers come out.
    """
    plan, out = MemoryPlan({}), Emitter(lanes)
    given = [item for item in program.inputs if isinstance(item, Buffer)]
    block = plan.place(program.block, program.outputs, given)
    buffers = BufferAccess(out, plan)
    out.begin("entry")
    vector = out.type("float")
    place = 0
    for item in program.inputs:
        where = out.let(f"getelementptr double, ptr %in, i64 {place * lanes}")
        if isinstance(item, Buffer):
            buffers.addresses[item] = where
            place += item.length
            continue
        number = out.let(f"load {vector}, ptr {where}, align 8")
        same = item.kind == "float"
        typed = out.copy(number, "float") if same else out.convert(number, "float", item.kind)
        out.line(f"{out.name(item)} = {typed}")
        place += 1
    BlockPrinter(out, buffers).block(block)
    place = 0
    for item in program.outputs:
        where = out.let(f"getelementptr double, ptr %out, i64 {place * lanes}")
        if isinstance(item, Buffer):
            buffers.copy(where, buffers.address(item), item.length)
            place += item.length
            continue
        number = out.name(item)
        if kind_of(item) != "float":
            number = out.let(out.convert(out.name(item), kind_of(item), "float"))
        out.line(f"store {vector} {number}, ptr {where}, align 8")
        place += 1
    out.line("ret void")
    return "\n".join(
        [
            *out.globals,
            *sorted(out.declarations),
            "define void @run(ptr noalias %in, ptr noalias %out) {",
            "start:",
            f"  %scratch = alloca i8, i64 {8 * max(plan.size, 1) * lanes}, align 64",
            "  br label %entry",
            *out.lines,
            "}",
            '!0 = !{!"branch_weights", i32 1, i32 1000000}',
        ]
    ), place


def programme(function, *arguments):
    """The scalar program of a function as the back ends get it."""
    return sink(live(scalarise(function, *arguments)))


def flat(tree):
    leaves = [np.ravel(np.asarray(x)).astype(float) for x in jax.tree.leaves(tree)]
    return np.concatenate(leaves) if leaves else np.zeros(0)


def run_natively(program, *arguments, lanes=1):
    """The results of a program as machine code, in order; those of the first lane."""
    results = run_members(program, [arguments] * lanes)
    assert all(np.array_equal(results[0], r, equal_nan=True) for r in results)
    return results[0]


def run_members(program, members):
    """The results of a program as machine code for several bodies, each in a lane."""
    lanes = len(members)
    text, count = function_of(program, lanes)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
    )
    module = llvm.parse_assembly(text)
    module.verify()
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    passes.getModulePassManager().run(module, passes)
    with llvm.create_mcjit_compiler(module, machine) as engine:
        engine.finalize_object()
        run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(
            engine.get_function_address("run")
        )
        given = np.stack([flat(arguments) for arguments in members], axis=1).ravel()
        out = np.full(max(count, 1) * lanes, np.nan)
        run(given.ctypes.data, out.ctypes.data)
    return out[: count * lanes].reshape(count, lanes).T


def has_buffers(program):
    return (
        any(isinstance(x, Buffer) for x in (*program.inputs, *program.outputs))
        or program.has_buffers
    )


__all__ = ["Value", "flat", "has_buffers", "programme", "run_members", "run_natively"]

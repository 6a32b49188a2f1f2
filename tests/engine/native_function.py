"""A function as machine code, run on given numbers: what the engine makes of a potential."""

import ctypes

import jax
import llvmlite.binding as llvm
import numpy as np

from retrax.engine.llvm.blocks import Assembly
from retrax.engine.passes.live import live
from retrax.engine.passes.sinking import sink
from retrax.engine.program import Buffer, Value, kind_of
from retrax.engine.trace.scalarise import scalarise


class _Function(Assembly):
    """`run(in, out)`: the program once, for `lanes` bodies with their numbers side by side."""

    def module(self, program):
        self.begin("entry")
        vector = self.type("float")
        place = 0
        for item in program.inputs:
            where = self.let(f"getelementptr double, ptr %in, i64 {place * self.lanes}")
            if isinstance(item, Buffer):
                self.addresses[item] = where
                place += item.length
                continue
            number = self.let(f"load {vector}, ptr {where}, align 8")
            same = item.kind == "float"
            typed = (
                self.copy(number, "float") if same else self.converted(number, "float", item.kind)
            )
            self.line(f"{self.name(item)} = {typed}")
            place += 1
        self.outermost(program.block, program.outputs)
        place = 0
        for item in program.outputs:
            for k in range(item.length if isinstance(item, Buffer) else 1):
                where = self.let(f"getelementptr double, ptr %out, i64 {place * self.lanes}")
                if isinstance(item, Buffer):
                    number = self.let(f"load double, ptr {self.single(item, k)}")
                elif kind_of(item) == "float":
                    number = self.name(item)
                else:
                    number = self.let(self.converted(self.name(item), kind_of(item), "float"))
                self.line(f"store {vector} {number}, ptr {where}, align 8")
                place += 1
        self.line("ret void")
        size = 8 * max(self.scratch_size, 1)
        return "\n".join(
            [
                *self.globals,
                *sorted(self.declarations),
                "define void @run(ptr noalias %in, ptr noalias %out) {",
                "start:",
                f"  %scratch = alloca i8, i64 {size}, align 64",
                "  br label %entry",
                *self.lines,
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
    text, count = _Function(lanes).module(program)
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
        given = np.repeat(flat(arguments), lanes)
        out = np.full(max(count, 1) * lanes, np.nan)
        run(given.ctypes.data, out.ctypes.data)
    results = out[: count * lanes].reshape(count, lanes)
    assert all(np.array_equal(results[:, 0], r, equal_nan=True) for r in results.T)
    return results[:, 0]


def has_buffers(program):
    return (
        any(isinstance(x, Buffer) for x in (*program.inputs, *program.outputs))
        or program.has_buffers
    )


__all__ = ["Value", "flat", "has_buffers", "programme", "run_natively"]

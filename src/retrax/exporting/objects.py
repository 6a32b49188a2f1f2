"""Objects for machines other than this one, through the targets of llvmlite."""

import ctypes
from typing import NamedTuple

import llvmlite.binding as llvm

from retrax.cases.makers import choose
from retrax.errors import BadInput
from retrax.exporting.llvm_step import LlvmStep
from retrax.exporting.model import StepModel


class Machine(NamedTuple):
    """What LLVM has to know of a machine; `long` is that type in its C."""

    triple: str
    cpu: str
    features: str
    long: str
    abi: str = ""
    reloc: str = "static"


MACHINES = {
    "x86_64": Machine("x86_64-unknown-linux-gnu", "x86-64", "", "i64", reloc="pic"),
    "thumbv7em": Machine("thumbv7em-none-eabi", "cortex-m4", "", "i32"),
    "aarch64": Machine("aarch64-none-elf", "generic", "", "i64"),
    "riscv32": Machine("riscv32-unknown-elf", "generic-rv32", "+m,+a,+c", "i32", "ilp32"),
}


def machine_code(model: StepModel, target: str | None) -> bytes:
    """Return an object file with the functions of the header; without a target for this machine."""
    machine = _here() if target is None else choose("target", target, MACHINES)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        found = llvm.Target.from_triple(machine.triple)
    except RuntimeError as why:
        raise BadInput(
            f"target = {machine.triple!r}, but the LLVM that llvmlite brings cannot compile for it."
        ) from why
    compiler = found.create_target_machine(
        cpu=machine.cpu, features=machine.features, opt=2, reloc=machine.reloc, abiname=machine.abi
    )
    module = llvm.parse_assembly(LlvmStep(model, machine.long).module())
    module.triple = machine.triple
    module.data_layout = str(compiler.target_data)
    module.verify()
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    tuning.loop_unrolling = tuning.loop_vectorization = False  # small code
    passes = llvm.create_pass_builder(compiler, tuning)
    passes.getModulePassManager().run(module, passes)
    return compiler.emit_object(module)


def _here() -> Machine:
    """Describe this processor, with all its features."""
    features = llvm.get_host_cpu_features().flatten()
    long = f"i{8 * ctypes.sizeof(ctypes.c_long)}"
    return Machine(llvm.get_process_triple(), llvm.get_host_cpu_name(), features, long, reloc="pic")

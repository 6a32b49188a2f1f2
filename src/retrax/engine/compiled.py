"""LLVM assembly to machine code, kept on disk so that a second process need not compile it."""

import ctypes
import hashlib
from typing import Any
from weakref import WeakValueDictionary

import llvmlite
import llvmlite.binding as llvm

from retrax.engine.kernel_store import keep, kept

_ARGUMENTS = [ctypes.c_void_p] * 5 + [ctypes.c_double] + [ctypes.c_int64] * 6 + [ctypes.c_void_p]
_RUN = ctypes.CFUNCTYPE(ctypes.c_int64, *_ARGUMENTS)
_loaded: WeakValueDictionary[str, "Compiled"] = WeakValueDictionary()


def compiled(assembly: str) -> "Compiled":
    """The machine code of an assembly, the same object as long as somebody holds it."""
    name = _name(assembly)
    found = _loaded.get(name)
    if found is None:
        found = _loaded[name] = Compiled(assembly)
    return found


class Compiled:
    """The function `run` of a module. The memory it lives in is released with this object."""

    def __init__(self, assembly: str):
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.run = self._load(_object(assembly))

    def _load(self, code: bytes) -> Any:
        machine = llvm.Target.from_default_triple().create_target_machine()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        return _RUN(self.address("run"))

    def address(self, name: str) -> int:
        """Where a function of the module lies."""
        return self._engine.get_function_address(name)


def _name(assembly: str) -> str:
    """What a kernel is kept under: it depends on the program, the compiler and the processor."""
    host = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    text = "\n".join([llvmlite.__version__, host, assembly])
    return hashlib.sha256(text.encode()).hexdigest()


def _object(assembly: str) -> bytes:
    """Machine code for this processor, from disk where it has been compiled before."""
    name = _name(assembly)
    code = kept(name)
    if code is None:
        code = _compile(assembly)
        keep(name, code)
    return code


def _compile(assembly: str) -> bytes:
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
    )
    module = llvm.parse_assembly(assembly)
    module.verify()
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    passes.getModulePassManager().run(module, passes)
    return machine.emit_object(module)

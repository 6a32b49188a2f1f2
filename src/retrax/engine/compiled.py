"""LLVM assembly to machine code, kept on disk so that a second process need not compile it."""

import ctypes
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

_ARGUMENTS = [ctypes.c_void_p] * 5 + [ctypes.c_double] + [ctypes.c_int64] * 6
_RUN = ctypes.CFUNCTYPE(ctypes.c_int64, *_ARGUMENTS)


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
        return _RUN(self._engine.get_function_address("run"))


def cache_folder() -> Path:
    """Where compiled kernels are kept: `RETRAX_CACHE`, or the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("RETRAX_CACHE") or Path(home) / "retrax")


def _object(assembly: str) -> bytes:
    """Machine code for this processor, from disk where it has been compiled before."""
    host = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    text = "\n".join([llvmlite.__version__, host, assembly])
    path = cache_folder() / f"{hashlib.sha256(text.encode()).hexdigest()}.o"
    try:
        return path.read_bytes()
    except OSError:
        code = _compile(assembly)
        _keep(path, code)
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


def _keep(path: Path, code: bytes) -> None:
    """Write atomically; a cache that cannot be written to is no reason to stop."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "wb") as file:
            file.write(code)
        os.replace(temporary, path)
    except OSError:
        return

"""Compile LLVM assembly to machine code, and keep that on disk for other processes.

A file holds a line that names the format, a SHA-256 checksum over the name of the kernel and its
code, the length of the code, and the code. A file that is not exactly that counts as missing, and
its kernel is compiled again. A checksum finds damage, not malice: anybody who can write to the
folder can put in other code. So files count only in a folder that belongs to this user and that
others cannot write to.
"""

import ctypes
import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path
from weakref import WeakValueDictionary

import llvmlite
import llvmlite.binding as llvm

from retrax.errors import warn
from retrax.files import replacing

_ARGUMENTS = [ctypes.c_void_p] * 6 + [ctypes.c_double] + [ctypes.c_int64] * 7 + [ctypes.c_void_p]
_RUN = ctypes.CFUNCTYPE(ctypes.c_int64, *_ARGUMENTS)
_loaded: WeakValueDictionary[str, "Compiled"] = WeakValueDictionary()


def compile_code(assembly: str, plainly: bool = False) -> "Compiled":
    """Return the machine code of an assembly, the same object as long as one is in use.

    `plainly` compiles it with few passes, in less than half the time: for code that runs for less
    time than it takes to compile.
    """
    name = _name(assembly, plainly)
    found = _loaded.get(name)
    if found is None:
        found = _loaded[name] = Compiled(assembly, plainly)
    return found


class Compiled:
    """The function `run` of a module. The memory it lives in is released with this object."""

    def __init__(self, assembly: str, plainly: bool = False):
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.run = self._load(_object(assembly, plainly))

    def _load(self, code: bytes) -> Callable[..., int]:
        machine = llvm.Target.from_default_triple().create_target_machine()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        return _RUN(self.address("run"))

    def address(self, name: str) -> int:
        """Return the address of a function of the module."""
        return self._engine.get_function_address(name)


def _name(assembly: str, plainly: bool = False) -> str:
    """Return the cache name of a kernel: it depends on program, compiler and processor."""
    host = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    text = "\n".join([llvmlite.__version__, host, *(["plainly"] if plainly else []), assembly])
    return hashlib.sha256(text.encode()).hexdigest()


def _object(assembly: str, plainly: bool) -> bytes:
    """Return machine code for this processor, from disk where it has been compiled before."""
    name = _name(assembly, plainly)
    code = stored_code(name)
    if code is None:
        code = _compile(assembly, plainly)
        store_code(name, code)
    return code


# Of a longer text most passes of LLVM take a time that grows with the square of its length. A
# program has no expression twice already, and runs as fast with the two passes that matter.
_LONG = 3_000_000


def _compile(assembly: str, plainly: bool = False) -> bytes:
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=1 if plainly else 3,
    )
    module = llvm.parse_assembly(assembly)
    module.verify()
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    manager = passes.getModulePassManager()
    if plainly or len(assembly) > _LONG:
        manager = llvm.create_new_module_pass_manager()
        manager.add_instruction_combine_pass()
        manager.add_simplify_cfg_pass()
    manager.run(module, passes)
    return machine.emit_object(module)


_FORMAT = b"retrax kernel 1\n"
_CHECKSUM, _LENGTH = hashlib.sha256().digest_size, 8
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
# Symbolic links are not followed, and a FIFO is not waited for.
_READ = sum(getattr(os, name, 0) for name in ("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
_said: set[str] = set()


def cache_folder() -> Path | None:
    """Return `RETRAX_CACHE`, or `retrax` in the user's cache folder; `None` without a home."""
    chosen = os.environ.get("RETRAX_CACHE")
    if chosen:
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(home) if home else Path.home() / ".cache") / "retrax"
    except RuntimeError:  # no HOME, and a user number without a name, as in containers
        return None


def stored_code(name: str) -> bytes | None:
    """Read the code of the kernel of this name, if it is there, whole and safe to load."""
    folder = cache_folder()
    if folder is None or not _is_trusted(folder):
        return None
    try:
        handle = os.open(folder / f"{name}.kernel", _READ)
    except OSError:
        return None
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode) or _objection(about) is not None:
        os.close(handle)
        return None
    try:
        with os.fdopen(handle, "rb") as file:
            return _verify(name, file.read())
    except OSError:
        return None


def store_code(name: str, code: bytes) -> None:
    """Write a kernel, whole or not at all; go on without if the folder cannot be written."""
    folder = cache_folder()
    if folder is None:
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_trusted(folder):
            return
        with replacing(folder / f"{name}.kernel", private=True) as file:
            file.write_bytes(_frame(name, code))
    except OSError:
        return


def _frame(name: str, code: bytes) -> bytes:
    length = len(code).to_bytes(_LENGTH, "little")
    return b"".join([_FORMAT, _checksum(name, code), length, code])


def _verify(name: str, content: bytes) -> bytes | None:
    """Return the code in a file, or `None` if a single bit is not as it was written."""
    start = len(_FORMAT) + _CHECKSUM + _LENGTH
    code = content[start:]
    return code if code and content == _frame(name, code) else None


def _checksum(name: str, code: bytes) -> bytes:
    return hashlib.sha256(b"\n".join([_FORMAT, name.encode(), code])).digest()


def _is_trusted(folder: Path) -> bool:
    """Return whether only this user can write to a folder; warn once if others can."""
    try:
        about = folder.stat()
    except OSError:
        return False
    why = _objection(about) if stat.S_ISDIR(about.st_mode) else "is not a folder"
    if why is None:
        return True
    sentence = (
        f"the folder for compiled kernels, {str(folder)!r}, {why}: nothing is loaded from it or "
        f"kept there, and every process compiles its kernels anew. Set RETRAX_CACHE to a folder of "
        "your own, or take the right to write away from others with chmod go-w."
    )
    if sentence not in _said:
        _said.add(sentence)
        warn(sentence)
    return False


def _objection(about: os.stat_result) -> str | None:
    """Say why a file or folder cannot be trusted, or `None`."""
    if not hasattr(os, "geteuid"):
        return None
    if about.st_uid != os.geteuid():
        return f"belongs to user {about.st_uid}, and this process runs as user {os.geteuid()}"
    if about.st_mode & _OTHERS_WRITE:
        return f"can be written by others (its mode is {stat.S_IMODE(about.st_mode):o})"
    return None

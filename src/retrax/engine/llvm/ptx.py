"""Compile LLVM assembly to PTX, the assembly language of NVIDIA's GPUs.

Mathematical functions come from libdevice, the library of bitcode that is part of CUDA. The wheels
of `jax[cuda12]` and `jax[cuda13]` bring it, and so do Triton and every CUDA toolkit.
"""

import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from retrax.errors import BadInput

# Architectures that LLVM has known for long. A newer card runs the code of an older one.
_KNOWN = (50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90)
# The version of PTX that knows all of these; drivers since CUDA 11.8 read it.
_VERSION = "+ptx78"
# Functions that LLVM writes as intrinsics and NVIDIA's processors do not have.
_INTRINSICS = ("sin", "cos", "exp", "exp2", "log", "pow")
_LIBRARY = (
    "tan", "sinh", "cosh", "tanh", "expm1", "log1p", "cbrt", "asin", "acos", "atan", "atan2",
    "asinh", "acosh", "atanh", "erf", "erfc", "nextafter", "fmod",
)  # fmt: skip
_CALLED = re.compile(rf"@(?:llvm\.({'|'.join(_INTRINSICS)})\.f64|({'|'.join(_LIBRARY)}))(?=\()")
_FILE = "libdevice.10.bc"


def architecture(capability: int) -> str:
    """Return the architecture to compile for, of a card of this compute capability, ten times."""
    older = [known for known in _KNOWN if known <= capability]
    if not older:
        raise BadInput(
            f"this GPU has compute capability {capability / 10:g}, and kernels need 5.0 or more; "
            "use backend='native' or 'xla'."
        )
    return f"sm_{older[-1]}"


def compile_ptx(assembly: str, processor: str) -> str:
    """Return the PTX of a module with a kernel, for an architecture as `architecture` names it."""
    text = _CALLED.sub(lambda found: f"@__nv_{found[1] or found[2]}", assembly)
    module = _parse(text)
    if "@__nv_" in text:
        _link_functions(module)
    machine = _target().create_target_machine(cpu=processor, features=_VERSION, opt=3)
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    passes.getModulePassManager().run(module, passes)
    return machine.emit_assembly(module)


def compiler() -> str:
    """Return what the PTX of a module depends on besides the module."""
    return f"llvmlite {llvmlite.__version__} {_VERSION}"


@cache
def _target() -> llvm.Target:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple("nvptx64-nvidia-cuda")


def _parse(text: str) -> llvm.ModuleRef:
    _target()
    module = llvm.parse_assembly(text)
    module.verify()
    return module


def _link_functions(module: llvm.ModuleRef) -> None:
    """Link in the functions that a module calls; nothing else of the library is kept."""
    library = llvm.parse_bitcode(libdevice().read_bytes())
    library.triple, library.data_layout = module.triple, module.data_layout
    module.link_in(library)
    for function in module.functions:
        if function.name.startswith("__nv_") and not function.is_declaration:
            function.linkage = "internal"


def libdevice() -> Path:
    """Find libdevice: the file that `RETRAX_LIBDEVICE` names, or that of a CUDA nearby."""
    chosen = os.environ.get("RETRAX_LIBDEVICE")
    candidates = iter([Path(chosen)]) if chosen else _candidates()
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise BadInput(
        f"the step calls functions such as sin or exp, which on a GPU come from {_FILE} of CUDA, "
        "and it is not found: install jax[cuda13], jax[cuda12] or a CUDA toolkit, or set "
        "CUDA_HOME, or RETRAX_LIBDEVICE to the file; backend='native' or 'xla' needs none."
    )


def _candidates() -> Iterator[Path]:
    for folder in map(Path, sys.path):
        yield folder / "nvidia" / "cuda_nvcc" / "nvvm" / "libdevice" / _FILE
        yield from sorted(folder.glob(f"nvidia/cu*/nvvm/libdevice/{_FILE}"), reverse=True)
        yield folder / "triton" / "backends" / "nvidia" / "lib" / _FILE
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(name):
            yield Path(os.environ[name]) / "nvvm" / "libdevice" / _FILE
    for root in (Path("/usr/local/cuda"), *sorted(Path("/usr/local").glob("cuda-*"), reverse=True)):
        yield root / "nvvm" / "libdevice" / _FILE
    yield Path("/usr/lib/cuda/nvvm/libdevice") / _FILE

"""Everything that `retrax bench` measures, and the machine it was measured on."""

import os
import platform
import subprocess
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from retrax_papers.bench import ensembles, kernels, rods, single, strings

PACKAGES = ("retrax", "jax", "jaxlib", "llvmlite", "numpy", "scipy", "diffrax", "equinox", "heyoka",
            "exudyn", "mujoco")  # fmt: skip

NO_COMPILER = (
    "There is no C compiler, so retrax is timed by itself: install gcc, or name a compiler in CC, "
    "to compare it with C."
)


def measure(report: Callable[[str], object]) -> dict[str, Any]:
    """Time one trajectory, strings, rods and ensembles; call `report` before each part."""
    missing = [] if kernels.compiler() else [NO_COMPILER]
    report("One trajectory against C")
    one = single.measure()
    report("Kahan's method against C")
    kahan = single.measure_kahan()
    report("Collocation against C")
    collocation = single.measure_collocation()
    report("Strings of 4 to 2000 elements against C")
    string = strings.measure(pairs=3)
    report("Rods of 100 to 10,000 elements")
    rod = rods.measure()
    report("Ensembles against C and vmap")
    many = ensembles.measure()
    measured = {"single": one, "kahan": kahan, "collocation": collocation, "string": string}
    return record({**measured, "rod": rod, "ensemble": many, "missing": missing})


def record(results: object) -> dict[str, Any]:
    """Results with the day, the machine and the versions beside them, ready for JSON."""
    return {"date": time.strftime("%Y-%m-%d"), "machine": machine(), "results": results}


def machine() -> dict[str, Any]:
    """The processor, its cores and memory, how busy it is, the compiler and the versions."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_GiB": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "load": round(os.getloadavg()[0], 1),
        "system": platform.system(),
        "compiler": _compiler(),
        "flags": " ".join(kernels.FLAGS),
        "python": platform.python_version(),
        "versions": {name: v for name in PACKAGES if (v := _version(name))},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    wide = any(line.startswith("flags") and " avx512f" in line for line in lines)
    return f"{names[0] if names else platform.machine()}{', AVX-512' if wide else ''}"


def _compiler() -> str | None:
    command = kernels.compiler()
    if command is None:
        return None
    said = subprocess.run([command, "--version"], capture_output=True, text=True).stdout
    return said.splitlines()[0] if said else None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None

"""Processor time in pairs, and the results as JSON with the machine and the versions.

The machine may be shared, so what counts is the processor time of this process over all its
threads, not the time on the wall. Every run sits between two runs of the thing it is compared
with; the ratio is taken within the pair, and the median of several pairs is reported with the
smallest and the largest.
"""

import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.kernels import FLAGS, compiler

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("retrax", "jax", "jaxlib", "llvmlite", "numpy", "scipy", "diffrax", "equinox", "heyoka",
            "exudyn", "mujoco")  # fmt: skip

# A measurement lasts at least this long, so that the clock's resolution does not matter.
_LEAST = 0.05


def cpu_seconds(call: Callable[[], Any], repeats: int | None = None) -> float:
    """Processor seconds of one call, averaged over `repeats` or over `_LEAST` seconds."""
    repeats = repeats or repetitions(call)
    start = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - start) / repeats


def repetitions(call: Callable[[], Any]) -> int:
    """How many calls last `_LEAST` seconds; the first call, which may compile, is not counted."""
    call()
    start = time.process_time()
    call()
    once = max(time.process_time() - start, 1e-6)
    return max(1, round(_LEAST / once))


def paired(call: Callable[[], Any], base: Callable[[], Any], pairs: int = 7) -> dict[str, Any]:
    """`call` against `base`: seconds of both, and their ratio with its spread."""
    many, many_base = repetitions(call), repetitions(base)
    times, base_times, ratios = [], [cpu_seconds(base, many_base)], []
    for _ in range(pairs):
        times.append(cpu_seconds(call, many))
        base_times.append(cpu_seconds(base, many_base))
        ratios.append(2 * times[-1] / (base_times[-2] + base_times[-1]))
    return {
        "seconds": statistics.median(times),
        "base_seconds": statistics.median(base_times),
        "ratio": statistics.median(ratios),
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
        "pairs": pairs,
    }


def spread(result: dict[str, Any]) -> str:
    """A ratio for the eye: median [smallest, largest]."""
    return f"{result['ratio']:.3g} [{result['ratio_min']:.3g}, {result['ratio_max']:.3g}]"


def machine() -> dict[str, Any]:
    """The processor, its cores and memory, how busy it is, the compiler and the versions."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_GiB": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "load": round(os.getloadavg()[0], 1),
        "system": platform.system(),
        "compiler": _compiler(),
        "flags": " ".join(FLAGS),
        "python": platform.python_version(),
        "versions": {name: v for name in PACKAGES if (v := _version(name))},
    }


def save(name: str, results: Any) -> Path:
    """Write `results` with the machine beside them to `results/name.json`."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    record = {"date": time.strftime("%Y-%m-%d"), "machine": machine(), "results": results}
    path.write_text(json.dumps(record, indent=1) + "\n")
    print(f"written: benchmarks/results/{path.name}")
    return path


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    wide = any(line.startswith("flags") and " avx512f" in line for line in lines)
    return f"{names[0] if names else platform.machine()}{', AVX-512' if wide else ''}"


def _compiler() -> str | None:
    command = compiler()
    if command is None:
        return None
    text = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    return text.stdout.splitlines()[0]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None

"""Modules of this folder in a process of their own, as a user runs them."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(module: str, *options: str, timeout: float) -> subprocess.CompletedProcess:
    """Run a module without the checks of types that tests switch on, on the CPU unless told.

    What the caller's `PYTHONPATH` holds stays in reach, behind the sources of this checkout.
    """
    path = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    quick = {
        "XLA_FLAGS": "--xla_backend_optimization_level=0",
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
    }
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-m", module, *options],
        cwd=ROOT,
        env={"JAX_PLATFORMS": "cpu", **os.environ, **quick},
        capture_output=True,
        text=True,
        timeout=timeout,
    )

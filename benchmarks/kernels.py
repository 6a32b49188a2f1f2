"""The hand-written C kernels: compiled when first used, called on NumPy arrays."""

import ctypes
import os
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.problems import Problem
from retrax.numerics.compositions import fractions

SOURCES = Path(__file__).parent / "c"
FLAGS = ("-O3", "-march=native", "-shared", "-fPIC", "-pthread")

_POINTER, _DOUBLE, _LONG = ctypes.c_void_p, ctypes.c_double, ctypes.c_long
_SIGNATURES = {
    "free_body": [_POINTER, _POINTER, _DOUBLE, _POINTER, _LONG, _LONG, _LONG, _POINTER],
    "heavy_body": [_POINTER] * 3 + [_DOUBLE, _POINTER, _LONG, _LONG, _LONG, _POINTER],
    "free_bodies": [_POINTER, _POINTER, _DOUBLE, _LONG, _LONG, _LONG, _LONG],
}


def compiler() -> str | None:
    """The C compiler: the one that `CC` names, or gcc; None where there is none."""
    return shutil.which(os.environ.get("CC", "gcc"))


def single(
    problem: Problem, h: float, steps: int, save_every: int | None = None, order: int = 2
) -> tuple[np.ndarray, int]:
    """The saved states of one body, (records, 12), and the number of Newton iterations.

    `order` 4, 6 and 8 are the compositions that retrax has. `steps` is a multiple of `save_every`.
    """
    every = save_every or steps
    state, inertia = problem.packed(), np.array(problem.inertia)
    stages = np.array([1.0] if order == 2 else fractions(order))
    out = np.empty((steps // every, len(state)))
    arrays = [state, inertia]
    if problem.weight is not None:
        arrays.append(np.array(problem.weight))
    name = "free_body" if problem.weight is None else "heavy_body"
    iterations = _function("lgvi", name)(
        *map(_address, arrays), h, _address(stages), len(stages), len(out), every, _address(out)
    )
    if iterations < 0:
        raise RuntimeError(f"{name} at h = {h:g}: Newton's iteration did not converge.")
    return out, iterations


def ensemble(
    packed: np.ndarray, inertia, h: float, steps: int, *, newton: int = 2, threads: int = 2
) -> np.ndarray:
    """The states (12, members) of free bodies after `steps` steps.

    `newton` is the number of iterations, or 0 to iterate until all bodies of a block converge.
    """
    state, moments = np.array(packed, order="C"), np.array(inertia, dtype=float)
    members = state.shape[1]
    failed = _function("ensemble", "free_bodies")(
        _address(state), _address(moments), h, members, steps, newton, threads
    )
    if failed:
        raise RuntimeError(f"free_bodies at h = {h:g}: Newton's iteration did not converge.")
    return state


def _address(array: np.ndarray) -> int:
    return array.ctypes.data


@lru_cache
def _function(source: str, name: str):
    function = getattr(_library(source), name)
    function.argtypes, function.restype = _SIGNATURES[name], ctypes.c_long
    return function


@lru_cache
def _library(source: str) -> ctypes.CDLL:
    command = compiler()
    if command is None:
        raise RuntimeError("the C kernels need gcc, or another compiler named by CC.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{source}.so"
        subprocess.run([command, *FLAGS, SOURCES / f"{source}.c", "-o", path, "-lm"], check=True)
        return ctypes.CDLL(str(path))

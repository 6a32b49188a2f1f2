"""The C kernels written by hand: compiled when first used, called on NumPy arrays."""

import ctypes
import os
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

import numpy as np

from retrax.bench.problems import Problem
from retrax.errors import RetraxError
from retrax.numerics.compositions import fractions

SOURCES = Path(__file__).parent / "c"
FLAGS = ("-O3", "-march=native", "-shared", "-fPIC", "-pthread")

_POINTER, _DOUBLE, _LONG = ctypes.c_void_p, ctypes.c_double, ctypes.c_long
_SIGNATURES = {
    "free_body": [_POINTER, _POINTER, _DOUBLE, _POINTER, _LONG, _LONG, _LONG, _POINTER],
    "heavy_body": [_POINTER] * 3 + [_DOUBLE, _POINTER, _LONG, _LONG, _LONG, _POINTER],
    "euler_top": [_POINTER, _POINTER, _DOUBLE, _LONG, _LONG, _POINTER],
    "free_bodies": [_POINTER, _POINTER, _DOUBLE, _LONG, _LONG, _LONG, _LONG],
}


def compiler() -> str | None:
    """The C compiler: the one that `CC` names, or gcc; None where there is none."""
    return shutil.which(os.environ.get("CC", "gcc"))


def stages(order: int) -> tuple[float, ...]:
    """The fractions of h that make up a step of that order; one for order 2."""
    return (1.0,) if order == 2 else fractions(order)


def single(
    problem: Problem, h: float, steps: int, save_every: int | None = None, order: int = 2
) -> tuple[np.ndarray, int]:
    """The saved states of one body, (records, 12), and the number of Newton iterations.

    `order` 4, 6 and 8 are the compositions that retrax has. `steps` is a multiple of `save_every`.
    """
    every = save_every or steps
    state, inertia, parts = problem.packed(), np.array(problem.inertia), np.array(stages(order))
    out = np.empty((steps // every, len(state)))
    arrays = [state, inertia]
    if problem.weight is not None:
        arrays.append(np.array(problem.weight))
    name = "free_body" if problem.weight is None else "heavy_body"
    iterations = _function("lgvi", name)(
        *map(_address, arrays), h, _address(parts), len(parts), len(out), every, _address(out)
    )
    if iterations < 0:
        raise RetraxError(f"The C kernel {name} at h = {h:g}: Newton's iteration diverged.")
    return out, iterations


def euler_top(start, inertia, h: float, steps: int, save_every: int | None = None) -> np.ndarray:
    """The saved momenta (records, 3) of Euler's top by the explicit map of Kahan's method."""
    every = save_every or steps
    state, moments = np.array(start, dtype=float), np.array(inertia, dtype=float)
    out = np.empty((steps // every, 3))
    done = _function("kahan", "euler_top")(
        _address(state), _address(moments), h, len(out), every, _address(out)
    )
    if done < 0:
        raise RetraxError(f"The C kernel euler_top at h = {h:g}: a pole at step {-done}.")
    return out


def ensemble(
    packed: np.ndarray, inertia, h: float, steps: int, *, newton: int = 2, threads: int = 2
) -> np.ndarray:
    """The states (12, members) of free bodies after `steps` steps.

    `newton` is the number of iterations, or 0 to iterate until all bodies of a block converge.
    """
    state, moments = np.array(packed, order="C"), np.array(inertia, dtype=float)
    failed = _function("ensemble", "free_bodies")(
        _address(state), _address(moments), h, state.shape[1], steps, newton, threads
    )
    if failed:
        raise RetraxError(f"The C kernel free_bodies at h = {h:g}: Newton's iteration diverged.")
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
        raise RetraxError("The C kernels need gcc, or another compiler that CC names.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{source}.so"
        done = subprocess.run(
            [command, *FLAGS, SOURCES / f"{source}.c", "-o", path, "-lm"],
            capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            reason = (done.stderr.splitlines() or ["no reason given"])[0]
            raise RetraxError(f"The C compiler {Path(command).name} failed on {source}.c: {reason}")
        return ctypes.CDLL(str(path))

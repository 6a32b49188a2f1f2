"""The C kernels written by hand: compiled when first used, called on NumPy arrays."""

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from retrax.errors import CheckFailed, RetraxError
from retrax.mechanics.state import State
from retrax.mechanisms.laws import Coincidence
from retrax.mechanisms.system import MechanismSystem
from retrax.numerics.compositions import fractions
from retrax.numerics.nodes import gauss
from retrax.systems.strings.string_pendulum import StringPendulum
from retrax_papers.bench.problems import TimedProblem

SOURCES = Path(__file__).parent / "c"
FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-shared", "-fPIC", "-pthread")

# C and retrax must agree this well after 100 steps before anything is timed.
AGREEMENT = 1e-12
# The most stages that the kernel for collocation has room for.
LARGEST = 16

_POINTER, _DOUBLE, _LONG = ctypes.c_void_p, ctypes.c_double, ctypes.c_long
_SIGNATURES = {
    "free_body": [_POINTER, _POINTER, _DOUBLE, _POINTER, _LONG, _LONG, _LONG, _POINTER],
    "heavy_body": [_POINTER] * 3 + [_DOUBLE, _POINTER, _LONG, _LONG, _LONG, _POINTER],
    "free_body_lean": [_POINTER, _POINTER, _DOUBLE, _POINTER, _LONG, _LONG, _LONG, _POINTER],
    "heavy_body_lean": [_POINTER] * 3 + [_DOUBLE, _POINTER, _LONG, _LONG, _LONG, _POINTER],
    "euler_top": [_POINTER, _POINTER, _DOUBLE, _LONG, _LONG, _POINTER],
    "heavy_body_gauss": [_POINTER] * 3 + [_LONG, _POINTER, _LONG],
    "string_pendulum": [_POINTER] * 3 + [_LONG, _DOUBLE, _LONG, _LONG, _POINTER],
    "chain": [_POINTER] * 2 + [_LONG, _DOUBLE, _LONG, _POINTER],
    "free_bodies": [_POINTER, _POINTER, _DOUBLE, _LONG, _LONG, _LONG, _LONG],
}


def compiler() -> str | None:
    """The C compiler that `CC` names, or gcc; None if it is not installed."""
    return shutil.which(os.environ.get("CC", "gcc"))


def require_agreement(who: str, difference: float) -> None:
    """Reject a comparison of programs whose states differ: nothing is timed before they agree."""
    if not difference < AGREEMENT:
        raise CheckFailed(
            f"{who}: C and retrax differ by {difference:.1e} after 100 steps; {AGREEMENT:g} is "
            "allowed."
        )


def stages(order: int) -> tuple[float, ...]:
    """The fractions of h that make up a step of that order; one for order 2."""
    return (1.0,) if order == 2 else fractions(order)


def single(
    problem: TimedProblem,
    h: float,
    steps: int,
    save_every: int | None = None,
    order: int = 2,
    lean: bool = False,
) -> tuple[np.ndarray, int]:
    """The saved states of one body, (records, 12), and the number of Newton iterations.

    `order` 4, 6 and 8 are the compositions that retrax has. `steps` is a multiple of `save_every`.
    The `lean` kernel takes two iterations a step, converged or not.
    """
    every = save_every or steps
    state, inertia, parts = problem.packed(), np.array(problem.inertia), np.array(stages(order))
    out = np.empty((steps // every, len(state)))
    arrays = [state, inertia]
    if problem.weight is not None:
        arrays.append(np.array(problem.weight))
    name = "free_body" if problem.weight is None else "heavy_body"
    name += "_lean" if lean else ""
    iterations = _function("lgvi", name)(
        *map(_address, arrays), h, _address(parts), len(parts), len(out), every, _address(out)
    )
    if iterations < 0:
        raise RetraxError(f"The C kernel {name} at h = {h:g}: Newton's iteration diverged.")
    return out, iterations


def euler_top(
    start: Sequence[float],
    inertia: Sequence[float],
    h: float,
    steps: int,
    save_every: int | None = None,
) -> np.ndarray:
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


def gauss_collocation(
    problem: TimedProblem, stages: int, h: float, steps: int
) -> tuple[np.ndarray, int]:
    """The last state (12,) of a heavy body by Gauss collocation, and the number of sweeps."""
    if not 1 <= stages <= LARGEST or problem.weight is None:
        raise RetraxError(f"The C kernel steps a heavy body with up to {LARGEST} stages.")
    state, inertia, weight = problem.packed(), np.array(problem.inertia), np.array(problem.weight)
    sweeps = _function("collocation", "heavy_body_gauss")(
        *map(_address, (state, inertia, weight)), stages, _address(_tables(stages, h)), steps
    )
    if sweeps < 0:
        raise RetraxError(f"The C kernel heavy_body_gauss at h = {h:g}: the sweeps diverged.")
    return state, sweeps


@lru_cache
def _tables(stages: int, h: float) -> np.ndarray:
    """h A and the extrapolation of the stages by one step, column by column, and h b; aligned."""
    nodes = gauss(stages)
    c = np.array(nodes.c)
    others = [np.delete(c, j) for j in range(stages)]
    # The values at 1 + c_i of the Lagrange polynomials of the nodes.
    ahead = [
        [np.prod((1 + x - rest) / (own - rest)) for own, rest in zip(c, others, strict=True)]
        for x in c
    ]
    memory = np.zeros(2 * LARGEST**2 + LARGEST + 8)
    first = -(memory.ctypes.data // 8) % 8
    tables = memory[first : first + 2 * LARGEST**2 + LARGEST]
    for k, table in enumerate((h * np.array(nodes.A), np.array(ahead))):
        columns = tables[k * LARGEST**2 : (k + 1) * LARGEST**2].reshape(LARGEST, LARGEST)
        columns[:stages, :stages] = table.T
    tables[2 * LARGEST**2 :][:stages] = h * np.array(nodes.b)
    return tables


def string_pendulum(
    system: StringPendulum, state: State, h: float, steps: int, save_every: int | None = None
) -> tuple[np.ndarray, int]:
    """The saved states (r, R, p, pi) of a string with one body at its end, and the iterations."""
    every, n = save_every or steps, system.elements
    r, R = state.g
    start = np.concatenate([np.ravel(r), np.ravel(R), state.momentum])
    u = float(system.spacing)
    numbers = [u, float(system.stiffness) / u, float(system.gravity), float(system.mass[0])]
    masses, factors, columns, reduced = system.mass_matrix
    matrices = [np.ravel(x[0]) for x in (system.arm, system.inertia, reduced)]
    rows = [masses.weights, *factors, columns[:, 0]]
    data, tables = np.concatenate([numbers, *matrices]), np.concatenate(rows)
    out = np.empty((steps // every, len(start)))
    addresses = [_address(x) for x in (start, data, tables)]
    iterations = _function("string", "string_pendulum")(
        *addresses, n, h, len(out), every, _address(out)
    )
    if iterations < 0:
        raise RetraxError(f"The C kernel string_pendulum at h = {h:g}: Newton diverged.")
    return out, iterations


def chain(system: MechanismSystem, state: State, h: float, steps: int) -> tuple[np.ndarray, int]:
    """The last state (R, x, momenta) of a chain of balls in sockets, and the iterations."""
    n, (R, x) = len(system.names), state.g
    assert system.constraint is not None
    (stack,) = system.constraint.stacks
    law = stack.parts.law
    assert isinstance(law, Coincidence)
    inertia = np.asarray(system.inertia)
    own = np.zeros((n, 10))
    own[:, 0], own[:, 1:4] = system.mass, inertia[:, range(3), range(3)]
    own[:, 4:7], own[:-1, 7:] = law.b, np.asarray(law.a)[1:]
    start = np.concatenate([np.ravel(R), np.ravel(x), state.momentum])
    data, end = np.concatenate([np.asarray(system.gravity), own.ravel()]), np.empty(18 * n)
    addresses = [_address(start), _address(data)]
    iterations = _function("chain", "chain")(*addresses, n, h, steps, _address(end))
    if iterations < 0:
        raise RetraxError(f"The C kernel chain at h = {h:g}: Newton diverged.")
    return end, iterations


def ensemble(
    packed: np.ndarray,
    inertia: Sequence[float],
    h: float,
    steps: int,
    *,
    newton: int = 2,
    threads: int = 2,
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
def _function(source: str, name: str) -> Callable[..., int]:
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

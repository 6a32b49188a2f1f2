"""Rods of many elements: how the time of an element grows with the rod; what more cores give."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from retrax.engine.backends import make_loop
from retrax.engine.progress import start
from retrax.integrators.lie_verlet import LieVerlet
from retrax.mechanics.state import State
from retrax.run.simulate import simulate
from retrax.systems.rods.rod import Rod
from retrax_papers.bench.timing import cpu_seconds

# Elements of the rods that are timed, and how many element steps a timed run takes.
ELEMENTS = (100, 1000, 10_000)
ELEMENT_STEPS = 1_000_000
_LENGTH, _RADIUS, _YOUNG, _POISSON, _DENSITY = 1.0, 0.02, 1e6, 0.3, 1000.0


def measure(rounds: int = 5) -> dict[str, Any]:
    """Nanoseconds per element and step of a thrown rod, for rods of several lengths.

    `call_ns` and `ns` are processor time on one core, of `simulate` and of its loop. `wall_ns` and
    `wall_all_ns` are time on the wall of `simulate`, on one core and on all. Rods of all lengths
    take turns, and the best of a few rounds counts.
    """
    runs = [timed(elements) for elements in ELEMENTS]
    rows = [{"elements": elements, "steps": _steps(elements)} for elements in ELEMENTS]
    for _ in range(rounds):
        for row, (call, loop) in zip(rows, runs, strict=True):
            work = row["steps"] * row["elements"]
            with one_core():
                _best(row, "call_ns", cpu_seconds(call, 1) / work)
                _best(row, "ns", cpu_seconds(loop, 1) / work)
                _best(row, "wall_ns", wall_seconds(call) / work)
            _best(row, "wall_all_ns", wall_seconds(call) / work)
    growth = rows[-1]["call_ns"] / rows[0]["call_ns"]
    return {"rows": rows, "growth": growth, "cores": os.cpu_count()}


def problem(elements: int) -> tuple[Rod, State, float]:
    """A straight rod that is thrown, and a fifth of the time a wave takes through an element."""
    rod = Rod.from_material(
        elements, _LENGTH, young=_YOUNG, poisson=_POISSON, density=_DENSITY, radius=_RADIUS
    )
    s = np.linspace(0.0, 1.0, rod.nodes)
    v = 0.5 * np.stack([s, 1 - s**2, np.sin(5 * s)], axis=1)
    h = 0.2 * _LENGTH / elements / np.sqrt(_YOUNG / _DENSITY)
    return rod, rod.state(rod.straight(), velocity=rod.velocity_of(v=v)), float(h)


def timed(elements: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """A call of `simulate` and its loop on one core, the end of the run saved; both have run."""
    rod, state, h = problem(elements)
    steps = _steps(elements)

    def call() -> object:
        return simulate(rod, LieVerlet(), state, h=h, steps=steps, save_every=steps, progress=False)

    call()
    with one_core():
        native, at = make_loop("native", rod, LieVerlet(), state, h), start(state)
        call()

    def loop() -> object:
        return native.run(at, 1, steps, 1)

    return call, loop


@contextmanager
def one_core() -> Iterator[None]:
    """Leave this process one core, where the system can; a run uses those that it may."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def wall_seconds(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def _steps(elements: int) -> int:
    return max(100, ELEMENT_STEPS // elements)


def _best(row: dict[str, Any], key: str, seconds: float) -> None:
    row[key] = min(row.get(key, np.inf), 1e9 * seconds)

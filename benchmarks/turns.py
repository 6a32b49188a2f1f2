"""Cases of several libraries that take turns: errors, processor time and time on the wall."""

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple


class Timed(NamedTuple):
    """Processor time and time on the wall of a step, the least of some calls, in microseconds."""

    cpu: float
    wall: float


class Case(NamedTuple):
    """What one library runs: a call, its step, how many there are, and what reads the errors."""

    name: str
    h: float
    steps: int
    call: Callable[[], Any]
    errors: Callable[[Any], dict[str, float]]


def in_turn(cases: list[Case], rounds: int = 2) -> list[dict]:
    """Return errors and times of all, some rounds in turn after a first one."""
    rows, least = [], {}
    for case in cases:
        begun = time.process_time()
        found = case.errors(case.call())
        first = time.process_time() - begun
        rows.append({"solver": case.name, "h": case.h, "steps": case.steps, "first": first, **found})
    for _ in range(rounds):
        for k, case in enumerate(cases):
            now = _timed(case)
            before = least.get(k, now)
            least[k] = Timed(min(now.cpu, before.cpu), min(now.wall, before.wall))
    for k, row in enumerate(rows):
        row |= {"microseconds": least[k].cpu, "wall": least[k].wall}
        print(row, flush=True)
    return rows


def once(case: Case) -> dict:
    """Return errors and times of a call that takes long and has compiled everything before."""
    kept = []
    spent = _timed(case._replace(call=lambda: kept.append(case.call())))
    row = {"solver": case.name, "h": case.h, "steps": case.steps, "first": None}
    return {**row, **case.errors(kept[0]), "microseconds": spent.cpu, "wall": spent.wall}


def _timed(case: Case) -> Timed:
    cpu, wall = time.process_time(), time.perf_counter()
    case.call()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return Timed(cpu / case.steps * 1e6, wall / case.steps * 1e6)


def library(name: str):
    try:
        return import_module(f"benchmarks.rivals.{name}")
    except ImportError as cause:
        print(f"{name} is left out: {cause}")
        return None

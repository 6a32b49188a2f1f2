"""Mechanisms against Exudyn, MuJoCo and Pinocchio, in one run.

    python -m benchmarks.mechanisms [four_bar work long chain many bricard]

One process, processor time over all threads. What is timed is the whole `rx.simulate`, after a
first call that compiles. A library that is not installed is left out, with a sentence.
"""

import json
import math
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

import retrax as rx
from benchmarks.methods import Call
from benchmarks.results import RESULTS, save
from retrax_papers.bench.timing import cpu_seconds

Make = Callable[[float, int], Call]  # of a step and a number of steps
LENGTHS = (4, 8, 16, 32, 64, 128, 256, 512)
SPIN = np.array([0.5, 1.0, 0.3])
# A setting that takes longer is not waited for, nor any finer one.
PATIENCE = 20.0


class Solver(NamedTuple):
    """A library with a method, and what it runs."""

    name: str
    make: Make


def rivals(problem: str, *arguments: object, **options: object) -> list[Solver]:
    """Return the solvers of the other libraries for a problem."""
    found = []
    exudyn, mujoco = _library("exudyn_mechanisms"), _library("mujoco_mechanisms")
    if exudyn is not None:
        run = getattr(exudyn, problem)
        found.append(Solver(exudyn.NAME, lambda h, n, run=run: run(*arguments, h, n, **options)))
    for integrator in () if mujoco is None else mujoco.INTEGRATORS:
        run = getattr(mujoco, problem)
        found.append(
            Solver(
                f"MuJoCo, {integrator}",
                lambda h, n, run=run, i=integrator: run(*arguments, h, n, i, **options),
            )
        )
    return found


def ours(system, start, read: Callable[[rx.Trajectory], np.ndarray], order: int = 2) -> Solver:
    """Return retrax with a method of this order as a solver."""
    integrator = rx.LieVerlet() if order == 2 else rx.Composition(rx.LieVerlet(), order)

    def make(h: float, n: int) -> Call:
        options = {"h": h, "steps": n, "save_every": n, "progress": False}
        return lambda: read(rx.simulate(system, integrator, start, **options))

    return Solver(f"retrax, order {order}", make)


def linkage(N: int):
    """Return `N` four-bars with their start, and what reads the place of B0 off a run."""
    system = rx.systems.four_bar(N)
    start = system.assemble(joint_rates={"A0": -1.0})

    def tip(run: rx.Trajectory) -> np.ndarray:
        R, x = run.final.g
        return np.asarray(x[0] + R[0] @ np.array([0.5, 0.0]))

    return system, start, tip


def exact_tip(N: int, end: float) -> np.ndarray:
    """Return B0 of `N` four-bars from their closed form, a phi'' = -b cos phi."""
    a, b = (N + 1) / 3 + N, 9.81 * ((N + 1) / 2 + N)
    turned = solve_ivp(
        lambda t, y: [y[1], -b / a * math.cos(y[0])],
        (0, end),
        [math.pi / 2, -1.0],
        method="DOP853",
        rtol=1e-13,
        atol=1e-14,
    ).y[0, -1]
    return np.array([math.cos(turned), math.sin(turned)])


def four_bar() -> list[dict]:
    """Time a step of the double four-bar."""
    system, start, tip = linkage(2)
    rows = []
    for solver in [ours(system, start, tip), *rivals("four_bar", 2)]:
        seconds = _least(solver.make(1e-3, 10_000))
        rows.append({"solver": solver.name, "microseconds": seconds / 10_000 * 1e6})
        _tell(rows)
    return rows


def work(N: int = 2, end: float = 10.0, targets: tuple[float, ...] = (1e-3, 1e-5, 1e-7, 1e-9)):
    """Find the time that each takes to an error of B0 at the end."""
    system, start, tip = linkage(N)
    exact = exact_tip(N, end)
    solvers = [ours(system, start, tip, order) for order in (2, 4, 6)] + rivals("four_bar", N)
    return _matched(solvers, exact, end, targets, 200)


def many() -> list[dict]:
    """Find the time to 1e-3 of forty four-bars over 20 s."""
    return work(40, 20.0, (1e-3,))


def long() -> list[dict]:
    """Look at joints and energy of the double four-bar over 200 s."""
    system, start, _ = linkage(2)

    def kept(run: rx.Trajectory) -> np.ndarray:
        gap = system.constraint.gap(run.final.g, run.final.t)
        return np.array([float(gap), float(system.energy(run.final))])

    energy, rows = float(system.energy(start)), []
    # Every library counts heights from the ground.
    for solver in [ours(system, start, kept), *rivals("four_bar", 2, violation=True)]:
        gap, last = solver.make(1e-3, 200_000)()
        rows.append(
            {"solver": solver.name, "gap": float(gap), "energy": float(abs(last / energy - 1))}
        )
        _tell(rows)
    return rows


def chain() -> list[dict]:
    """Time a step of chains; who takes too long is not asked for longer ones."""
    rows, slow = [], set()
    for n in LENGTHS:
        system = rx.systems.chain(n)
        R, x = (np.asarray(part) for part in system.reference)
        velocity = np.concatenate([np.swapaxes(R, 1, 2) @ SPIN, np.cross(SPIN, x)], axis=1)
        start = system.state((R, x), velocity=velocity.reshape(-1))
        solvers = [ours(system, start, lambda run: np.asarray(run.final.g[1][-1]))]
        solvers += rivals("chain", n)
        pinocchio = _library("pinocchio_chain")
        if pinocchio is not None:
            swing = pinocchio.chain
            solvers.append(Solver("Pinocchio, ABA", lambda h, k, n=n, swing=swing: swing(n, h, k)))
        for solver in solvers:
            if solver.name in slow:
                continue
            steps = 2_000 if "retrax" in solver.name else max(20, 4_000 // n)
            try:
                seconds = _least(solver.make(1e-3, steps)) / steps
            except Exception as failure:  # every library has its own
                print(f"  {solver.name} fails with {n}: {str(failure).splitlines()[0]:.80}")
                continue
            rows.append({"n": n, "solver": solver.name, "microseconds": seconds * 1e6})
            _tell(rows)
            if 4 * steps * seconds > PATIENCE:
                slow.add(solver.name)
    return rows


def bricard() -> list[dict]:
    """Find the time to 1e-6 of Bricard's linkage over 10 s."""
    system = rx.systems.bricard()
    start = system.assemble()

    def third(run: rx.Trajectory) -> np.ndarray:
        return np.asarray(run.final.g[1][2])

    end = 10.0
    coarse, fine = (ours(system, start, third).make(end / n, n)() for n in (20_000, 40_000))
    exact = (4 * fine - coarse) / 3  # the error of order 2 has even powers of h
    solvers = [ours(system, start, third, order) for order in (2, 4, 6)] + rivals("bricard")
    return _matched(solvers, exact, end, (1e-3, 1e-6), 200)


def _matched(
    solvers: list[Solver],
    exact: np.ndarray,
    end: float,
    targets: tuple[float, ...],
    first: int,
) -> list[dict]:
    """Find, by half steps, the coarsest step of each solver that meets each target."""
    rows = []
    for solver in solvers:
        left, steps, best = sorted(targets, reverse=True), first, math.inf
        while left:
            try:
                call = solver.make(end / steps, steps)
                begun = time.process_time()
                error = float(np.max(np.abs(call() - exact)))
            except Exception as failure:  # a step too coarse fails; every library has its own
                print(f"  {solver.name} fails at {steps} steps: {str(failure).splitlines()[0]:.70}")
                error, begun, call = math.inf, time.process_time(), None
            best = min(best, error if math.isfinite(error) else math.inf)
            while left and error <= left[0] and call is not None:
                seconds = _least(call)
                row = {"solver": solver.name, "target": left.pop(0), "steps": steps}
                rows.append({**row, "error": error, "milliseconds": seconds * 1e3})
                _tell(rows)
            if time.process_time() - begun > PATIENCE or steps > 2e6:
                break
            steps = round(steps * math.sqrt(2))
        for target in left:
            rows.append({"solver": solver.name, "target": target, "steps": None, "error": best})
            _tell(rows)
    return rows


def _least(call: Call, times: int = 3) -> float:
    """Return the least processor time of some calls, after one that may compile."""
    call()
    return min(cpu_seconds(call, 1) for _ in range(times))


def _library(name: str):
    try:
        return import_module(f"benchmarks.rivals.{name}")
    except ImportError as cause:
        print(f"{name} is left out: {cause}")
        return None


def _tell(rows: list[dict]) -> None:
    print(rows[-1], flush=True)


PROBLEMS = {f.__name__: f for f in (four_bar, work, long, chain, many, bricard)}


def main() -> None:
    chosen = sys.argv[1:] or list(PROBLEMS)
    found = {}
    if (RESULTS / "mechanisms.json").is_file():
        found = json.loads((RESULTS / "mechanisms.json").read_text())["results"]
    for name in chosen:
        print(name)
        found[name] = PROBLEMS[name]()
        save("mechanisms", {**found, "versions": _versions()})


def _versions() -> dict[str, str]:
    modules = map(_library, ("exudyn_mechanisms", "mujoco_mechanisms", "pinocchio_chain"))
    names = ("Exudyn", "MuJoCo", "Pinocchio")
    return {n: m.VERSION for n, m in zip(names, modules, strict=True) if m is not None}


if __name__ == "__main__":
    main()

"""Very long runs: what rounding does to energy, momentum, group and clock in 1e8 steps.

    python -m benchmarks.long_runs [steps] [case ...]     every case by default, 1e8 steps
    python -m benchmarks.long_runs --page                 results to docs/long-runs.md

A case that is done is written at once to `results/long_runs.json`, in place of an older result of
the same name: a run that was stopped goes on with the names that are missing. The whole takes half
an hour on one core.
"""

import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import retrax as rx
from benchmarks.long_runs_page import write_page
from benchmarks.results import RESULTS, save
from retrax.analysis.random_walk import bias, growth_exponent
from retrax.systems.catalogue import CASES as SYSTEMS
from retrax.testing.problems import asymmetric_free_body, asymmetric_top, tethered_body
from retrax.testing.problems import top as euler_top

STEPS, RECORDS = 10**8, 1000
TOP = "heavy top"


class UncorrectedSO3(rx.SO3):
    """The rotations with R <- R + R delta, without the correction that every step makes."""

    def advance(self, g, delta):
        return g + g @ delta


class Case(NamedTuple):
    """A method on a problem: its step, and the share of the steps asked for that it takes."""

    problem: str
    make: Callable[[], tuple[Any, Any]]
    integrator: Any
    h: float = 0.02
    share: float = 1.0


def uncorrected_top() -> tuple[Any, Any]:
    """The asymmetric top on `UncorrectedSO3`."""
    top, state = asymmetric_top()
    system = rx.MechanicalSystem(UncorrectedSO3(), top.inertia, top.potential_energy)
    return system, state


def named(name: str) -> tuple[Any, Any]:
    system, state, *_ = SYSTEMS[name].make()
    return system, state


ON_TOP = [
    name for name, integrator in rx.INTEGRATORS.items()
    if "symplectic" in integrator.preserves and "constraint" not in integrator.preserves
]  # fmt: skip
CASES: dict[str, Case] = {
    **{name: Case(TOP, asymmetric_top, rx.INTEGRATORS[name]) for name in ON_TOP},
    "uncorrected": Case("heavy top, R not corrected", uncorrected_top, rx.LieVerlet()),
    "body-on-se3": Case("tethered body on SE(3)", tethered_body, rx.LieVerlet(), share=0.1),
    "free-body": Case(
        "free body", asymmetric_free_body, rx.Composition(rx.LieVerlet(), 8), share=0.1
    ),
    "kahan": Case("Euler top on R^3", euler_top, rx.Kahan()),
    "kahan-projected-4": Case("Euler top on R^3", euler_top, rx.INTEGRATORS["kahan-projected-4"]),
    "string": Case(
        "string pendulum", partial(named, "string-pendulum"), rx.LieVerlet(), 1e-4, share=0.1
    ),
    "rod": Case("elastic rod", partial(named, "rod"), rx.LieVerlet(), 0.004, share=0.03),
}


def measure(case: Case, steps: int) -> dict[str, Any]:
    """One run, and of every invariant its largest error, how that grows, and its slope."""
    system, state = case.make()
    n = max(RECORDS, round(steps * case.share))
    run = rx.simulate(
        system, case.integrator, state,
        h=case.h, steps=n, save_every=n // RECORDS, backend="native", progress=False,
    )  # fmt: skip
    invariants = {name: law(run.t, values) for name, values in run.invariants().items()}
    return {
        "integrator": repr(case.integrator),
        "problem": case.problem,
        "h": case.h,
        "steps": n,
        "nanoseconds": run.seconds / n * 1e9,
        "defect": float(np.max(run.group_defect())),
        "defect_exponent": power(run.group_defect()[1:]),
        "clock": clock_error(run),
        "invariants": invariants,
    }


def law(t: np.ndarray, values: np.ndarray) -> dict[str, float]:
    errors = np.asarray(values) - values[0]
    slope = bias(t[1:], errors[1:])
    return {
        "value": float(values[0]),
        "largest": float(np.max(np.abs(errors))),
        "exponent": growth_exponent(errors[1:]),
        "slope": slope.value,
        "standard_error": slope.standard_error,
    }


def power(defects: np.ndarray) -> float:
    """The power of time with which a distance grows: 1/2 for a random walk, 0 for none."""
    k = np.arange(1, len(defects) + 1)
    seen = defects > 0
    return float(np.polyfit(np.log(k[seen]), np.log(defects[seen]), 1)[0]) if seen.any() else 0.0


def clock_error(run: Any) -> float:
    """By how much saved times differ from t0 + k h, each computed by itself: zero."""
    k = np.minimum(np.arange(len(run.t)) * run.save_every, run.steps)
    return float(np.max(np.abs(run.t - (run.t[0] + k * run.h))))


def written() -> dict[str, Any]:
    path = RESULTS / "long_runs.json"
    return json.loads(path.read_text())["results"] if path.exists() else {}


def main(arguments: list[str]) -> None:
    if "--page" in arguments:
        return write_page()
    steps = int(float(arguments.pop(0))) if arguments and arguments[0][0].isdigit() else STEPS
    for name in arguments or CASES:
        row = measure(CASES[name], steps)
        print(name, json.dumps(row), flush=True)
        save("long_runs", {**written(), name: row})


if __name__ == "__main__":
    main(sys.argv[1:])

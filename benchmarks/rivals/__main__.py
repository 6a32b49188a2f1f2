"""Everyone on W1 and W2 at equal end error, and on W3 those that run ensembles.

    python -m benchmarks.rivals [library ...]

Needs the `bench` extra; a library that is not installed is skipped with a sentence.
"""

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from benchmarks.methods import Call, Method, matched
from benchmarks.ours import attitude, c_methods, loop_methods, retrax_methods
from benchmarks.results import save
from benchmarks.rivals import ensembles
from retrax_papers.bench import kernels
from retrax_papers.bench.problems import W1, W2, TimedProblem, attitude_error, reference
from retrax_papers.bench.timing import paired, spread

RIVALS = {
    "scipy": "scipy_ivp",
    "diffrax": "diffrax_solvers",
    "heyoka": "heyoka_taylor",
    "exudyn": "exudyn_body",
    "mujoco": "mujoco_body",
}
W1_STEPS = 100_000
W2_TARGETS = (1e-3, 1e-6, 1e-9, 1e-11)
PAIRS = 5


def modules(names: list[str]) -> Iterator[ModuleType]:
    """The rivals that can be imported."""
    for name in names:
        try:
            yield importlib.import_module(f"benchmarks.rivals.{RIVALS[name]}")
        except ImportError as reason:
            print(f"{name} is left out: {reason}.")


def compare(problem: TimedProblem, method: Method, target: float, base: Call) -> dict[str, Any]:
    """A method at the setting that just meets the target, against the C run `base`."""
    row = {"library": method.library, "method": method.name, "target": target}
    match = matched(method, reference(problem), target)
    if match is None:
        print(f"  {method.library} {method.name} does not reach {target:.1e}", flush=True)
        return {**row, "reached": False}
    timing = paired(match.call, base, PAIRS)
    print(
        f"  {method.library} {method.name}: {timing['seconds'] * 1e3:.3g} ms, ratio "
        f"{spread(timing)}, {method.knob} {match.setting:g}, error {match.error:.1e}",
        flush=True,
    )
    found = {"knob": method.knob, "setting": match.setting, "error": match.error}
    return {**row, "reached": True, **found, **timing}


def on_free_body(methods: list[Method]) -> dict[str, Any]:
    """W1: everyone to the error that LieVerlet in C has after 10^5 steps of 0.01."""

    def c():
        return attitude(kernels.single(W1, W1.end / W1_STEPS, W1_STEPS)[0][-1])

    target = float(attitude_error(c(), reference(W1)))
    print(f"{W1.name}, T = {W1.end:g}, error {target:.2e} rad")
    rows = [compare(W1, method, target, c) for method in methods]
    return {"problem": W1.name, "end": W1.end, "target": target, "rows": rows}


def on_pendulum(methods: list[Method], target: float) -> dict[str, Any]:
    """W2: everyone to a given error, against order 8 in C at that error."""
    print(f"{W2.name}, T = {W2.end:g}, error {target:.0e} rad")
    base = matched(c_methods(W2)[-1], reference(W2), target)
    if base is None:
        raise SystemExit(f"C at order 8 does not reach {target:g}.")
    rows = [compare(W2, method, target, base.call) for method in methods]
    return {"problem": W2.name, "end": W2.end, "target": target, "rows": rows}


def main() -> None:
    rivals = list(modules(sys.argv[1:] or list(RIVALS)))

    def methods(problem: TimedProblem) -> list[Method]:
        theirs = [method for rival in rivals for method in rival.methods(problem)]
        ours = c_methods(problem) + retrax_methods(problem) + loop_methods(problem)
        return ours + theirs

    results = {
        "w1": on_free_body(methods(W1)),
        "w2": [on_pendulum(methods(W2), target) for target in W2_TARGETS],
        "w3": ensembles.compare(rivals),
    }
    save("rivals", results)


if __name__ == "__main__":
    main()

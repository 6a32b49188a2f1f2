"""A free rod against PyElastica: processor time per element and step, and at equal tip error.

    PYTHONPATH=src:. python -m benchmarks.rods

Both run in one process and take turns, and the best of a few rounds counts. PyElastica is imported
from the environment that runs this. The two rods are not the same model (PyElastica corrects the
shear stiffness and lets the cross-section shrink when the rod is stretched), so the error of the
tip is against the same library with many more elements.
"""

import time
from collections.abc import Callable
from typing import Any

import elastica
import numpy as np

import retrax as rx
from benchmarks.results import save

ELEMENTS = (20, 100, 1000, 10_000)
LENGTH, RADIUS, YOUNG, POISSON, DENSITY = 1.0, 0.02, 1e6, 0.3, 1000.0
# Element-steps in one measurement, and how many measurements.
WORK, ROUNDS = 3e6, 3
# The tip is compared at this time, for these elements, with a rod of so many.
TIME, COARSE, FINE = 0.2, (20, 40, 80, 160), 640

# A run of some steps, which returns where the tip is.
Run = Callable[[], np.ndarray]


def velocities(elements: int) -> np.ndarray:
    s = np.linspace(0.0, 1.0, elements + 1)
    return 0.5 * np.stack([s, 1 - s**2, np.sin(5 * s)], axis=1)


def step_size(elements: int) -> float:
    """A fifth of the time in which a wave of stretch crosses an element."""
    return 0.2 * LENGTH / elements / np.sqrt(YOUNG / DENSITY)


def ours(elements: int, steps: int, h: float) -> Run:
    rod = rx.systems.Rod.from_material(
        elements, LENGTH, young=YOUNG, poisson=POISSON, density=DENSITY, radius=RADIUS
    )
    start = rod.state(rod.straight(), velocity=rod.velocity_of(v=velocities(elements)))

    def run() -> np.ndarray:
        run = rx.simulate(
            rod, rx.LieVerlet(), start, h=h, steps=steps, save_every=steps, progress=False
        )
        return np.asarray(run.final.g[1][-1])

    return run


class _Simulator(elastica.BaseSystemCollection):
    """PyElastica's collection of rods, without loads, contacts or damping."""


def theirs(elements: int, steps: int, h: float) -> Run:
    rod = elastica.CosseratRod.straight_rod(
        elements,
        np.zeros(3),
        np.array([0.0, 0.0, 1.0]),
        np.array([1.0, 0.0, 0.0]),
        LENGTH,
        RADIUS,
        DENSITY,
        youngs_modulus=YOUNG,
        shear_modulus=YOUNG / 2 / (1 + POISSON),
    )
    rod.velocity_collection[:] = velocities(elements).T
    simulator, stepper = _Simulator(), elastica.PositionVerlet()
    simulator.append(rod)
    simulator.finalize()

    def run() -> np.ndarray:
        """Goes on from where the last run of this rod ended."""
        at = 0.0
        for _ in range(steps):
            at = stepper.step(simulator, at, h)
        return np.array(rod.position_collection[:, -1])

    return run


LIBRARIES = {"retrax": ours, "PyElastica": theirs}


def best(runs: dict[str, Run]) -> dict[str, float]:
    """Processor seconds of each, the best of a few rounds in turn; the first round compiles."""
    seconds = dict.fromkeys(runs, np.inf)
    for round_ in range(ROUNDS + 1):
        for name, run in runs.items():
            clock = time.process_time()
            run()
            if round_:
                seconds[name] = min(seconds[name], time.process_time() - clock)
    return seconds


def per_element(elements: int) -> dict[str, float]:
    """Nanoseconds per element and step."""
    steps = max(100, round(WORK / elements))
    h = step_size(elements)
    seconds = best({name: make(elements, steps, h) for name, make in LIBRARIES.items()})
    return {name: 1e9 * s / steps / elements for name, s in seconds.items()}


def at_equal_error() -> list[dict[str, Any]]:
    """Tip errors and times of both for some numbers of elements.

    `same_error` is the time that retrax takes, between its own measurements, for the error of
    PyElastica.
    """

    def in_time(make: Callable[..., Run], elements: int) -> Run:
        steps = round(TIME / step_size(elements))
        return make(elements, steps, TIME / steps)

    fine = {name: in_time(make, FINE)() for name, make in LIBRARIES.items()}
    rows = []
    for n in COARSE:
        runs = {name: in_time(make, n) for name, make in LIBRARIES.items()}
        error = {k: float(np.abs(run() - fine[k]).max()) for k, run in runs.items()}
        row: dict[str, Any] = {"elements": n, "error": error, "seconds": best(runs)}
        rows.append(row)
        print(row, flush=True)
    errors, seconds = (
        np.log([row[what]["retrax"] for row in reversed(rows)]) for what in ("error", "seconds")
    )
    for row in rows:
        wanted = np.log(row["error"]["PyElastica"])
        inside = errors[0] <= wanted <= errors[-1]
        row["same_error"] = float(np.exp(np.interp(wanted, errors, seconds))) if inside else None
    return rows


def main() -> None:
    rows = []
    for n in ELEMENTS:
        rows.append({"elements": n} | per_element(n))
        print(rows[-1], flush=True)
    save("rods", {"rows": rows, "tip": at_equal_error()})


if __name__ == "__main__":
    main()

"""A free rod against PyElastica: processor time per element and step, in one process.

    PYTHONPATH=src:. python -m benchmarks.rods

Both take turns, and the best of a few rounds counts. PyElastica is imported from the environment
that runs this; without it only retrax is timed.
"""

import argparse
import json
import time
from collections.abc import Callable

import numpy as np

import retrax as rx

ELEMENTS = (20, 100, 1000, 10_000)
LENGTH, RADIUS, YOUNG, POISSON, DENSITY = 1.0, 0.02, 1e6, 0.3, 1000.0
# Element-steps in one measurement, and how many measurements.
WORK, ROUNDS = 4e6, 3


def velocities(elements: int) -> np.ndarray:
    s = np.linspace(0.0, 1.0, elements + 1)
    return 0.5 * np.stack([s, 1 - s**2, np.sin(5 * s)], axis=1)


def step_size(elements: int) -> float:
    """A fifth of the time in which a wave of stretch crosses an element."""
    return 0.2 * LENGTH / elements / np.sqrt(YOUNG / DENSITY)


def ours(elements: int, steps: int) -> Callable[[], None]:
    rod = rx.systems.Rod.from_material(
        elements, LENGTH, young=YOUNG, poisson=POISSON, density=DENSITY, radius=RADIUS
    )
    start = rod.state(rod.straight(), velocity=rod.velocity_of(v=velocities(elements)))

    def run() -> None:
        h = step_size(elements)
        rx.simulate(rod, rx.LieVerlet(), start, h=h, steps=steps, save_every=steps, progress=False)

    return run


def theirs(elements: int, steps: int) -> Callable[[], None]:
    import elastica

    class Simulator(elastica.BaseSystemCollection):
        pass

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
    simulator, stepper = Simulator(), elastica.PositionVerlet()
    simulator.append(rod)
    simulator.finalize()

    def run() -> None:
        at, h = 0.0, step_size(elements)
        for _ in range(steps):
            at = stepper.step(simulator, at, h)

    return run


def best(runs: dict[str, Callable[[], None]]) -> dict[str, float]:
    """Processor seconds of each, the best of a few rounds in turn; the first round compiles."""
    seconds = dict.fromkeys(runs, np.inf)
    for round_ in range(ROUNDS + 1):
        for name, run in runs.items():
            clock = time.process_time()
            run()
            if round_:
                seconds[name] = min(seconds[name], time.process_time() - clock)
    return seconds


def measure(elements: int) -> dict[str, float]:
    """Nanoseconds per element and step."""
    steps = max(100, round(WORK / elements))
    runs = {"retrax": ours(elements, steps)}
    try:
        runs["PyElastica"] = theirs(elements, steps)
    except ImportError:
        pass
    return {name: 1e9 * s / steps / elements for name, s in best(runs).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("elements", nargs="*", type=int, default=ELEMENTS)
    for n in parser.parse_args().elements:
        print(json.dumps({"elements": n} | measure(n)), flush=True)


if __name__ == "__main__":
    main()

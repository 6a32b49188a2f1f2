"""retrax and the C kernels as methods."""

from typing import Any

import numpy as np

import retrax as rx
from benchmarks.methods import Call, Method, step_counts
from retrax_papers.bench import kernels
from retrax_papers.bench.ensembles import run as run_ensemble
from retrax_papers.bench.problems import ORDERS, TimedProblem, loop_alone, verlet, whole_call

INTEGRATORS = [
    *map(verlet, ORDERS),
    rx.RKMK("rk4"),
    rx.RKMK("dopri5"),
    *(rx.Collocation(rx.gauss(s)) for s in (2, 4, 8, 12)),
    *(rx.Taylor(p) for p in (8, 10, 13)),
    *(rx.GalerkinVariational(rx.gauss(s)) for s in (2, 4, 8)),
]


def c_methods(problem: TimedProblem) -> list[Method]:
    """The C kernels: LieVerlet and its compositions."""

    def method(order: int) -> Method:
        def prepare(steps: float) -> Call:
            h = problem.end / steps
            return lambda: attitude(kernels.single(problem, h, int(steps), order=order)[0][-1])

        return Method("C", f"order {order}", "steps", _steps(problem, order), prepare)

    return [method(order) for order in ORDERS]


def attitude(packed: np.ndarray) -> np.ndarray:
    """R of a state packed for C, (12,), or of many, (12, members)."""
    return np.moveaxis(packed[:9].reshape(3, 3, *packed.shape[1:]), (0, 1), (-2, -1))


def retrax_methods(problem: TimedProblem) -> list[Method]:
    """LieVerlet, its compositions, explicit methods and collocation, through `rx.simulate`."""

    def method(integrator: Any) -> Method:
        def prepare(steps: float) -> Call:
            run = whole_call(problem, integrator, problem.end / steps, int(steps))
            return lambda: np.asarray(run().states.g[-1])

        counts = _steps(problem, integrator.order)
        return Method("retrax", repr(integrator), "steps", counts, prepare)

    return [method(integrator) for integrator in INTEGRATORS]


def loop_methods(problem: TimedProblem) -> list[Method]:
    """The same without the fixed cost of a call of `rx.simulate`."""

    def method(integrator: Any) -> Method:
        def prepare(steps: float) -> Call:
            run = loop_alone(problem, integrator, problem.end / steps, int(steps))
            return lambda: np.asarray(run()[1].g[-1])

        counts = _steps(problem, integrator.order)
        return Method("retrax", f"{integrator!r}, loop alone", "steps", counts, prepare)

    return [method(integrator) for integrator in INTEGRATORS]


def ensemble_methods(system: Any, states: rx.State, end: float) -> list[Method]:
    """LieVerlet and its composition of order 4 through `rx.ensemble`."""

    def method(integrator: Any) -> Method:
        def prepare(steps: float) -> Call:
            run = run_ensemble(system, states, int(steps), integrator, end / steps)
            return lambda: np.asarray(run()["g"].isel(time=-1))

        counts = step_counts(int(end), 1000 * int(end))
        return Method("retrax", repr(integrator), "steps", counts, prepare)

    return [method(verlet(2)), method(verlet(4))]


def _steps(problem: TimedProblem, order: int) -> tuple[int, ...]:
    """From one step per second, or two, up to a hundred thousand; fewer at high order."""
    first = int(problem.end) // (1 if order < 12 else 2)
    return step_counts(first, int(problem.end * (1e5 if order == 2 else 1e3)))

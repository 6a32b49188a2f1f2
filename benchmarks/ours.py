"""retrax and the C kernels as methods, and whether the two compute the same thing."""

from collections.abc import Callable
from typing import Any

import numpy as np

import retrax as rx
from benchmarks import kernels
from benchmarks.methods import Call, Method, step_counts
from benchmarks.problems import Problem
from retrax.engine.backends import make_loop
from retrax.engine.progress import start

ORDERS = (2, 4, 6, 8)


def verlet(order: int) -> Any:
    """LieVerlet, or its composition of order 4, 6 or 8."""
    return rx.LieVerlet() if order == 2 else rx.Composition(rx.LieVerlet(), order=order)


def simulation(
    problem: Problem, integrator: Any, h: float, steps: int, save_every: int | None = None
) -> Callable[[], rx.Trajectory]:
    """A whole call of `rx.simulate`, checks of its arguments included."""
    system, state, every = problem.system(), problem.start(), save_every or steps
    return lambda: rx.simulate(
        system, integrator, state, h=h, steps=steps, save_every=every, progress=False
    )


def loop(
    problem: Problem, integrator: Any, h: float, steps: int, save_every: int | None = None
) -> Callable[[], Any]:
    """The compiled loop inside `rx.simulate`, without what a call does before and after it."""
    state, every = problem.start(), save_every or steps
    native = make_loop("native", problem.system(), integrator, state, h)
    at, records = start(state), steps // every
    return lambda: native.run(at, records, every, records)


def disagreement(problem: Problem, order: int, h: float = 0.01, steps: int = 100) -> float:
    """The largest difference between the states of retrax and of the C kernel."""
    run = simulation(problem, verlet(order), h, steps, save_every=1)().states
    ours = np.concatenate([run.g.reshape(-1, 9), run.momentum], axis=1)[1:]
    theirs, _ = kernels.single(problem, h, steps, save_every=1, order=order)
    return float(np.max(np.abs(ours - theirs)))


def c_methods(problem: Problem) -> list[Method]:
    """The C kernels: LieVerlet and its compositions."""

    def method(order: int) -> Method:
        def prepare(steps: float) -> Call:
            h = problem.end / steps
            return lambda: kernels.single(problem, h, int(steps), order=order)[0][-1, :9].reshape(
                3, 3
            )

        return Method("C", f"order {order}", "steps", _steps(problem, order), prepare)

    return [method(order) for order in ORDERS]


def retrax_methods(problem: Problem) -> list[Method]:
    """LieVerlet, its compositions and two explicit methods, each through `rx.simulate`."""

    def method(name: str, integrator: Any, order: int) -> Method:
        def prepare(steps: float) -> Call:
            run = simulation(problem, integrator, problem.end / steps, int(steps))
            return lambda: np.asarray(run().states.g[-1])

        return Method("retrax", name, "steps", _steps(problem, order), prepare)

    composed = [method(repr(verlet(order)), verlet(order), order) for order in ORDERS]
    explicit = [
        method(repr(rkmk), rkmk, rkmk.order) for rkmk in (rx.RKMK("rk4"), rx.RKMK("dopri5"))
    ]
    return composed + explicit


def _steps(problem: Problem, order: int) -> tuple[int, ...]:
    """From about one step per second to a million over the whole time; fewer at high order."""
    return step_counts(int(problem.end), int(problem.end * (1e5 if order == 2 else 1e3)))

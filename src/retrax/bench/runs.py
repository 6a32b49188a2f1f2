"""Runs of retrax to be timed: a whole call, or the compiled loop inside it."""

from collections.abc import Callable
from typing import Any

from retrax.bench.problems import Problem
from retrax.engine.backends import make_loop
from retrax.engine.progress import start
from retrax.integrators.composition import Composition
from retrax.integrators.lie_verlet import LieVerlet
from retrax.run.simulate import simulate
from retrax.trajectory.trajectory import Trajectory

ORDERS = (2, 4, 6, 8)


def verlet(order: int) -> Any:
    """`LieVerlet`, or its composition of order 4, 6 or 8."""
    return LieVerlet() if order == 2 else Composition(LieVerlet(), order=order)


def whole_call(
    problem: Problem, integrator: Any, h: float, steps: int, save_every: int | None = None
) -> Callable[[], Trajectory]:
    """All of `simulate`: the checks of its arguments, the loop, the trajectory."""
    system, state, every = problem.system(), problem.start(), save_every or steps
    return lambda: simulate(
        system, integrator, state, h=h, steps=steps, save_every=every, progress=False
    )


def loop_alone(
    problem: Problem, integrator: Any, h: float, steps: int, save_every: int | None = None
) -> Callable[[], Any]:
    """The compiled loop inside `simulate`; `steps` is a multiple of `save_every`."""
    state, every = problem.start(), save_every or steps
    native = make_loop("native", problem.system(), integrator, state, h)
    at, records = start(state), steps // every
    return lambda: native.run(at, records, every, records)

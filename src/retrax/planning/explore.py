"""Look at several guesses of a problem with coarse steps, and refine the best."""

import warnings
from collections.abc import Iterator

import numpy as np

from retrax.engine.llvm.host import lanes
from retrax.errors import BadInput
from retrax.planning.problem import ControlProblem
from retrax.planning.solve import Found, Iterate, Solver, Start, bumps
from retrax.run.simulate import simulate

# The first look goes down to this barrier, with at least so many steps.
_LOOK, _FEWEST = 3e-3, 32
# Costs at the first look that differ by less, relative to them, belong to one extremal.
_ALIKE = 1e-4


def explore(
    problem: ControlProblem, solver: Solver, start: Start, tries: int | None
) -> Iterator[Found]:
    """Look at `tries` guesses side by side, and refine what they led to, the best first.

    Unless `tries` are asked for, there are as many as lanes, and a minimum ends it.
    """
    count = lanes() if tries is None else tries
    steps = look_steps(problem)
    many = Start(np.repeat(start.nodes, count, axis=1), np.repeat(start.times, count))
    found = solver.from_ways(many, bumps(problem, count), steps, last=_LOOK)
    seen = [k for k in range(count) if np.isfinite(found.cost[k])]
    if not seen:  # no step of the looks could be taken, and finer ones may be
        yield solver.from_ways(start, bumps(problem, 1), problem.steps)
        return
    order = sorted(seen, key=lambda k: (not found.converged[k], found.cost[k]))
    looked: list[float] = []
    for k in order:
        cost = float(found.cost[k])
        if any(abs(cost - other) <= _ALIKE * abs(cost) for other in looked):
            continue
        looked.append(cost)
        one = slice(k, k + 1)
        guess = Iterate(found.nodes[..., one], found.stages[..., one], found.h[one])
        refined = solver.from_iterate(start, guess, _LOOK)
        yield refined
        if tries is None and refined.converged[0] and refined.minimum[0]:
            return


def look_steps(problem: ControlProblem) -> int:
    """Return how many steps a look has: few, but not so few that the plant is unstable in them."""
    steps = min(problem.steps, max(_FEWEST, problem.steps // 8))
    while steps < problem.steps and not _stable(problem, problem.first_duration / steps):
        steps = min(2 * steps, problem.steps)
    return steps


def _stable(problem: ControlProblem, h: float) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            problem.integrator.check_step(problem.system, problem.start, h)
        except BadInput:
            return False
    return True


# What a miss of the end by the whole way costs, in costs of what was found without one.
_ELASTIC = 1e5
# The barrier to go down to, as a part of that.
_NEAR = 1e-6
# An end that is missed by less of the way than this can be reached.
_REACHED = 1e-4


def nearest(
    problem: ControlProblem, solver: Solver, start: Start, cost: float
) -> tuple[Found, bool]:
    """Come as near to the end as inputs and path allow; tell whether that is there.

    The search starts from the free motion, whose steps lead to each other. `cost` is about what the
    way to the end costs.
    """
    steps, s = look_steps(problem), problem.model.sizes
    T = problem.first_duration
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of steps that are long for the motion
        run = simulate(
            problem.system,
            problem.integrator,
            problem.start,
            h=T / steps,
            steps=steps,
            progress=False,
        )
    nodes = Start.of_many(run.states).nodes
    stages = np.zeros((s.stage, steps, 1))
    guess = Iterate(nodes[..., None], stages, np.array([T / steps]))
    unit = max(cost, 1e-300) if np.isfinite(cost) else 1.0
    found = solver.from_iterate(
        start, guess, first=1.0, last=_NEAR, elastic=_ELASTIC * unit, steps=steps
    )
    miss = float(np.abs(found.miss[:, 0]).max())
    return found, bool(found.converged[0]) and miss <= _REACHED * solver.extents.max()

"""Look at several guesses of a problem with coarse steps, and refine the best."""

from collections.abc import Iterator

import jax
import numpy as np

from retrax.engine.llvm.host import lanes
from retrax.planning.problem import ControlProblem
from retrax.planning.solve import Found, Iterate, Solver, Start, bumps

# The first look goes down to this barrier, with at least so many steps.
_LOOK, _FEWEST = 3e-3, 32
# Costs at the first look that differ by less, relative to them, belong to one extremal.
_ALIKE = 1e-4


def explored(
    problem: ControlProblem, solver: Solver, start: Start, tries: int | None
) -> Iterator[Found]:
    """Look at `tries` guesses side by side, and refine what they led to, the best first.

    Unless `tries` are asked for, there are as many as lanes, and a minimum ends it.
    """
    count = lanes() if tries is None else tries
    steps = min(problem.steps, max(_FEWEST, problem.steps // 8))
    many = Start(np.repeat(start.nodes, count, axis=1), np.repeat(start.times, count))
    found = solver.from_ways(many, bumps(problem, count), steps, last=_LOOK)
    order = sorted(range(count), key=lambda k: (not found.converged[k], found.cost[k]))
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


# What a miss of the end by the whole way costs, in costs of the guess, where it may be missed.
_ELASTIC = 1e6
# An end that is missed by less of the way than this can be reached.
_REACHED = 1e-4


def nearest(problem: ControlProblem, solver: Solver, start: Start) -> tuple[Found, bool]:
    """Come as near to the end as inputs and path allow; tell whether that is there."""
    count, steps = lanes(), min(problem.steps, max(_FEWEST, problem.steps // 8))
    many = Start(np.repeat(start.nodes, count, axis=1), np.repeat(start.times, count))
    found = solver.from_ways(many, bumps(problem, count), steps, last=_LOOK, elastic=_ELASTIC)
    miss = np.abs(found.miss).max(axis=0, initial=0.0)
    k = min(range(count), key=lambda k: (not found.converged[k], miss[k]))
    scale = solver.extents.max()
    reached = bool(found.converged[k] and miss[k] <= _REACHED * scale)
    return jax.tree.map(lambda x: x[..., k : k + 1], found), reached

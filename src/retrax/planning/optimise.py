"""Solve optimal control problems."""

import time
from typing import TYPE_CHECKING

import numpy as np

from retrax.engine.llvm.host import lanes
from retrax.errors import NoPlan
from retrax.mechanics.state import State
from retrax.numerics.checks import require_instance, require_whole
from retrax.planning.kernels import programs
from retrax.planning.plan import Plan
from retrax.planning.problem import ControlProblem
from retrax.planning.solve import MOST_ITERATIONS, Iterate, Solver, Start, bumps

if TYPE_CHECKING:
    import xarray as xr

# The first look at problems with bounds: barriers to go down to, and the fewest steps.
_LOOK, _FEWEST = 3e-3, 32
# The barrier to begin with from another plan.
_WARM = 1e-2
# Costs that differ by less, relative to them, belong to one extremal.
_ALIKE = 1e-6


def optimise(
    problem: ControlProblem,
    *,
    starts: State | None = None,
    tries: int | None = None,
    iterations: int = MOST_ITERATIONS,
) -> "Plan | xr.Dataset":
    """Find a plan: inputs that bring a plant from its start to its end at the least cost.

    **Arguments:**

    - `problem`: what to solve.
    - `starts`: states with a leading axis of members, to solve one problem from each of them.
    - `tries`: how many guesses to start from: ways to the end that differ by bumps. The best plan
        is returned, and `plan.others` has the costs of other extremals that were found. Unless it
        is given, a few guesses are looked at with coarse steps where inputs have bounds or the path
        has, and one guess is tried otherwise.
    - `iterations`: how many there may be from each guess.

    **Returns:** a `Plan`; with `starts` an `xarray.Dataset` with an axis of members.

    **Raises:** `NoPlan` where the search does not converge: it says what is wrong and carries the
    last iterate. With `starts` members without a plan are NaN, and `status` says so.
    """
    require_instance("problem", problem, ControlProblem, "a ControlProblem")
    if tries is not None:
        tries = require_whole("tries", tries, 1)
    iterations = require_whole("iterations", iterations, 1)
    if starts is not None:
        from retrax.planning.ensemble import optimise_many

        return optimise_many(problem, starts, tries, iterations)
    return _optimise(problem, tries, iterations)


def _optimise(problem: ControlProblem, tries: int | None, iterations: int) -> Plan:
    began = time.perf_counter()
    solver = Solver(problem, programs(problem.model), iterations)
    start = Start.of(problem.start)
    plans: list[Plan] = []
    if problem.guess is not None:
        plans.append(Plan(problem, solver.from_iterate(start, problem.guess.iterate, _WARM)))
    else:
        sizes = problem.model.sizes
        if tries is None and not (sizes.bounded or sizes.path):
            plans.append(Plan(problem, solver.from_ways(start, bumps(problem, 1), problem.steps)))
        if not any(plan.status == "minimum" for plan in plans):
            plans += _explored(problem, solver, start, tries)
    good = [plan for plan in plans if plan.converged]
    if not good:
        raise NoPlan(*_why(plans))
    best = min(good, key=lambda p: (p.status != "minimum", p.cost))
    best.others = tuple(_others(best, good))
    best.seconds = time.perf_counter() - began
    return best


def _explored(
    problem: ControlProblem, solver: Solver, start: Start, tries: int | None
) -> list[Plan]:
    """Look at several guesses side by side with coarse steps, and refine what is best.

    Where `tries` are asked for, all extremals are refined that were found.
    """
    count = lanes() if tries is None else tries
    steps = min(problem.steps, max(_FEWEST, problem.steps // 8))
    many = Start(np.repeat(start.nodes, count, axis=1), np.repeat(start.times, count))
    found = solver.from_ways(many, bumps(problem, count), steps, last=_LOOK)
    size = np.abs(found.cost)
    order = sorted(range(count), key=lambda k: (not found.converged[k], found.cost[k]))
    plans: list[Plan] = []
    looked: list[float] = []
    for k in order:
        if any(abs(found.cost[k] - cost) <= 1e-4 * size[k] for cost in looked):
            continue
        looked.append(float(found.cost[k]))
        guess = Iterate(found.nodes[..., k : k + 1], found.stages[..., k : k + 1], found.h[k : k + 1])
        plans.append(Plan(problem, solver.from_iterate(start, guess, _LOOK)))
        if tries is None and plans[-1].status == "minimum":
            break
    return plans


def _others(best: Plan, plans: list[Plan]) -> list[tuple[float, float]]:
    """Costs and durations of the extremals that are not the best one, each once."""
    found: list[tuple[float, float]] = []
    for plan in sorted(plans, key=lambda p: p.cost):
        known = [best.cost, *(cost for cost, _ in found)]
        if all(abs(plan.cost - x) > _ALIKE * abs(x) for x in known):
            found.append((plan.cost, plan.T))
    return found


def _why(failed: list[Plan]) -> tuple[str, Plan]:
    """Say what is wrong with the iterate that came nearest."""
    plan = min(failed, key=lambda p: max(p.residuals["defects"], p.residuals["end"]))
    worst = max(("defects", "end", "path", "stationarity"), key=lambda x: plan.residuals[x])
    said = {
        "defects": "steps do not lead from one state to the next, by up to "
        f"{plan.largest_defect:.2g}",
        "end": f"the end is missed by {abs(plan.miss).max(initial=0.0):.2g}",
        "path": f"the path constraint is broken by {-plan.path.min(initial=0.0):.2g}",
        "stationarity": "the conditions of first order are met only to "
        f"{plan.residuals['stationarity']:.1g}",
    }
    sentence = (
        f"no plan was found from {len(failed)} guesses, after {plan.iterations} iterations "
        f"{said[worst]}; give it more time (duration=), wider bounds, or a guess=."
    )
    return sentence, plan

"""Solve optimal control problems."""

import time
from typing import TYPE_CHECKING

from retrax.errors import NoPlan, warn
from retrax.mechanics.state import State
from retrax.numerics.checks import require_instance, require_whole
from retrax.numerics.known import explaining_leaks
from retrax.numerics.looks import looking
from retrax.numerics.meant import explain_keywords
from retrax.planning.ensemble import optimise_many
from retrax.planning.explore import explore, nearest
from retrax.planning.failure import (
    describe_miss,
    describe_stop,
    path_warning,
    require_start_on_path,
)
from retrax.planning.kernels import programs
from retrax.planning.plan import Plan
from retrax.planning.problem import ControlProblem
from retrax.planning.solve import MOST_ITERATIONS, Found, Iterate, Solver, Start, bumps

if TYPE_CHECKING:
    import xarray as xr

# The barrier to begin with from another plan.
_WARM = 1e-2
# A plan in the least time there is may break the bounds of its inputs by this part of them.
_SLACK = 1e-8
# Costs that differ by less, relative to them, belong to one extremal.
_ALIKE = 1e-6


@explain_keywords
@explaining_leaks()
@looking()
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
    last iterate. With `starts` members without a plan are NaN, and `status` says so. Where the last
    state breaks the path constraint, which binds only states from which inputs act, `status` is
    "path broken at the end", and a warning says by how much and whether the end contradicts it.
    """
    require_instance("problem", problem, ControlProblem, "a ControlProblem")
    if tries is not None:
        tries = require_whole("tries", tries, 1)
    iterations = require_whole("iterations", iterations, 1)
    if starts is not None:
        return optimise_many(problem, starts, tries, iterations)
    return _optimise(problem, tries, iterations)


def _optimise(problem: ControlProblem, tries: int | None, iterations: int) -> Plan:
    began = time.perf_counter()
    require_start_on_path(problem)
    solver = Solver(problem, programs(problem.model), iterations)
    start = Start.of(problem.start)
    plans: list[Plan] = []
    if problem.guess is not None:
        plans.append(Plan(problem, solver.from_iterate(start, problem.guess.iterate, _WARM)))
    else:
        sizes = problem.model.sizes
        if tries is None and not (sizes.bounded or sizes.path):
            plans.append(Plan(problem, solver.from_ways(start, bumps(problem, 1), problem.steps)))
        if not any(plan.kind == "minimum" for plan in plans):
            plans += [Plan(problem, found) for found in explore(problem, solver, start, tries)]
    good = [plan for plan in plans if plan.converged]
    if not good:
        good = [_reach(problem, solver, start, plans)]
    best = min(good, key=lambda p: (bool(p.path_broken_at_end), p.kind != "minimum", p.cost))
    problem.integrator.check_step(problem.system, problem.start, best.h)
    best.others = tuple(_others(best, good))
    best.seconds = time.perf_counter() - began
    if best.path_broken_at_end:
        warn(path_warning(best))
    return best


def _others(best: Plan, plans: list[Plan]) -> list[tuple[float, float]]:
    """Return costs and durations of the extremals that are not the best one, each once."""
    found: list[tuple[float, float]] = []
    for plan in sorted(plans, key=lambda p: p.cost):
        known = [best.cost, *(cost for cost, _ in found)]
        if all(abs(plan.cost - x) > _ALIKE * abs(x) for x in known):
            found.append((plan.cost, plan.T))
    return found


def _reach(problem: ControlProblem, solver: Solver, start: Start, failed: list[Plan]) -> Plan:
    """Come as near to the end as possible, and from there to it; say what is in the way if not."""
    if problem.model.sizes.ends == 0:
        raise NoPlan(describe_stop(failed[0], len(failed)), failed[0])
    cost = max(abs(plan.cost) for plan in failed)
    found, there = nearest(problem, solver, start, cost)
    if there:
        guess = Iterate(found.nodes, found.stages, found.h)
        plan = Plan(problem, solver.from_iterate(start, guess, _WARM))
        if plan.converged:
            return plan
        raise NoPlan(describe_stop(plan, len(failed) + 1), plan)
    if problem.model.sizes.bounded and (plan := _just_in_time(problem, solver, start, found)):
        return plan
    last = min(failed, key=lambda p: max(p.residuals["defects"], p.residuals["end"]))
    # A nonholonomic plant at rest cannot go sideways, to first order: that is no proof.
    saddle = problem.system.constraint is not None and not found.minimum[0]
    if saddle or not found.converged[0]:
        raise NoPlan(describe_stop(last, len(failed)), last)
    raise NoPlan(describe_miss(problem, found), last)


def _just_in_time(
    problem: ControlProblem, solver: Solver, start: Start, near: Found
) -> Plan | None:
    """Look for a plan in the least time there is, where bounds leave inputs no room to search in.

    Bounds are wider for the search by `_SLACK` of their distance.
    """
    solver.slack = _SLACK
    guess = Iterate(near.nodes, near.stages, near.h)
    plan = Plan(problem, solver.from_iterate(start, guess, _WARM))
    solver.slack = 0.0
    return plan if plan.converged else None

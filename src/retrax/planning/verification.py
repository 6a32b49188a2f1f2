"""Whether a plan that somebody hands over solves its problem: evaluated again, number by number."""

import numpy as np

from retrax.errors import BadInput
from retrax.planning.duration import Free
from retrax.planning.evaluation import evaluation
from retrax.planning.plan import Plan
from retrax.planning.problem import ControlProblem
from retrax.planning.solve import Start

# How well steps, end, path and cost must hold again, relative to what they are made of.
_HOLDS = 1e-7
# What a file may tell of how well they held when the plan was found.
_LOOSEST = 1e-5
_ROUNDING = 1e-9


def require_solution(plan: Plan) -> None:
    """Reject a plan whose numbers do not hold under its problem."""
    _require(plan.converged, "it is the last iterate of a search that found none")
    problem, dim = plan.problem, plan.problem.system.group.dim
    found = evaluation(problem, plan.states, plan.controls, plan.h)
    nodes, element = plan.numbers[0], problem.model.sizes.element
    sizes = [np.abs(part).max() for part in (nodes[:element], nodes[element:])]
    defects = [np.abs(part).max() for part in (found.defects[:, :dim], found.defects[:, dim:])]
    room, told = 10 * plan.largest_defect, np.abs(plan.miss).max(initial=0.0)
    _require(
        max(room, told) <= _LOOSEST * max(1.0, *sizes),
        f"its conditions hold to {max(plan.largest_defect, told):.2g} only",
    )
    _require(
        all(d <= _HOLDS * size + room for d, size in zip(defects, sizes, strict=True)),
        f"its steps do not lead from one state to the next, by up to {max(defects):.2g}",
    )
    first = [np.abs(a - b).max() for a, b in zip(_start(plan), _starts(problem), strict=True)]
    _require(
        all(d <= _HOLDS * max(size, 1.0) for d, size in zip(first, sizes, strict=True)),
        f"it starts elsewhere, by {max(first):.2g}",
    )
    miss = np.abs(found.miss).max(initial=0.0)
    _require(miss <= _HOLDS * max(1.0, *sizes) + 10 * told, f"it misses the end by {miss:.2g}")
    over = np.maximum(problem.lower - plan.controls, plan.controls - problem.upper).max()
    _require(
        over <= _HOLDS * np.abs(plan.controls).max(), f"its inputs break the bounds by {over:.2g}"
    )
    if plan.path.size:
        least, known = found.path[:-1].min(axis=0), plan.path.min(axis=0)
        scale = 1.0 + np.abs(found.path).max(axis=0)
        _require(
            (np.abs(least - known) <= _HOLDS * scale).all(),
            f"its least value of the path constraint is {least.min():.3g}, and not "
            f"{known.min():.3g} as in the file",
        )
    scale = np.abs(found.costs).sum() + abs(float(found.final_cost)) + abs(plan.cost)
    _require(
        abs(found.cost - plan.cost) <= _HOLDS * scale,
        f"its cost is {found.cost:.6g}, and not {plan.cost:.6g} as in the file",
    )
    _require(
        _allowance(problem, plan.T), f"its duration is {plan.T:.6g} s, and not {problem.duration}"
    )


def _require(holds: bool | np.bool_, what: str) -> None:
    if not holds:
        raise BadInput(f"the plan in it does not solve its problem: {what}.")


def _allowance(problem: ControlProblem, duration: float) -> bool:
    allowed, room = problem.duration, _ROUNDING * duration
    if isinstance(allowed, Free):
        return allowed.lower - room <= duration <= allowed.upper + room
    return abs(duration - allowed) <= room


def _start(plan: Plan) -> tuple[np.ndarray, np.ndarray]:
    nodes, element = plan.numbers[0], plan.problem.model.sizes.element
    return nodes[:element, 0], nodes[element:, 0]


def _starts(problem: ControlProblem) -> tuple[np.ndarray, np.ndarray]:
    nodes, element = Start.of(problem.start).nodes[:, 0], problem.model.sizes.element
    return nodes[:element], nodes[element:]

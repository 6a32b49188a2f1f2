"""Whether a plan from a file solves the problem that it is read with."""

import base64
from typing import TYPE_CHECKING

import numpy as np

from retrax.errors import BadInput
from retrax.store.objects import Data

if TYPE_CHECKING:
    import xarray as xr

    from retrax.planning.plan import Plan
    from retrax.planning.problem import ControlProblem

# Numbers that differ by less, relative to their size, are the same on another machine.
_SAME = 1e-9
# How well steps, end, path and cost must hold again, relative to what they are made of.
_HOLDS = 1e-7
_CALLED = {"final_cost": "final cost", "path": "path constraint"}


def require_same_problem(
    kept: dict[str, Data], given: dict[str, Data], ds: "xr.Dataset", problem: "ControlProblem"
) -> None:
    """Reject a problem that differs from what a file keeps of its own."""
    for name, data in kept.items():
        unknown = name == "lacking" or name in kept["lacking"] or name in given["lacking"]
        if not unknown and not _same(data, given[name]):
            raise BadInput(
                f"the plan in it solves another problem: its {_CALLED.get(name, name)} is not that "
                "of problem=...; make the problem that was solved, or solve this one again with "
                "rx.optimise."
            )
        # A function is kept as its absence: one has it and the other has not.
        if (name in kept["lacking"]) != (name in given["lacking"]) and name != "lacking":
            raise BadInput(
                f"the plan in it solves another problem: its {_CALLED.get(name, name)} is of "
                "another kind than that of problem=... ."
            )
    for name, own in (("lower", problem.lower), ("upper", problem.upper)):
        limits = np.asarray(ds[name].values, float) if name in ds else np.zeros(0)
        if limits.shape != own.shape or not np.allclose(limits, own, rtol=_SAME, atol=0.0):
            raise BadInput(
                f"the plan in it solves another problem: its {name} bounds are {limits.tolist()}, "
                f"and those of problem=... {own.tolist()}."
            )


def require_solution(plan: "Plan") -> None:
    """Reject a plan whose numbers do not hold under its problem."""
    from retrax.planning.evaluation import evaluation

    _require(plan.converged, "it is the last iterate of a search that found none")
    problem, dim = plan.problem, plan.problem.system.group.dim
    found = evaluation(problem, plan.states, plan.controls, plan.h)
    nodes, element = plan.numbers[0], problem.model.sizes.element
    sizes = [np.abs(part).max() for part in (nodes[:element], nodes[element:])]
    defects = [np.abs(part).max() for part in (found.defects[:, :dim], found.defects[:, dim:])]
    room = 10 * plan.largest_defect
    _require(
        all(d <= _HOLDS * size + room for d, size in zip(defects, sizes, strict=True)),
        f"its steps do not lead from one state to the next, by up to {max(defects):.2g}",
    )
    first = [np.abs(a - b).max() for a, b in zip(_start(plan), _starts(problem), strict=True)]
    _require(
        all(d <= _HOLDS * max(size, 1.0) for d, size in zip(first, sizes, strict=True)),
        f"it starts elsewhere, by {max(first):.2g}",
    )
    miss, told = np.abs(found.miss).max(initial=0.0), np.abs(plan.miss).max(initial=0.0)
    _require(
        miss <= _HOLDS * max(1.0, *sizes) + 10 * told, f"it misses the end by {miss:.2g}"
    )
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
        _allowed(problem, plan.T), f"its duration is {plan.T:.6g} s, and not {problem.duration}"
    )


def _require(holds: bool | np.bool_, what: str) -> None:
    if not holds:
        raise BadInput(f"the plan in it does not solve this problem: {what}.")


def _allowed(problem: "ControlProblem", duration: float) -> bool:
    from retrax.planning.duration import Free

    allowed, room = problem.duration, _SAME * duration
    if isinstance(allowed, Free):
        return allowed.lower - room <= duration <= allowed.upper + room
    return abs(duration - allowed) <= room


def _start(plan: "Plan") -> tuple[np.ndarray, np.ndarray]:
    nodes, element = plan.numbers[0], plan.problem.model.sizes.element
    return nodes[:element, 0], nodes[element:, 0]


def _starts(problem: "ControlProblem") -> tuple[np.ndarray, np.ndarray]:
    from retrax.planning.solve import Start

    nodes, element = Start.of(problem.start).nodes[:, 0], problem.model.sizes.element
    return nodes[:element], nodes[element:]


def _same(a: Data, b: Data) -> bool:
    """Tell whether data mean the same, their numbers up to rounding."""
    if isinstance(a, dict) and isinstance(b, dict):
        if "array" in a and "array" in b:
            x, y = _array(a["array"]), _array(b["array"])
            size = np.abs(x).max(initial=0.0) if x.dtype == float else 0.0
            close = x.shape == y.shape and np.allclose(x, y, rtol=_SAME, atol=_SAME * size)
            return x.dtype == y.dtype and close
        if "dict" in a and "dict" in b:
            return _same(_without_guess(a["dict"]), _without_guess(b["dict"]))
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= _SAME * abs(a)
    return type(a) is type(b) and a == b


def _without_guess(pairs: list[Data]) -> list[Data]:
    """The guess of a free duration is no part of the problem."""
    return [pair for pair in pairs if pair[0] != "guess"]


def _array(data: dict[str, Data]) -> np.ndarray:
    raw = base64.b64decode(data["data"])
    return np.frombuffer(raw, data["dtype"]).reshape(data["shape"])

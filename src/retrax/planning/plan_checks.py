"""Whether a file keeps the problem that it is read with, and numbers that a plan can have."""

import base64
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from retrax.errors import BadInput
from retrax.numerics.checks import quote
from retrax.store.objects import Data

# Numbers that differ by less, relative to their size, are the same on another machine.
_SAME = 1e-9
# What a plan is; and residuals, relative to what they are made of, with which no search ends.
_KINDS, _UNSOLVED = ("minimum", "extremal", "not converged"), 1e-3
_CALLED = {"final_cost": "final cost", "path": "path constraint", "steps": "number of steps"}


def require_same_problem(kept: dict[str, Data], given: dict[str, Data]) -> None:
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


def require_possible(told: Mapping[str, Any], residuals: Iterable[str]) -> None:
    """Reject numbers that no search ends with."""
    if told["status"] not in _KINDS:
        raise BadInput(f"it tells of a plan that is {quote(told['status'])}, which none is.")
    most = dict.fromkeys(residuals, _UNSOLVED) | {"iterations": 2.0**53, "seconds": np.inf}
    for name, bound in most.items():
        number = float(told[name])
        if not 0 <= number < bound or (name == "iterations" and number % 1):
            raise BadInput(f"it tells {name.replace('_', ' ')} = {number:g}, which no plan has.")


def require_same_bounds(name: str, kept: np.ndarray, given: np.ndarray) -> None:
    """Reject bounds of inputs that differ from those of a file."""
    if kept.shape != given.shape or not np.allclose(kept, given, rtol=_SAME, atol=0.0):
        raise BadInput(
            f"the plan in it solves another problem: its {name} bounds are {kept.tolist()}, and "
            f"those of problem=... {given.tolist()}."
        )


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
    """Drop the guess of a free duration, which does not belong to the problem."""
    return [pair for pair in pairs if pair[0] != "guess"]


def _array(data: dict[str, Data]) -> np.ndarray:
    raw = base64.b64decode(data["data"])
    return np.frombuffer(raw, data["dtype"]).reshape(data["shape"])

"""What primitives of runs do on the host: from arguments to machine code and back."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrax.derivatives.kernels import Shape, is_large, pull_kernel, push_kernel, step_kernel
from retrax.derivatives.native_runs import Leaf, Numbers, forward, pull, push
from retrax.derivatives.problem import Flags, Problem
from retrax.engine.backends.members import lanes
from retrax.engine.derivative_programs import Wanted


def run_natively(
    *leaves: Any, problem: Problem, members: int | None, own: Flags, keeps: bool
) -> list[np.ndarray]:
    """Return saved states, intervals, failures, and what is kept."""
    outs, kept = forward(_numbers(problem, leaves, own, members), keeps)
    return [*outs, kept]


def push_natively(
    *arguments: Any, problem: Problem, members: int | None, own: Flags, given: Flags
) -> list[np.ndarray]:
    """Return tangents of the saved states."""
    leaves, _, ways = split(arguments, given)
    numbers = _numbers(problem, leaves, own[: len(leaves)], members)
    theirs = iter(zip(ways, own[len(leaves) + 1 :], strict=True))
    first, last = len(problem.params.shapes), len(given) - 1
    tangents: list[Leaf | None] = []
    for k, there in enumerate(given):
        if there:
            tangents.append(Leaf(*next(theirs)))
        elif first <= k < last:
            tangents.append(Leaf(np.zeros(problem.state.shapes[k - first]), False))
        else:
            tangents.append(None)
    # The largest increment of a record depends on which step has it: its derivative is not known.
    shape = (len(problem.plan.saved),) if members is None else (members, len(problem.plan.saved))
    return [*push(numbers, tangents), np.full(shape, np.nan)]


def pull_natively(
    *arguments: Any, problem: Problem, members: int | None, own: Flags, given: Flags
) -> list[np.ndarray]:
    """Return cotangents of the leaves that are given."""
    leaves, kept, ends = split(arguments, given)
    numbers = _numbers(problem, leaves, own[: len(leaves)], members)
    cotangents = [Leaf(np.asarray(x), o) for x, o in zip(ends, own[len(leaves) + 1 :], strict=True)]
    wanted = wanted_of(problem, given)
    rows = np.asarray(kept) if members is None and len(kept) else None
    found = pull(numbers, wanted, cotangents, rows)
    count = sum(wanted.params)
    params, h, states = found[:count], found[count : count + wanted.h], found[count + wanted.h :]
    starts = given[len(problem.params.shapes) : -1]
    return [*params, *[x for x, there in zip(states, starts, strict=True) if there], *h]


def split(arguments: Sequence[Any], given: Flags) -> tuple[list[Any], Any, list[Any]]:
    """Return leaves, what was kept, and tangents or cotangents."""
    count = len(given)
    return list(arguments[:count]), arguments[count], list(arguments[count + 1 :])


def wanted_of(problem: Problem, given: Flags) -> Wanted:
    """Return which derivatives besides those by the state are asked for."""
    return Wanted(given[: len(problem.params.shapes)], given[-1])


def _numbers(problem: Problem, leaves: Sequence[Any], own: Flags, members: int | None) -> Numbers:
    pairs = zip(leaves, own, strict=True)
    return Numbers(problem, [Leaf(np.asarray(x), o) for x, o in pairs], members)


def prepare_run(problem: Problem, members: int | None, own: Flags, keeps: bool) -> None:
    """Compile what `run_natively` needs."""
    step_kernel(problem.made_for, _shape(problem, members, own))


def prepare_push(problem: Problem, members: int | None, own: Flags, given: Flags) -> None:
    """Compile what `push_natively` needs."""
    count, params = len(given), len(problem.params.shapes)
    moving = [k for k, there in enumerate(given) if there]
    pairs = zip(moving, own[count + 1 :], strict=True)
    alike = not any(o for k, o in pairs if k < params or k == count - 1)
    shape = _shape(problem, members, own)
    shape = shape if shape.lanes == 1 else shape._replace(shared=shape.shared and alike)
    push_kernel(*problem.made_for, wanted_of(problem, given), shape)


def prepare_pull(problem: Problem, members: int | None, own: Flags, given: Flags) -> None:
    """Compile what `pull_natively` needs."""
    shape = _shape(problem, members, own)
    step_kernel(problem.made_for, shape)
    pull_kernel(*problem.made_for, wanted_of(problem, given), shape)


def _shape(problem: Problem, members: int | None, own: Flags) -> Shape:
    """Return the layout of members in memory."""
    params, step = len(problem.params.shapes), problem.leaves - 1
    if members in (None, 1) or own[step] or is_large(problem.made_for):
        return Shape(1, True)
    return Shape(lanes(), not any(own[:params]))

"""One trajectory (W1, W2): the native back end against C."""

from collections.abc import Callable
from typing import Any

import numpy as np

from retrax.bench import kernels
from retrax.bench.problems import W1, W2, Problem, attitude_error, reference
from retrax.bench.runs import ORDERS, loop_alone, verlet, whole_call
from retrax.bench.timing import Timing, cpu_seconds, paired
from retrax.errors import CheckFailed

H, SAVE_EVERY = 0.01, 100
# Substeps in a timed run: steps of LieVerlet, whether by themselves or in a composition.
SUBSTEPS = 200_000
# C and retrax must agree this well after 100 steps before anything is timed.
AGREEMENT = 1e-12
# Order 8 takes W2 to its end with an error below TARGET in this many steps, not in 6/7 as many.
TARGET, TARGET_STEPS = 1e-9, 285

CRun = Callable[[], tuple[np.ndarray, int]]


def measure(pairs: int = 7) -> dict[str, Any]:
    """Per step and to a given error, against C where there is a compiler."""
    return {
        "h": H,
        "save_every": SAVE_EVERY,
        "per_step": [per_step(problem, order, pairs) for problem in (W1, W2) for order in ORDERS],
        "to_error": to_error(pairs),
        "call_seconds": cpu_seconds(whole_call(W2, verlet(2), H, 1)),
    }


def disagreement(problem: Problem, order: int, steps: int = 100) -> float:
    """The largest difference between any state of retrax and that of the C kernel."""
    run = whole_call(problem, verlet(order), H, steps, save_every=1)().states
    ours = np.concatenate([run.g.reshape(-1, 9), run.momentum], axis=1)[1:]
    theirs, _ = kernels.single(problem, H, steps, save_every=1, order=order)
    return float(np.max(np.abs(ours - theirs)))


def per_step(problem: Problem, order: int, pairs: int) -> dict[str, Any]:
    """The loop and the whole call at h = 0.01, every 100th state saved."""
    stages = len(kernels.stages(order))
    steps = SUBSTEPS // stages // SAVE_EVERY * SAVE_EVERY
    row = {"problem": problem.name, "order": order, "stages": stages, "steps": steps}
    c = in_c(problem, H, steps, SAVE_EVERY, order)
    if c is not None:
        row["difference"] = difference = disagreement(problem, order)
        if not difference < AGREEMENT:
            raise CheckFailed(
                f"{problem.name}, order {order}: C and retrax differ by {difference:.1e} after "
                f"100 steps; {AGREEMENT:g} is allowed."
            )
        row["newton_per_substep"] = c()[1] / steps / stages
    arguments = (problem, verlet(order), H, steps, SAVE_EVERY)
    loop, call = (paired(run(*arguments), c, pairs) for run in (loop_alone, whole_call))
    return {**row, **nanoseconds(loop, steps), "loop": loop, "call": call}


def to_error(pairs: int) -> dict[str, Any]:
    """W2 by order 8 to an error of 1e-9 at its end: the same steps in C and in retrax."""
    h, steps = W2.end / TARGET_STEPS, TARGET_STEPS
    arguments = (W2, verlet(8), h, steps)
    error = float(attitude_error(whole_call(*arguments)().states.g[-1], reference(W2)))
    if not error < TARGET:
        raise CheckFailed(f"{W2.name}: order 8 ends with an error of {error:.1e}, not {TARGET:g}.")
    c = in_c(W2, h, steps, steps, order=8)
    return {
        "problem": W2.name,
        "order": 8,
        "steps": steps,
        "target": TARGET,
        "error": error,
        "loop": paired(loop_alone(*arguments), c, pairs),
        "call": paired(whole_call(*arguments), c, pairs),
    }


def in_c(problem: Problem, h: float, steps: int, save_every: int, order: int) -> CRun | None:
    """The run in C, where there is a compiler."""
    if kernels.compiler() is None:
        return None
    return lambda: kernels.single(problem, h, steps, save_every, order)


def nanoseconds(timing: Timing, steps: int) -> dict[str, float]:
    """Nanoseconds per step of retrax, and of C where it ran."""
    times = {"ns": timing["seconds"] / steps * 1e9}
    if "base_seconds" in timing:
        times["c_ns"] = timing["base_seconds"] / steps * 1e9
    return times

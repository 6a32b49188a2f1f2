"""One trajectory: the native back end against C.

W1 and W2 by `LieVerlet` and its compositions, W2 by collocation with its stages in vector lanes,
and Euler's top by Kahan's method (W4).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from retrax.engine.backends import make_loop
from retrax.engine.progress import start
from retrax.errors import CheckFailed
from retrax.integrators.base import AbstractIntegrator
from retrax.integrators.collocation import Collocation
from retrax.integrators.galerkin_variational import GalerkinVariational
from retrax.integrators.kahan import Kahan
from retrax.numerics.nodes import gauss
from retrax.run.simulate import simulate
from retrax.systems.euler_top import EulerTop
from retrax_papers.bench import kernels
from retrax_papers.bench.problems import (
    ORDERS,
    W1,
    W2,
    TimedProblem,
    attitude_error,
    loop_alone,
    reference,
    verlet,
    whole_call,
)
from retrax_papers.bench.timing import cpu_seconds, nanoseconds, paired

H, SAVE_EVERY = 0.01, 100
# Substeps in a timed run: steps of LieVerlet, whether by themselves or in a composition.
SUBSTEPS = 200_000
# Order 8 takes W2 to its end with an error below TARGET in this many steps, not in 6/7 as many.
TARGET, TARGET_STEPS = 1e-9, 285

CRun = Callable[[], tuple[np.ndarray, int]]

# Eight stages take W2 to its end with an error below COLLOCATION_TARGET in this many steps.
COLLOCATION_TARGET, STAGES, COLLOCATION_STEPS = 1e-11, 8, 46
# A timed run goes on for this many times the length of W2, so that a call does not show.
LONG = 20
TOP_INERTIA, TOP_START, TOP_H = (3.0, 2.0, 1.0), (1.0, 1.0, 1.0), 0.1
TOP_STEPS, TOP_SAVE_EVERY = 1_000_000, 1000


def measure(pairs: int = 7) -> dict[str, Any]:
    """Per step and to a given error, against C if there is a compiler."""
    return {
        "h": H,
        "save_every": SAVE_EVERY,
        "per_step": [per_step(problem, order, pairs) for problem in (W1, W2) for order in ORDERS],
        "to_error": to_error(pairs),
        "call_seconds": cpu_seconds(whole_call(W2, verlet(2), H, 1)),
    }


def disagreement(problem: TimedProblem, order: int, steps: int = 100, lean: bool = False) -> float:
    """The largest difference between any state of retrax and that of the C kernel."""
    run = whole_call(problem, verlet(order), H, steps, save_every=1)().states
    ours = np.concatenate([run.g.reshape(-1, 9), run.momentum], axis=1)[1:]
    theirs, _ = kernels.single(problem, H, steps, save_every=1, order=order, lean=lean)
    return float(np.max(np.abs(ours - theirs)))


def per_step(problem: TimedProblem, order: int, pairs: int) -> dict[str, Any]:
    """The loop and the whole call at h = 0.01, every 100th state saved.

    C solves each step until it has converged, as retrax does; the lean kernel does not look.
    """
    stages = len(kernels.stages(order))
    steps = SUBSTEPS // stages // SAVE_EVERY * SAVE_EVERY
    row = {"problem": problem.name, "order": order, "stages": stages, "steps": steps}
    c, lean = (in_c(problem, H, steps, SAVE_EVERY, order, lean) for lean in (False, True))
    if c is not None:
        for which in (False, True):
            difference = disagreement(problem, order, lean=which)
            kernels.require_agreement(f"{problem.name}, order {order}", difference)
            row["lean_difference" if which else "difference"] = difference
        row["newton_per_substep"] = c()[1] / steps / stages
    arguments = (problem, verlet(order), H, steps, SAVE_EVERY)
    loop, call = (paired(run(*arguments), c, pairs) for run in (loop_alone, whole_call))
    row |= {**nanoseconds(loop, steps), "loop": loop, "call": call}
    if lean is not None:
        row["lean"] = paired(loop_alone(*arguments), lean, pairs)
        row["lean_ns"] = nanoseconds(row["lean"], steps)["c_ns"]
    return row


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


def in_c(
    problem: TimedProblem, h: float, steps: int, save_every: int, order: int, lean: bool = False
) -> CRun | None:
    """The run in C; `None` without a compiler."""
    if kernels.compiler() is None:
        return None
    return lambda: kernels.single(problem, h, steps, save_every, order, lean)


def measure_collocation(pairs: int = 7) -> dict[str, Any]:
    """To an error of 1e-11: `Collocation` and `GalerkinVariational`, against collocation in C."""
    rows = [
        collocation_to_error(make(gauss(STAGES)), pairs)
        for make in (Collocation, GalerkinVariational)
    ]
    return {
        "problem": W2.name,
        "stages": STAGES,
        "steps": COLLOCATION_STEPS,
        "target": COLLOCATION_TARGET,
        "rows": rows,
    }


def collocation_to_error(integrator: AbstractIntegrator, pairs: int) -> dict[str, Any]:
    """Seconds to the end of W2: the loop, by a run LONG times as long, and the whole call."""
    h = W2.end / COLLOCATION_STEPS
    run = whole_call(W2, integrator, h, COLLOCATION_STEPS)()
    error = float(attitude_error(run.states.g[-1], reference(W2)))
    if not error < COLLOCATION_TARGET:
        raise CheckFailed(
            f"{integrator!r} ends with an error of {error:.1e}, not {COLLOCATION_TARGET:g}."
        )
    row: dict[str, Any] = {
        "integrator": repr(integrator),
        "error": error,
        "sweeps": float(np.sum(run.info.iterations)) / COLLOCATION_STEPS,
    }
    in_c = kernels.compiler() is not None
    if in_c:
        row["c_sweeps"] = (
            kernels.gauss_collocation(W2, STAGES, h, COLLOCATION_STEPS)[1] / COLLOCATION_STEPS
        )

    def c(steps: int) -> CRun | None:
        return (lambda: kernels.gauss_collocation(W2, STAGES, h, steps)) if in_c else None

    long = LONG * COLLOCATION_STEPS
    loop = paired(loop_alone(W2, integrator, h, long), c(long), pairs)
    times = {"seconds": loop["seconds"] / LONG}
    if in_c:
        times["c_seconds"] = loop["base_seconds"] / LONG
    call = paired(whole_call(W2, integrator, h, COLLOCATION_STEPS), c(COLLOCATION_STEPS), pairs)
    return {**row, **times, "loop": loop, "call": call}


def collocation_disagreement() -> float:
    """The largest difference between `Collocation` and the C kernel at the end of W2."""
    h = W2.end / COLLOCATION_STEPS
    run = whole_call(W2, Collocation(gauss(STAGES)), h, COLLOCATION_STEPS)().states
    ours = np.concatenate([run.g[-1].ravel(), run.momentum[-1]])
    return float(
        np.max(np.abs(ours - kernels.gauss_collocation(W2, STAGES, h, COLLOCATION_STEPS)[0]))
    )


def measure_kahan(pairs: int = 7) -> dict[str, Any]:
    """A million steps: the loop and the whole call, against C if there is a compiler."""
    top = EulerTop(TOP_INERTIA)
    state, records = top.at(TOP_START), TOP_STEPS // TOP_SAVE_EVERY
    native = make_loop("native", top, Kahan(), state, TOP_H)
    at = start(state)
    row: dict[str, Any] = {
        "problem": top.name,
        "h": TOP_H,
        "steps": TOP_STEPS,
        "save_every": TOP_SAVE_EVERY,
    }
    c: Callable[[], np.ndarray] | None = None
    if kernels.compiler() is not None:
        row["difference"] = difference = kahan_disagreement()
        kernels.require_agreement(top.name, difference)
        c = partial(kernels.euler_top, TOP_START, TOP_INERTIA, TOP_H, TOP_STEPS, TOP_SAVE_EVERY)
    loop = paired(lambda: native.run(at, records, TOP_SAVE_EVERY, records), c, pairs)
    call = paired(
        lambda: simulate(
            top, Kahan(), state, h=TOP_H, steps=TOP_STEPS, save_every=TOP_SAVE_EVERY, progress=False
        ),
        c,
        pairs,
    )
    return {**row, **nanoseconds(loop, TOP_STEPS), "loop": loop, "call": call}


def kahan_disagreement(steps: int = 100) -> float:
    """The largest difference between any state of retrax and that of the C kernel."""
    ours = simulate(
        EulerTop(TOP_INERTIA), Kahan(), np.array(TOP_START), h=TOP_H, steps=steps, progress=False
    ).y[1:]
    theirs = kernels.euler_top(TOP_START, TOP_INERTIA, TOP_H, steps, save_every=1)
    return float(np.max(np.abs(ours - theirs)))

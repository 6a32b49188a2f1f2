"""The 3D pendulum (W2) by collocation, stages in vector lanes: the native back end against C."""

from typing import Any

import numpy as np

from retrax.bench import kernels
from retrax.bench.problems import W2, attitude_error, reference
from retrax.bench.runs import loop_alone, whole_call
from retrax.bench.timing import paired
from retrax.errors import CheckFailed
from retrax.integrators.collocation import Collocation
from retrax.integrators.galerkin_variational import GalerkinVariational
from retrax.numerics.nodes import gauss

# Eight stages take W2 to its end with an error below TARGET in this many steps.
TARGET, STAGES, STEPS = 1e-11, 8, 46
# A timed run goes on for this many times the length of W2, so that a call does not show.
LONG = 20


def measure(pairs: int = 7) -> dict[str, Any]:
    """To an error of 1e-11: `Collocation` and `GalerkinVariational`, against collocation in C."""
    rows = [to_error(make(gauss(STAGES)), pairs) for make in (Collocation, GalerkinVariational)]
    return {"problem": W2.name, "stages": STAGES, "steps": STEPS, "target": TARGET, "rows": rows}


def to_error(integrator: Any, pairs: int) -> dict[str, Any]:
    """Seconds to the end of W2: the loop, by a run LONG times as long, and the whole call."""
    h = W2.end / STEPS
    run = whole_call(W2, integrator, h, STEPS)()
    error = float(attitude_error(run.states.g[-1], reference(W2)))
    if not error < TARGET:
        raise CheckFailed(f"{integrator!r} ends with an error of {error:.1e}, not {TARGET:g}.")
    row: dict[str, Any] = {
        "integrator": repr(integrator),
        "error": error,
        "sweeps": float(np.sum(run.info.iterations)) / STEPS,
    }
    in_c = kernels.compiler() is not None
    if in_c:
        row["c_sweeps"] = kernels.gauss_collocation(W2, STAGES, h, STEPS)[1] / STEPS

    def c(steps: int):
        return (lambda: kernels.gauss_collocation(W2, STAGES, h, steps)) if in_c else None

    long = LONG * STEPS
    loop = paired(loop_alone(W2, integrator, h, long), c(long), pairs)
    times = {"seconds": loop["seconds"] / LONG}
    if in_c:
        times["c_seconds"] = loop["base_seconds"] / LONG
    call = paired(whole_call(W2, integrator, h, STEPS), c(STEPS), pairs)
    return {**row, **times, "loop": loop, "call": call}


def disagreement() -> float:
    """The largest difference between `Collocation` and the C kernel at the end of W2."""
    h = W2.end / STEPS
    run = whole_call(W2, Collocation(gauss(STAGES)), h, STEPS)().states
    ours = np.concatenate([run.g[-1].ravel(), run.momentum[-1]])
    return float(np.max(np.abs(ours - kernels.gauss_collocation(W2, STAGES, h, STEPS)[0])))

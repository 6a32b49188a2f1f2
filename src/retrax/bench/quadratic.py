"""Euler's top by Kahan's method (W4): the native back end against C."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from retrax.bench import kernels
from retrax.bench.single import AGREEMENT, nanoseconds
from retrax.bench.timing import paired
from retrax.engine.backends import make_loop
from retrax.engine.progress import start
from retrax.errors import CheckFailed
from retrax.integrators.kahan import Kahan
from retrax.run.simulate import simulate
from retrax.systems.euler_top import EulerTop

INERTIA, START, H = (3.0, 2.0, 1.0), (1.0, 1.0, 1.0), 0.1
STEPS, SAVE_EVERY = 1_000_000, 1000


def measure(pairs: int = 7) -> dict[str, Any]:
    """A million steps: the loop and the whole call, against C where there is a compiler."""
    top = EulerTop(INERTIA)
    state, records = top.at(START), STEPS // SAVE_EVERY
    native = make_loop("native", top, Kahan(), state, H)
    at = start(state)
    row: dict[str, Any] = {"problem": top.name, "h": H, "steps": STEPS, "save_every": SAVE_EVERY}
    c: Callable[[], np.ndarray] | None = None
    if kernels.compiler() is not None:
        row["difference"] = difference = disagreement()
        if not difference < AGREEMENT:
            raise CheckFailed(
                f"{top.name}: C and retrax differ by {difference:.1e} after 100 steps; "
                f"{AGREEMENT:g} is allowed."
            )
        c = partial(kernels.euler_top, START, INERTIA, H, STEPS, SAVE_EVERY)
    loop = paired(lambda: native.run(at, records, SAVE_EVERY, records), c, pairs)
    call = paired(
        lambda: simulate(
            top, Kahan(), state, h=H, steps=STEPS, save_every=SAVE_EVERY, progress=False
        ),
        c,
        pairs,
    )
    return {**row, **nanoseconds(loop, STEPS), "loop": loop, "call": call}


def disagreement(steps: int = 100) -> float:
    """The largest difference between any state of retrax and that of the C kernel."""
    ours = simulate(EulerTop(INERTIA), Kahan(), START, h=H, steps=steps, progress=False).y[1:]
    theirs = kernels.euler_top(START, INERTIA, H, steps, save_every=1)
    return float(np.max(np.abs(ours - theirs)))

"""Chains of spherical pendulums: the native back end against C, and how both grow."""

from functools import partial
from typing import Any

import numpy as np

from retrax.engine.backends import make_loop
from retrax.engine.progress import start
from retrax.integrators.lie_verlet import LieVerlet
from retrax.mechanics.state import State
from retrax.mechanisms.joints import Spherical
from retrax.mechanisms.mechanism import Mechanism
from retrax.mechanisms.system import MechanismSystem
from retrax.run.simulate import simulate
from retrax_papers.bench import kernels
from retrax_papers.bench.timing import nanoseconds, paired

# Bodies of the chains that are timed, and how many body steps a timed run takes.
BODIES = (16, 64, 256, 512)
BODY_STEPS = 400_000
H = 1e-3


def measure(pairs: int = 5) -> dict[str, Any]:
    """Nanoseconds per step for chains of several lengths, and the exponent of their growth."""
    rows = [per_step(bodies, pairs) for bodies in BODIES]
    slope = np.polyfit(np.log(BODIES), np.log([row["ns"] for row in rows]), 1)
    return {"rows": rows, "exponent": float(slope[0])}


def problem(bodies: int) -> tuple[MechanismSystem, State]:
    """Return bars one after the other, level and at rest, that begin to fall."""
    m, before = Mechanism(), "ground"
    for k in range(bodies):
        m.body(f"bar {k}", 1.0, [0.01, 0.09, 0.08], at=[k + 0.5, 0, 0])
        m.join(Spherical(before, f"bar {k}", at=[k, 0, 0]))
        before = f"bar {k}"
    system = m.system()
    return system, system.state(system.reference, velocity=np.zeros(6 * bodies))


def per_step(bodies: int, pairs: int) -> dict[str, Any]:
    """The compiled loop against the C kernel, the end of the run saved."""
    system, state = problem(bodies)
    steps = BODY_STEPS // bodies
    row: dict[str, Any] = {"bodies": bodies, "steps": steps, "h": H}
    c = None
    if kernels.compiler() is not None:
        row["difference"] = difference = disagreement(system, state)
        kernels.require_agreement(f"chain of {bodies} bodies", difference / bodies)
        c = partial(kernels.chain, system, state, H, steps)
    native = make_loop("native", system, LieVerlet(), state, H)
    at = start(state)
    timing = paired(lambda: native.run(at, 1, steps, 1), c, pairs)
    return {**row, **nanoseconds(timing, steps), "loop": timing}


def disagreement(system: MechanismSystem, state: State, steps: int = 100) -> float:
    """The largest difference between a state of retrax and that of the C kernel."""
    run = simulate(system, LieVerlet(), state, h=H, steps=steps, progress=False)
    R, x = run.final.g
    ours = np.concatenate([np.ravel(R), np.ravel(x), run.final.momentum])
    return float(np.max(np.abs(ours - kernels.chain(system, state, H, steps)[0])))

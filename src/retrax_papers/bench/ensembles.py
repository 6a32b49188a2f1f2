"""Many free bodies (W3): `ensemble` against the C kernel with vectors and threads, and `vmap`."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import xarray as xr
from jax import lax

from retrax.integrators.base import AbstractIntegrator
from retrax.integrators.lie_verlet import LieVerlet
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.run.ensemble import ensemble
from retrax_papers.bench import kernels
from retrax_papers.bench.problems import W1, free_bodies
from retrax_papers.bench.timing import Timing, cpu_seconds, nanoseconds, paired

MEMBERS, STEPS, H = 10_000, 1000, 0.01
SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
# Every size takes this many body-steps, so that each is measured equally long, but not fewer steps
# than this, so that what a call costs for each member does not matter.
WORK, LEAST_STEPS = 40_000_000, 200
# Plain vmap is slow: it takes fewer steps.
VMAP_STEPS = 50


def measure(pairs: int = 5) -> dict[str, Any]:
    """Against C if there is a compiler, against `vmap`, and the cost for every size."""
    result: dict[str, Any] = {"members": MEMBERS, "steps": STEPS, "h": H}
    if kernels.compiler() is not None:
        result["difference"] = difference = disagreement()
        kernels.require_agreement(f"{W1.name}, an ensemble", difference)
    return {**result, "c": against_c(pairs), "vmap": against_vmap(), "sizes": against_size()}


def run(
    system: AbstractGroupSystem,
    states: State,
    steps: int,
    integrator: AbstractIntegrator | None = None,
    h: float = H,
) -> Callable[[], xr.Dataset]:
    """A whole call of `ensemble` that keeps the last states."""
    method = LieVerlet() if integrator is None else integrator
    return lambda: ensemble(system, method, states, h=h, steps=steps, progress=False)


def plain_vmap(system: AbstractGroupSystem, states: State, steps: int) -> Callable[[], State]:
    """What a JAX user writes first: `vmap` of the step inside `lax.scan`."""
    step = jax.vmap(lambda state: LieVerlet().step(system, state, jax.numpy.asarray(H))[0])

    @jax.jit
    def loop(states):
        return lax.scan(lambda s, _: (step(s), None), states, None, length=steps)[0]

    return lambda: jax.block_until_ready(loop(states))


def disagreement(members: int = 101, steps: int = 100) -> float:
    """The largest difference between last attitudes of retrax and of the C kernel."""
    system, states, packed = free_bodies(members)
    theirs = kernels.ensemble(packed, W1.inertia, H, steps, newton=0)[:9].T.reshape(-1, 3, 3)
    ours = run(system, states, steps)()["g"].isel(time=-1)
    return float(np.max(np.abs(np.asarray(ours) - theirs)))


def against_c(pairs: int) -> dict[str, Timing]:
    """10,000 bodies, 1000 steps: against C with two Newton iterations, and until it converges."""
    system, states, packed = free_bodies(MEMBERS)
    ours = run(system, states, STEPS)

    def c(newton: int) -> Callable[[], np.ndarray]:
        return lambda: kernels.ensemble(packed, W1.inertia, H, STEPS, newton=newton)

    bases = {"two iterations": c(2), "until converged": c(0)}
    if kernels.compiler() is None:
        bases = {"-": None}
    timings = {name: paired(ours, base, pairs) for name, base in bases.items()}
    return {name: {**t, **nanoseconds(t, MEMBERS * STEPS)} for name, t in timings.items()}


def against_vmap(pairs: int = 3) -> Timing:
    """The same bodies by `vmap` for fewer steps, against the native back end; per step."""
    system, states, _ = free_bodies(MEMBERS)
    timing = paired(plain_vmap(system, states, VMAP_STEPS), run(system, states, STEPS), pairs)
    for key in ("ratio", "ratio_min", "ratio_max"):
        timing[key] *= STEPS / VMAP_STEPS
    return {**timing, "ns": timing["seconds"] / MEMBERS / VMAP_STEPS * 1e9}


def against_size() -> list[dict[str, Any]]:
    """The cost per body and step from a hundred members to a million, beside C."""
    return [_at_size(members, max(WORK // members, LEAST_STEPS)) for members in SIZES]


def _at_size(members: int, steps: int) -> dict[str, Any]:
    system, states, packed = free_bodies(members)

    def c(steps: int) -> Callable[[], np.ndarray]:
        return lambda: kernels.ensemble(packed, W1.inertia, H, steps)

    runs: dict[str, Callable[[int], Callable[[], object]]]
    runs = {"ns": lambda steps: run(system, states, steps)}
    if kernels.compiler() is not None:
        runs["c_ns"] = c
    row: dict[str, Any] = {"members": members, "steps": steps}
    for key, make in runs.items():
        make(1)()  # compiles
        row[key] = cpu_seconds(make(steps), repeats=2) / members / steps * 1e9
    return row

"""Repeat a step, look at how it went, say what went wrong."""

import math
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from retrax.errors import StepFailed
from retrax.mechanics.state import State
from retrax.numerics.checks import is_traced
from retrax.simulate import loop
from retrax.simulate.failure import explain
from retrax.simulate.progress import reporter
from retrax.simulate.validate import require_run
from retrax.trajectory.provenance import provenance
from retrax.trajectory.statistics import Interval
from retrax.trajectory.trajectory import Trajectory

# A chunk is what runs between two looks at the clock: at most this many steps and this many bytes.
_CHUNK_STEPS, _CHUNK_RECORDS, _CHUNK_BYTES = 50_000, 1024, 2**25


def simulate(
    system: Any,
    integrator: Any,
    state: Any,
    *,
    h: Any,
    steps: Any,
    save_every: Any = 1,
    progress: Any = None,
) -> Trajectory:
    """Take `steps` steps of size `h` from `state`.

    One compiled loop runs all steps. Saved are the start, every `save_every`-th state and the last.
    The function can be differentiated and batched with `jax.grad`, `jax.jvp` and `jax.vmap`;
    nothing is raised then, but a step that fails leaves the state where it was.

    **Arguments:**

    - `system`, `integrator`, `state`: what moves, how a step is taken, where it starts. The time of
        the first state is `state.t`.
    - `h`: the step in seconds.
    - `steps`: how many.
    - `save_every`: how many steps lie between two saved states.
    - `progress`: `None` shows a bar on a terminal; `True`, `False`, or a function of (done, total).

    **Raises:** `StepFailed` at the first step that does not converge or gives a number that is not
    finite; it carries the trajectory up to there. `BadInput` where the run cannot start.
    """
    if isinstance(state, State):
        state = jax.tree.map(jnp.asarray, state)
    require_run(system, integrator, state, h, steps, save_every)
    if is_traced(system, integrator, state, h):
        return _simulate_traced(system, integrator, state, h, steps, save_every)
    return _simulate(system, integrator, state, float(h), int(steps), int(save_every), progress)


def _simulate(
    system: Any, integrator: Any, state: Any, h: float, steps: int, save_every: int, progress: Any
) -> Trajectory:
    size = jnp.asarray(h)
    bytes_per_record = sum(leaf.nbytes for leaf in jax.tree.leaves(state))
    capacity = max(1, min(_CHUNK_RECORDS, _CHUNK_BYTES // bytes_per_record))
    per_chunk = min(capacity, max(1, _CHUNK_STEPS // save_every))

    def run(at, records, every):
        arguments = (jnp.asarray(records), jnp.asarray(every))
        return jax.block_until_ready(
            loop.run_records(system, integrator, at, state.t, size, *arguments, capacity)
        )

    clock = time.perf_counter()
    run(loop.start(state), 0, 1)  # no steps: compiles, unless it was compiled before
    compile_seconds = time.perf_counter() - clock

    saved: list[tuple[Any, Interval]] = []
    at = loop.start(state)
    clock = time.perf_counter()
    with reporter(progress, system.name) as report:
        for records, every in _chunks(steps, save_every, per_chunk):
            at, states, intervals, filled = run(at, records, every)
            saved.append(
                jax.tree.map(lambda x, n=int(filled): np.asarray(x[:n]), (states, intervals))
            )
            report(int(at.step), steps)
            if at.failed:
                break
    seconds = time.perf_counter() - clock

    first = jax.tree.map(lambda x: np.asarray(x)[None], (state, loop.start(state).interval))
    last = jax.tree.map(lambda x: np.asarray(x)[None], (at.state, at.interval))
    failed = bool(at.failed)
    stopped_between = failed and int(at.step) % save_every != 0
    states, info = jax.tree.map(
        lambda *xs: np.concatenate(xs), first, *saved, *([last] if stopped_between else [])
    )
    trajectory = Trajectory(
        t=np.asarray(states.t),
        states=states,
        info=info,
        h=h,
        steps=steps,
        completed=int(at.step),
        save_every=save_every,
        seconds=seconds,
        compile_seconds=compile_seconds,
        provenance=provenance(system, integrator),
        system=system,
        integrator=integrator,
    )
    if failed:
        raise StepFailed(explain(system, integrator, at, h, steps), trajectory)
    return trajectory


def _chunks(steps: int, save_every: int, per_chunk: int):
    """Pairs (records, steps per record) that make up the run; the last record may be shorter."""
    whole, rest = divmod(steps, save_every)
    for _ in range(math.ceil(whole / per_chunk)):
        yield min(per_chunk, whole), save_every
        whole -= per_chunk
    if rest:
        yield 1, rest


def _simulate_traced(
    system: Any, integrator: Any, state: Any, h: Any, steps: int, save_every: int
) -> Trajectory:
    size = jnp.asarray(h, jnp.float64)
    at = loop.start(state)
    parts = [jax.tree.map(lambda x: x[None], (state, at.interval))]
    for records, every in _chunks(steps, save_every, steps):
        at, states, intervals = loop.run_differentiable(
            system, integrator, at, state.t, size, records, every
        )
        parts.append((states, intervals))
    states, info = jax.tree.map(lambda *xs: jnp.concatenate(xs), *parts)
    return Trajectory(
        t=states.t,
        states=states,
        info=info,
        h=h,
        steps=steps,
        completed=steps,
        save_every=save_every,
        seconds=0.0,
        compile_seconds=0.0,
        provenance=provenance(system, integrator),
        system=system,
        integrator=integrator,
    )

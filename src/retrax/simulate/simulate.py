"""Repeat a step, look at how it went, say what went wrong."""

import math
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from retrax.engine.backends import make_loop
from retrax.engine.progress import start
from retrax.engine.xla import run_differentiable
from retrax.mechanics.state import State
from retrax.numerics.checks import is_traced
from retrax.simulate.failure import explain
from retrax.simulate.progress import reporter
from retrax.simulate.validate import require_run, started
from retrax.trajectory.provenance import provenance
from retrax.trajectory.trajectory import Trajectory

# A chunk is what runs between two looks at the clock: at most this many steps and this many bytes.
_CHUNK_STEPS, _CHUNK_RECORDS, _CHUNK_BYTES = 50_000, 1024, 2**25
# Of larger states fewer steps, for each takes longer.
_SMALL_STATE = 2048


def simulate(
    system: Any,
    integrator: Any,
    state: Any,
    *,
    h: Any,
    steps: Any,
    save_every: Any = 1,
    progress: Any = None,
    backend: str = "auto",
) -> Trajectory:
    """Take `steps` steps of size `h` from `state`.

    One compiled loop runs all steps. Saved are the start, every `save_every`-th state and the last.
    The function can be differentiated and batched with `jax.grad`, `jax.jvp` and `jax.vmap`;
    nothing is raised then, but a step that fails leaves the state where it was.

    **Arguments:**

    - `system`, `integrator`, `state`: what moves, how a step is taken, where it starts. The time of
        the first state is `state.t`. A quadratic field also starts from a point.
    - `h`: the step in seconds.
    - `steps`: how many.
    - `save_every`: how many steps lie between two saved states.
    - `backend`: `"native"` runs machine code made for this step, `"xla"` a JAX program, `"auto"`
        the first where it can.
    - `progress`: `None` shows a bar on a terminal; `True`, `False`, or a function of (done, total).

    **Raises:** `StepFailed` at the first step that does not converge or gives a number that is not
    finite; it carries the trajectory up to there. `BadInput` where the run cannot start.
    """
    traced = is_traced(system, integrator, state, h)
    state = started(system, state)
    if isinstance(state, State):
        state = jax.tree.map(jnp.asarray if traced else np.asarray, state)
    require_run(system, integrator, state, h, steps, save_every)
    if traced:
        return _simulate_traced(system, integrator, state, h, steps, save_every)
    return _simulate(
        system, integrator, state, float(h), int(steps), int(save_every), progress, backend
    )


def _simulate(
    system: Any,
    integrator: Any,
    state: Any,
    h: float,
    steps: int,
    save_every: int,
    progress: Any,
    backend: str,
) -> Trajectory:
    bytes_per_record = sum(leaf.nbytes for leaf in jax.tree.leaves(state))
    capacity = max(1, min(_CHUNK_RECORDS, _CHUNK_BYTES // bytes_per_record))
    steps_at_once = _CHUNK_STEPS * _SMALL_STATE // max(_SMALL_STATE, bytes_per_record)
    per_chunk = min(capacity, max(1, steps_at_once // save_every))

    clock = time.perf_counter()
    loop = make_loop(backend, system, integrator, state, h)
    at = start(state)
    loop.compile(at, capacity)
    compile_seconds = time.perf_counter() - clock

    leaves, tree = jax.tree.flatten((state, at.interval))
    saved = [[leaf[None] for leaf in leaves]]
    clock = time.perf_counter()
    with reporter(progress, system.name) as report:
        for records, every in chunks(steps, save_every, per_chunk):
            at, *chunk = loop.run(at, records, every, capacity)
            saved.append(jax.tree.leaves(chunk))
            report(int(at.step), steps)
            if at.failed:
                break
    seconds = time.perf_counter() - clock

    failed = bool(at.failed)
    if failed and int(at.step) % save_every != 0:
        saved.append([np.asarray(leaf)[None] for leaf in jax.tree.leaves((at.state, at.interval))])
    stacked = [np.concatenate(parts) for parts in zip(*saved, strict=True)]
    states, info = jax.tree.unflatten(tree, stacked)
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
        provenance=provenance(system, integrator, loop.name),
        system=system,
        integrator=integrator,
    )
    if failed:
        error, sentence = explain(system, integrator, at, h, steps)
        trajectory.provenance["failure"] = sentence
        raise error(sentence, trajectory)
    return trajectory


def chunks(steps: int, save_every: int, per_chunk: int):
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
    at = start(state)
    parts = [jax.tree.map(lambda x: x[None], (state, at.interval))]
    for records, every in chunks(steps, save_every, steps):
        at, states, intervals = run_differentiable(
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
        provenance=provenance(system, integrator, "xla"),
        system=system,
        integrator=integrator,
    )

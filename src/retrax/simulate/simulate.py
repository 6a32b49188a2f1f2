"""Repeat a step, look at how it went, say what went wrong."""

import math
import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from retrax.engine.backends import make_loop
from retrax.engine.progress import start
from retrax.engine.xla import run_differentiable
from retrax.integrators.catalogue import as_integrator
from retrax.mechanics.state import State
from retrax.numerics.checks import is_traced
from retrax.numerics.known import explaining_leaks
from retrax.simulate.beginning import new_store, require_path, stored_objects
from retrax.simulate.checkpoint import Checkpoint
from retrax.simulate.finish import finish, finish_with_checkpoint
from retrax.simulate.memory import require_room
from retrax.simulate.plan import Plan, saved_steps
from retrax.simulate.running import Running
from retrax.simulate.validate import require_commits, require_run, started, uses_traced
from retrax.trajectory.provenance import provenance
from retrax.trajectory.trajectory import Trajectory


@explaining_leaks()
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
    checkpoint: Any = None,
    every: Any = None,
) -> Trajectory:
    """Take `steps` steps of size `h` from `state`.

    One compiled loop runs all steps. Saved are the start, every `save_every`-th state and the last.
    The function can be differentiated and batched with `jax.grad`, `jax.jvp` and `jax.vmap`, also
    in numbers that a function has closed over. No step that fails is raised then: from there on
    states and statistics are NaN and `failed` is true, as for the members of an `ensemble`.

    **Arguments:**

    - `system`, `integrator`, `state`: what moves, how a step is taken, where it starts. The time of
        the first state is `state.t`. A quadratic field also starts from a point.
    - `h`: the step in seconds; below zero the run goes back in time.
    - `steps`: how many.
    - `save_every`: how many steps lie between two saved states.
    - `backend`: `"native"` runs machine code made for this step, `"xla"` a JAX program, `"auto"`
        the first where it can.
    - `progress`: `None` shows a bar on a terminal; `True`, `False`, or a function of (done, total).
    - `checkpoint`: a path such as `"run.zarr"`, where there is nothing yet. The run is kept there
        as it goes on, `load` reads what is committed, and `resume` takes it up again.
    - `every`: how many steps lie between two commits, at the most; a slow disk may take longer.
        Ten seconds or 32 MB lie between them unless it is given.

    A step that turns a body by more than half a turn gives a warning at the end of the run.

    **Raises:** `StepFailed` at the first step that does not converge or gives a number that is not
    finite; it carries the trajectory up to there. `BadInput` where the run cannot start. With a
    checkpoint `Interrupted` on Ctrl-C or SIGTERM, and `CheckpointFailed` where it cannot be
    written; both carry the trajectory up to there.
    """
    integrator = as_integrator(integrator)
    traced = is_traced(system, integrator, state, h)
    state = started(system, state)
    traced = traced or uses_traced(system, integrator, state)
    if isinstance(state, State):
        state = jax.tree.map(jnp.asarray if traced else np.asarray, state)
    require_run(system, integrator, state, h, steps, save_every)
    require_commits(checkpoint, every, traced)
    if traced:
        return _simulate_traced(system, integrator, state, h, steps, save_every)
    bytes_per_record = sum(leaf.nbytes for leaf in jax.tree.leaves(state))
    require_room(bytes_per_record, int(steps), int(save_every))
    every = None if every is None else int(every)
    return _simulate(
        system,
        integrator,
        state,
        h=float(h),
        steps=int(steps),
        plan=Plan.of(bytes_per_record, int(save_every), every),
        path=None if checkpoint is None else require_path(checkpoint),
        every=every,
        progress=progress,
        backend=backend,
    )


def _simulate(
    system: Any, integrator: Any, state: Any, *, steps: int, plan: Plan, h: float, **options: Any
) -> Trajectory:
    path, every, progress = options["path"], options["every"], options["progress"]
    objects = {} if path is None else stored_objects(system, integrator)
    clock = time.perf_counter()
    loop = make_loop(options["backend"], system, integrator, state, h)
    at = start(state)
    loop.compile(at, plan.capacity)
    compile_seconds = time.perf_counter() - clock

    made = provenance(system, integrator, loop.name)
    about = {"h": h, "compile_seconds": compile_seconds, "provenance": made}
    running = Running(system, integrator, loop, plan, at, steps)
    running.save(state, at.interval)
    if path is None:
        return finish(running, progress, about)
    store = new_store(
        path, objects, running, h=h, every=every, compile_seconds=compile_seconds, made=made
    )
    checkpoint = Checkpoint(store, running, every, sent=len(running.saved))
    return finish_with_checkpoint(running, checkpoint, progress, about)


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
    parts = [jax.tree.map(lambda x: jnp.asarray(x)[None], (state, at.interval, at.failed))]
    for records, every in chunks(steps, save_every, steps):
        at, *saved = run_differentiable(system, integrator, at, state.t, size, records, every)
        parts.append(tuple(saved))
    states, info, failed = jax.tree.map(lambda *xs: jnp.concatenate(xs), *parts)
    behind = jnp.asarray(saved_steps(steps, save_every), jnp.float64)
    states = eqx.tree_at(lambda s: s.t, _nan_where(failed, states), state.t + behind * size)
    info = _nan_where(failed, info)
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
        failed=failed,
    )


def _nan_where(failed: Any, tree: Any) -> Any:
    """NaN, or -1 among whole numbers, in the rows of arrays at which a run has failed."""

    def blank(x: Any) -> Any:
        lost = failed.reshape(-1, *[1] * (x.ndim - 1))
        nothing = jnp.nan if jnp.issubdtype(x.dtype, jnp.floating) else -1
        return jnp.where(lost, jnp.asarray(nothing, x.dtype), x)

    return jax.tree.map(blank, tree)

"""Repeat a step, look at how it went, say what went wrong."""

import math
import os
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from retrax.errors import BadInput
from retrax.integrators.base import AbstractIntegrator, as_integrator
from retrax.mechanics.controls import AbstractControl
from retrax.mechanics.events import Event, Stop, Watched, as_events
from retrax.mechanics.state import State
from retrax.numerics.checks import is_traced
from retrax.numerics.known import explaining_leaks
from retrax.numerics.looks import looking
from retrax.numerics.meant import explain_keywords
from retrax.numerics.watch import copy_parts, is_open
from retrax.run.checks import require_commits, require_room, require_run, start_of, uses_traced
from retrax.run.drive import Plant, begin_run, unwrap
from retrax.run.events import Lookout
from retrax.run.progress_bar import ProgressOption, is_shown
from retrax.run.ready_loop import READY_LOOPS, ReadyLoop
from retrax.run.running import Running, finish, finish_with_checkpoint
from retrax.run.spans import count_steps
from retrax.trajectory.run import Plan, Run
from retrax.trajectory.trajectory import Trajectory


@explain_keywords
@explaining_leaks()
@looking()
def simulate(
    system: Plant,
    integrator: AbstractIntegrator | str,
    state: State | ArrayLike,
    *,
    h: float | Array,
    steps: int | None = None,
    until: float | None = None,
    control: AbstractControl | None = None,
    events: Mapping[str, Watched | Event | Stop] | None = None,
    save_every: int = 1,
    progress: ProgressOption = None,
    backend: str = "auto",
    checkpoint: str | os.PathLike[str] | None = None,
    every: int | None = None,
) -> Trajectory:
    """Take `steps` steps of size `h` from `state`.

    One compiled loop runs all steps. Saved are the start, every `save_every`-th state and the last.
    The function can be differentiated and batched with `jax.grad`, `jax.jvp` and `jax.vmap`, also
    in numbers that a function has closed over. Under a JAX transformation a failing step raises no
    exception; later states are NaN and `run.failed` is true, as for the members of an `ensemble`.

    **Arguments:**

    - `system`, `integrator`, `state`: what moves, how a step is taken, where it starts. An
        integrator may be named as in `retrax list`. The time of the first state is `state.t`. A
        quadratic field also starts from a point.
    - `h`: the step in seconds; below zero the run goes back in time.
    - `steps`: how many; or `until`: the time in seconds at which the run ends.
    - `control`: what drives the inputs of an `Actuated` system: a `Signal`, a `Feedback`, a
        `Sampled`. Without it the system runs free: inputs are zero, which the bounds must allow,
        and `run.inputs` has no columns.
    - `events`: functions `f(g, xi, t)` by name whose zero crossings are looked for; `Event(f,
        direction)` looks for those in one direction, `Stop(f)` ends the run at the first. They are
        listed in `run.events`.
    - `save_every`: how many steps lie between two saved states.
    - `backend`: `"native"` runs machine code made for this step, `"xla"` a JAX program, `"auto"`
        the first where it can.
    - `progress`: `None` shows a bar on a terminal; `True`, `False`, or a function of (done, total).
    - `checkpoint`: a path such as `"run.zarr"`, where there is nothing yet. The run is kept there
        as it goes on, `load` reads what is committed, and `resume` takes it up again.
    - `every`: how many steps lie between two commits, at the most; a slow disk may take longer.
        By default a commit is made every 10 s or every 32 MB.

    A step that turns a body by more than half a turn gives a warning at the end of the run.

    **Raises:** `StepFailed` at the first step that does not converge or gives a number that is not
    finite; it carries the trajectory up to there. `BadInput` where the run cannot start. With a
    checkpoint `Interrupted` on Ctrl-C or SIGTERM, and `CheckpointFailed` where it cannot be
    written; both carry the trajectory up to there.
    """
    moving, method = unwrap(system, as_integrator(integrator), control)
    state = begin_run(moving, method, state)
    count = count_steps(state, h, steps, until)
    if events is None and checkpoint is None and every is None and not is_shown(progress):
        ready = READY_LOOPS.of(moving, method, backend)
        quick = None if ready is None else run_quickly(ready, state, h, count, save_every)
        if quick is not None:
            return quick
    traced = is_traced(moving, method, state, h)
    begin = start_of(moving, state)
    traced = traced or uses_traced(moving, method, begin)
    if isinstance(begin, State):
        begin = jax.tree.map(jnp.asarray if traced else np.asarray, begin)
    require_run(moving, method, begin, h, count, save_every)
    require_commits(checkpoint, every, traced)
    size = h if traced and is_traced(h) else float(h)
    commits = None if every is None else int(every)
    plan = Plan(begin.t, size, int(count), int(save_every), commits)
    run = Run(moving, method, begin, None, plan)
    watched = None if events is None else as_events(moving, events)
    if traced and watched:
        raise BadInput(
            "events are looked for along numbers, but JAX is tracing this run; find them in a run "
            "outside of the transformation."
        )
    if traced:
        from retrax.derivatives.traced_run import simulate_traced

        return simulate_traced(run, backend)
    if type(backend) is str:
        READY_LOOPS.keep(moving, method, backend)
    if is_open((moving, method)):
        run = Run(*copy_parts((moving, method)), begin, None, plan)
    require_room(sum(leaf.nbytes for leaf in jax.tree.leaves(begin)), plan.steps, plan.save_every)
    return _simulate(run, checkpoint, progress, backend, watched)


def run_quickly(
    ready: ReadyLoop, state: object, h: object, steps: object, save_every: object
) -> Trajectory | None:
    """Run usual input by a loop that is ready; return `None` if input is to be checked first."""
    if type(h) is not float or not 0 < abs(h) < math.inf:
        return None
    if type(steps) is not int or steps < 1 or type(save_every) is not int or save_every < 1:
        return None
    return ready.run(state, h, steps, save_every)


def _simulate(
    run: Run,
    checkpoint: object,
    progress: object,
    backend: str,
    events: dict[str, Event | Stop] | None,
) -> Trajectory:
    lookout = Lookout(events, run) if events else None
    if checkpoint is None:
        running = Running(run, backend, adapts=True, lookout=lookout)
        running.save(run.state, running.at.interval)
        return finish(running, progress)
    from retrax.store.checkpoint import Checkpoint, new_store, require_path, stored_objects

    path = require_path(checkpoint)
    objects = stored_objects(run.system, run.integrator)
    running = Running(run, backend, adapts=False, lookout=lookout)
    running.save(run.state, running.at.interval)
    commits = Checkpoint(new_store(path, objects, running), running, sent=len(running.saved))
    return finish_with_checkpoint(running, commits, progress)

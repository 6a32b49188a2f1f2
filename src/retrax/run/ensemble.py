"""Many bodies at once."""

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import numpy as np
from jax.typing import ArrayLike

from retrax.engine.backends import gpu_of, make_members
from retrax.engine.backends.members import Members
from retrax.engine.progress import INTERVAL, Packing
from retrax.errors import BadInput, warn
from retrax.integrators.base import AbstractIntegrator, as_integrator
from retrax.integrators.driven import Driven
from retrax.mechanics.controls import AbstractControl
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import is_traced
from retrax.numerics.known import explaining_leaks
from retrax.numerics.looks import looking
from retrax.numerics.meant import explain_keywords
from retrax.run.checks import gigabytes, require_memory, start_of
from retrax.run.chunks import Chunks, saved_steps
from retrax.run.drive import Plant
from retrax.run.driven_members import (
    begin_members,
    check_runs,
    driven_members,
    spread,
    stack_plants,
)
from retrax.run.member_checks import require_ensemble
from retrax.run.progress_bar import ProgressOption, Reporter, reporter
from retrax.run.spans import count_steps
from retrax.trajectory.inputs import ask_members, limit, saturation_warning
from retrax.trajectory.observe import turns
from retrax.trajectory.provenance import provenance

if TYPE_CHECKING:
    import xarray as xr


@explain_keywords
@explaining_leaks()
@looking()
def ensemble(
    system: Plant | Sequence[Plant],
    integrator: AbstractIntegrator | str,
    states: State | ArrayLike,
    *,
    h: float,
    steps: int | None = None,
    until: float | None = None,
    control: AbstractControl | Sequence[AbstractControl] | None = None,
    save_every: int | None = None,
    backend: str = "auto",
    devices: Sequence[Any] | None = None,
    progress: ProgressOption = None,
) -> "xr.Dataset":
    """Take `steps` steps of size `h` from each of many states.

    A member whose step fails stops there, is NaN from then on, and has the number of that step in
    `failed_step` and the reason in `failure`; the others go on.

    **Arguments:**

    - `system`: what moves; one system, or one for each member: a list of systems, or one whose
        arrays all have a leading axis of members, as `jax.vmap(make_system)(parameters)` returns.
    - `integrator`: how a step is taken.
    - `states`: a `State` whose arrays have a leading axis of members, as
        `jax.vmap(lambda v: system.state(g, velocity=v))(velocities)` returns; for a quadratic field
        also an array of points.
    - `h`, `steps`: the step in seconds, below zero back in time, and how many; or, instead of
        `steps`, `until`: the time at which all members end, which start at one time then.
    - `control`: what drives the inputs of an `Actuated` system, as for `simulate`; or one for each
        member: a list of them, or one whose arrays all have a leading axis of members.
    - `save_every`: how many steps lie between two saved states; the start is saved too then.
        `None` saves only the end.
    - `backend`: `"native"` runs blocks of members in the vector units of all cores, `"xla"` a JAX
        program, `"gpu"` a kernel on NVIDIA GPUs; `"auto"` is `"gpu"` where there is one, else
        native.
    - `devices`: the JAX devices to share the members out to, for XLA and GPUs; all by default.
    - `progress`: `None` shows a bar on a terminal; `True`, `False`, or a function of (done, total).

    **Returns:** an `xarray.Dataset` with dimensions `time` and `member`.

    **Raises:** `BadInput` where the run cannot start, or its results would not fit into memory.
    """
    method = as_integrator(integrator)
    several = isinstance(system, list | tuple)
    given: Any = stack_plants(system) if several else system
    parts = driven_members(given, method, control, states, several)
    moving = parts.system
    starts, host = _at_hand(start_of(moving, states), backend, devices)
    known = False if several else None
    count = count_steps(starts, h, steps, until)
    shared = require_ensemble(moving, parts.one, starts, h, count, save_every, known, host)
    check_runs(parts, np.asarray(starts.t), float(h), int(count))
    runs = run_members(
        moving, parts.integrator, begin_members(parts, starts, shared), float(h), int(count),
        None if save_every is None else int(save_every),
        shared=shared, own=parts.own, backend=backend, devices=devices, progress=progress,
    )  # fmt: skip
    _warn_of_failures(runs["failed_step"].values, int(count))
    _warn_of_aliasing(moving, runs, float(h))
    return runs


def _at_hand(starts: Any, backend: str, devices: Sequence[Any] | None) -> tuple[Any, State | None]:
    """Bring states to where they start; return them also as they are on the host, if they are."""
    if not isinstance(starts, State) or is_traced(starts):
        return starts, None
    gpu = gpu_of(backend, devices)
    if gpu is None:
        return jax.tree.map(np.asarray, starts), None
    near = all(isinstance(x, np.ndarray) for x in jax.tree.leaves(starts))
    return jax.device_put(starts, gpu), starts if near else None


def saved_states(steps: int, save_every: int | None) -> int:
    """Return how many states are saved of each member."""
    return 1 if save_every is None else -(-steps // save_every) + 1


def run_members(
    system: AbstractGroupSystem,
    integrator: AbstractIntegrator,
    states: State,
    h: float,
    steps: int,
    save_every: int | None,
    *,
    shared: bool,
    own: bool = False,
    backend: str = "auto",
    devices: Sequence[Any] | None = None,
    threads: int | None = None,
    progress: object = False,
) -> "xr.Dataset":
    """Run an ensemble that has been checked; check only that its results fit into memory.

    `shared` says whether all members have one system, `own` whether each has its own integrator;
    what each member has of its own has a first axis of members.
    `threads` is how many the native back end may use: all cores by default.
    """
    from retrax.trajectory.members import members_dataset

    if not math.isfinite(steps * h):
        raise BadInput(f"h = {h:g} s: {steps} such steps end at a time beyond all numbers.")
    members = len(states.t)
    if own or not shared:  # what is one for all becomes one for each
        system = spread(system, members) if shared else system
        integrator = integrator if own else spread(integrator, members)
        shared = False
    every = save_every or steps
    records = saved_states(steps, save_every)
    packing = Packing(jax.tree.map(lambda x: np.broadcast_to(0.0, np.shape(x)[1:]), states))
    needed = 8 * records * (packing.size + len(INTERVAL)) * members
    require_memory(needed, members, records)
    behind = saved_steps(steps, save_every)

    clock = time.perf_counter()
    runner = make_members(backend, system, integrator, states, h, devices, shared, threads)
    saved = runner.room(records, packing.size)
    interval = runner.room(records, len(INTERVAL))
    first = int(behind[0] == 0)
    if first:
        runner.write_start(saved[0])
        interval[0] = 0.0
    chunks = Chunks.of_members(members, needed // records, every, steps, runner.at_once)
    n = first + chunks.records
    runner.compile(saved[first:n], interval[first:n])
    compile_seconds = time.perf_counter() - clock

    clock = time.perf_counter()
    with reporter(progress, f"{members} members, {gigabytes(needed)}") as report:
        _run_chunks(runner, chunks, steps, saved[first:], interval[first:], report)
    seconds = time.perf_counter() - clock
    made = provenance(system, integrator, runner.name)
    at: State = packing.unpack(saved[..., :members])
    times = _times(np.asarray(states.t), behind, h)

    def inputs(states: State) -> np.ndarray:
        """Return what drives each state; a warning says where actuators saturate."""
        assert isinstance(integrator, Driven)
        u = ask_members(system, integrator, states, h, shared)
        doubt = saturation_warning(integrator, u, "saved states of members")
        if doubt is not None:
            warn(doubt)
        return limit(integrator, u)

    return members_dataset(
        eqx.tree_at(lambda state: state.t, at, times),
        interval[..., :members],
        runner.failure[:, :members],
        behind,
        attributes={
            "h": h,
            "steps": steps,
            "save_every": every,
            "shared_system": int(shared),
            "seconds": seconds,
            "compile_seconds": compile_seconds,
            **{f"provenance_{key}": value for key, value in made.items()},
        },
        inputs=inputs if isinstance(integrator, Driven) else None,
    )


def _times(t0: np.ndarray, behind: np.ndarray, h: float) -> np.ndarray:
    """Return the times of the saved states of each member: t0 + k h, as a step has it."""
    if np.all(t0 == t0[0]):
        return np.broadcast_to((t0[0] + behind * h)[:, None], (len(behind), len(t0)))
    return t0 + (behind * h)[:, None]


def _warn_of_failures(failed_step: np.ndarray, steps: int) -> None:
    (failed,) = np.nonzero(failed_step > 0)
    if not len(failed):
        return
    first = failed[np.argmin(failed_step[failed])]
    warn(
        f"{len(failed)} of {len(failed_step)} members failed, the first of them member {first} at "
        f"step {failed_step[first]} of {steps}; see failed_step and failure in the dataset. "
        "They are NaN from there on."
    )


def _warn_of_aliasing(system: AbstractGroupSystem, runs: "xr.Dataset", h: float) -> None:
    """Warn in one sentence about all members that a step turned by more than half a turn."""
    from retrax.trajectory.members import observe_members

    increment = runs["increment"].values
    turn = turns(system.group, increment, h, lambda: observe_members(system, runs)["velocity"])
    beyond = np.flatnonzero(np.nanmax(turn, axis=0, initial=0.0) > math.pi)
    if not len(beyond):
        return
    most = float(np.nanmax(turn))
    warn(
        f"a step turned {len(beyond)} of {turn.shape[1]} members by more than half a turn, the "
        f"first of them member {beyond[0]}, by up to |h xi| = {most:.4g} rad: beyond pi the states "
        "cannot tell how often they went round, and their errors do not show in the invariants; "
        f"use a step below {abs(h) * math.pi / most:.2g} s."
    )


def _run_chunks(
    runner: Members,
    chunks: Chunks,
    steps: int,
    saved: np.ndarray,
    interval: np.ndarray,
    report: Reporter,
) -> None:
    """Take all steps, and fill all records; a chunk may end between two of them."""
    done = 0
    for records, length in chunks.between(0, steps):
        first, begun = divmod(done, chunks.save_every)
        here = slice(first, first + records)
        before = interval[here].copy() if begun else None
        try:
            for taken in runner.run(saved[here], interval[here], length):
                done += taken
                report(done, steps)
        except KeyboardInterrupt as stopped:
            raise KeyboardInterrupt(
                f"The ensemble was stopped after {done} of {steps} steps, and nothing of it is "
                "kept; rx.sweep keeps what is done."
            ) from stopped
        if before is not None:
            _accumulate(interval[here], before)


def _accumulate(interval: np.ndarray, before: np.ndarray) -> None:
    """Combine two pieces of a record: iterations add up, the rest is as in the worse piece."""
    interval[:, 0] += before[:, 0]
    np.maximum(interval[:, 1:], before[:, 1:], out=interval[:, 1:])

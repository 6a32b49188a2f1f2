"""Go on with a run from its checkpoint."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import jax
import numpy as np

from retrax import errors
from retrax.engine.progress import Interval, Packing, start
from retrax.engine.step_program import memory_of
from retrax.errors import BadInput, RetraxError, StepFailed, printable
from retrax.files import WritingLock, as_path
from retrax.integrators.base import AbstractIntegrator, Memory, as_integrator
from retrax.integrators.driven import Driven
from retrax.mechanics.actuated import Actuated
from retrax.mechanics.controls import AbstractControl
from retrax.mechanics.events import Event, Stop, Watched, as_events
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import quote, reason
from retrax.numerics.meant import explain_keywords
from retrax.run.checks import require_count, require_room, require_run
from retrax.run.drive import Plant, unwrap
from retrax.run.events import Lookout
from retrax.run.progress_bar import ProgressOption
from retrax.run.running import Running, finish_with_checkpoint
from retrax.store.checkpoint import Checkpoint
from retrax.store.checkpoint_format import read_numbers
from retrax.store.checkpoint_read import (
    Stored,
    read_checkpoint,
    read_record,
    trajectory_of,
)
from retrax.store.checkpoint_write import Store, unwritable
from retrax.store.objects import Modules, NeedsImport, Trust, read_trusted
from retrax.store.run_objects import decode_object, require_fit, state_like, with_kept
from retrax.trajectory.provenance import environment
from retrax.trajectory.run import Plan, Run
from retrax.trajectory.trajectory import Trajectory

# A first step that differs by more, relative to its numbers, is one of another system.
_ANOTHER = 1e-9


@explain_keywords
def resume(
    path: str | os.PathLike[str],
    steps: int | None = None,
    progress: ProgressOption = None,
    *,
    system: Plant | None = None,
    integrator: AbstractIntegrator | str | None = None,
    control: AbstractControl | None = None,
    events: Mapping[str, Watched | Event | Stop] | None = None,
    trust: Modules | None = None,
) -> Trajectory:
    """Go on with the run in a checkpoint, to its end or further.

    On the same machine, with the same versions, every bit is as if the run had never stopped.
    Otherwise a notice says what differs, and what agreement to expect. The first steps of the run
    are taken again to see that they are the same.

    **Arguments:**

    - `path`: what was given to `simulate` as `checkpoint`.
    - `steps`: how many steps the run shall have in all; more than it has extends it.
    - `progress`: as for `simulate`.
    - `system`, `integrator`: the objects, where they could not be stored; see `factory`. An
        integrator may be named as in `retrax list`.
    - `control`: what drives the run, where it could not be stored; `system` is the `Actuated` one
        then, and `integrator` that of `simulate`.
    - `events`: what the run looks out for, where it does: the same names and functions as before. A
        file keeps the events that were found, but no functions.
    - `trust`: the module, or a list of modules, whose functions marked with `factory` the file may
        name. They are imported, which runs them. No other module is, whatever the file says.

    **Returns:** the trajectory of the whole run, from its start.

    **Raises:** as `simulate`; `StepFailed` also where the stored run had failed. `BadInput` where
    there is no checkpoint, it is damaged, another process is writing it, or it names a module that
    is not in `trust`.
    """
    place, modules = as_path(path, "a checkpoint"), read_trusted(trust)
    read_record(place)  # no lock is left in a folder that is no checkpoint
    with contextlib.ExitStack() as stack:
        lock = _lock(place)
        if isinstance(lock, WritingLock):
            stack.callback(lock.release)
        stored = read_checkpoint(place)
        with _explain_forgery(stored):
            given = _unwrap(stored, system, integrator, control)
            moving, method = _objects(stored, *given, modules)
            _raise_failure(stored, moving, method)
            wanted = _steps(stored, steps)
            if _is_ended_by_event(stored, steps):
                return trajectory_of(stored, moving, method)
            watched = _watch(stored, moving, events)
            if wanted == stored.record["completed"]:
                return trajectory_of(stored, moving, method)
            if isinstance(lock, BadInput):
                raise lock
            running = _prepare(stored, moving, method, wanted, watched)
            store = _reopen(stored, running, lock)
        stack.pop_all()
    checkpoint = Checkpoint(store, running, sent=len(running.saved))
    return finish_with_checkpoint(running, checkpoint, progress)


def _lock(path: Path) -> WritingLock | BadInput:
    """Take the right to write before anything is read; or return why nothing can be written."""
    try:
        return WritingLock(path)
    except OSError as cause:
        return unwritable(path, cause)


@contextlib.contextmanager
def _explain_forgery(stored: Stored) -> Iterator[None]:
    """Turn an error that a forged file causes into a sentence about the file."""
    try:
        yield
    except NeedsImport as cause:
        raise BadInput(f"path = {str(stored.path)!r}: {cause}") from cause
    except (RetraxError, Warning):
        raise
    except Exception as cause:
        raise BadInput(
            f"path = {str(stored.path)!r} cannot go on with its system, integrator and state: "
            f"{reason(cause)}."
        ) from cause


def _prepare(
    stored: Stored,
    system: AbstractGroupSystem,
    integrator: AbstractIntegrator,
    steps: int,
    events: dict[str, Event | Stop],
) -> Running:
    """Return the run at the step where its checkpoint restarts it."""
    state = _start(stored, system, integrator, steps)
    require_room(8 * Packing(state).size, steps, stored.record["save_every"])
    running = _running(stored, system, integrator, state, steps, events)
    _compare(stored, running)
    trajectory_of(stored, system, integrator)  # rejects the states that `load` rejects
    _go_back(stored, running)
    return running


def _unwrap(
    stored: Stored, system: object, integrator: object, control: object
) -> tuple[object, object]:
    """Unwrap what is given of a driven run; reject half of one."""
    path = str(stored.path)
    if control is None:
        if isinstance(system, Actuated):
            system = system.system
        given = isinstance(integrator, AbstractIntegrator | str)
        if stored.inputs() is not None and given and not isinstance(integrator, Driven):
            raise BadInput(
                f"path = {path!r} holds a driven run: give what drives it as well, "
                "rx.resume(path, system=plant, integrator=..., control=...)."
            )
        return system, integrator
    if stored.inputs() is None:
        raise BadInput(f"path = {path!r} holds a free run, which no control = {control!r} drives.")
    if not isinstance(system, Actuated) or integrator is None:
        raise BadInput(
            f"path = {path!r} goes on with control = {control!r} where it is told what that "
            "drives, and how: rx.resume(path, system=plant, integrator=..., control=...)."
        )
    return unwrap(system, as_integrator(integrator), control)


def _objects(
    stored: Stored, system: object, integrator: object, trust: Trust
) -> tuple[AbstractGroupSystem, AbstractIntegrator]:
    """Return the system and the integrator, as given or else as stored."""
    for name, given in (("system", system), ("integrator", integrator)):
        if given is None and stored.start[name] is None:
            driven = name == "integrator" and stored.inputs() is not None
            needed = "system=plant, integrator=..., control=..." if driven else f"{name}=..."
            raise BadInput(
                f"path = {str(stored.path)!r} does not hold its {name}, "
                f"{stored.provenance()[name]}, which is not all retrax's own: give it as "
                f"rx.resume(path, {needed})."
            )
    moving = decode_object(stored.start, "system", trust) if system is None else system
    method = decode_object(stored.start, "integrator", trust) if integrator is None else integrator
    if not isinstance(moving, AbstractGroupSystem):
        raise BadInput(f"system = {quote(moving)} is not a retrax system.")
    if system is None:
        require_fit(moving, stored.states())
    return moving, as_integrator(method)


def _raise_failure(
    stored: Stored, system: AbstractGroupSystem, integrator: AbstractIntegrator
) -> None:
    failure = stored.record["failure"]
    if failure is not None:
        kind = getattr(errors, failure["error"], StepFailed)
        kind = kind if isinstance(kind, type) and issubclass(kind, StepFailed) else StepFailed
        raise kind(failure["sentence"], trajectory_of(stored, system, integrator))


def _steps(stored: Stored, wanted: object) -> int:
    if wanted is None:
        return stored.record["steps"]
    steps = require_count("steps", wanted)
    if steps < stored.record["completed"]:
        raise BadInput(
            f"steps = {steps}, but the run has {stored.record['completed']} steps already; what is "
            "committed is not taken back."
        )
    return steps


def _is_ended_by_event(stored: Stored, steps: object) -> bool:
    """Tell whether an event has ended the run; reject more steps of one that it has."""
    name = stored.record.get("events", {}).get("ended_by")
    if name is not None and steps is not None:
        raise BadInput(
            f"steps = {quote(steps)}, but the run in {str(stored.path)!r} was ended by its event "
            f"{quote(name)}: rx.simulate(run.system, run.integrator, run.final, ...) goes on."
        )
    return name is not None


def _watch(stored: Stored, system: AbstractGroupSystem, events: object) -> dict[str, Event | Stop]:
    """Return what the run looks out for; reject other events than it did."""
    names = list(stored.record.get("events", {}).get("names", ()))
    found = {} if events is None else as_events(system, events)
    if list(found) != names:
        given = f"events = {list(found)}" if found else "no events are given"
        raise BadInput(
            f"path = {str(stored.path)!r} looks out for the events {names}, but {given}: give the "
            "same, in their order, with rx.resume(path, events={...}); a file keeps no functions."
        )
    return found


def _start(
    stored: Stored, system: AbstractGroupSystem, integrator: AbstractIntegrator, steps: int
) -> State:
    """Return the state in which the run began, checked to fit the system."""
    record = stored.record
    state = stored.states()
    g = system.configuration_space.layout()
    if len(jax.tree.leaves(g)) == len(jax.tree.leaves(state.g)):
        state = state_like(g, jax.tree.leaves(state))
    state = jax.tree.map(lambda x: np.asarray(x[0]), with_kept(state, integrator))
    require_run(system, integrator, state, record["h"], steps, record["save_every"])
    return state


def _running(
    stored: Stored,
    system: AbstractGroupSystem,
    integrator: AbstractIntegrator,
    state: State,
    steps: int,
    events: dict[str, Event | Stop],
) -> Running:
    """Return the run at its start."""
    record = stored.record
    plan = Plan(state.t, record["h"], steps, record["save_every"], record["every"])
    run = Run(system, integrator, state, None, plan)
    lookout = Lookout(events, run) if events else None
    running = Running(run, record["environment"]["backend"], lookout=lookout)
    running.compile_seconds, running.provenance = record["compile_seconds"], stored.provenance()
    return running


def _go_back(stored: Stored, running: Running) -> None:
    """Put a run where its checkpoint restarts it, with the rows that lie before that."""
    restart = stored.record["restart"]
    state = Packing(running.at.state).unpack_one(read_numbers(restart["state"]))
    rows = restart["step"] // running.begun.plan.save_every + 1
    at = start(state, _memory(stored, running, state))
    running.at = at._replace(step=np.int64(restart["step"]))
    if running.lookout is not None and (known := stored.events()) is not None:
        running.lookout.take_up(running.at, known)
        if at.memory is not None:
            memory = running.lookout.first_memory(state, at.memory)
            running.at = running.at._replace(memory=memory)
    running.since = Interval(*read_numbers(restart["since"]))
    running.seconds = stored.record["seconds"]
    running.saved = [[array[:rows] for array in stored.rows()]]


def _memory(stored: Stored, running: Running, state: State) -> Memory | None:
    """Return what the last step hands to the next one; there is none before the first."""
    text = stored.record["restart"].get("memory")
    if text is None:
        return None
    packing = Packing(memory_of(running.begun.system, running.begun.integrator, state))
    numbers = read_numbers(text)
    if len(numbers) != packing.size:
        raise BadInput(
            f"path = {str(stored.path)!r} holds a memory of {len(numbers)} numbers, but steps of "
            f"{running.begun.integrator!r} hand on {packing.size}."
        )
    return packing.unpack_one(numbers)


def _reopen(stored: Stored, running: Running, lock: WritingLock) -> Store:
    """Reopen the files to go on with.

    A longer run does not save the last state of one that ended between two saved states: it is
    withdrawn. What lies between it and the restart stays, and is computed again.
    """
    record, every = stored.record, running.begun.plan.save_every
    rows = record["completed"] // every + 1
    store = Store.reopen(stored, rows, again=rows - len(running.saved[0][0]), lock=lock)
    changes = {
        "status": "running",
        "steps": running.begun.plan.steps,
        "completed": (rows - 1) * every,
    }
    try:
        store.commit(changes)
    except OSError as cause:
        raise unwritable(stored.path, cause) from cause
    return store


def _compare(stored: Stored, running: Running) -> None:
    """Say what is not as it was; reject a system that does not take the same steps."""
    was, now = stored.record["environment"], environment(running.loop.name)
    before = read_numbers(stored.start["probe"])
    after = running.first_steps(min(stored.start["probe_steps"], running.begun.plan.steps))
    if before.shape != after.shape:
        gap = np.inf
    else:
        gap = float(np.max(np.abs(after - before) / np.maximum(np.abs(before), 1.0)))
    if not gap <= _ANOTHER:
        raise BadInput(
            f"path = {str(stored.path)!r} was made of other steps: from its first state this "
            f"system and integrator come to numbers that differ by {gap:.1g} after "
            f"{stored.start['probe_steps']} steps."
        )
    changed = [key for key in {**was, **now} if was.get(key) != now.get(key)]
    if changed or gap > 0:
        what = printable(
            "; ".join(f"{key} was {was.get(key)}, is {now.get(key)}" for key in changed)
        )
        errors.warn(
            f"the run in {str(stored.path)!r} goes on elsewhere than where it began "
            f"({what or 'nothing that is known of'}): its first steps differ by {gap:.1g}, so "
            "expect agreement to about 1e-14 of the numbers at each step, which grows as the "
            "motion itself spreads neighbours apart, instead of every bit."
        )

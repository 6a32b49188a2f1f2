"""A run and its checkpoint: what is stored before the first step, and when it is committed."""

import json
import time
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from retrax.engine.progress import Interval, Packing
from retrax.errors import BadInput, CheckpointFailed, warn
from retrax.integrators.base import AbstractIntegrator
from retrax.integrators.driven import Driven
from retrax.mechanics.system import AbstractGroupSystem
from retrax.store.checkpoint_format import FORMAT, FORMAT_VERSION, columns, numbers_text
from retrax.store.checkpoint_write import Rows, Store, Writer, require_free
from retrax.store.measured import measure_at
from retrax.store.objects import Data
from retrax.store.run_objects import encode_objects
from retrax.trajectory.dataset import flatten
from retrax.trajectory.provenance import environment
from retrax.trajectory.run import Run

# A run is committed when this long, or this much, has come together, unless it is said how often.
_SECONDS, _BYTES = 10.0, 2**25
# The first steps of a run, taken again when it is resumed to see that they are the same.
_PROBE = 8


@runtime_checkable
class OnItsWay(Protocol):
    """What a checkpoint reads of a run that goes on."""

    since: Interval
    seconds: float

    @property
    def run(self) -> Run: ...

    @property
    def chunk_steps(self) -> int: ...

    @property
    def chunks_saved(self) -> int: ...

    def rows(self, first: int) -> list[Rows]: ...

    def bytes_saved(self, first: int) -> int: ...

    @property
    def completed(self) -> int: ...

    def events_record(self) -> dict[str, Any]: ...


class Checkpoint:
    """Commit a run while it goes on, and at its end.

    **Arguments:** `store`: its files; `running`: the run; `sent`: how many chunks of rows the files
    have already.
    """

    def __init__(self, store: Store, running: OnItsWay, sent: int):
        self.path: Path = store.path
        self._running, self._every = running, running.run.plan.commit_every
        self._writer = Writer(store)
        self._sent, self._last_step = sent, running.run.step
        self._last_time = time.perf_counter()

    @property
    def failed(self) -> bool:
        """Whether something could not be written."""
        return self._writer.failure is not None

    def after_chunk(self) -> None:
        """Commit if enough has come together."""
        if self._writer.idle and self._due(self._running.run.step):
            self.commit("running")

    def commit(self, status: str, failure: tuple[type, str] | None = None) -> None:
        """Write everything up to here, in the background."""
        running = self._running
        error = None
        if failure is not None:
            error = {"error": failure[0].__name__, "sentence": failure[1]}
        self._writer.commit(
            running.rows(self._sent),
            {
                "status": status,
                "failure": error,
                "steps": running.run.plan.steps,
                "completed": running.completed,
                "seconds": running.seconds,
                "restart": restart(running.run, running.since),
                **running.events_record(),
            },
        )
        self._sent, self._last_step = running.chunks_saved, running.run.step
        self._last_time = time.perf_counter()

    def close(self) -> None:
        """Wait for the disk; raise what went wrong there."""
        self._writer.close()
        cause = self._writer.failure
        if cause is not None:
            reason = getattr(cause, "strerror", None) or str(cause)
            done = self._writer.store.record["completed"]
            raise CheckpointFailed(
                f"checkpoint = {str(self.path)!r} could not be written ({reason}), so the run was "
                f"stopped: its first {done} steps are committed, and when the reason is gone "
                f"rx.resume({str(self.path)!r}) goes on from there."
            ) from cause

    def _due(self, step: int) -> bool:
        if self._every is not None:
            return step + self._running.chunk_steps - self._last_step > self._every
        return (
            self._running.bytes_saved(self._sent) >= _BYTES
            or time.perf_counter() - self._last_time >= _SECONDS
        )


def restart(run: Run, since: Interval) -> dict[str, Any]:
    """Record all that it takes to go on from here; the first step makes the first memory."""
    memory = None if run.memory is None else numbers_text(Packing.rows(run.memory)[:, 0])
    return {
        "step": run.step,
        "state": numbers_text(Packing.rows(run.state)[:, 0]),
        "memory": memory,
        "since": numbers_text(np.array([float(x) for x in since])),
    }


def require_path(checkpoint: Any) -> Path:
    """Reject what is not a path, and paths where no checkpoint can be made."""
    try:
        path = Path(checkpoint)
    except TypeError:
        path = Path()
    if not path.name or "\0" in str(path):
        raise BadInput(f"checkpoint = {checkpoint!r} must be a path, such as 'run.zarr'.")
    require_free(path)
    return path


def stored_objects(system: AbstractGroupSystem, integrator: AbstractIntegrator) -> dict[str, Data]:
    """Encode what moves and how; give a notice about what is not data."""
    data, lacking = encode_objects(system, integrator)
    for name, why in lacking.items():
        driven = name == "integrator" and isinstance(integrator, Driven)
        needed = "system=plant, integrator=..., control=..." if driven else f"{name}=..."
        warn(
            f"{why}, and a checkpoint keeps data, not code: the states are safe, but to go on it "
            f"takes rx.resume(path, {needed}); an importable function marked with @rx.factory "
            f"can make the {name}, and is stored."
        )
    return data


@runtime_checkable
class NotBegun(OnItsWay, Protocol):
    """What a checkpoint reads of a run before its first step, once and for all."""

    compile_seconds: float
    provenance: dict[str, str]

    def first_steps(self, count: int) -> np.ndarray: ...


def new_store(path: Path, objects: dict[str, Any], running: NotBegun) -> Store:
    """Make the files of a run that begins, with all it takes to go on with it."""
    run, made = running.run, running.provenance
    record = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "configuration": json.dumps(flatten(run.state.g)[1]),
        "h": run.plan.h,
        "save_every": run.plan.save_every,
        "every": run.plan.commit_every,
        "environment": environment(made["backend"]),
        "compile_seconds": running.compile_seconds,
        "status": "running",
        "failure": None,
        "steps": run.plan.steps,
        "completed": 0,
        "seconds": 0.0,
        "restart": restart(run, running.since),
        **running.events_record(),
        **{f"provenance_{key}": value for key, value in made.items()},
    }
    count = min(_PROBE, run.plan.steps)
    first = {
        "probe": numbers_text(running.first_steps(count)),
        "probe_steps": count,
        "measured": numbers_text(measure_at(run.system, run.state)),
    }
    driven = run.integrator
    inputs = driven.actuators.count if isinstance(driven, Driven) else None
    kinds = columns(run.state, made["group"], inputs)
    return Store.create(path, kinds, record, {**objects, **first}, running.rows(0)[0])

"""When a run is committed, and what is said where that fails."""

import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from retrax.engine.packing import Packing
from retrax.engine.progress import Interval, Progress
from retrax.errors import BadInput, CheckpointFailed
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.system import AbstractGroupSystem
from retrax.run.running import Running
from retrax.store.checkpoint_format import FORMAT, FORMAT_VERSION, columns, numbers_text
from retrax.store.checkpoint_write import Store, Writer, require_free
from retrax.store.objects import Data
from retrax.store.run_objects import encode_objects
from retrax.trajectory.dataset import flattened
from retrax.trajectory.provenance import environment

# A run is committed when this long, or this much, has come together, unless it is said how often.
_SECONDS, _BYTES = 10.0, 2**25


class Checkpoint:
    """Commits a run while it goes on, and at its end.

    **Arguments:** `store`: its files; `running`: the run; `every`: the steps between two commits,
    or `None` for time and size to decide; `sent`: how many chunks of rows the files have already.
    """

    def __init__(self, store: Store, running: Running, every: int | None, sent: int):
        self.path: Path = store.path
        self._running, self._every = running, every
        self._writer = Writer(store)
        self._sent, self._last_step = sent, int(running.at.step)
        self._last_time = time.perf_counter()
        self._restart = running.at, running.since

    @property
    def failed(self) -> bool:
        """Whether something could not be written."""
        return self._writer.failure is not None

    def after_chunk(self) -> None:
        """Look at what has come together; commit where it is time to."""
        step = int(self._running.at.step)
        if self._running.plan.ends_chunk(step):
            self._restart = self._running.at, self._running.since
        if self._writer.idle and self._due(step):
            self.commit("running")

    def commit(self, status: str, failure: tuple[type, str] | None = None) -> None:
        """Have everything up to here written, in the background."""
        running = self._running
        error = None
        if failure is not None:
            error = {"error": failure[0].__name__, "sentence": failure[1]}
        self._writer.commit(
            running.saved[self._sent :],
            {
                "status": status,
                "failure": error,
                "steps": running.steps,
                "completed": running.completed(),
                "seconds": running.seconds,
                "restart": restart(*self._restart),
            },
        )
        self._sent, self._last_step = len(running.saved), int(running.at.step)
        self._last_time = time.perf_counter()

    def close(self) -> None:
        """Wait for the disk; say what went wrong there."""
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
            return step + self._running.plan.length - self._last_step > self._every
        waiting = self._running.saved[self._sent :]
        waiting_bytes = sum(leaf.nbytes for rows in waiting for leaf in rows)
        return waiting_bytes >= _BYTES or time.perf_counter() - self._last_time >= _SECONDS


def restart(at: Progress, since: Interval) -> dict[str, Any]:
    """All that is needed to go on from here."""
    return {
        "step": int(at.step),
        "state": numbers_text(Packing.rows(at.state)[:, 0]),
        "since": numbers_text(np.array([float(x) for x in since])),
    }


# The first steps of a run, taken again when it is resumed to see that they are the same.
_PROBE = 8


def require_path(checkpoint: Any) -> Path:
    """Refuse what is not a path, or one where a checkpoint cannot be made."""
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
        warnings.warn(
            f"{why}, and a checkpoint keeps data, not code: the states are safe, but to go on it "
            f"takes rx.resume(path, {name}=...); a {name} made by an importable function marked "
            "with @rx.factory can be stored.",
            stacklevel=4,
        )
    return data


def new_store(
    path: Path,
    objects: dict[str, Any],
    running: Running,
    *,
    h: float,
    every: int | None,
    compile_seconds: float,
    made: dict[str, str],
) -> Store:
    """The files of a run that begins, with all it takes to go on with it."""
    plan, state = running.plan, running.at.state
    record = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "configuration": json.dumps(flattened(state.g)[1]),
        "h": h,
        "save_every": plan.save_every,
        "every": every,
        "plan": list(plan),
        "environment": environment(running.loop.name),
        "compile_seconds": compile_seconds,
        "status": "running",
        "failure": None,
        "steps": running.steps,
        "completed": 0,
        "seconds": 0.0,
        "restart": restart(running.at, running.since),
        **{f"provenance_{key}": value for key, value in made.items()},
    }
    first = {"probe": numbers_text(probe(running)), "probe_steps": min(_PROBE, running.steps)}
    kinds = columns(state, made["group"])
    return Store.create(path, kinds, record, {**objects, **first}, running.saved[0])


def probe(running: Running, steps: int = _PROBE) -> np.ndarray:
    """The numbers of the state after the first few steps of a run that has not begun."""
    at, *_ = running.loop.run(running.at, 1, min(steps, running.steps), running.plan.capacity)
    return Packing(at.state).rows(at.state)[:, 0]

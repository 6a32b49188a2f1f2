"""When a run is committed, and what is said where that fails."""

import time
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from retrax.engine.progress import Interval, Packing
from retrax.errors import CheckpointFailed
from retrax.simulate.checkpoint_store import Store
from retrax.simulate.checkpoint_writer import Rows, Writer
from retrax.trajectory.checkpoint_format import numbers_text
from retrax.trajectory.run import Run

# A run is committed when this long, or this much, has come together, unless it is said how often.
_SECONDS, _BYTES = 10.0, 2**25


class OnItsWay(Protocol):
    """A run that goes on: what a checkpoint reads of it."""

    saved: list[Rows]
    since: Interval
    seconds: float

    @property
    def run(self) -> Run: ...

    @property
    def chunk_steps(self) -> int: ...

    @property
    def completed(self) -> int: ...


class Checkpoint:
    """Commits a run while it goes on, and at its end.

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
        """Look at what has come together; commit where it is time to."""
        if self._writer.idle and self._due(self._running.run.step):
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
                "steps": running.run.plan.steps,
                "completed": running.completed,
                "seconds": running.seconds,
                "restart": restart(running.run, running.since),
            },
        )
        self._sent, self._last_step = len(running.saved), running.run.step
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
            return step + self._running.chunk_steps - self._last_step > self._every
        waiting = self._running.saved[self._sent :]
        waiting_bytes = sum(leaf.nbytes for rows in waiting for leaf in rows)
        return waiting_bytes >= _BYTES or time.perf_counter() - self._last_time >= _SECONDS


def restart(run: Run, since: Interval) -> dict[str, Any]:
    """All that is needed to go on from here; no memory before the first step, which makes it."""
    memory = None if run.memory is None else numbers_text(Packing.rows(run.memory)[:, 0])
    return {
        "step": run.step,
        "state": numbers_text(Packing.rows(run.state)[:, 0]),
        "memory": memory,
        "since": numbers_text(np.array([float(x) for x in since])),
    }

"""The blocks of a sweep at work: one after the other here, or many on the workers of a cluster.

A block that fails, or whose worker dies, is tried again.
"""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any

from retrax.errors import BadInput, RetraxError, SweepStopped
from retrax.simulate.sweeping.task import Job, Load, run_block

# Seconds between two looks at the cluster, and how long it may be without a single worker.
_LOOK, _PATIENCE = 1.0, 300.0


def run_serially(job: Job, loads: Iterator[Load], done: Callable[[Load], None]) -> None:
    """All blocks in this process, with all its cores."""
    for load in loads:
        try:
            run_block(job, load, None)
        except OSError as cause:
            raise SweepStopped(
                f"store = {job.path!r} cannot be written: {cause.strerror or cause}."
            ) from cause
        done(load)


def run_on(
    client: Any, job: Job, loads: Iterator[Load], retries: int, done: Callable[[Load], None]
) -> None:
    """All blocks on the workers of a client, as many at a time as they can do with."""
    from distributed.protocol.pickle import dumps

    try:
        packed = dumps(job.sealed(), protocol=5)
    except Exception as cause:
        raise BadInput(
            f"the functions of the sweep cannot be sent to workers: {cause}; client='serial' runs "
            "it in this process."
        ) from cause
    crowd = _Crowd(client, bytes(packed), retries)
    try:
        waiting = True
        while waiting or crowd.running:
            while waiting and crowd.has_room():
                load = next(loads, None)
                waiting = load is not None
                if load is not None:
                    crowd.submit(load)
            for load in crowd.finished():
                done(load)
    finally:
        crowd.cancel()


class _Crowd:
    """Blocks on their way through a cluster."""

    def __init__(self, client: Any, job: bytes, retries: int):
        self.running: dict[Any, Load] = {}
        self._client, self._job, self._retries = client, job, retries
        self._failed: Counter[int] = Counter()
        self._threads, self._last_seen = 0, time.monotonic()
        self._look()

    def has_room(self) -> bool:
        """Whether a worker that finishes now would have nothing more to do."""
        return len(self.running) < max(4, 2 * self._threads)

    def submit(self, load: Load) -> None:
        import dask.config

        # One thread each: the threads of a Dask worker say how many blocks it runs at a time.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            future = self._client.submit(run_block, self._job, load, 1, pure=False)
        self.running[future] = load

    def finished(self) -> Sequence[Load]:
        """The blocks that are done now, waiting a second at most; others are tried again."""
        from distributed import wait

        with contextlib.suppress(TimeoutError, CancelledError):
            wait(list(self.running), timeout=_LOOK, return_when="FIRST_COMPLETED")
        self._look()
        loads = []
        for future in [future for future in self.running if future.done()]:
            load = self.running.pop(future)
            if future.status == "finished":
                loads.append(load)
            else:
                self._try_again(load, future)
        return loads

    def _try_again(self, load: Load, future: Any) -> None:
        cause = None if future.status == "cancelled" else future.exception()
        if isinstance(cause, RetraxError):
            raise cause
        number = load.block.number
        failures = self._failed[number] = self._failed[number] + 1
        if failures > self._retries:
            raise SweepStopped(
                f"block {number} failed {failures} times, at last because {_why(cause)}."
            ) from cause
        self.submit(load)

    def _look(self) -> None:
        """Stop where the scheduler is gone, or has had no worker for too long."""
        now = time.monotonic()
        try:
            self._threads = sum(self._client.nthreads().values())
        except Exception as cause:
            raise SweepStopped("the connection to the Dask scheduler is lost.") from cause
        if self._threads:
            self._last_seen = now
        elif now - self._last_seen > _PATIENCE:
            raise SweepStopped(f"the cluster has had no worker for {_PATIENCE:g} s.")

    def cancel(self) -> None:
        with contextlib.suppress(Exception):
            self._client.cancel(list(self.running))
        self.running.clear()


def _why(cause: Any) -> str:
    from distributed import KilledWorker

    if cause is None:
        return "it was cancelled"
    if isinstance(cause, KilledWorker):
        return "the workers that ran it died, perhaps for want of memory"
    return f"of {type(cause).__name__}: {cause}"

"""The workers of a sweep: this process, a Dask cluster that is there, or one of its own.

A block that fails, or whose worker dies, is tried again.
"""

import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

import jax

from retrax.errors import BadInput, RetraxError, SweepStopped
from retrax.sweeps.blocks import Job, Load, run_block

if TYPE_CHECKING:
    from distributed import Client, SpecCluster

SERIAL = "serial"
# Seconds in which a scheduler at a given address must answer.
_ANSWER = 10.0
# How long workers of our own wait for something to do.
_IDLE = "2 minutes"


def runs_here(client: object) -> bool:
    """Return whether this process does all the work: it is told to, or has a GPU and no cluster.

    All GPUs of a machine belong to the first process that uses JAX.
    """
    if isinstance(client, str):
        return client == SERIAL
    return client is None and jax.default_backend() == "gpu" and _current() is None


def _current() -> "Client | None":
    """Return the Dask client that is in use in this process, if there is one."""
    try:
        import distributed

        return distributed.default_client()
    except (ImportError, ValueError):
        return None


@contextlib.contextmanager
def connect(client: object, tasks: int) -> Iterator["Client"]:
    """Connect to a Dask client: the one given, one at the address, or one of its own workers."""
    try:
        import distributed
    except ImportError as cause:
        raise BadInput(
            "sweep runs on Dask, which is not installed: pip install 'retrax[dask]', or let "
            "client='serial' run it in this process."
        ) from cause
    client = _current() if client is None else client
    if isinstance(client, distributed.Client):
        if client.asynchronous:
            raise BadInput("client is asynchronous; sweep needs one made with asynchronous=False.")
        yield client
    elif client is None:
        with _own_workers(tasks) as cluster, distributed.Client(cluster) as own:
            yield own
    elif isinstance(client, str):
        with _at_address(client) as own:
            yield own
    else:
        raise BadInput(
            f"client = {client!r} must be a Dask client, the address of a scheduler, 'serial' or "
            "None."
        )


def _at_address(address: str) -> "Client":
    import distributed

    try:
        return distributed.Client(address, timeout=_ANSWER, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as cause:
        raise BadInput(
            f"client = {address!r}: no Dask scheduler answers there within {_ANSWER:g} s."
        ) from cause


@contextlib.contextmanager
def _own_workers(tasks: int) -> Iterator["SpecCluster"]:
    """Start a process for each core that this one may use, finding the same modules.

    They are started from the command line, so a script needs no `if __name__ == "__main__"`.
    """
    from distributed.deploy.subprocess import SubprocessCluster

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    there = {
        "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
        # A worker that dies takes the blocks it has with it: that says little about them.
        "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "10",
    }
    before = dict(os.environ)
    os.environ.update(there)
    try:
        cluster: Any = SubprocessCluster(
            n_workers=max(1, min(cores or 1, tasks)),
            threads_per_worker=1,
            dashboard_address=":0",
            # Should this process be killed, they do not outlive it for long.
            scheduler_kwargs={"idle_timeout": _IDLE},
        )
    except (OSError, RuntimeError) as cause:
        raise SweepStopped(f"no workers could be started on this machine: {cause}.") from cause
    finally:
        for name in there:
            os.environ.pop(name)
            os.environ.update({k: v for k, v in before.items() if k == name})
    try:
        yield cluster
    finally:
        _close(cluster)


def _close(cluster: Any) -> None:
    """Close workers of our own, of which one may be going away by itself at this moment."""
    import psutil

    try:
        cluster.close()
    except psutil.NoSuchProcess:
        for part in (*cluster.workers.values(), cluster.scheduler):
            with contextlib.suppress(ProcessLookupError, AttributeError):
                part.process.kill()


# Seconds between two looks at the cluster, and how long it may be without a single worker.
_LOOK, _PATIENCE = 1.0, 300.0


def run_serially(job: Job, loads: Iterator[Load], done: Callable[[Load], None]) -> None:
    """Run all blocks in this process, with all its cores."""
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
    """Run all blocks on the workers of a client, as many at a time as they can do with."""
    from distributed.protocol.pickle import dumps

    try:
        packed = dumps(job.seal(), protocol=5)
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
            for load in crowd.collect_finished():
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
        """Return whether a worker that finishes now would have nothing more to do."""
        return len(self.running) < max(4, 2 * self._threads)

    def submit(self, load: Load) -> None:
        import dask.config

        # One thread each: the threads of a Dask worker say how many blocks it runs at a time.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            future = self._client.submit(run_block, self._job, load, 1, pure=False)
        self.running[future] = load

    def collect_finished(self) -> Sequence[Load]:
        """Return the blocks that are done, after a second at most; others are tried again."""
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


def _why(cause: BaseException | None) -> str:
    from distributed import KilledWorker

    if cause is None:
        return "it was cancelled"
    if isinstance(cause, KilledWorker):
        return "the workers that ran it died, perhaps for want of memory"
    return f"of {type(cause).__name__}: {cause}"

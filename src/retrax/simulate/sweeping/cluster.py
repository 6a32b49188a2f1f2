"""The workers of a sweep: a Dask cluster that is there, or one of its own."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

import jax

from retrax.errors import BadInput, SweepStopped

SERIAL = "serial"
# Seconds in which a scheduler at a given address must answer.
_ANSWER = 10.0
# How long workers of our own wait for something to do.
_IDLE = "2 minutes"


def runs_here(client: Any) -> bool:
    """Whether this process does all the work: it is told to, or has a GPU and no cluster.

    All GPUs of a machine belong to the first process that uses JAX.
    """
    if isinstance(client, str):
        return client == SERIAL
    return client is None and jax.default_backend() == "gpu" and _current() is None


def _current() -> Any:
    """The Dask client that is in use in this process, if there is one."""
    try:
        import distributed

        return distributed.default_client()
    except (ImportError, ValueError):
        return None


@contextlib.contextmanager
def connected(client: Any, tasks: int) -> Iterator[Any]:
    """A Dask client: the one given, one for the address given, or one with workers of its own."""
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


def _at_address(address: str) -> Any:
    import distributed

    try:
        return distributed.Client(address, timeout=_ANSWER, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as cause:
        raise BadInput(
            f"client = {address!r}: no Dask scheduler answers there within {_ANSWER:g} s."
        ) from cause


@contextlib.contextmanager
def _own_workers(tasks: int) -> Iterator[Any]:
    """A process for each core that this one may use; they find the modules that this one finds.

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

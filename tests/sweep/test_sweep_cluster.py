"""Sweeps on Dask: the bits of a serial run, dead workers, and failures in one sentence."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from distributed import Client

import retrax as rx
from retrax.sweeps import workers
from tops import top

ARGUMENTS = {
    "grid": {"mass": [0.5, 1.0, 1.5], "gravity": np.linspace(1.0, 9.0, 5)},
    **{"h": 0.02, "steps": 60, "save_every": 20, "chunk": 4},
}
KILLS = Path(__file__).parent.parent / "faults" / "worker_kills.py"


@pytest.fixture(scope="module")
def client():
    """A scheduler and a worker with two threads, all in this process."""
    with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None) as it:
        yield it


def sweep(path, client, **changes):
    arguments = ARGUMENTS | changes
    return rx.sweep(top, rx.LieVerlet(), store=path / "sweep.zarr", client=client, **arguments)


def test_killed_workers_are_survived(tmp_path):
    """Two workers of its own, in processes of their own; the other tests have no such."""
    spec = importlib.util.spec_from_file_location("worker_kills", KILLS)
    worker_kills = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(worker_kills)
    worker_kills.top.__module__ = "__main__"  # sent by value, as from a script
    report = worker_kills.survive(2, tmp_path)
    assert report.equal and report.kills == 2


def test_workers_give_the_bits_of_a_serial_run(tmp_path, client):
    """By the address of their scheduler, and as the current client."""
    (tmp_path / "serial").mkdir()
    serial = sweep(tmp_path / "serial", "serial").load()
    seen = []
    address = client.scheduler.address
    runs = sweep(tmp_path, address, progress=lambda *done: seen.append(done)).load()
    xr.testing.assert_equal(runs, serial)
    assert seen[0] == (0, 15) and seen[-1] == (15, 15) and seen == sorted(seen)
    again = sweep(tmp_path, client, progress=lambda *done: seen.append(done))
    assert len(seen) == 8
    xr.testing.assert_equal(again.load(), serial)


def test_what_is_wrong_with_a_block_is_said_once_and_the_others_stay(tmp_path, client):
    def wrong(runs, system):
        if float(runs["mass"][0]) == 1.5:
            raise ArithmeticError("this mass is wrong")
        return {"last": runs["momentum"][-1]}

    with pytest.raises(rx.BadInput, match=r"measure raised ArithmeticError .* this mass is wrong"):
        sweep(tmp_path, client, measure=wrong)


def test_an_address_where_nobody_answers_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "_ANSWER", 0.3)
    with pytest.raises(rx.BadInput, match=r"no Dask scheduler answers there within 0.3 s"):
        sweep(tmp_path, "tcp://127.0.0.1:9")


def test_who_has_a_gpu_and_no_cluster_runs_alone(client, monkeypatch):
    assert workers.runs_here("serial") and not workers.runs_here("tcp://127.0.0.1:9")
    monkeypatch.setattr(workers.jax, "default_backend", lambda: "gpu")
    assert not workers.runs_here(None)  # the current client
    monkeypatch.setattr(workers, "_current", lambda: None)
    assert workers.runs_here(None)


class Stuck:
    """A client whose blocks never succeed."""

    asynchronous = False

    def __init__(self, threads, cause=None):
        self.threads, self.cause, self.submitted = threads, cause, 0

    def nthreads(self):
        if self.threads is None:
            raise OSError("gone")
        return {"a": self.threads}

    def submit(self, *arguments, **options):
        self.submitted += 1
        return StuckFuture(self.cause)

    def cancel(self, futures):
        self.cancelled = len(futures)


class StuckFuture:
    def __init__(self, cause):
        self.cause, self.status = cause, "error" if cause else "pending"

    def done(self):
        return self.cause is not None

    def exception(self):
        return self.cause


@pytest.mark.parametrize(
    "stuck, sentence",
    [
        (
            Stuck(2, OSError("a hiccup")),
            r"block \d failed 3 times, at last because of OSError: a hiccup",
        ),
        (Stuck(0), "the cluster has had no worker for 0 s"),
        (Stuck(None), "the connection to the Dask scheduler is lost"),
    ],
    ids=["failing", "no workers", "no scheduler"],
)
def test_nothing_waits_for_ever(tmp_path, monkeypatch, stuck, sentence):
    monkeypatch.setattr(workers, "_PATIENCE", 0.0)
    monkeypatch.setattr("distributed.wait", lambda *a, **k: None)
    monkeypatch.setattr("distributed.Client", Stuck)
    with pytest.raises(rx.SweepStopped, match=f"{sentence}. Of 6 blocks 0 are in the store"):
        sweep(tmp_path, stuck, retries=2)

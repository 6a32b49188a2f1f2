"""Runs that are committed as they go, stopped, and taken up again."""

import functools
import itertools
import json
import os
import signal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
import zarr

import retrax as rx
from retrax.run import resume as resume_module
from retrax.run.chunks import Chunks

SO3 = rx.SO3()


@functools.cache
def top():
    system = rx.systems.HeavyTop([1.0, 1.7, 2.3], 1.0, [0.4, -0.3, 1.1])
    state = system.state(SO3.exp(jnp.array([0.7, -0.4, 0.2])), velocity=[1.2, -0.5, 1.0], t=0.3)
    return system, state


def run(**options):
    system, state = top()
    return rx.simulate(system, rx.LieVerlet(), state, **{"h": 0.01, "steps": 900, **options})


def stop_at(step, number=signal.SIGINT):
    """A progress function that sends a signal once a run has come so far."""
    sent = []

    def progress(done, total):
        if done >= step and not sent:
            sent.append(os.kill(os.getpid(), number))

    return progress


def same(one, other):
    assert one.completed == other.completed
    for a, b in zip(
        jax.tree.leaves((one.t, one.states, one.info)),
        jax.tree.leaves((other.t, other.states, other.info)),
        strict=True,
    ):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("save_every, every", [(7, 100), (250, 60), (1, 1000)])
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(tmp_path, save_every, every):
    path = tmp_path / "run.zarr"
    with pytest.raises(rx.Interrupted) as stopped:
        run(save_every=save_every, checkpoint=path, every=every, progress=stop_at(300))
    sentence = str(stopped.value)
    assert "SIGINT" in sentence and "of 900" in sentence and "rx.resume" in sentence
    assert stopped.value.signal == signal.SIGINT
    so_far = stopped.value.trajectory
    same(rx.load(path), so_far)
    assert 0 < so_far.completed <= 900 and so_far.completed % save_every == 0
    same(rx.resume(path), run(save_every=save_every))
    same(rx.load(path), run(save_every=save_every))


def test_sigterm_stops_a_run_too_and_handlers_are_put_back(tmp_path):
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with pytest.raises(rx.Interrupted, match="SIGTERM") as stopped:
        run(checkpoint=tmp_path / "run.zarr", every=100, progress=stop_at(100, signal.SIGTERM))
    assert stopped.value.signal == signal.SIGTERM
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


@pytest.mark.parametrize("steps", [500, 505, 1024])
def test_a_finished_run_can_be_extended_as_if_it_had_been_longer(tmp_path, steps):
    path = tmp_path / "run.zarr"
    same(
        run(steps=steps, save_every=10, checkpoint=path, every=200), run(steps=steps, save_every=10)
    )
    same(rx.resume(path), run(steps=steps, save_every=10))
    same(rx.resume(path, steps=1507), run(steps=1507, save_every=10))
    same(rx.resume(path, steps=1600), run(steps=1600, save_every=10))
    with pytest.raises(rx.BadInput, match="steps = 70, but the run has 1600 steps"):
        rx.resume(path, steps=70)
    with pytest.raises(rx.BadInput, match=r"steps = 2\.5 must be a whole number"):
        rx.resume(path, steps=2.5)


def test_committed_states_can_be_read_while_the_run_goes_on(tmp_path):
    path, seen = tmp_path / "run.zarr", []

    def look(done, total):
        if done % 300 == 0:
            found = rx.load(path)
            with xr.open_zarr(path) as store:
                assert store.sizes["time"] >= len(found)
            seen.append(len(found))
            with pytest.raises(rx.BadInput, match="being written by another process"):
                rx.resume(path)

    whole = run(checkpoint=path, every=100, progress=look)
    assert seen[0] >= 1 and seen == sorted(seen) and len(rx.load(path)) == 901
    with xr.open_zarr(path) as store:
        assert np.array_equal(store.g, whole.g) and np.array_equal(store.time, whole.t)
        assert store.attrs["completed"] == 900 and store.time.attrs["units"] == "s"
    group = zarr.open_group(path, mode="r")
    assert np.array_equal(group["momentum"], whole.momentum)


def test_what_is_derived_from_the_states_is_there_after_loading(tmp_path):
    whole = run(checkpoint=tmp_path / "run.zarr", steps=50)
    found = rx.load(tmp_path / "run.zarr")
    assert repr(found.system) == repr(whole.system) and found.integrator == rx.LieVerlet()
    for name, values in whole.invariants().items():
        assert np.array_equal(values, found.invariants()[name])
    assert found.measures() == whole.measures()


def test_a_failed_run_stays_readable_and_says_where_it_failed(tmp_path):
    top = rx.systems.HeavyTop([1.0, 1.7, 2.3], 1.0, [0.4, -0.3, 1.1], gravity=30.0)
    state, path = top.state(jnp.eye(3), velocity=[1.0, 2.0, 8.0]), tmp_path / "run.zarr"
    arguments = {"h": 0.2, "steps": 900, "save_every": 7}
    with pytest.raises(rx.StepFailed) as failed:
        rx.simulate(top, rx.LieVerlet(rx.Exp()), state, checkpoint=path, every=20, **arguments)
    found = rx.load(path)
    same(found, failed.value.trajectory)
    assert found.provenance["failure"] == str(failed.value)
    with pytest.raises(rx.StepFailed) as again:
        rx.resume(path, steps=2000)
    assert str(again.value) == str(failed.value)
    same(again.value.trajectory, found)


def test_nothing_is_overwritten_and_bad_paths_are_refused(tmp_path):
    run(steps=5, checkpoint=tmp_path / "run.zarr")
    (tmp_path / "file").write_text("mine")
    for path, sentence in [
        (tmp_path / "run.zarr", "is a folder that exists already"),
        (tmp_path / "file", "is a file that exists already"),
        (tmp_path / "file" / "run.zarr", "does not exist"),
        (tmp_path / "no" / "run.zarr", "the folder .* does not exist"),
        ("/proc/run.zarr", "cannot be written"),
        ("", "must be a path"),
        (3, "checkpoint = 3 must be a path"),
    ]:
        with pytest.raises(rx.BadInput, match=sentence):
            run(steps=5, checkpoint=path)
    assert (tmp_path / "file").read_text() == "mine" and len(rx.load(tmp_path / "run.zarr")) == 6
    for path, sentence in [
        (tmp_path / "no.zarr", "there is no such checkpoint"),
        (tmp_path, "is not a checkpoint of retrax"),
        (tmp_path / "file", "is not a checkpoint of retrax"),
        (None, "must be the path of a checkpoint"),
    ]:
        with pytest.raises(rx.BadInput, match=sentence):
            rx.resume(path)


@pytest.mark.parametrize("every", [0, -5, 2.5, True, "often"])
def test_steps_between_commits_that_are_none_are_refused(tmp_path, every):
    with pytest.raises(rx.BadInput, match=f"every = {every!r} must be a whole number"):
        run(checkpoint=tmp_path / "run.zarr", every=every)
    assert not list(tmp_path.iterdir())


def test_commits_and_traces_without_a_checkpoint_are_refused(tmp_path):
    system, state = top()
    with pytest.raises(rx.BadInput, match="every = 10 is the steps between commits"):
        run(every=10)
    with pytest.raises(rx.BadInput, match="being traced"):
        jax.jit(lambda s: rx.simulate(system, rx.LieVerlet(), s, h=0.1, steps=2, checkpoint="x").t)(
            state
        )


def test_more_states_than_memory_holds_are_refused_before_anything_runs():
    with pytest.raises(rx.BadInput, match=r"saves 1000000000001 states, .* save_every = \d+ would"):
        run(steps=10**12)


def test_another_machine_is_noticed(tmp_path, monkeypatch):
    path = tmp_path / "run.zarr"
    run(steps=100, checkpoint=path)
    here = resume_module.environment
    monkeypatch.setattr(
        resume_module, "environment", lambda backend: {**here(backend), "jax": "0.0.1"}
    )
    with pytest.warns(UserWarning, match=r"jax was .*, is 0\.0\.1.* agreement to about 1e-14"):
        same(rx.resume(path, steps=200), run(steps=200))


def test_another_system_is_refused(tmp_path):
    path = tmp_path / "run.zarr"
    run(steps=100, checkpoint=path)
    other = rx.systems.HeavyTop([1.0, 1.7, 2.3], 1.1, [0.4, -0.3, 1.1])
    with pytest.raises(rx.BadInput, match="was made of other steps"):
        rx.resume(path, steps=200, system=other)
    with pytest.raises(rx.BadInput, match="was made of other steps"):
        rx.resume(path, steps=200, integrator=rx.LieVerlet(rx.Exp()))
    with pytest.raises(rx.BadInput, match="is not a retrax system"):
        rx.resume(path, steps=200, system="top")
    assert len(rx.load(path)) == 101


def test_a_newer_format_and_another_store_are_refused(tmp_path):
    from retrax.store import checkpoint_format

    path = tmp_path / "run.zarr"
    run(steps=10, checkpoint=path)
    record = json.loads((path / "zarr.json").read_text())
    for key, value, sentence in [
        ("format_version", 99, "a newer retrax is needed"),
        ("format", "weather", "is a Zarr store, but not a checkpoint"),
    ]:
        changed = {**record, "attributes": {**record["attributes"], key: value}}
        changed["attributes"].pop("checksum")
        (path / "zarr.json").write_bytes(checkpoint_format._check(changed))
        with pytest.raises(rx.BadInput, match=sentence):
            rx.load(path)
    zarr.create_group(tmp_path / "other.zarr")
    with pytest.raises(rx.BadInput, match="was not written by retrax"):
        rx.load(tmp_path / "other.zarr")


def test_chunks_end_with_the_run_and_where_states_are_saved():
    for chunks in (Chunks(7, 5, 50, 40), Chunks(250, 1, 60, 40), Chunks(1, 8, 99, 8)):
        for first, steps in itertools.product((0, 3, 30, 500), (501, 777, 1000)):
            at, every, saved = first, chunks.save_every, set()
            for records, length in chunks.between(first, steps):
                assert records <= chunks.records and length <= chunks.most
                assert records == 1 or length == every
                saved |= {at + (k + 1) * length for k in range(records)}
                at += records * length
            assert at == steps
            assert set(range(first + every - first % every, steps, every)) <= saved

"""What goes wrong with disks and processes: nothing committed is lost, and a sentence says why."""

import errno
import os
import random
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from damage import checkpoint, same, torment
from kills import survive

import retrax as rx
from retrax.store import checkpoint_format, checkpoint_write


def test_a_run_that_is_killed_goes_on_to_the_same_bits(tmp_path):
    assert survive(3, tmp_path)["kills"] == 3


def test_damage_is_named_or_does_not_matter(tmp_path):
    seen = torment(150, tmp_path)
    assert seen["files"] > 15 and seen["named"] > 100 > seen["harmless"]


class FullDisk:
    """A disk that takes so many bytes more and then no others."""

    def __init__(self, room):
        self.room, self.write = room, checkpoint_write._write

    def __call__(self, file, data):
        if len(data) > self.room:
            self.write(file, data[: self.room])
            self.room = 0
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= len(data)
        self.write(file, data)


def test_a_full_disk_stops_a_run_and_takes_nothing_back(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint_format, "_CHUNK_BYTES", 2**12)
    monkeypatch.setattr(checkpoint_write, "_PART", 1e9)
    rng, whole = random.Random(1), top_run()
    refused = stopped = 0
    for number in range(12):
        path = tmp_path / f"run{number}.zarr"
        disk = FullDisk(int(10 ** rng.uniform(3.0, 5.3)))
        try:
            with mock.patch.object(checkpoint_write, "_write", disk):
                top_run(checkpoint=path, every=20)
        except rx.BadInput as error:
            assert "cannot be written: No space left on device" in str(error)
            refused += 1
            assert not path.exists()
            continue
        except rx.CheckpointFailed as error:
            sentence = str(error)
            stopped += 1
            assert "could not be written (No space left on device)" in sentence
            part, found = error.trajectory, rx.load(path)
            assert f"its first {found.completed} steps are committed" in sentence
            assert len(found) <= len(part)
            assert np.array_equal(found.momentum, whole.momentum[: len(found)])
            assert np.array_equal(part.momentum, whole.momentum[: len(part)])
        assert same(rx.resume(path), whole)
    assert refused and stopped
    assert not [file for file in tmp_path.rglob("*") if file.name.endswith(".tmp")]


def top_run(**options):
    system = rx.systems.HeavyTop([1.0, 1.7, 2.3], 1.0, [0.4, -0.3, 1.1])
    state = system.state(np.eye(3), velocity=[1.2, -0.5, 2.0])
    return rx.simulate(system, rx.LieVerlet(), state, h=0.01, steps=400, save_every=2, **options)


@pytest.fixture
def small_disk():
    folder = Path(tempfile.mkdtemp())
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "none", folder], capture_output=True
    )
    if mounted.returncode != 0:
        folder.rmdir()
        pytest.skip("this process may not mount a small disk")
    yield folder
    subprocess.run(["umount", folder], check=True)
    folder.rmdir()


def test_a_small_disk_that_fills_up(small_disk, tmp_path, monkeypatch):
    commit = checkpoint_write.Writer.commit

    def commit_and_wait(writer, *told):
        """Write at once: a busy machine leaves all to the last commit."""
        commit(writer, *told)
        while not writer.idle and writer.failure is None:
            time.sleep(1e-3)

    monkeypatch.setattr(checkpoint_write.Writer, "commit", commit_and_wait)
    monkeypatch.setattr(checkpoint_write, "_PART", 1e9)
    monkeypatch.setattr(checkpoint_format, "_CHUNK_BYTES", 2**14)
    path, keep = small_disk / "run.zarr", {"save_every": 1, "steps": 4000, "h": 0.01}
    system = rx.systems.HeavyTop([1.0, 1.7, 2.3], 1.0, [0.4, -0.3, 1.1])
    state = system.state(np.eye(3), velocity=[1.2, -0.5, 2.0])
    with pytest.raises(rx.CheckpointFailed, match="No space left on device"):
        rx.simulate(system, rx.LieVerlet(), state, checkpoint=path, every=50, **keep)
    committed = rx.load(path).completed
    with pytest.raises(rx.RetraxError, match="No space left on device"):
        rx.resume(path)
    found = rx.load(path)
    assert 0 < committed <= found.completed < 4000
    roomy = shutil.copytree(path, tmp_path / "run.zarr")
    assert same(rx.resume(roomy), rx.simulate(system, rx.LieVerlet(), state, **keep))


def test_a_folder_that_is_taken_away_stops_the_run(tmp_path):
    path = tmp_path / "run.zarr"

    def take_away(done, total):
        shutil.rmtree(path, ignore_errors=True)

    with pytest.raises(rx.CheckpointFailed, match="No such file or directory") as failed:
        top_run(checkpoint=path, every=20, progress=take_away)
    assert len(failed.value.trajectory) > 1


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    def refuse(*_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    with mock.patch.object(checkpoint_write, "appearing", refuse):
        with pytest.raises(rx.BadInput, match="cannot be written: Permission denied"):
            checkpoint(tmp_path / "run.zarr")
    run = tmp_path / "run.zarr"
    checkpoint(run)
    with mock.patch.object(checkpoint_write, "place", lambda *_: refuse()):
        with pytest.raises(rx.BadInput, match="cannot be written: Permission denied"):
            rx.resume(run, steps=300)
    assert len(rx.load(run)) == 151 and len(rx.resume(run, steps=300)) == 301


def test_an_error_in_the_run_itself_leaves_what_was_committed(tmp_path):
    def burst(done, total):
        if done >= 100:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        top_run(checkpoint=tmp_path / "run.zarr", every=20, progress=burst)
    assert same(rx.resume(tmp_path / "run.zarr"), top_run())

"""One process writes a store at a time; what another has committed is never taken back."""

import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from damage import checkpoint, same
from forged_sweeps import swept

import retrax as rx
from retrax.files import WritingLock
from retrax.run import resume as resume_module

HOLD = """
import sys, time
from pathlib import Path
from retrax.files import WritingLock
lock = WritingLock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def run(tmp_path):
    checkpoint(tmp_path / "run.zarr")
    return tmp_path / "run.zarr"


def test_the_lock_is_held_before_anything_is_read(run, monkeypatch):
    """Between what one resume reads and what it writes no other can commit."""
    seen, real = [], resume_module.read_checkpoint

    def reading(path):
        with pytest.raises(rx.BadInput, match="is being written by another process"):
            WritingLock(path)
        seen.append(path)
        return real(path)

    monkeypatch.setattr(resume_module, "read_checkpoint", reading)
    assert len(rx.resume(run, steps=170)) == 171 and seen == [run]
    WritingLock(run).release()  # it is free again


def test_a_second_resume_is_told_who_writes_and_a_kill_frees_the_lock(run):
    holder = subprocess.Popen([sys.executable, "-c", HOLD, run], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(rx.BadInput, match=rf"another process \(process {holder.pid} on "):
            rx.resume(run, steps=170)
    finally:
        holder.kill()
        holder.wait()
        if holder.stdout is not None:
            holder.stdout.close()
    assert rx.resume(run, steps=170).completed == 170


def test_two_resumes_at_once_take_nothing_back(run, tmp_path):
    wanted = rx.resume(shutil.copytree(run, tmp_path / "alone.zarr"), steps=400)
    script = "import sys, retrax as rx; rx.resume(sys.argv[1], steps=int(sys.argv[2]))"
    both = [
        subprocess.Popen([sys.executable, "-c", script, run, steps], stderr=subprocess.PIPE)
        for steps in ("300", "400")
    ]
    deadline, least = time.monotonic() + 60, 0
    while any(one.poll() is None for one in both) and time.monotonic() < deadline:
        found = rx.load(run).completed
        assert found >= least, "a commit was taken back"
        least = found
    for one in both:
        _, told = one.communicate()
        assert one.returncode == 0 or b"being written" in told or b"steps already" in told, told
    found = rx.load(run)
    assert found.completed in (300, 400)
    assert np.array_equal(found.momentum, wanted.momentum[: found.completed + 1])


def test_a_lock_that_is_a_link_is_not_followed(run, tmp_path):
    (run / ".lock").unlink()
    (run / ".lock").symlink_to(tmp_path / "made")
    with pytest.raises(rx.BadInput, match=r"its file \.lock is a link"):
        rx.resume(run, steps=170)
    assert not (tmp_path / "made").exists()


def test_a_lock_leaves_a_file_of_others_as_it_is(run, tmp_path):
    (run / ".lock").unlink()
    (tmp_path / "mine").write_text("mine")
    os.link(tmp_path / "mine", run / ".lock")
    assert rx.resume(run, steps=170).completed == 170
    assert (tmp_path / "mine").read_text() == "mine"


def test_no_lock_is_left_where_there_is_no_checkpoint(tmp_path):
    with pytest.raises(rx.BadInput, match="is not a checkpoint of retrax"):
        rx.resume(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_finished_run_that_cannot_be_written_can_be_read(run, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(resume_module, "WritingLock", refuse_like(refuse))
    assert same(rx.resume(run), rx.load(run))
    with pytest.raises(rx.BadInput, match="cannot be written: Permission denied"):
        rx.resume(run, steps=170)


def refuse_like(refuse):
    return type("Refusing", (), {"__new__": lambda cls, path: refuse(path)})


def test_one_sweep_writes_a_store_at_a_time(tmp_path):
    path = tmp_path / "sweep.zarr"
    wanted = swept(path)
    lock = WritingLock(path)
    with pytest.raises(rx.BadInput, match=rf"store = .*another process \(process {os.getpid()} on"):
        swept(path)
    lock.release()
    assert swept(path).equals(wanted)

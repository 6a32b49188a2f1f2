"""Files are written whole, with their mode, into regular files, on a disk that has room."""

import json
import os
import stat
import subprocess
import sys

import jax.numpy as jnp
import pytest
from typer.testing import CliRunner

import retrax as rx
from retrax.cli import run as command
from retrax.cli.main import app
from retrax.show import overview, save


@pytest.fixture(scope="module")
def run():
    body = rx.systems.FreeRigidBody([1.0, 1.7, 2.3])
    state = body.state(jnp.eye(3), velocity=[0.3, -0.2, 0.9])
    return rx.simulate(body, rx.LieVerlet(), state, h=0.05, steps=8, progress=False)


WRITE = {
    "save": lambda run, path: run.save(path),
    "report": lambda run, path: run.report(path),
    "figure": lambda run, path: save(overview(run), path.with_suffix(".png")),
}
NAMES = {"save": "run.nc", "report": "run.html", "figure": "run.png"}

FULL = """
import resource, sys
import jax.numpy as jnp
import retrax as rx
body = rx.systems.FreeRigidBody([1.0, 1.7, 2.3])
state = body.state(jnp.eye(3), velocity=[0.3, -0.2, 0.9])
run = rx.simulate(body, rx.LieVerlet(), state, h=0.05, steps=400, progress=False)
none = resource.RLIM_INFINITY
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, none))
try:
    run.save(sys.argv[1])
except rx.NotWritten as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (none, none))
run.save(sys.argv[2])
print(len(rx.load(sys.argv[2])))
"""


def test_a_disk_that_refuses_ends_in_a_sentence_and_the_run_can_be_saved_elsewhere(tmp_path):
    first, second = tmp_path / "first.nc", tmp_path / "second.nc"
    first.write_text("old")
    told = subprocess.run(
        [sys.executable, "-c", FULL, first, second], capture_output=True, text=True
    )
    assert told.returncode == 0, told.stderr
    sentence, states = told.stdout.splitlines()
    assert "could not be written (File too large): what was there before is unchanged" in sentence
    assert states == "401" and first.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["first.nc", "second.nc"]


@pytest.mark.parametrize("how", WRITE)
def test_modes_are_kept_and_links_stay_links(run, tmp_path, how):
    path, link = tmp_path / NAMES[how], tmp_path / f"link-{NAMES[how]}"
    before = os.umask(0o027)
    try:
        WRITE[how](run, path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.write_text("old")
        path.chmod(0o600)
        link.symlink_to(path)
        WRITE[how](run, link)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and link.is_symlink()
    assert path.read_bytes() != b"old" and len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("how", WRITE)
def test_what_is_not_a_regular_file_is_refused_and_left_alone(run, tmp_path, how):
    name = NAMES[how]
    pipe, folder, broken, device = (tmp_path / f"{k}-{name}" for k in "pfbd")
    os.mkfifo(pipe)
    folder.mkdir()
    broken.symlink_to(tmp_path / "nothing")
    device.symlink_to("/dev/null")
    for path, says in [
        (pipe, "is a named pipe"),
        (folder, "is a folder"),
        (broken, "is a link that leads to no file"),
        (device, "leads to '/dev/null', which is a device"),
    ]:
        with pytest.raises(rx.BadInput, match=says):
            WRITE[how](run, path)
    assert stat.S_ISFIFO(pipe.lstat().st_mode) and broken.is_symlink() and device.is_symlink()
    assert len(list(tmp_path.iterdir())) == 4


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize("place", ["/proc/run.nc", "/dev/null", "/nowhere/run.nc"])
def test_an_output_that_cannot_be_written_is_refused_before_the_run(monkeypatch, place):
    monkeypatch.setattr("retrax.cli.run.simulate", lambda *_, **__: pytest.fail("it ran"))
    result = call("run", "free-rigid-body", "--steps", 10, "-o", place)
    assert result.exit_code == 2 and f"path = '{place}'" in result.stderr, result.output


def test_a_command_whose_disk_is_full_saves_its_run_elsewhere(tmp_path, monkeypatch):
    path, elsewhere = tmp_path / "run.nc", tmp_path / "elsewhere"
    real = rx.Trajectory.save

    def full(run, place):
        if place == path:
            raise rx.NotWritten(f"path = {str(path)!r} could not be written (disk full).")
        return real(run, place)

    elsewhere.mkdir()
    monkeypatch.setattr(rx.Trajectory, "save", full)
    monkeypatch.setattr(command.tempfile, "mkdtemp", lambda **_: str(elsewhere))
    result = call("run", "free-rigid-body", "--steps", 20, "-o", path)
    assert result.exit_code == 1 and "disk full" in result.stderr
    assert f"The run was saved to '{elsewhere / 'run.nc'}' instead" in result.stderr
    assert rx.load(elsewhere / "run.nc").completed == 20


def test_a_run_file_writes_into_its_own_folder_and_over_nothing_of_others(tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/out").symlink_to(tmp_path)
    file, mine = tmp_path / "runs/case.toml", tmp_path / "runs/thesis.nc"
    for key, name in [
        ("output", "../x.nc"), ("output", str(tmp_path / "x.nc")), ("report", "a/../../x.html"),
        ("checkpoint", "../x.zarr"), ("output", "out/x.nc"), ("output", "."),
    ]:  # fmt: skip
        file.write_text(f'case = "free-rigid-body"\nsteps = 5\n{key} = "{name}"\n')
        result = call("run", file)
        assert result.exit_code == 2 and "leads out of the folder of the run file" in result.stderr
    assert sorted(os.listdir(tmp_path)) == ["runs"]
    file.write_text('case = "free-rigid-body"\nsteps = 5\noutput = "thesis.nc"\n')
    mine.write_text("mine")
    result = call("run", file)
    assert result.exit_code == 2 and "is a file that retrax did not write" in result.stderr
    assert mine.read_text() == "mine"
    asked = call("run", file, "--output", mine, "--json")
    assert asked.exit_code == 0 and json.loads(asked.stdout)["steps"] == 5
    assert call("run", file).exit_code == 0, "what retrax wrote is written again"

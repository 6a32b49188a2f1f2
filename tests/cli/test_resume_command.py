"""`retrax run --checkpoint` and `retrax resume`."""

import importlib
import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import retrax as rx
from retrax.cli import resume as resume_module
from retrax.cli.main import app


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_case_is_kept_and_goes_on(tmp_path):
    path = tmp_path / "run.zarr"
    begun = call("run", "pendulum3d", "--steps", 40, "--checkpoint", path, "--every", 10)
    assert begun.exit_code == 0 and f"retrax resume {path}" in begun.stdout, begun.stderr
    assert rx.load(path).provenance["case"] == "pendulum3d"
    again = call("run", "pendulum3d", "--checkpoint", path)
    assert again.exit_code == 2 and "exists already" in again.stderr
    longer = call("resume", path, "--steps", 60, "--json", "-o", tmp_path / "run.nc")
    measured = json.loads(longer.stdout)
    assert measured["case"] == "pendulum3d" and measured["steps"] == 60
    assert rx.load(tmp_path / "run.nc").completed == 60
    done = call("resume", path)
    assert done.exit_code == 0 and "60 steps" in done.stdout and str(path) in done.stdout


def test_what_cannot_go_on_is_one_sentence(tmp_path):
    for arguments, says in [
        (["resume", tmp_path / "no.zarr"], "there is no such checkpoint"),
        (["resume", tmp_path], "is not a checkpoint of retrax"),
        (["run", "pendulum3d", "--every", "10"], "every = 10 is the steps between commits"),
    ]:
        result = call(*arguments)
        assert result.exit_code == 2 and says in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("number", [2, 15])
def test_a_signal_ends_the_command_with_its_number(number, monkeypatch):
    def stopped(*_, **__):
        raise rx.Interrupted("The run was stopped.", None, number)

    monkeypatch.setattr(resume_module, "resume_run", stopped)
    result = call("resume", "run.zarr")
    assert result.exit_code == 128 + number and result.stderr == "The run was stopped.\n"


MODULE = """
import retrax as rx

print("imported")


@rx.factory
def body(weight):
    return rx.MechanicalSystem(rx.SO3(), [1.0, 2.8, 2.0], lambda R: weight * R[2, 2])
"""


def test_a_module_that_a_checkpoint_names_is_run_only_where_it_is_trusted(tmp_path, monkeypatch):
    path = tmp_path / "run.zarr"
    (tmp_path / "bodies_to_trust.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    system = importlib.import_module("bodies_to_trust").body(3.0)
    state = system.state(np.eye(3), velocity=[0.3, -0.2, 0.9])
    rx.simulate(system, rx.LieVerlet(), state, h=0.05, steps=20, checkpoint=path, progress=False)
    sys.modules.pop("bodies_to_trust")
    refused = call("resume", path, "--steps", 30)
    assert refused.exit_code == 2 and "--trust bodies_to_trust" in refused.stderr
    assert refused.stdout == "" and "bodies_to_trust" not in sys.modules
    other = call("resume", path, "--steps", 30, "--trust", "os")
    assert other.exit_code == 2 and "bodies_to_trust" not in sys.modules
    trusted = call("resume", path, "--steps", 30, "--trust", "os", "--trust", "bodies_to_trust")
    assert trusted.exit_code == 0 and "30 steps" in trusted.stdout, trusted.output
    sys.modules.pop("bodies_to_trust")

"""Mechanisms on the command line: each case runs, is listed, and a run file names its joints."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import retrax as rx
from retrax.cases.run_file import read
from retrax.cli.main import app
from retrax.systems.catalogue import CASES

MECHANISMS = ("four-bar", "bricard", "bicycle", "double-pendulum", "strandbeest-leg", "robot-arm")


def _call(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_the_list_has_every_mechanism():
    listed = json.loads(_call("list", "--json"))
    assert set(MECHANISMS) <= set(listed["cases"])


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_case_starts_where_its_joints_are_closed_and_as_long_as_it_says(name):
    system, state, h, steps = CASES[name].make()
    assert (h, steps) == CASES[name].length
    gap = np.max(np.abs(system.constraint.positions(state.g, state.t)))
    assert gap <= 1e-15  # measured: 1.1e-16, of the arm
    assert float(system.constraint_violation(state)) <= 1.5e-13  # measured: 1.5e-14, of the bicycle


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_case_runs_and_its_page_shows_it(name, tmp_path):
    path = tmp_path / "run.html"
    out = _call("run", name, "--steps", 40, "--save-every", 4, "--report", path, "--json")
    measured = json.loads(out)
    assert measured["case"] == name
    assert measured["constraint_violation"] < 2e-13  # measured over whole runs: 2.1e-14
    text = path.read_text()
    assert "angles of joints" in text and 'kind":"body"' in text
    # A page cannot name the controller of a driven run, and so has no command for it.
    assert (f"retrax run {name} " in text) == (CASES[name].driven is None)


def test_details_of_a_driven_arm_name_its_motors_control():
    told = json.loads(_call("list", "robot-arm", "--json"))
    assert told["inputs"] == 6 and "JointsTo" in told["control"]


def test_a_run_file_names_a_mechanism_and_its_joints(tmp_path):
    path = tmp_path / "swing.toml"
    path.write_text(
        """
        h = 0.01
        steps = 10
        [system]
        name = "double_pendulum"
        lengths = [1.0, 0.5]
        [state]
        joints = { shoulder = 0.7, elbow = -0.4 }
        joint_rates = { elbow = 2.0 }
        """
    )
    asked = read(path)
    wanted = rx.systems.double_pendulum([1.0, 0.5]).assemble(
        joints={"shoulder": 0.7, "elbow": -0.4}, joint_rates={"elbow": 2.0}
    )
    for one, other in zip(asked.state.g, wanted.g, strict=True):
        assert np.array_equal(one, other)
    assert np.array_equal(asked.state.momentum, wanted.momentum)
    assert "double pendulum" in asked.system.name or "mechanism" in asked.system.name


def test_a_start_that_is_no_start_of_a_mechanism_is_told(tmp_path):
    path = tmp_path / "swing.toml"
    start = "h = 0.01\nsteps = 10\nsystem = { name = 'double_pendulum' }\n[state]\n"
    path.write_text(start + "joint = { shoulder = 0.7 }")
    with pytest.raises(rx.BadInput, match="Did you mean 'joints'"):
        read(path)
    path.write_text(start + "joints = { knee = 0.7 }")
    with pytest.raises(rx.BadInput, match="no joint 'knee'"):
        read(path)


def test_the_arm_gets_where_its_law_wants_it():
    plant, control, state, h, steps = CASES["robot-arm"].driven()
    run = rx.simulate(
        plant, rx.LieVerlet(), state, h=h, steps=steps, control=control, save_every=50
    )
    end = np.asarray(control.law.end)
    reached = [run.joints[name].angle[-1] for name in ("base", "elbow", "yaw")]
    # A law without an integral leaves what its stiffness gives way to: 0.011 rad at the elbow.
    assert np.allclose(reached, end[[0, 2, 5]], atol=0.02)
    inputs = np.abs(np.asarray(run.inputs))
    assert np.all(np.max(inputs, axis=0) <= [150.0, 150.0, 150.0, 28.0, 28.0, 28.0])


def test_a_joint_law_wants_a_plant_of_motors():
    with pytest.raises(rx.BadInput, match=r"Mechanism\.plant"):
        rx.systems.JointsTo(
            rx.systems.upright_pendulum([1.0, 2.0, 2.5], 1.0, [0.0, 0.0, 0.5]),
            [0.0],
            [1.0],
            1.0,
            1.0,
            1.0,
        )


def test_the_place_that_joints_follow_starts_and_ends_at_rest():
    plant, control, state, _, _ = CASES["robot-arm"].driven()
    law, system = control.law, plant.system
    xi = np.zeros(system.group.dim)
    # Where the arm stands at the start, nothing pulls; half way, all joints are pulled half way.
    assert np.allclose(law(state.g, xi, 0.0), 0.0, atol=1e-9)
    half = law(state.g, xi, 0.75)
    rate = 30 / 16 / 1.5 * (law.end - law.start)
    wanted = law.stiffness * (law.end - law.start) / 2 + law.damping * rate
    assert np.allclose(half, wanted, rtol=1e-9)

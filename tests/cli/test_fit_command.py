"""`retrax fit`: a record to numbers, as a table, as JSON, as a page."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import retrax as rx
from retrax.cli.main import app
from retrax.systems.catalogue import CASES

NOISE = 0.005


def _call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """Quaternions of a pendulum, with noise, as a sensor writes them."""
    system, state, _, _ = CASES["pendulum3d"].make()
    run = rx.simulate(system, "collocation-4", state, h=0.005, steps=400, save_every=10)
    noise = NOISE * np.random.default_rng(4).normal(size=(len(run.t), 3))
    so3 = rx.SO3()
    lines = ["t [ms],qw,qx,qy,qz"]
    for t, R, e in zip(run.t, np.asarray(run.g), noise, strict=True):
        q = so3.to_quaternion(so3.compose(jnp.asarray(R), so3.exp(jnp.asarray(e))), order="wxyz")
        lines.append(",".join(f"{x:.9g}" for x in (1000 * t, *np.asarray(q))))
    path = tmp_path_factory.mktemp("record") / "pendulum.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_record_becomes_a_table_a_file_and_a_page(record, tmp_path):
    page, kept = tmp_path / "fit.html", tmp_path / "fit.nc"
    result = _call(
        "fit", "pendulum3d", record, "--free", "inertia", "--noise", NOISE, "--report", page,
        "-o", kept, "--known-start",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert "inertia[0]" in result.stdout and "standard error" in result.stdout
    assert page.is_file() and kept.is_file()
    result = _call(
        "fit", "pendulum3d", record, "-f", "inertia", "--noise", NOISE, "--known-start", "--json"
    )
    found = json.loads(result.stdout)
    system, *_ = CASES["pendulum3d"].make()
    for k, true in enumerate(np.asarray(system.inertia)):
        of = found["parameters"][f"inertia[{k}]"]
        assert abs(of["value"] - true) < 4 * of["standard_error"]
    assert found["converged"] and found["undetermined"] == []


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("pendulum3d", "none.csv", "-f", "inertia"), "there is no such file"),
        (("pendulum3d", "{record}", "-f", "weight"), "there are inertia, mass, arm, gravity"),
        (("pendulum", "{record}", "-f", "inertia"), "Did you mean"),
        (("pendulum3d", "{record}"), "--free"),
        (("rod", "{record}", "-f", "length"), "write system_of"),
    ],
)
def test_what_is_wrong_is_a_sentence(record, arguments, match):
    result = _call("fit", *(x.format(record=record) for x in arguments))
    assert result.exit_code == 2, result.stdout
    assert match in " ".join(result.stderr.split())

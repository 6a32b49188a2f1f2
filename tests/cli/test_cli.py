"""Every command once, and what it says when things go wrong."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

import retrax as rx
from retrax.cli.main import app
from retrax.systems.catalogue import CASES
from retrax.systems.integrators import INTEGRATORS, TOUCHING


def _call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def _one_sentence(text):
    assert len(text.strip().splitlines()) == 1
    assert "Traceback" not in text
    return text


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A run that the command line has kept, and what it said."""
    path = tmp_path_factory.mktemp("kept") / "pendulum.nc"
    result = _call("run", "pendulum3d", "--steps", 50, "--save-every", 5, "-o", path)
    assert result.exit_code == 0, result.stderr
    return path, result.stdout


def test_list_names_everything():
    result = _call("list")
    assert result.exit_code == 0
    for name in (*CASES, *INTEGRATORS):
        assert name in result.stdout


def test_list_json_carries_the_claims():
    listed = json.loads(_call("list", "--json").stdout)
    assert set(listed["cases"]) == set(CASES)
    assert listed["cases"]["pendulum3d"]["steps"] == 600
    claims = listed["integrators"]["lie-verlet"]
    assert claims["order"] == 2
    assert set(claims["preserves"]) == rx.LieVerlet().preserves


def test_run_prints_a_summary_and_keeps_the_run(kept):
    path, said = kept
    assert "energy" in said and "spatial momentum e3" in said
    assert str(path) in said
    run = rx.load(path)
    assert len(run) == 11 and run.completed == 50
    assert run.provenance["case"] == "pendulum3d"


def test_run_json_is_one_object_and_nothing_else():
    result = _call(
        "run", "pendulum3d", "--integrator", "rkmk-2", "--h", 0.01, "--steps", 20, "--json"
    )
    assert result.exit_code == 0
    measured = json.loads(result.stdout)
    assert set(measured) == {
        "case",
        "integrator",
        "h",
        "steps",
        "seconds",
        "compile_seconds",
        "steps_per_second",
        "group_defect",
        "constraint_violation",
        "invariants",
        "energy_balance",
        "final",
    }
    assert (measured["case"], measured["integrator"]) == ("pendulum3d", "rkmk-2")
    assert (measured["h"], measured["steps"]) == (0.01, 20)
    assert measured["constraint_violation"] == 0.0
    assert set(measured["invariants"]["energy"]) == {"initial", "max_error", "drift"}
    assert measured["final"]["t"] == 0.2


@pytest.mark.parametrize("name", CASES)
def test_cases_can_start(name):
    system, state, h, steps = CASES[name].make()
    (INTEGRATORS | TOUCHING)[CASES[name].integrator].check(system)
    system.configuration_space.check("g", state.g)
    assert h > 0 and steps > 0
    assert CASES[name].length == (h, steps)


def test_report_writes_a_page_and_figures_and_says_where(kept):
    path, _ = kept
    result = _call("report", path)
    assert result.exit_code == 0, result.stderr
    page = path.with_suffix(".html")
    assert str(page) in result.stdout and page.stat().st_size > 700_000
    for name in ("overview", "invariants", "momentum-sphere"):
        figure = path.with_name(f"pendulum-{name}.png")
        assert str(figure) in result.stdout and figure.exists()


def test_report_writes_where_it_is_told(kept, tmp_path):
    result = _call("report", kept[0], "-o", tmp_path / "other.html", "--json")
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert told["page"] == str(tmp_path / "other.html") and told["completed"] == told["steps"]
    assert str(tmp_path / "other-overview.png") in told["figures"]
    assert all(Path(path).exists() for path in (told["page"], *told["figures"]))


def test_an_ensemble_has_no_page_and_the_sentence_says_why(tmp_path):
    import xarray as xr

    path = tmp_path / "many.nc"
    xr.Dataset(attrs={"format": "retrax-ensemble"}).to_netcdf(path, engine="h5netcdf")
    result = _call("report", path)
    assert result.exit_code == 2 and "a page shows a single run" in _one_sentence(result.stderr)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "heavytop"], "Did you mean 'heavy-top'?"),
        (["run", "heavytop"], "gyrostat, heavy-top, heavy-top-orbit, henon-heiles, kharlamova"),
        (["run", "pendulum3d", "--integrator", "lie-verlett"], "Did you mean 'lie-verlet'?"),
        (["run", "pendulum3d", "--h", "0"], "h = 0.0 must be a finite number"),
        (["run", "pendulum3d", "--steps", "0"], "steps = 0 must be"),
        (["run", "pendulum3d", "-o", "nowhere/run.nc"], "folder 'nowhere' does not exist"),
        (["report", "missing.nc"], "no such file"),
        (["verify", "-o", "nowhere/table.md"], "folder 'nowhere' does not exist"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(arguments, says):
    result = _call(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert says in _one_sentence(result.stderr)


def test_a_file_that_is_no_run_is_refused(tmp_path):
    path = tmp_path / "noise.nc"
    path.write_bytes(b"not a run")
    result = _call("report", path)
    assert result.exit_code == 2 and "not a readable NetCDF file" in result.stderr


def test_a_failed_run_keeps_what_was_computed(tmp_path):
    path = tmp_path / "failed.nc"
    long = ["--integrator", "cotangent-lift", "--h", 10, "--steps", 50, "--json", "-o", path]
    result = _call("run", "heavy-top", *long)
    assert result.exit_code == 1
    error = json.loads(result.stdout)["error"]
    assert error["kind"] == "StepFailed" and error["status"] == 1
    assert error["sentence"] == result.stderr.strip()
    assert "did not converge" in result.stderr and str(path) in _one_sentence(result.stderr)
    run = rx.load(path)
    assert 0 < run.completed < 50 and len(run) == run.completed + 1
    assert "The run stopped after" in _call("report", path).stdout
    page = path.with_suffix(".html").read_text(encoding="utf-8")
    assert 'role="alert"' in page and "did not converge" in page


class _Row(NamedTuple):
    integrator: str
    measured: float


class _Ledger(NamedTuple):
    passed: bool
    rows: tuple = (_Row("lie-verlet", 1.999),)

    def markdown(self):
        return "| lie-verlet | 1.999 |"

    def write(self, path):
        path.write_text(self.markdown())


@pytest.mark.parametrize(("passed", "status"), [(True, 0), (False, 1)])
def test_verify_prints_the_ledger_and_its_status_tells(monkeypatch, tmp_path, passed, status):
    measured = SimpleNamespace(verify=lambda progress: _Ledger(passed))
    monkeypatch.setitem(sys.modules, "retrax.testing.ledger", measured)
    result = _call("verify", "-o", tmp_path / "table.md")
    assert result.exit_code == status
    assert "| lie-verlet | 1.999 |" in result.stdout
    assert "1.999" in (tmp_path / "table.md").read_text()
    result = _call("verify", "--json")
    assert result.exit_code == status
    rows = [{"integrator": "lie-verlet", "measured": 1.999}]
    assert json.loads(result.stdout) == {"passed": passed, "rows": rows}


@pytest.mark.parametrize(
    "command", [[], ["list"], ["init"], ["run"], ["report"], ["reproduce"], ["verify"], ["bench"]]
)
def test_every_command_has_help_with_an_example(command):
    result = _call(*command, "--help")
    assert result.exit_code == 0 and "Example: retrax" in result.stdout


def test_list_tells_what_a_driven_case_keeps():
    told = json.loads(_call("list", "spacecraft", "--json").stdout)
    assert told["invariants"] == [f"spatial momentum e{k}" for k in (1, 2, 3)]  # not of the wheels
    assert "energy" in json.loads(_call("list", "pendulum3d", "--json").stdout)["invariants"]


@pytest.mark.parametrize(
    "how", [["-c", "from retrax.cli.main import app; app()"], ["-m", "retrax"]], ids=["app", "-m"]
)
def test_the_installed_command_runs(how):
    command = [sys.executable, *how]
    version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith("retrax ")
    wrong = subprocess.run([*command, "run", "heavytop"], capture_output=True, text=True)
    assert wrong.returncode == 2 and wrong.stdout == ""
    _one_sentence(wrong.stderr)

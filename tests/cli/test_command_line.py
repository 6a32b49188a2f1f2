"""The command line as a whole: run files, completion, tables, and how it ends."""

import json
import sys
import warnings
from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner

import retrax as rx
from retrax.cases import read
from retrax.cli import run as run_command
from retrax.cli import tables
from retrax.cli.main import app
from retrax.cli.sentences import STATUSES
from retrax.systems.catalogue import CASES

COMMANDS = [one.name or one.callback.__name__ for one in app.registered_commands]


def _call(*arguments, **env):
    return CliRunner().invoke(app, [str(x) for x in arguments], prog_name="retrax", env=env)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_init_writes_a_run_file_that_runs_as_it_stands(here):
    said = _call("init")
    assert said.exit_code == 0 and "retrax run my_case.toml" in said.stdout
    result = _call("run", "my_case.toml", "--steps", 40, "--json")
    assert result.exit_code == 0, result.stderr
    measured = json.loads(result.stdout)
    assert (measured["case"], measured["integrator"]) == ("my_case", "lie-verlet")
    assert (measured["h"], measured["steps"]) == (0.005, 40)
    assert rx.load("my_case.nc").provenance["case"] == "my_case"


def test_what_the_example_keeps_in_comments_is_true(here):
    _call("init")
    text = (here / "my_case.toml").read_text()
    for old, new in [
        ('integrator = "lie-verlet"\n', ""),
        ("# integrator = { name = \"Composition\"", "integrator = { name = \"Composition\""),
    ]:  # fmt: skip
        assert old in text
        text = text.replace(old, new)
    (here / "composed.toml").write_text(text)
    asked = read("composed.toml")
    assert asked.integrator == rx.Composition(rx.LieVerlet(rx.Exp()), order=4)
    assert asked.system.name == CASES["heavy-top"].make()[0].name
    start, end = text.index('# [system]\n# name = "Mech'), text.index("# Where it starts")
    own = text[start:end].replace("\n# ", "\n").removeprefix("# ")
    (here / "own.toml").write_text(f"h = 0.1\nsteps = 3\n{own}\n[state]\nvelocity = [1, 1, 0]")
    assert read("own.toml").method == "lagrange-d-alembert"


def test_init_writes_a_system_in_python_that_runs(here):
    assert _call("init", "body.py").exit_code == 0
    result = _call("run", "body.py:make", "--steps", 30, "--json")
    assert result.exit_code == 0, result.stderr
    measured = json.loads(result.stdout)
    assert (measured["case"], measured["steps"]) == ("body.py:make", 30)
    assert measured["invariants"]["energy"]["max_error"] < 1e-4


def test_init_does_not_write_over_a_file(here):
    (here / "mine.toml").write_text("mine")
    refused = _call("init", "mine.toml")
    assert refused.exit_code == 2 and "exists already; --force" in refused.stderr
    assert (here / "mine.toml").read_text() == "mine"
    said = json.loads(_call("init", "mine.toml", "--force", "--json").stdout)
    assert said == {"written": "mine.toml", "run": "retrax run mine.toml"}
    assert (here / "mine.toml").read_text() != "mine"
    assert "must end in .toml" in _call("init", "mine.txt").stderr
    assert "does not exist" in _call("init", "nowhere/mine.toml").stderr


def test_options_go_before_the_run_file(here):
    (here / "a.toml").write_text('case = "free-rigid-body"\nsteps = 9\noutput = "in-file.nc"')
    result = _call(
        "run", "a.toml", "--integrator", "rkmk-4", "--h", 0.02, "-o", "given.nc", "--json"
    )
    measured = json.loads(result.stdout)
    assert (measured["integrator"], measured["h"], measured["steps"]) == ("rkmk-4", 0.02, 9)
    assert (here / "given.nc").exists() and not (here / "in-file.nc").exists()


@pytest.mark.parametrize(
    ("name", "kind", "found"),
    [
        ("free-rigid-body", "case", {"system": "FreeRigidBody", "h": 0.05, "steps": 20_000}),
        ("FreeRigidBody", "system", {}),
        ("LieVerlet", "integrator", {"ready": ["lie-verlet", "lie-verlet-exp"]}),
        ("rkmk-4", "integrator", {"integrator": "RKMK('rk4')", "order": 4}),
    ],
)
def test_list_tells_all_about_one_name(name, kind, found):
    told = json.loads(_call("list", name, "--json").stdout)
    assert (told["name"], told["kind"]) == (name, kind)
    assert found.items() <= told.items()
    if kind == "case":
        assert told["parameters"] == {"inertia": [1.0, 2.0, 3.0]}
        assert told["invariants"][0] == "energy" and "lie-verlet" in told["integrators"]
        assert "kahan" not in told["integrators"]
    plain = _call("list", name)
    assert plain.exit_code == 0 and told["description"] in plain.stdout


def test_list_makes_no_system(monkeypatch):
    for name in ("heavy_top", "suslov", "gyrostat"):
        monkeypatch.setattr(f"retrax.systems.catalogue.{name}", None)
    assert all(case.length is not None for case in CASES.values())
    assert _call("list").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["rnu"], "command = 'rnu' is not known. Did you mean 'run'?"),
        (["run", "suslov", "--setps", "3"], "The option --setps is not known to `retrax run`. Did "
         "you mean '--steps'?"),
        (["--verson"], "Did you mean '--version'?"),
        (["run"], "Missing argument"),
        (["run", "suslov", "--steps", "many"], "Invalid value for '--steps'"),
        (["list", "lie-verlett"], "Did you mean 'lie-verlet'?"),
        (["run", "suslov", "--backend", "fast"], "backend = 'fast' must be one of"),
        (["run", "nothing.toml"], "nothing.toml: there is no such file."),
        (["run", "nothing.py:make"], "there is no file 'nothing.py'"),
        (["run", "suslov", "kharlamova"], "unexpected extra argument"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("as_json", [False, True])
def test_errors_are_one_sentence_and_with_json_one_object(here, arguments, says, as_json):
    result = _call(*arguments, *(["--json"] if as_json else []))
    assert result.exit_code == 2
    assert says in result.stderr and len(result.stderr.strip().splitlines()) == 1
    if not as_json:
        assert result.stdout == ""
        return
    error = json.loads(result.stdout)["error"]
    assert set(error) == {"kind", "sentence", "status"}
    assert (error["sentence"], error["status"]) == (result.stderr.strip(), 2)


def test_a_file_that_is_no_run_file_is_named(here):
    (here / "case.txt").write_text("")
    assert "run files end in .toml" in _call("run", "case.txt").stderr


@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        (KeyboardInterrupt(), 130, "Interrupted: what was not yet written is lost."),
        (PermissionError(13, "Permission denied", "top.nc"), 1, "'top.nc': Permission denied."),
        (TypeError("no\nway"), 70, "This is an error in retrax: TypeError: no way; `retrax --tr"),
        (rx.StepFailed("Step 3 did not converge."), 1, "Step 3 did not converge."),
    ],
)
def test_every_ending_has_its_sentence_and_status(monkeypatch, error, status, says):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(run_command, "simulate", fail)
    result = _call("run", "free-rigid-body", "--json")
    assert result.exit_code == status and status in STATUSES
    assert result.stderr.startswith(says) and len(result.stderr.strip().splitlines()) == 1
    assert json.loads(result.stdout)["error"]["status"] == status
    if status == 70:
        shown = _call("--traceback", "run", "free-rigid-body")
        assert shown.exception is error


def test_warnings_are_notes_on_standard_error(monkeypatch):
    def warn(*_, **__):
        warnings.simplefilter("always")
        warnings.warn("the step is long.", stacklevel=2)
        raise rx.BadInput("That is all.")

    monkeypatch.setattr(run_command, "simulate", warn)
    result = _call("run", "free-rigid-body")
    assert result.stderr == "Note: the step is long.\nThat is all.\n"


def test_help_tells_the_statuses():
    said = " ".join(_call("--help", COLUMNS="200").stdout.split())
    assert all(f"{status}: {meaning}" in said for status, meaning in STATUSES.items())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_speaks_json(command):
    assert "--json" in _call(command, "--help", COLUMNS="200").stdout


def _completed(*words):
    line = " ".join(["retrax", *words])
    result = _call(
        _RETRAX_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(len(words)),
        _TYPER_COMPLETE_ARGS=line,
    )  # fmt: skip
    return result.stdout.split()


def test_the_shell_completes_names(here):
    (here / "heavy.toml").write_text("")
    assert _completed("run", "heavy") == ["heavy-top", "heavy-top-orbit", "heavy.toml"]
    assert _completed("run", "suslov", "--integrator", "rkmk") == ["rkmk-2", "rkmk-4", "rkmk-5"]
    assert _completed("list", "compo") == ["composition-4", "composition-6", "composition-8"]
    assert "init" in _completed("in")
    assert "--install-completion" in _call("--help", COLUMNS="200").stdout


def test_verify_marks_what_does_not_hold(monkeypatch):
    rows = [["`kahan`", "2", "2.00", "yes"], ["`rkmk-4`", "4", "3.10", "order 3.1, not 4"]]
    failed = SimpleNamespace(integrator="rkmk-4", failure="order 3.1, not 4")
    ledger = SimpleNamespace(
        passed=False,
        rows=[failed],
        markdown=lambda: "| Markdown |",
        tables=lambda: [("On the top", ["integrator", "order", "measured", "claims hold"], rows)],
    )
    found = SimpleNamespace(verify=lambda progress: ledger)
    monkeypatch.setitem(sys.modules, "retrax.testing.ledger", found)
    assert _call("verify").stdout == "| Markdown |\n"
    said = _call("verify", FORCE_COLOR="1", COLUMNS="120")
    assert said.exit_code == 1 and "On the top" in said.stdout
    assert said.stdout.count("\x1b[31m") > 0 and "rkmk-4: order 3.1, not 4" in said.stdout


def test_tables_are_framed_on_a_terminal_and_plain_elsewhere(capsys, monkeypatch):
    rows = [["energy", "1.5e-10"], ["a momentum with a long name" * 4, "-2.0e-16"]]
    tables.print_table(["invariant", "error"], rows, "Kept")
    plain = capsys.readouterr().out.splitlines()
    assert plain[0] == "Kept" and plain[1].startswith("invariant")
    assert plain[3].split() == ["energy", "1.5e-10"] and plain[4].endswith("  -2.0e-16")
    monkeypatch.setenv("FORCE_COLOR", "1")
    tables.print_table(["invariant", "error"], rows, "Kept", marked=rows[1:])
    framed = capsys.readouterr().out
    assert "─" in framed and "\x1b[31m" in framed and "energy" in framed


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_says_all_that_was_written_and_gives_flags_no_type(command):
    said = _call(*command.split(), "--help", COLUMNS="300", TERM="dumb").stdout
    assert "<bool>" not in said
    group = typer.main.get_command(app)
    shown = group.commands[command] if command else group
    for option in shown.params:
        if option.help:
            assert option.help.replace("\\[", "[").split("\n")[0] in " ".join(said.split())


def test_units_in_the_help_of_fit_are_there():
    said = " ".join(_call("fit", "--help", COLUMNS="300").stdout.split())
    assert "t [ms], wx [deg/s]" in said

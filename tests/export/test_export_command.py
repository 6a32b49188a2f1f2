"""`retrax export` writes what `rx.export` writes."""

import json

from typer.testing import CliRunner

import retrax as rx
from retrax.cli.main import app
from retrax.systems.catalogue import CASES
from retrax.systems.integrators import INTEGRATORS


def told(*words):
    return CliRunner().invoke(app, ["export", *map(str, words)])


def test_a_case_is_written_as_it_is_from_python(tmp_path):
    path = tmp_path / "top.c"
    done = told("heavy-top", "-o", path)
    assert done.exit_code == 0 and "readable C99" in done.stdout
    by_command = path.read_text()
    system, state, h, _ = CASES["heavy-top"].make()
    rx.export(system, INTEGRATORS["lie-verlet"], path, state=state, h=h)
    assert by_command == path.read_text()


def test_target_integrator_and_json(tmp_path):
    path = tmp_path / "top.o"
    words = ("--target", "aarch64", "--integrator", "composition-4", "--json")
    done = told("heavy-top", "-o", path, *words)
    assert json.loads(done.stdout) == {"path": str(path), "bytes": path.stat().st_size}


def test_the_inputs_of_a_driven_case_are_part_of_its_state(tmp_path):
    assert told("spacecraft", "-o", tmp_path / "craft.c").exit_code == 0
    assert "double control[" in (tmp_path / "craft.h").read_text()


def test_a_name_that_nothing_is_written_to_is_told_in_a_sentence(tmp_path):
    done = told("heavy-top", "-o", tmp_path / "top.txt")
    assert done.exit_code == 2 and "written to .c" in done.output

"""Ctrl-C before the command can do anything: one line, status 130, no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import retrax

_SOURCES = str(Path(retrax.__file__).parents[1])


@pytest.mark.parametrize("module", ["jax", "typer"])
def test_an_interrupt_while_modules_are_imported_is_one_line(module, tmp_path):
    """A module that is interrupted at once stands in for a key that is pressed at that moment."""
    (tmp_path / f"{module}.py").write_text("raise KeyboardInterrupt")
    command = tmp_path / "retrax"
    command.write_text("from retrax.cli.main import app\napp()\n")
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{_SOURCES}"}
    ended = subprocess.run(
        [sys.executable, str(command), "list"], env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 130
    assert ended.stderr == "Interrupted while starting: nothing has been run.\n"


def test_programs_that_import_retrax_keep_their_own_hook(tmp_path):
    (tmp_path / "jax.py").write_text("raise KeyboardInterrupt")
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{_SOURCES}"}
    ended = subprocess.run(
        [sys.executable, "-c", "import retrax"], env=environment, capture_output=True, text=True
    )
    assert "Traceback" in ended.stderr and ended.returncode != 130

"""The examples run as they stand; their own asserts say what to expect."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_writes_its_page(script, tmp_path):
    page = tmp_path / "page.html"
    command = [sys.executable, str(script), str(page)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    assert page.stat().st_size > 700_000

"""The commands and run files on the pages of the documentation work as they stand."""

import re
import shlex

import pytest
from typer.testing import CliRunner

from retrax.cases import read
from retrax.cases.run_file import KEYS
from retrax.cli.main import app
from retrax.cli.sentences import STATUSES
from test_docs import PAGES, ROOT

COMMAND_LINE = ROOT / "docs" / "command-line.md"


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.M | re.S)


def _pages(language):
    pages = [page for page in PAGES if blocks(page, language)]
    return pytest.mark.parametrize("page", pages, ids=lambda p: p.relative_to(ROOT).as_posix())


@_pages("sh")
def test_the_commands_on_a_page_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for line in "".join(blocks(page, "sh")).splitlines():
        program, *arguments = shlex.split(line, comments=True) or [""]
        if program:
            assert program == "retrax", f"only commands of retrax can be run here: {line}"
            result = CliRunner().invoke(app, arguments)
            assert result.exit_code == 0, f"{line}: {result.stderr}"


@_pages("toml")
def test_the_run_files_on_a_page_can_be_made(page, tmp_path):
    for text in blocks(page, "toml"):
        (tmp_path / "run.toml").write_text(text)
        read(tmp_path / "run.toml")


def test_the_page_has_every_key_and_every_status():
    page = COMMAND_LINE.read_text()
    for key in KEYS:
        assert f"| `{key}` |" in page or f"| `[{key}]` |" in page
    for status, meaning in STATUSES.items():
        assert f"| {status} | {meaning} |" in page
    for command in app.registered_commands:
        name = command.name or command.callback.__name__
        assert f"| `retrax {name}` |" in page

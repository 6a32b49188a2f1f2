"""The page of guarantees names tests that exist, and what it says of the source is so."""

import ast
import re
import tomllib
from pathlib import Path

from tiers import named_in, seconds_listed

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "guarantees.md").read_text()
FORBIDDEN = {"pickle", "dill", "cloudpickle", "marshal", "shelve"}
# Dask's own serialisation carries the functions of a sweep to its workers, and nothing to a file.
SENT_TO_WORKERS = "sweeps/"


def test_every_test_that_the_page_names_exists():
    named = sorted(named_in(PAGE))
    assert len(named) > 20
    missing = []
    for file, test in (name.split("::") for name in named):
        source = (ROOT / file).read_text() if (ROOT / file).exists() else ""
        if not re.search(rf"^def {test}\(", source, re.M):
            missing.append(f"{file}::{test}")
    assert not missing


def promises():
    """Rows of tables, items of lists and paragraphs that name tests."""
    for block in re.split(r"\n\s*\n|\n(?=[|-] |\| )", PAGE):
        if named_in(block):
            yield block


def test_each_promise_has_a_test_in_the_first_tier():
    """One with several parameters leaves its quickest there, as `tiers.py` has it."""
    second = seconds_listed()
    left_out = []
    for block in promises():
        rest = {name for name in named_in(block) if name not in second}
        files = {file: ast.parse((ROOT / file).read_text()) for file, _, _ in map(parted, rest)}
        campaigns = {f"{file}::{test}" for file, tree in files.items() for test in marked(tree)}
        if not rest - campaigns:
            left_out.append(block[:80])
    assert not left_out


def parted(name):
    return name.partition("::")


def marked(tree):
    """The tests of a file that are campaigns by their own mark or by that of the file."""
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    whole = any(
        isinstance(node, ast.Assign)
        and "pytestmark" in ast.unparse(node.targets[0])
        and "campaign" in ast.unparse(node.value)
        for node in tree.body
    )
    return {
        node.name
        for node in tests
        if whole or any("mark.campaign" in ast.unparse(mark) for mark in node.decorator_list)
    }


def test_nothing_of_retrax_unpickles_or_evaluates():
    found = []
    for file in (ROOT / "src" / "retrax").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            called = node.func.id if isinstance(getattr(node, "func", None), ast.Name) else ""
            names = [alias.name for alias in getattr(node, "names", []) if hasattr(alias, "name")]
            names += [getattr(node, "module", None) or ""]
            parts = {part for name in names for part in name.split(".")}
            allow = any(arg.arg == "allow_pickle" for arg in getattr(node, "keywords", []))
            if called in ("eval", "exec") or parts & FORBIDDEN or allow:
                where = file.relative_to(ROOT / "src" / "retrax").as_posix()
                if not where.startswith(SENT_TO_WORKERS):
                    found.append(f"{where}:{node.lineno}")
    assert not found


def test_warnings_are_errors_in_the_tests():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]
    assert settings["ini_options"]["filterwarnings"][0] == "error"

"""The page of guarantees names tests that exist, and what it says of the source is so."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "guarantees.md").read_text()
FORBIDDEN = {"pickle", "dill", "cloudpickle", "marshal", "shelve"}
# Dask's own serialisation carries the functions of a sweep to its workers, and nothing to a file.
SENT_TO_WORKERS = "sweep/"


def test_every_test_that_the_page_names_exists():
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    assert len(named) > 20
    missing = []
    for file, test in named:
        source = (ROOT / file).read_text() if (ROOT / file).exists() else ""
        if not re.search(rf"^def {test}\(", source, re.M):
            missing.append(f"{file}::{test}")
    assert not missing


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

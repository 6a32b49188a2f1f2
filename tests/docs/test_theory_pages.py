"""The theory pages: one skeleton, every integrator once, and the numbers of the ledger."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

import retrax as rx
from retrax.integrators.base import AbstractIntegrator
from retrax.systems.integrators import TOUCHING

ROOT = Path(__file__).parents[2]
PAGES = [p for p in sorted((ROOT / "docs/theory").glob("*.md")) if p.name != "index.md"]
PARTS = [
    "The step",
    "What it keeps, and why",
    "Measured",
    "When it fails",
    "Sources and tests",
]
ASKED = re.compile(r"<!-- ledger: (.*?) -->")


def _hook(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / f"docs/hooks/{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LEDGER = _hook("ledger").ledger()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_the_five_parts_and_numbered_equations(page):
    text = page.read_text()
    assert re.findall(r"^## (.*)$", text, re.M) == PARTS
    numbers = [int(n) for n in re.findall(r"(?:\\text\{\(|\\tag\{)(\d+)", text)]
    assert numbers == list(range(1, len(numbers) + 1)) and numbers
    assert re.search(r"\[[A-Z]\w+\d{4}\]", text.split("## Sources and tests")[1])
    assert "docs/theory" not in text and page.stem in (PAGES[0].parent / "index.md").read_text()


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "docs/papers/errata.md"], ids=lambda page: page.stem
)
def test_the_tests_that_a_page_names_exist(page):
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", page.read_text())
    assert named
    for path, function in named:
        defined = {
            node.name
            for node in ast.parse((ROOT / path).read_text()).body
            if isinstance(node, ast.FunctionDef)
        }
        assert not function or function in defined, f"{path} has no {function}"


def test_every_integrator_of_the_catalogue_is_on_one_page():
    asked = [
        name.strip()
        for page in PAGES
        for match in ASKED.findall(page.read_text())
        for name in match.split(",")
    ]
    assert sorted(asked) == sorted(rx.INTEGRATORS)


@pytest.mark.parametrize("name", rx.INTEGRATORS)
def test_the_ledger_has_the_claims_of_the_class(name):
    """All rows are there, and say what the class says; the numbers are measured by other tests."""
    integrator, row = rx.INTEGRATORS[name], LEDGER[name]
    depends = type(integrator).order_on is not AbstractIntegrator.order_on
    for claimed, measured in row.orders.values():
        assert claimed == integrator.order or (depends and claimed > integrator.order)
        assert abs(measured - claimed) < 0.05
    for law in ("group", "momentum", "symplectic", "symmetric", "constraint"):
        shown = row.cells[law]
        assert (bool(shown) and not shown.startswith("(")) == (law in integrator.preserves), law
    assert row.cells["claims hold"] == "yes"


def test_claims_written_on_the_pages_are_those_of_the_classes():
    """Of methods that step one kind of system, and so are not in the ledger."""
    written = {}
    for page in PAGES:
        found = re.findall(r"^\| `(\w+\(.*?\))` \| (\d) \| (.*?) \|$", page.read_text(), re.M)
        written |= {code: (int(order), words) for code, order, words in found}
    for code, (order, words) in written.items():
        integrator = eval(code, {name: getattr(rx, name) for name in dir(rx)})
        assert (order, set(words.split(", "))) == (integrator.order, set(integrator.preserves))
    assert {repr(integrator) for integrator in TOUCHING.values()} <= set(written)
    assert any(code.startswith("Adaptive") for code in written)

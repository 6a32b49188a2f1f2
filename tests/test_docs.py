"""What the documentation says is true: its code runs, its references exist."""

import ast
import re
from pathlib import Path

import pytest

import retrax as rx

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "retrax"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
KEY = re.compile(r"\[([A-Z][A-Za-z]+\d{4})\]")


def code_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.M | re.S)


@pytest.mark.parametrize(
    "page", [p for p in PAGES if code_blocks(p)], ids=lambda p: p.relative_to(ROOT).as_posix()
)
def test_the_code_on_a_page_runs_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # One file, so that modules defined on the page are seen by the blocks after them.
    namespace = {"__name__": "page"}
    for block in code_blocks(page):
        exec(compile(block, f"<{page.name}>", "exec"), namespace)


def test_every_reference_is_in_the_bibliography():
    known = set(re.findall(r"^@\w+\{(\w+),", (SOURCE / "references.bib").read_text(), re.M))
    cited = {
        (file.name, key)
        for file in [*SOURCE.rglob("*.py"), *PAGES]
        for key in KEY.findall(file.read_text())
    }
    assert not {(name, key) for name, key in cited if key not in known}


@pytest.mark.parametrize("folder", ["groups", "integrators", "contact", "mechanisms", "systems"])
def test_concrete_groups_and_integrators_name_their_sources(folder):
    kinds = re.compile(
        "Abstract(LieGroup|Retraction|Integrator|Lifted|Rolling|StringsMethod|HamelMethod)$"
    )
    missing = []
    for file in (SOURCE / folder).rglob("*.py"):
        for node in ast.parse(file.read_text()).body:
            bases = [getattr(base, "id", "") for base in getattr(node, "bases", [])]
            if any(map(kinds.match, bases)) and not node.name.startswith("Abstract"):
                if not KEY.search(ast.get_docstring(node) or ""):
                    missing.append(f"{file.name}: {node.name}")
    assert not missing


def test_every_integrator_class_is_in_the_table():
    page = (ROOT / "docs" / "choosing-an-integrator.md").read_text()
    classes = {type(integrator).__name__ for integrator in rx.INTEGRATORS.values()}
    assert not [name for name in classes if f"| `{name}(" not in page]

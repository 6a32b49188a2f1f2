"""The reference has every public name."""

import ast
import importlib
import importlib.util
import inspect
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHOWN = [
    name
    for page in sorted((ROOT / "docs/api").glob("*.md"))
    for name in re.findall(r"^::: (\S+)$", page.read_text(), re.M)
]
MODULES = [
    "retrax",
    "retrax.analysis",
    "retrax.draw",
    "retrax.errors",
    "retrax.mechanics.solids",
    "retrax.show",
    "retrax.systems",
    "retrax.testing",
]
_SPEC = importlib.util.spec_from_file_location("names", ROOT / "docs/hooks/names.py")
assert _SPEC and _SPEC.loader
HOOK = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(HOOK)


@pytest.mark.parametrize("module", MODULES)
def test_the_names_listed_are_those_of_the_module(module):
    """The list of the reference is read off the source; here is what a user sees."""
    found = importlib.import_module(module)
    seen = {
        name
        for name, value in ((name, getattr(found, name)) for name in dir(found))
        if not name.startswith("_")
        and not inspect.ismodule(value)
        and getattr(value, "__module__", "retrax").startswith("retrax")
    }
    listed = HOOK.public_names(module)
    if module == "retrax.mechanics.solids":
        seen = {name for name in seen if listed.get(name, "").startswith(module)}
    assert seen - {"RetraxError"} == set(listed) - {"RetraxError"}


@pytest.mark.parametrize("module", MODULES)
def test_public_names_are_in_the_reference(module):
    """A page shows the folder where each is defined, and has a docstring to show."""
    missing = []
    for name, full in HOOK.public_names(module).items():
        home = full.rpartition(".")[0]
        source = (ROOT / "src" / Path(*home.split("."))).with_suffix(".py").read_text()
        shown = any(home == folder or home.startswith(folder + ".") for folder in SHOWN)
        if not shown or not _has_docstring(ast.parse(source), name):
            missing.append(full)
    assert not missing


def _has_docstring(tree: ast.Module, name: str) -> bool:
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return bool(ast.get_docstring(node))
        targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
        if any(getattr(target, "id", None) == name for target in targets):
            text = after.value if isinstance(after, ast.Expr) else None
            return isinstance(text, ast.Constant) and isinstance(text.value, str)
    return False

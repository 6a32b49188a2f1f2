"""The reference has every public name."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import retrax as rx

ROOT = Path(__file__).parents[2]
SHOWN = [
    name
    for page in sorted((ROOT / "docs/api").glob("*.md"))
    for name in re.findall(r"^::: (\S+)$", page.read_text(), re.M)
]


def public_names():
    """Names without underscore of the modules that users import, and of everything shown."""
    import retrax.errors
    import retrax.show

    modules = [rx, rx.systems, rx.analysis, rx.testing, rx.solids, retrax.errors, retrax.show]
    for module in modules:
        for name, value in vars(module).items():
            if name.startswith("_") or inspect.ismodule(value):
                continue
            if getattr(value, "__module__", "retrax").startswith("retrax"):
                yield pytest.param(module.__name__, name, id=f"{module.__name__}.{name}")


@pytest.mark.parametrize("module, name", list(public_names()))
def test_a_public_name_is_in_the_reference(module, name):
    """A page shows the folder where it is defined, and its docstring makes mkdocstrings show it."""
    home = _home(module, name)
    assert any(home == shown or home.startswith(shown + ".") for shown in SHOWN), home
    tree = ast.parse((ROOT / "src" / Path(*home.split("."))).with_suffix(".py").read_text())
    assert _has_docstring(tree, name), f"{home}.{name} has no docstring"


def _home(module: str, name: str) -> str:
    """The module whose source defines the name, found by following imports."""
    path = ROOT / "src" / Path(*module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    for node in ast.parse(source.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _home(node.module, alias.name)
    return module


def _has_docstring(tree: ast.Module, name: str) -> bool:
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return bool(ast.get_docstring(node))
        targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
        if any(getattr(target, "id", None) == name for target in targets):
            text = after.value if isinstance(after, ast.Expr) else None
            return isinstance(text, ast.Constant) and isinstance(text.value, str)
    return False

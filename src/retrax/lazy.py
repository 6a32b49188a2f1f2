"""Names of a package that are loaded when they are first used.

The stub `__init__.pyi` says where each of them is, to type checkers and to the package itself.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any


def places(init: str) -> dict[str, str]:
    """Read in the stub beside `init` which module each name comes from."""
    stub = ast.parse(Path(init).with_suffix(".pyi").read_text(encoding="utf-8"))
    return {
        alias.name: str(node.module)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def load(module: str, name: str) -> Any:
    """Return what a module calls `name`, or its submodule of that name."""
    found = vars(import_module(module))
    return found[name] if name in found else import_module(f"{module}.{name}")

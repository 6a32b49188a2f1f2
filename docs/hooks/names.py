"""Every public name with a link to where it is described; a name without one stops the build."""

import ast
from pathlib import Path

_SOURCE = Path(__file__).parents[2] / "src"
_PLACE = "<!-- public names -->"
# What users import, and how they write it.
_MODULES = {
    "retrax": "rx",
    "retrax.systems": "rx.systems",
    "retrax.analysis": "rx.analysis",
    "retrax.testing": "rx.testing",
    "retrax.mechanics.solids": "rx.solids",
    "retrax.draw": "rx.draw",
    "retrax.show": "rx.show",
    "retrax.errors": "rx",
}


def public_names(module: str) -> dict[str, str]:
    """The names of a module without underscore, and the full names under which they are defined."""
    names = {}
    for node in _body(module):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("retrax."):
            for alias in node.names:
                if alias.asname == alias.name and not _is_module(f"{node.module}.{alias.name}"):
                    names[alias.name] = _home(node.module or "", alias.name)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name[0] != "_":
            names[node.name] = f"{module}.{node.name}"
    return names


def on_page_markdown(markdown: str, **_) -> str:
    return markdown.replace(_PLACE, _lists()) if _PLACE in markdown else markdown


def _lists() -> str:
    lines = []
    for module, written in _MODULES.items():
        names = public_names(module)
        if module == "retrax.errors" or not names:
            continue
        links = [f"[`{name}`][{home}]" for name, home in sorted(names.items())]
        lines += [f"**`{written}.`** " + ", ".join(links), ""]
    return "\n".join(lines)


def _body(module: str) -> list[ast.stmt]:
    path = _SOURCE / Path(*module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    body = ast.parse(source.read_text(encoding="utf-8")).body
    # What is loaded when it is first used is imported for type checkers only, below an `if`.
    return [inner for node in body for inner in (node.body if isinstance(node, ast.If) else [node])]


def _is_module(name: str) -> bool:
    path = _SOURCE / Path(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


def _home(module: str, name: str) -> str:
    """Where a name is defined: imports are followed."""
    for node in _body(module):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _home(node.module, alias.name)
    return f"{module}.{name}"

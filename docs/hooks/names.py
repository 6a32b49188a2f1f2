"""The reference: signatures and docstrings of the names that a page lists, and a list of them all.

A page says `<!-- names: SO3 systems.Rod Trajectory.* retrax.groups.base.AbstractLieGroup.exp -->`.
A name stands for `rx.` and itself, one that begins with `retrax.` for itself; a class is followed
by the members that are named after it, or by all that have a docstring of their own for `.*`.
`<!-- returned: Fit.* -->` shows classes whose objects others make: without their signature.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

_DOCS = Path(__file__).parents[1]
_SOURCE = _DOCS.parent / "src"
_PLACE = "<!-- public names -->"
_NAMES = re.compile(r"<!-- (names|returned): (.*?) -->", re.DOTALL)
_WIDTH = 88
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


def shown_names() -> dict[str, str]:
    """Every name that a page of the reference shows, as a user writes it, and its page."""
    found = {}
    for page in sorted((_DOCS / "api").glob("*.md")):
        for _, listed in _NAMES.findall(page.read_text(encoding="utf-8")):
            for name in listed.split():
                found[written(name.removesuffix(".*"))] = page.name
    return found


def written(name: str) -> str:
    """A listed name as a user writes it."""
    return name if name.startswith("retrax.") else f"rx.{name}"


def on_page_markdown(markdown: str, page, **_) -> str:
    def entries(match: re.Match) -> str:
        try:
            made = match[1] == "names"
            return "\n\n".join(part for name in match[2].split() for part in _entry(name, made))
        except (AttributeError, ImportError, OSError) as cause:
            raise PluginError(f"{page.file.src_uri} shows what does not exist: {cause}") from cause

    markdown = _NAMES.sub(entries, markdown)
    return markdown.replace(_PLACE, _lists()) if _PLACE in markdown else markdown


def _lists() -> str:
    pages, lines = shown_names(), []
    for module in dict.fromkeys(_MODULES.values()):
        names = [name for name in pages if name.rpartition(".")[0] == module]
        links = [f"[`{n.rpartition('.')[2]}`]({pages[n]}#{n})" for n in sorted(names)]
        lines += [f"**`{module}.`** " + ", ".join(links), ""]
    return "\n".join(lines)


# One entry: a heading, how it is called, what it says of itself.


def _entry(name: str, made: bool) -> Iterator[str]:
    if name.endswith(".*"):
        owner = _found(name[:-2])
        yield from _entry(name[:-2], made)
        for member in vars(owner):
            if not member.startswith("_") and _is_described(vars(owner)[member]):
                yield from _member(owner, member, written(name[:-2]))
        return
    owner_name, _, last = name.rpartition(".")
    owner = _found(owner_name) if owner_name else None
    if inspect.isclass(owner):
        yield from _member(owner, last, written(owner_name))
        return
    value, full = _found(name), written(name)
    short = full if full.startswith("rx.") else last
    yield f"### `{short}` {{ #{full} }}"
    if made and full.startswith("retrax."):
        yield f"`from {owner_name} import {last}`"
    if made and callable(value):
        yield _code(short, _parameters(value), _returned(value))
    yield inspect.getdoc(value) if callable(value) else _text_below(name)


def _member(owner: type, member: str, full: str) -> Iterator[str]:
    raw = inspect.getattr_static(owner, member)
    function = getattr(raw, "__func__", None) or getattr(raw, "fget", None) or raw
    function = getattr(function, "func", function)  # of a cached property
    called = f"{owner.__name__}.{member}"
    yield f"#### `{called}` {{ #{full}.{member} }}"
    if inspect.isfunction(raw) or isinstance(raw, classmethod | staticmethod):
        skip = 0 if isinstance(raw, staticmethod) else 1
        yield _code(called, _parameters(function)[skip:], _returned(function))
    yield inspect.getdoc(function) or ""


def _is_described(raw: Any) -> bool:
    raw = getattr(raw, "func", raw) if not inspect.isfunction(raw) else raw
    told = inspect.isfunction(raw) or isinstance(raw, property | classmethod | staticmethod)
    return told and bool(getattr(raw, "__doc__", None))


def _found(name: str) -> Any:
    """What a listed name stands for."""
    first, *rest = name.split(".")
    if first != "retrax":
        found = import_module("retrax")
        for part in (first, *rest):
            found = getattr(found, part)
        return found
    for cut in range(len(rest), 0, -1):
        if _is_module(".".join([first, *rest[:cut]])):
            found = import_module(".".join([first, *rest[:cut]]))
            for part in rest[cut:]:
                found = getattr(found, part)
            return found
    raise ImportError(name)


def _code(called: str, parameters: list[str], returned: str) -> str:
    line = f"{called}({', '.join(parameters)}){returned}"
    if len(line) > _WIDTH:
        line = "\n".join([f"{called}(", *(f"    {p}," for p in parameters), f"){returned}"])
    return f"```py\n{line.replace('*,,', '*,')}\n```"


def _parameters(value: Any) -> list[str]:
    """The parameters, annotated as in the source, with the stars that stand between them."""
    told = _annotations(value)
    parameters, keyword_only = [], False
    for parameter in inspect.signature(value).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            keyword_only = True
        elif parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            parameters.append("*")
            keyword_only = True
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        annotation, default = told.get(parameter.name, ("", ""))
        text = star + parameter.name + (f": {annotation}" if annotation else "")
        if parameter.default is not parameter.empty:
            text += f" = {default or _shown(parameter.default)}"
        parameters.append(text)
    return parameters


def _shown(default: Any) -> str:
    text = repr(default)
    return "..." if len(text) > 40 or " at 0x" in text else text


def _annotations(value: Any) -> dict[str, tuple[str, str]]:
    """Annotation and default of each parameter, as the source writes them."""
    found: dict[str, tuple[str, str]] = {}
    for part in reversed(value.__mro__ if inspect.isclass(value) else [value]):
        if not getattr(part, "__module__", "").startswith("retrax"):
            continue
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(part)))).body
        if isinstance(node, ast.ClassDef):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    found[field.target.id] = (ast.unparse(field.annotation), "")
                elif isinstance(field, ast.FunctionDef) and field.name == "__init__":
                    found |= _arguments(field)
        elif isinstance(node, ast.FunctionDef):
            found |= _arguments(node)
    return found


def _arguments(node: ast.FunctionDef) -> dict[str, tuple[str, str]]:
    plain, named = [*node.args.posonlyargs, *node.args.args], node.args.kwonlyargs
    defaults = [None] * (len(plain) - len(node.args.defaults)) + node.args.defaults
    others = [arg for arg in (node.args.vararg, node.args.kwarg) if arg]
    pairs = [
        *zip(plain, defaults, strict=True),
        *zip(named, node.args.kw_defaults, strict=True),
        *((arg, None) for arg in others),
    ]
    return {
        arg.arg: (
            ast.unparse(arg.annotation) if arg.annotation else "",
            ast.unparse(default) if default else "",
        )
        for arg, default in pairs
    }


def _returned(value: Any) -> str:
    if inspect.isclass(value):
        return ""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(value)))).body
    assert isinstance(node, ast.FunctionDef)
    return f" -> {ast.unparse(node.returns)}" if node.returns else ""


def _text_below(name: str) -> str:
    """What stands below a value that is no class and no function."""
    module, _, last = public_names("retrax")[name].rpartition(".")
    body = _body(module)
    for node, after in pairwise(body):
        targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
        if any(getattr(target, "id", None) == last for target in targets):
            assert isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            return inspect.cleandoc(str(after.value.value))
    raise AttributeError(f"{name} has no text below it")


def _body(module: str) -> list[ast.stmt]:
    path = _SOURCE / Path(*module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if source.with_suffix(".pyi").exists():  # says where that is which is loaded when it is used
        source = source.with_suffix(".pyi")
    return ast.parse(source.read_text(encoding="utf-8")).body


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

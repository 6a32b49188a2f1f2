"""Changes of a module, put into the running program and taken out again.

A *mutant* is one small change that is made by rule; a bug of `bugs.py` is one that somebody thought
of. Both are planted in the same way.

A change inside a function replaces the code of that function wherever it is referred to; a change
of a constant of a module replaces the constant wherever it was imported. Nothing is imported twice,
so that classes stay what they are. Left alone are messages (`raise`, f-strings), annotations,
decorators, default values and docstrings: they compute nothing.
"""

import ast
import copy
import gc
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from retrax.numerics.reuse import forget

SWAPPED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}  # fmt: skip
_SKIPPED_FIELDS = {"annotation", "returns", "decorator_list", "defaults", "kw_defaults"}
_SKIPPED_NODES = (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Assert, ast.AnnAssign)
_TEXT = ("__repr__", "check", "check_membership", "refusal", "name")


class Mutant(NamedTuple):
    """One change: the module, the function or class it is in, and what it does.

    Where the same change can be made several times in one place, `which` counts them. Line numbers
    are not part of it, so that results stay valid while other code moves.
    """

    module: str
    place: str
    change: str
    which: int

    @property
    def changes_something(self) -> bool:
        """Not `x @ x` reversed."""
        before, _, after = self.change.partition(" -> ")
        return before != after


class Site(NamedTuple):
    """Where a mutant is made: its number among the changes of the module, and its line."""

    number: int
    line: int


@cache
def mutants(module: str) -> dict[Mutant, Site]:
    """Every mutant of a module, in the order of its source."""
    tree = ast.parse(source(module))
    found: dict[Mutant, Site] = {}
    for number, (node, change) in enumerate(_changes(tree)):
        before = ast.unparse(node)
        after = ast.unparse(_changed(copy.deepcopy(node), change))
        place, text = _place(tree, node), f"{before} -> {after}"
        which = sum(m.place == place and m.change == text for m in found)
        found[Mutant(module, place, text, which)] = Site(number, node.lineno)
    return found


def source(module: str) -> str:
    return Path(importlib.import_module(module).__file__ or "").read_text()


def mutated(mutant: Mutant) -> ast.Module:
    """The module of a mutant with the change in it."""
    tree = ast.parse(source(mutant.module))
    node, change = list(_changes(tree))[mutants(mutant.module)[mutant].number]
    after = _changed(copy.deepcopy(node), change)
    _replace(tree, node, ast.copy_location(after, node))
    return ast.fix_missing_locations(tree)


@contextmanager
def planted(name: str, text: str | ast.Module) -> Iterator[None]:
    """The program with another text of a module, inside a `with`; compiled programs are dropped."""
    module = importlib.import_module(name)
    file = module.__file__ or ""
    before, after = (compile(each, file, "exec") for each in (source(name), text))
    old, new = _functions(before), _functions(after)
    differing = {place: new[place] for place in old if new[place] != old[place]}
    undo = [_put(f, differing[place]) for place, f in _live(module, differing)]
    undo += [] if differing else _constants(module, after)
    try:
        forget_results()
        yield
    finally:
        for put_back in undo:
            put_back()
        forget_results()


def forget_results() -> None:
    """Drop compiled programs and tables: they know a function by its name, not by its code."""
    for name, module in list(sys.modules.items()):
        if name.startswith("retrax.") and not name.startswith("retrax.testing"):
            for value in vars(module).values():
                if hasattr(value, "cache_clear") and not isinstance(value, type):
                    value.cache_clear()
    forget()


def _changes(tree: ast.AST) -> Iterator[tuple[Any, str]]:
    """Nodes with a change that can be made to each, in the order of the source."""
    for node in _numerical(tree):
        if isinstance(node, ast.BinOp) and type(node.op) in SWAPPED:
            yield node, "swap"
            if isinstance(node.op, ast.Add | ast.Sub):
                yield node, "drop"
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield node, "reverse"
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
            yield node, "swap"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Invert | ast.Not):
            yield node, "drop sign"
        elif isinstance(node, ast.Attribute) and node.attr == "T":
            yield node, "drop transpose"
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "cross":
            yield node, "reverse arguments"
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            yield node, "constant"


def _numerical(node: ast.AST) -> Iterator[ast.AST]:
    for field, value in ast.iter_fields(node):
        if field in _SKIPPED_FIELDS:
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, _SKIPPED_NODES):
                continue
            if isinstance(child, ast.FunctionDef) and child.name in _TEXT:
                continue
            yield child
            yield from _numerical(child)


def _changed(node: Any, change: str) -> Any:
    match change:
        case "swap" if isinstance(node, ast.Compare):
            node.ops[0] = SWAPPED[type(node.ops[0])]()
        case "swap":
            node.op = SWAPPED[type(node.op)]()
        case "drop":
            return node.left
        case "reverse":
            node.left, node.right = node.right, node.left
        case "drop sign":
            return node.operand
        case "drop transpose":
            return node.value
        case "reverse arguments":
            node.args.reverse()
        case "constant" if isinstance(node.value, bool):
            node.value = not node.value
        case "constant":
            whole = isinstance(node.value, int) or node.value == 0
            node.value = node.value + 1 if whole else 1.1 * node.value
    return node


def _replace(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if value is old:
                return setattr(parent, field, new)
            if isinstance(value, list) and any(item is old for item in value):
                return setattr(parent, field, [new if item is old else item for item in value])


def _functions(code: CodeType) -> dict[str, CodeType]:
    """The code of every function of a module that is not inside another, by its full name."""
    found = {}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if inner.co_flags & 0x1:  # of a function; that of a class has no fast locals
                found[inner.co_qualname] = inner
            else:
                found |= _functions(inner)
    return found


def _live(module: ModuleType, codes: dict) -> list[tuple[str, FunctionType]]:
    """The functions of a module in this process, wherever they are kept."""
    return [
        (place, f)
        for f in gc.get_objects()
        if isinstance(f, FunctionType) and f.__code__.co_filename == module.__file__
        if (place := f.__code__.co_qualname) in codes
    ]


def _put(function: FunctionType, code: CodeType):
    old = function.__code__
    function.__code__ = code
    return lambda: setattr(function, "__code__", old)


def _place(tree: ast.AST, node: ast.AST) -> str:
    """The names of the classes and functions around a node, the outermost first."""
    around = [
        outer
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.ClassDef)
        and outer.lineno <= node.lineno <= (outer.end_lineno or 0)
    ]
    return ".".join(outer.name for outer in sorted(around, key=lambda outer: outer.lineno))


def _constants(module: ModuleType, code: CodeType) -> list:
    """Put the constants of changed module code in the place of those that differ."""
    changed = dict(module.__dict__)
    exec(code, changed)
    undo = []
    for name, value in _plain(module):
        if repr(changed[name]) != repr(value):
            for other in list(sys.modules.values()):
                if getattr(other, "__dict__", {}).get(name) is value:
                    undo.append(_set(other, name, changed[name]))
    for cls in list(vars(module).values()):
        if isinstance(cls, type) and cls.__module__ == module.__name__:
            for name, value in _plain(cls):
                after = vars(changed[cls.__name__])[name]
                if repr(after) != repr(value):
                    undo.append(_set(cls, name, after))
    return undo


def _plain(owner: Any) -> list[tuple[str, Any]]:
    """The constants of a module or class: numbers and tables of them."""
    kinds = bool | int | float | tuple | list | dict
    return [(k, v) for k, v in vars(owner).items() if isinstance(v, kinds) and k[:2] != "__"]


def _set(owner: Any, name: str, value: Any):
    old = getattr(owner, name)
    setattr(owner, name, value)
    return lambda: setattr(owner, name, old)

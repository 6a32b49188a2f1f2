"""What the code of a function reads from outside, and what of it cannot change.

`params.g` reads the attribute `g` of what `params` names, and nothing else of it; `f(params)` may
read all of it. So each read has a path of attributes, which is empty where the whole is handed on.
Python's own modules, JAX, NumPy and retrax do not change while a process runs.
"""

import dis
import sys
import sysconfig
from collections.abc import Container, Iterator
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType, NoneType
from typing import NamedTuple

_GLOBAL = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_CELL = {"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"}
_ATTRIBUTE = {"LOAD_ATTR", "LOAD_METHOD"}

# Names by which code asks what kind of a thing it has; handlers of errors; writing to outer names.
_TYPES = frozenset(
    "isinstance issubclass type hasattr isscalar __class__ weak_type Tracer eval exec "
    "is_tracer is_traced iscomplexobj isrealobj".split()
)
_BRANCHES = frozenset({"PUSH_EXC_INFO", "MATCH_CLASS", "STORE_GLOBAL", "DELETE_GLOBAL"})
_WRITES = frozenset({"STORE_DEREF", "DELETE_DEREF"})

AttributePath = tuple[str, ...]


class Reads(NamedTuple):
    """Names with the paths read from them, each in the order in which it first appears.

    `imports` are modules that are imported when the code runs, with the names taken from them; a
    relative one has the name `None`. `plain` is true where the code treats a traced number as it
    would the number: it asks for no types and catches no errors, and binds no name outside anew.
    """

    names: tuple[tuple[str, tuple[AttributePath, ...]], ...]
    cells: tuple[tuple[str, tuple[AttributePath, ...]], ...]
    imports: tuple[tuple[str | None, tuple[str, ...]], ...]
    plain: bool


@lru_cache(maxsize=4096)
def reads(code: CodeType) -> Reads:
    """Return what this code and all code nested in it reads. Cells are those it has closed over."""
    names: dict[str, dict[AttributePath, None]] = {}
    cells: dict[str, dict[AttributePath, None]] = {name: {} for name in code.co_freevars}
    imports: dict[tuple[str | None, tuple[str, ...]], None] = {}
    plain = True
    for part in _nested(code):
        instructions = [i for i in dis.get_instructions(part) if i.opname != "EXTENDED_ARG"]
        plain = plain and not _TYPES.intersection(part.co_names) and _is_plain(instructions, cells)
        for k, one in enumerate(instructions):
            if one.opname in _GLOBAL:
                names.setdefault(one.argval, {})[_path(instructions, k)] = None
            elif one.opname in _CELL and one.argval in cells:
                cells[one.argval][_path(instructions, k)] = None
            elif one.opname == "IMPORT_NAME":
                level, taken = (i.argval for i in instructions[k - 2 : k])
                imports[None if level else one.argval, tuple(taken or ())] = None
    return Reads(
        tuple((name, _shortest(paths)) for name, paths in names.items()),
        # A cell that only passes through may be read in ways that are not seen here.
        tuple((name, _shortest(paths) or ((),)) for name, paths in cells.items()),
        tuple(imports),
        plain,
    )


def _is_plain(instructions: list[dis.Instruction], cells: Container[str]) -> bool:
    """Tell whether code takes no other way with a traced number than with the number it is.

    A comparison by identity is one with `None`, or might be one with a number.
    """
    for k, one in enumerate(instructions):
        if one.opname in _BRANCHES or (one.opname in _WRITES and one.argval in cells):
            return False
        before = instructions[k - 1]
        if one.opname == "IS_OP" and not (before.opcode in dis.hasconst and before.argval is None):
            return False
    return True


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _path(instructions: list[dis.Instruction], k: int) -> AttributePath:
    """Return the attributes that are looked up, one by one, on what instruction k loads."""
    path = []
    for following in instructions[k + 1 :]:
        if following.opname not in _ATTRIBUTE:
            break
        path.append(following.argval)
    return tuple(path)


def _shortest(paths: dict[AttributePath, None]) -> tuple[AttributePath, ...]:
    """Return the paths, or the empty one alone where the whole is read anyway."""
    return ((),) if () in paths else tuple(paths)


_PYTHON = str(sysconfig.get_path("stdlib"))
_LIBRARIES = frozenset(
    "jax jaxlib numpy scipy equinox jaxtyping beartype ml_dtypes opt_einsum retrax".split()
)
# Modules of Python in which every function returns the same for the same arguments.
_PURE = frozenset(
    "__future__ _collections_abc _functools _operator _abc abc bisect builtins cmath collections "
    "contextlib copy dataclasses enum fractions functools heapq itertools logging math numbers "
    "operator re statistics string textwrap types typing warnings".split()
)
_IMPURE = frozenset({"numpy.random"})
IMPURE_BUILTINS = frozenset(
    {"open", "input", "eval", "exec", "globals", "locals", "vars", "id", "__import__", "compile"}
)


@lru_cache(maxsize=1024)
def is_own(cls: type) -> bool:
    """Tell whether a class, or one that it derives from, is the user's."""
    return not all(map(is_library_class, cls.__mro__))


def is_library_class(cls: type) -> bool:
    """Classes made by `dataclasses.make_dataclass` and the like say they were of Python's own."""
    if cls is NoneType:
        return True
    module = sys.modules.get(cls.__module__)
    if not is_library(cls.__module__, file_of(module)):
        return False
    first = cls.__qualname__.partition(".")[0]
    return cls.__module__.partition(".")[0] in _LIBRARIES or hasattr(module, first)


def is_of_library(f: FunctionType) -> bool:
    """Judge by the module it was written in; `functools.wraps` gives it the name of another."""
    return is_library(f.__globals__.get("__name__"), f.__globals__.get("__file__"))


def file_of(module: object) -> str | None:
    """Return the file of a module; those built into Python have none."""
    return getattr(module, "__file__", None)


@lru_cache(maxsize=4096)
def is_library(module: str | None, file: str | None) -> bool:
    """Tell whether this is Python's or one of the libraries that do not change.

    A module of the user's may have the name of one of Python's, but lies elsewhere.
    """
    top = (module or "").partition(".")[0]
    if top in _LIBRARIES:
        return True
    return top in sys.stdlib_module_names and (file is None or _lies_in_python(file))


def _lies_in_python(file: str) -> bool:
    return file.startswith(_PYTHON) and "-packages" not in file


def is_pure(module: ModuleType) -> bool:
    """Tell whether functions of a module depend on nothing but their arguments."""
    name = module.__name__
    return is_pure_name(name) and is_library(name, file_of(module))


@lru_cache(maxsize=4096)
def is_pure_name(name: str) -> bool:
    """Tell the same of the name of a module that is known to be of a library."""
    top = name.partition(".")[0]
    return (top in _LIBRARIES or top in _PURE) and name not in _IMPURE

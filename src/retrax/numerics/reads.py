"""What the code of a function reads from outside: globals, cells and imports, by name.

`params.g` reads the attribute `g` of what `params` names, and nothing else of it; `f(params)` may
read all of it. So each read has a path of attributes, which is empty where the whole is handed on.
"""

import dis
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import NamedTuple

_GLOBAL = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_CELL = {"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"}
_ATTRIBUTE = {"LOAD_ATTR", "LOAD_METHOD"}

Path = tuple[str, ...]


class Reads(NamedTuple):
    """Names with the paths read from them, each in the order in which it first appears.

    `imports` are modules that are imported when the code runs, with the names taken from them; a
    relative one has the name `None`.
    """

    names: tuple[tuple[str, tuple[Path, ...]], ...]
    cells: tuple[tuple[str, tuple[Path, ...]], ...]
    imports: tuple[tuple[str | None, tuple[str, ...]], ...]


@lru_cache(maxsize=4096)
def reads(code: CodeType) -> Reads:
    """What this code and all code nested in it reads. Cells are those it has closed over."""
    names: dict[str, dict[Path, None]] = {}
    cells: dict[str, dict[Path, None]] = {name: {} for name in code.co_freevars}
    imports: dict[tuple[str | None, tuple[str, ...]], None] = {}
    for part in _nested(code):
        instructions = [i for i in dis.get_instructions(part) if i.opname != "EXTENDED_ARG"]
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
    )


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _path(instructions: list[dis.Instruction], k: int) -> Path:
    """The attributes that are looked up, one after the other, on what instruction k loads."""
    path = []
    for following in instructions[k + 1 :]:
        if following.opname not in _ATTRIBUTE:
            break
        path.append(following.argval)
    return tuple(path)


def _shortest(paths: dict[Path, None]) -> tuple[Path, ...]:
    """The paths, or the empty one alone where the whole is read anyway."""
    return ((),) if () in paths else tuple(paths)

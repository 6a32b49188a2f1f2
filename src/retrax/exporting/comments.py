"""What a group of lines computes, in words, from the functions that they were traced from."""

import inspect
import re
import sys
import textwrap
from functools import lru_cache
from types import CodeType
from typing import Any

from retrax.engine.origins import Origin, Origins
from retrax.engine.program import Instruction, outputs_of

# Functions of retrax that only pass work on.
_PASSING = frozenset(
    "guarded_step next_step step_program.<locals>.step step_program.<locals>.opening _apply "
    "watch newton".split()
)
_WIDTH = 92


class Comments:
    """Says what instructions compute, once for each group of them that belongs together."""

    def __init__(self, origins: Origins):
        self._origins = origins
        self._last: str | None = None
        self.silenced = False

    def before(self, instruction: Instruction) -> list[str]:
        """Return the lines of a comment before an instruction; none if it goes on as before."""
        origin = self._origin(instruction)
        if origin is None or self.silenced:
            return []
        text = describe(origin)
        if not text or text == self._last:
            return []
        self._last = text
        return comment(text)

    def interrupt(self) -> None:
        """Begin anew: what comes next belongs to another block."""
        self._last = None

    def _origin(self, instruction: Instruction) -> Origin | None:
        found = (self._origins.of(value) for value in outputs_of(instruction))
        return next((origin for origin in found if origin is not None), None)


def comment(text: str) -> list[str]:
    """Return a comment in C, in lines of a readable length."""
    safe = text.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?").rstrip("\\")
    lines = textwrap.wrap(safe, _WIDTH - 6)
    framed = [f"/* {lines[0]}", *(f" * {line}" for line in lines[1:])]
    framed[-1] += " */"
    return framed


def describe(origin: Origin) -> str:
    """Say which function computes something, where it is called, and what it is for."""
    told = [code for code in origin.functions if not {code.co_name, code.co_qualname} & _PASSING]
    if not told:
        return ""
    name = _name(told[0])
    sentence = _sentence(told[0])
    outer = next((_name(code) for code in told[1:] if _name(code) != name), "")
    where = f"{name}, in {outer}" if outer else name
    change = "; with its derivative" if origin.derived else ""
    return f"{where}{change}{f': {sentence}' if sentence else ''}"


def _name(code: CodeType) -> str:
    """Name a function as people do: without the place where it is hidden."""
    name = code.co_qualname.replace(".<locals>", "").removeprefix("_").replace("._", ".")
    return name.replace("<lambda>", "a function").replace("AbstractGroupSystem.", "")


@lru_cache(maxsize=1024)
def _sentence(code: CodeType) -> str:
    """Return the first line of what a function says about itself, or that its base class says."""
    text = inspect.getdoc(_function(code)) or ""
    if not text and code.co_consts and isinstance(code.co_consts[0], str):
        text = code.co_consts[0] if "\n" in code.co_consts[0] or " " in code.co_consts[0] else ""
    line = text.strip().split("\n")[0].strip()
    plain = line.replace("$", "").replace("`", "").replace("\\hat", "").replace("\\dot", "d/dt ")
    plain = plain.removeprefix("Return ").replace("\\partial\\", "d\\").replace("\\partial ", "d")
    plain = re.sub(r"\\(?:mathrm|mathfrak|mathbb)\s*\{?(\w+)\}?", r"\1", plain)
    return re.sub(r"\\[,;!]", " ", plain).replace("\\", "").rstrip(":,")


def _function(code: CodeType) -> Any:
    """Return the function or method that a code belongs to, if its module knows it by name."""
    modules = [m for m in list(sys.modules.values()) if _file(m) == code.co_filename]
    found: Any = modules[0] if modules else None
    for part in code.co_qualname.split("."):
        found = getattr(found, part, None)
    return found


def _file(module: Any) -> str | None:
    try:
        return module.__file__
    except AttributeError:
        return None

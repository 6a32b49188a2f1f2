"""Check shapes and types at run time, everywhere but at the doors of retrax.

A door is what a user calls by a public name: a function that a public package exports, or the
constructor or a class method of a class that it exports. A door has real types for editors and
checks its own arguments, so that a wrong one is rejected in the language of mechanics and not by a
type checker.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from beartype import beartype

SOURCE = Path(__file__).parents[1] / "src" / "retrax"
_EXPORT = re.compile(r"^ *from (retrax[\w.]*) import (\w+) as \2$", re.MULTILINE)
# What a user calls on an object: checked there, as at a constructor.
_METHODS = {
    "__init__", "__call__", "state", "step", "reset", "at", "along", "plot", "report", "animate",
    "movie", "sound", "energy", "invariants", "velocity_at", "with_force",
}  # fmt: skip


def _exports() -> set[tuple[str, str]]:
    """The module and the name of everything that a public package exports."""
    packages = (SOURCE, *(SOURCE / name for name in ("systems", "testing", "analysis", "show")))
    files = (file for package in packages for file in package.glob("__init__.py*"))
    texts = (file.read_text() for file in files)
    return {pair for text in texts for pair in _EXPORT.findall(text)}


# How a run is shown: methods of a class that `Trajectory` is made of, and what they call.
_SHOWING = {
    ("retrax.trajectory.shown", "AbstractShown"),
    ("retrax.trajectory.observe", "along"),
    ("retrax.show.movie", "write_movie"),
    ("retrax.show.sound", "write_sound"),
    ("retrax.show.sound", "_values"),
}
# What is asked of every system.
_ASKED = {
    ("retrax.mechanics.system", "AbstractGroupSystem"),
    ("retrax.mechanics.flow", "AbstractSpaceFlow"),
}
DOORS = _exports() | _SHOWING | _ASKED


def check(function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """Check the arguments of a function by its annotations, unless it is a door."""
    owner, _, method = getattr(function, "__qualname__", "").partition(".")
    exported = (getattr(function, "__module__", ""), owner) in DOORS
    called_by_users = not method or method in _METHODS or _of_class(function)
    if exported and called_by_users and not isinstance(function, type):
        return function
    return beartype(function, *args, **keywords)


def _of_class(function: Callable[..., Any]) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and code.co_varnames[:1] == ("cls",)

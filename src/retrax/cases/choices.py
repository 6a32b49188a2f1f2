"""Names that a user types, looked up with patience."""

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

from retrax.errors import BadInput

Value = TypeVar("Value")


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like `name`, capitals apart; `None` where none does."""
    folded = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.5)
    return folded[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question to add to a sentence about an unknown name; empty where nothing is close."""
    found = closest(name, known)
    return f" Did you mean {found!r}?" if found else ""


def choose(kind: str, name: str, choices: Mapping[str, Value]) -> Value:
    """The choice called `name`; otherwise a sentence with the closest name and all names."""
    if name in choices:
        return choices[name]
    raise BadInput(
        f"{kind} = {name!r} is not known.{did_you_mean(name, choices)} The choices are "
        f"{', '.join(sorted(choices))}."
    )

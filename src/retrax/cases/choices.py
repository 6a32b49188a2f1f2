"""Names that a user types, looked up with patience."""

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

from retrax.errors import BadInput

Value = TypeVar("Value")
# More choices than this are not listed where one of them is close.
_MANY = 50


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like `name`, capitals apart; `None` where none does."""
    folded = {one.lower().strip("-"): one for one in known}
    found = difflib.get_close_matches(name.lower().strip("-"), folded, n=1)
    return folded[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question to add to a sentence about an unknown name; empty where nothing is close."""
    found = closest(name, known)
    return f" Did you mean {found!r}?" if found else ""


def choose(kind: str, name: str, choices: Mapping[str, Value]) -> Value:
    """The choice called `name`; otherwise a sentence with the closest name and all names.

    Of many names only the closest.
    """
    if name in choices:
        return choices[name]
    meant = did_you_mean(name, choices)
    listed = f" The choices are {', '.join(sorted(choices))}."
    raise BadInput(
        f"{kind} = {name!r} is not known.{meant}{'' if meant and len(choices) > _MANY else listed}"
    )

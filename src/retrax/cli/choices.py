"""Names that a user types, looked up with patience."""

import difflib
from collections.abc import Mapping
from typing import TypeVar

from retrax.errors import BadInput

Value = TypeVar("Value")


def choose(kind: str, name: str, choices: Mapping[str, Value]) -> Value:
    """The choice called `name`; otherwise a sentence with the closest name and all names."""
    if name in choices:
        return choices[name]
    close = difflib.get_close_matches(name, choices, n=1, cutoff=0.5)
    meant = f" Did you mean {close[0]!r}?" if close else ""
    raise BadInput(
        f"{kind} = {name!r} is not known.{meant} The choices are {', '.join(sorted(choices))}."
    )

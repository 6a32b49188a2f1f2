"""Names in C for the numbers of a system and of a state, from the names of their fields."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from jax.tree_util import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey

_RESERVED = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while main info own work p s h t k y0 y1 j0 j1 gamma".split()
)
# Parts of a path that say nothing: arguments of a partial function, and its wrapper.
_SILENT = frozenset({"args", "function"})


def identifier(text: str) -> str:
    """Turn a text into a name in C."""
    plain = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
    if not plain or plain[0].isdigit():
        plain = f"x_{plain}" if plain else "x"
    return f"{plain}_" if plain in _RESERVED else plain


def field_name(path: Sequence[Any]) -> str:
    """Name a leaf of a pytree by the way to it: `.potential.args[0]` is `potential_0`."""
    parts = []
    for key in path:
        match key:
            case GetAttrKey(name) if name.startswith("."):  # of a module, which is the function
                while parts and parts[-1].isdigit():
                    parts.pop()
                parts.append(name[1:])
            case GetAttrKey(name) if name not in _SILENT:
                parts.append(name)
            case SequenceKey(index):
                parts.append(str(index))
            case DictKey(name) | FlattenedIndexKey(name):
                parts.append(str(name))
    return identifier("_".join(parts).lstrip("_"))


def distinct(names: Iterable[str]) -> list[str]:
    """Give those that are the same a number each."""
    found: list[str] = []
    for name in names:
        fresh, k = name, 2
        while fresh in found:
            fresh, k = f"{name}_{k}", k + 1
        found.append(fresh)
    return found

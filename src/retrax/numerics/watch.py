"""See quickly whether anything has changed that the functions of a structure read.

Of a system most is settled when it is made: its classes are retrax's, its fields are numbers, texts
and tuples of them. What may change are the user's own functions, objects and classes, and lists and
dictionaries. `Watch` finds those once, and then looks at nothing else.
"""

import types
from collections import deque
from collections.abc import Sequence
from typing import Any, TypeVar

import jax
import numpy as np
from jax.tree_util import Partial

from retrax.numerics.fingerprint import Content, content
from retrax.numerics.modules import Held
from retrax.numerics.reads import is_of_library, is_own
from retrax.numerics.walk import MARKERS

_SETTLED = (bool, int, float, complex, str, bytes, type(None))
T = TypeVar("T")


def is_open(parts: Any) -> bool:
    """Tell whether the user may write into what they put into a pytree.

    Those are lists and dictionaries, pytrees of classes of their own, and arrays of NumPy beside a
    function of theirs.
    """
    found = [x for x in jax.tree.leaves(parts, is_leaf=_is_of_user) if _is_of_user(x)]
    return any(
        is_open(x.function)
        if isinstance(x, Held)
        else not isinstance(x, Partial) or _is_open_beside(x)
        for x in found
    )


def _is_of_user(x: Any) -> bool:
    return isinstance(x, Partial | Held | list | dict | deque) or is_own(type(x))


def _is_open_beside(function: Partial) -> bool:
    beside = (*function.args, *function.keywords.values())
    return (
        bool(function.keywords)
        or is_open(beside)
        or any(isinstance(x, np.ndarray) for x in jax.tree.leaves(beside))
    )


def copy_parts(parts: T) -> T:
    """Return a copy of a pytree, into which nobody else writes."""
    return jax.tree.map(lambda x: x.copy() if isinstance(x, np.ndarray) else x, parts)


class Watch:
    """What may change in structures of pytrees."""

    def __init__(self, structures: Sequence[Any]):
        self._found: list[Any] = []
        for tree in structures:
            self._look(tree)

    def _look(self, tree: Any) -> None:
        node = tree.node_data()
        if node is None:
            return
        kind, static = node
        # The names in a dictionary of the structure are a list that belongs to it.
        for x in static if type(static) is tuple or kind is dict else (static,):
            if not _is_settled(x):
                self._found.append(x)
        for child in tree.children():
            self._look(child)
        if is_own(kind):
            self._found.append(kind)

    def content(self) -> Content:
        """Return what may change as it is now."""
        return content(*self._found)


def _is_settled(x: Any) -> bool:
    """Tell whether `x` consists of what no one can change."""
    if type(x) in _SETTLED or type(x) in MARKERS:
        return True
    if type(x) in (tuple, frozenset):
        return all(map(_is_settled, x))
    if isinstance(x, type):
        return not is_own(x)
    if isinstance(x, types.FunctionType):
        plain = not x.__closure__ and not x.__defaults__ and not x.__kwdefaults__
        return plain and is_of_library(x)
    return False

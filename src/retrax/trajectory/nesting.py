"""Nested tuples of arrays as numbered leaves, for files that know arrays only."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from retrax.numerics.checks import shown

# No configuration has more parts.
_MOST = 100_000


def flattened(g: Any, first: int = 0) -> tuple[list[np.ndarray], Any]:
    """The leaves of nested tuples, and the same nesting with their numbers in place."""
    if not isinstance(g, tuple):
        return [np.asarray(g)], first
    leaves: list[np.ndarray] = []
    structure = []
    for part in g:
        inner, numbered = flattened(part, first + len(leaves))
        leaves += inner
        structure.append(numbered)
    return leaves, structure


def read_nesting(text: Any) -> Any:
    """The nesting of a configuration as a file tells it in JSON.

    **Raises:** `ValueError` unless it is lists in lists of the numbers from 0 on, in order.
    """
    try:
        structure = json.loads(text)
        found = list(_numbers(structure))
    except (TypeError, ValueError, RecursionError):
        found = []
    if not 0 < len(found) <= _MOST or found != list(range(len(found))):
        raise ValueError(f"configuration = {shown(text)} is none")
    return structure


def _numbers(structure: Any) -> Iterator[int]:
    if isinstance(structure, list):
        for part in structure:
            yield from _numbers(part)
    elif type(structure) is int:
        yield structure
    else:
        raise ValueError


def unflattened(structure: Any, leaf: Callable[[int], Any]) -> Any:
    """The nested tuples again."""
    if isinstance(structure, int):
        return leaf(structure)
    return tuple(unflattened(part, leaf) for part in structure)

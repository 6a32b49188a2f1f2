"""Nested tuples of arrays as numbered leaves, for files that know arrays only."""

from collections.abc import Callable
from typing import Any

import numpy as np


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


def unflattened(structure: Any, leaf: Callable[[int], Any]) -> Any:
    """The nested tuples again."""
    if isinstance(structure, int):
        return leaf(structure)
    return tuple(unflattened(part, leaf) for part in structure)

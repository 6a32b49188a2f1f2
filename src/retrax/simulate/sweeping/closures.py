"""Functions whose numbers are parameters: what a closure holds, taken out of it.

`potential=lambda R: -mass * R[2, 2]` is a new function for every mass. Taken apart it is the same
code each time with another number, so that bodies made so are of one kind and share one program.
"""

from types import CellType, FunctionType
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.tree_util import Partial


def opened(tree: Any) -> Any:
    """A system whose functions hold the numbers of their closures as arrays of the pytree."""
    return jax.tree.map(_opened, tree, is_leaf=lambda x: isinstance(x, Partial))


def _opened(x: Any) -> Any:
    if not isinstance(x, Partial):
        return x
    arguments, keywords = opened(x.args), opened(x.keywords)
    if not isinstance(x.func, FunctionType):
        return Partial(x.func, *arguments, **keywords)
    function = _taken_apart(x.func)
    return Partial(function.func, *function.args, *arguments, **keywords)


def _taken_apart(function: FunctionType) -> Partial:
    """The code of a function, and the numbers it has closed over as its first argument."""
    held = (
        tuple(_within(cell, function) for cell in function.__closure__ or ()),
        opened(function.__defaults__),
        opened(function.__kwdefaults__),
    )
    leaves, _ = jax.tree.flatten(held)
    numbers = tuple(x if _is_number(x) else None for x in leaves)
    return Partial(
        Code(function, jax.tree.map(lambda x: 0.0 if _is_number(x) else x, held)), numbers
    )


def _within(cell: CellType, function: FunctionType) -> Any:
    """What a cell holds; a function in it is taken apart too, unless it is the one around it."""
    try:
        content = cell.cell_contents
    except ValueError:  # a name that has not been given a value
        return None
    if isinstance(content, FunctionType) and content is not function:
        return _taken_apart(content)
    return opened(content)


def _is_number(x: Any) -> bool:
    """Whether this may differ between members; whole numbers in Python are counts, and may not."""
    if isinstance(x, float | np.floating | np.integer | Tracer):
        return True
    return isinstance(x, np.ndarray | jax.Array) and x.dtype.kind == "f"


def _refilled(function: FunctionType, held: tuple) -> FunctionType:
    """The function with other cells, and other values for arguments that are left out."""
    contents, defaults, keywords = held
    cells = tuple(CellType(content) for content in contents)
    made = FunctionType(
        function.__code__, function.__globals__, function.__name__, defaults, cells or None
    )
    made.__kwdefaults__ = keywords
    made.__module__, made.__qualname__ = function.__module__, function.__qualname__
    return made


class Code:
    """A function that is given the numbers it has closed over at every call. Equal code is equal.

    `held` is what it has closed over, with zeros for the numbers.
    """

    def __init__(self, function: FunctionType, held: tuple):
        bare = held == ((), None, None)
        self.function = function if bare else _refilled(function, held)
        self.held = held

    def __call__(self, numbers: tuple, *arguments: Any, **keywords: Any) -> Any:
        if not numbers:
            return self.function(*arguments, **keywords)
        leaves, structure = jax.tree.flatten(self.held)
        leaves = [f if n is None else n for n, f in zip(numbers, leaves, strict=True)]
        held = jax.tree.unflatten(structure, leaves)
        return _refilled(self.function, held)(*arguments, **keywords)

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Code) or self.function.__code__ != other.function.__code__:
            return False
        ours, theirs = jax.tree.flatten(self.held), jax.tree.flatten(other.held)
        return (
            self.function.__globals__ is other.function.__globals__
            and ours[1] == theirs[1]
            and all(map(_same, ours[0], theirs[0]))
        )

    def __hash__(self) -> int:
        return hash(self.function.__code__)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray | jax.Array) or isinstance(b, np.ndarray | jax.Array):
        return np.array_equal(a, b)
    return a is b or (type(a) is type(b) and bool(a == b))

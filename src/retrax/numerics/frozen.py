"""Frozen values: pytrees whose methods cost no more than Python's, and one line about each."""

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PyTree

from retrax.numerics.checks import is_traced
from retrax.numerics.meant import reject_unknown

# A line of HTML tells only the shape of larger arrays; a text leaves out their middle.
_SHOWN_ENTRIES, _FULL_ENTRIES = 9, 12


class _Explained(type(eqx.Module)):
    """The class of classes that say what was meant by a keyword that they do not have."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except TypeError as cause:
            reject_unknown(cls, kwargs, cause)


class Frozen(eqx.Module, metaclass=_Explained):
    """An `equinox.Module` with plain bound methods.

    `equinox` makes a pytree of every bound method, each time one is looked up: fifty microseconds,
    where a whole run of one step takes a hundred. To pass a method through `jax.jit` with the
    arrays of its object as arguments, write `jax.tree_util.Partial(type(x).method, x)`.
    """

    if not TYPE_CHECKING:
        __getattribute__ = object.__getattribute__


def one_line(title: str, facts: Mapping[str, object]) -> str:
    """Return one line of HTML for notebooks: `title` in bold, then the facts, all escaped."""
    told = "; ".join(f"{escape(key)} {escape(_text(value))}" for key, value in facts.items())
    return f"<div><strong>{escape(title)}</strong>{': ' if told else ''}{told}</div>"


def _text(value: object) -> str:
    if not isinstance(value, jax.Array | np.ndarray):
        return f"{value}"
    if is_traced(value) or value.size > _SHOWN_ENTRIES:
        return f"of shape {value.shape}"
    return f"{np.asarray(value).tolist()}"


def numbers_of(tree: PyTree) -> str:
    """Return the numbers of a pytree in one line, long arrays without their middle.

    Traced arrays and arrays without numbers appear as type and shape: `float64[3, 3]`.
    """
    if isinstance(tree, tuple):
        return "(" + ", ".join(map(numbers_of, tree)) + (",)" if len(tree) == 1 else ")")
    if isinstance(tree, list):
        return "[" + ", ".join(map(numbers_of, tree)) + "]"
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key!r}: {numbers_of(x)}" for key, x in tree.items()) + "}"
    if is_traced(tree) or isinstance(tree, jax.ShapeDtypeStruct):
        return f"{tree.dtype}{list(tree.shape)}"
    if not isinstance(tree, jax.Array | np.ndarray | np.generic | int | float):
        return repr(tree)
    array = np.asarray(tree)
    text = np.array2string(
        array,
        separator=", ",
        threshold=_FULL_ENTRIES,
        edgeitems=3 if array.ndim == 1 else 1,
        formatter={"float": lambda x: f"{x:.6g}"},
    )
    return " ".join(text.split()).replace("[ ", "[")

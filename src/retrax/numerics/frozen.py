"""Frozen values: pytrees whose methods cost no more than Python's, and one line about each."""

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import numpy as np

from retrax.numerics.checks import is_traced


class Frozen(eqx.Module):
    """An `equinox.Module` with plain bound methods.

    `equinox` makes a pytree of every bound method, each time one is looked up: fifty microseconds,
    where a whole run of one step takes a hundred. To pass a method through `jax.jit` with the
    arrays of its object as arguments, write `jax.tree_util.Partial(type(x).method, x)`.
    """

    if not TYPE_CHECKING:
        __getattribute__ = object.__getattribute__


# Of larger arrays only the shape is told.
_SHOWN_ENTRIES = 9


def one_line(title: str, facts: Mapping[str, Any]) -> str:
    """`title` in bold and the facts behind it, everything escaped."""
    told = "; ".join(f"{escape(key)} {escape(_text(value))}" for key, value in facts.items())
    return f"<div><strong>{escape(title)}</strong>{': ' if told else ''}{told}</div>"


def _text(value: Any) -> str:
    if not isinstance(value, jax.Array | np.ndarray):
        return f"{value}"
    if is_traced(value) or value.size > _SHOWN_ENTRIES:
        return f"of shape {value.shape}"
    return f"{np.asarray(value).tolist()}"

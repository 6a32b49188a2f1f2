"""One line of HTML about an object: what notebooks show of systems and integrators."""

from collections.abc import Mapping
from html import escape
from typing import Any

import jax
import numpy as np

from retrax.numerics.checks import is_traced

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

"""Checks of values at the door, on the host; a traced value cannot be checked and passes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from retrax.errors import BadInput


def is_traced(*values: Any) -> bool:
    """Whether any leaf of any of the pytrees `values` is being traced by JAX."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(values))


def shape_and_dtype(x: Any) -> tuple[tuple[int, ...], Any]:
    """What a compiled program depends on, of an array or a number."""
    return np.shape(x), x.dtype if hasattr(x, "dtype") else jnp.result_type(x)


def require_float64(name: str, x: Any) -> None:
    """Raise `BadInput` unless every leaf of `x` is a float64 array or scalar."""
    for leaf in jax.tree.leaves(x):
        _, dtype = shape_and_dtype(leaf)
        if dtype != np.float64:
            raise BadInput(f"{name} has dtype {dtype}, but retrax computes in float64.")


def require_shape(name: str, x: Any, shape: tuple[int, ...]) -> None:
    """Raise `BadInput` unless `x` has the shape `shape`."""
    if np.shape(x) != tuple(shape):
        raise BadInput(f"{name} has shape {np.shape(x)}, but must have shape {tuple(shape)}.")


def require_finite(name: str, x: Any) -> None:
    """Raise `BadInput` if a leaf of `x` has an entry that is not a finite number."""
    leaves = jax.tree.leaves(x)
    if any(isinstance(leaf, Tracer) for leaf in leaves):
        return
    for leaf in leaves:
        values = np.asarray(leaf)
        if not np.isfinite(values).all():
            values = np.atleast_1d(values)
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
            raise BadInput(
                f"{name} must be finite, but its entry {list(where)} is {values[where]}."
            )

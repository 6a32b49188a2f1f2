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


def require_float64(name: str, x: Any) -> None:
    """Raise `BadInput` unless every leaf of `x` is a float64 array or scalar."""
    for leaf in jax.tree.leaves(x):
        dtype = jnp.result_type(leaf)
        if dtype != jnp.float64:
            raise BadInput(f"{name} has dtype {dtype}, but retrax computes in float64.")


def require_shape(name: str, x: Any, shape: tuple[int, ...]) -> None:
    """Raise `BadInput` unless `x` has the shape `shape`."""
    if jnp.shape(x) != tuple(shape):
        raise BadInput(f"{name} has shape {jnp.shape(x)}, but must have shape {tuple(shape)}.")


def require_finite(name: str, x: Any) -> None:
    """Raise `BadInput` if a leaf of `x` has an entry that is not a finite number."""
    if is_traced(x):
        return
    for leaf in jax.tree.leaves(x):
        values = np.atleast_1d(np.asarray(leaf))
        wrong = np.argwhere(~np.isfinite(values))
        if len(wrong):
            where = tuple(int(i) for i in wrong[0])
            raise BadInput(
                f"{name} must be finite, but its entry {list(where)} is {values[where]}."
            )

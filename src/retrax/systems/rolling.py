"""Checks of numbers that rolling and sliding bodies are made of."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import is_traced, require_finite, require_shape
from retrax.numerics.precision import float64


def number(name: str, value: ArrayLike) -> Float[Array, ""]:
    """One finite number."""
    array = float64(name, value)
    require_shape(name, array, ())
    require_finite(name, array)
    return array


def positive(name: str, value: ArrayLike) -> Float[Array, ""]:
    """One number above zero."""
    array = number(name, value)
    if not is_traced(array) and not float(np.asarray(array)) > 0:
        raise BadInput(f"{name} = {value} must be positive.")
    return array


def stacked(rows: list[list]) -> Float[Array, "m n"]:
    """A matrix from entries, some of them numbers, some arrays."""
    return jnp.stack([jnp.stack([jnp.asarray(x, jnp.float64) for x in row]) for row in rows])

"""What the makers of rods are given, checked; and the masses of the nodes."""

import numbers
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import is_traced, require_finite, require_shape
from retrax.numerics.precision import float64

ENDS = ("free", "pinned", "clamped")


def count(name: str, value: Any) -> int:
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)
    if not whole or value < 2:
        raise BadInput(f"{name} = {value!r} must be a whole number of at least 2.")
    return int(value)


def choice(name: str, value: Any, words: tuple[str, ...]) -> str:
    if value not in words:
        raise BadInput(f"{name} has {value!r}, but must be one of {', '.join(words)}.")
    return value


def vector(name: str, value: ArrayLike) -> Float[Array, "3"]:
    array = float64(name, value)
    require_shape(name, array, (3,))
    require_finite(name, array)
    return array


def positive(name: str, value: ArrayLike, shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
    array = float64(name, value)
    require_shape(name, array, shape)
    require_finite(name, array)
    if not is_traced(array) and not np.all(np.asarray(array) > 0):
        raise BadInput(f"{name} = {np.asarray(array).tolist()} must be positive.")
    return array


def masses(
    elements: int, ends: tuple[str, str], mass: Float[Array, ""], moments: Float[Array, "3"]
) -> tuple[Float[Array, " dim"], Float[Array, " dim"]]:
    """Moments and masses of all nodes, half at the ends; and their inverses, 0 where held."""
    share = np.ones(elements + 1)
    share[[0, -1]] = 0.5
    turns, moves = np.ones(elements + 1), np.ones(elements + 1)
    for place, end in zip((0, -1), ends, strict=True):
        turns[place] = end != "clamped"
        moves[place] = end == "free"
    one = jnp.concatenate([moments, jnp.stack([mass] * 3)])
    inertia = jnp.outer(jnp.asarray(share), one).reshape(-1)
    mask = np.stack([turns] * 3 + [moves] * 3, axis=1)
    return inertia, jnp.asarray(mask.ravel()) / inertia

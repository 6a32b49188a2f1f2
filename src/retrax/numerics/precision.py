"""Double precision, always."""

import numbers
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.numerics.checks import (
    is_traced,
    require_above_zero,
    require_finite,
    require_shape,
    shown,
)


def require_double_precision() -> None:
    """Refuse to compute in float32: round-off would hide every structure that is preserved."""
    if not jax.config.read("jax_enable_x64"):
        raise BadInput(
            "jax_enable_x64 = False: something switched JAX to float32 after `import retrax`, but "
            'retrax computes in float64; put back jax.config.update("jax_enable_x64", True).'
        )


def float64(name: str, value: Any) -> Float[Array, "..."]:
    """`value`, called `name` in the sentence that refuses it, as a float64 array of its own.

    Copied on the host and moved as it is: `jnp.asarray` compiles a program for every shape.
    """
    if is_traced(value):
        return jnp.asarray(value)
    host = host_float64(name, value)
    with jax.ensure_compile_time_eval():  # plain numbers are known also where a program is traced
        return jax.device_put(host)


def host_float64(name: str, value: Any) -> Float[np.ndarray, "..."]:
    """`float64`, on the host: numbers of any real kind, but no text, truth values or gaps."""
    try:
        given = np.asarray(value)
        real = given.dtype.kind in "iuf" or (given.dtype.kind == "O" and _all_real(given))
        if real and not np.ma.is_masked(value):
            return np.array(given, dtype=np.float64)
        cause = None
    except Exception as error:  # whatever `__array__` and `__len__` of a foreign object raise
        cause = error
    raise BadInput(f"{name} = {shown(value)} must be an array of real numbers.") from cause


def finite64(name: str, value: Any, shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
    """`float64`, for numbers that must be finite and of one shape."""
    array = float64(name, value)
    require_shape(name, array, shape)
    require_finite(name, array)
    return array


def positive64(name: str, value: Any, shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
    """`finite64`, for numbers that must be above zero."""
    array = finite64(name, value, shape)
    require_above_zero(name, array)
    return array


def _all_real(entries: np.ndarray) -> bool:
    kinds = numbers.Real | np.ndarray | jax.Array
    return all(isinstance(x, kinds) and not isinstance(x, bool) for x in entries.flat)

"""Keys of random numbers, their words and truths as float64, which is what steps carry.

A word of 32 bits is exact as a float of 64.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.numerics.checks import float64, is_traced

# What an array is: "float64", "bool", "uint32", or how keys are made.
LeafType = Any


def is_key(x: object) -> bool:
    return isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def is_real_number(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


def leaf_type(x: Any) -> LeafType:
    """Return what an array is to be when it is no longer carried."""
    if is_key(x):
        return jax.random.key_impl(x)
    try:
        dtype = x.dtype if isinstance(x, jax.Array) else np.asarray(x).dtype
    except Exception:  # `as_floats` rejects it, in a sentence
        return "float64"
    return str(dtype) if dtype in (np.uint32, np.bool_) else "float64"


def as_floats(name: str, x: Any) -> Float[Array, "..."]:
    """Return an array as float64, keys as their words along a last axis."""
    if is_traced(x):
        return (jax.random.key_data(x) if is_key(x) else jnp.asarray(x)).astype(jnp.float64)
    if is_key(x):
        with jax.ensure_compile_time_eval():
            return float64(name, np.asarray(jax.random.key_data(x)))
    return float64(name, np.asarray(x, np.uint32) if leaf_type(x) == "bool" else x)


def of_type(x: Float[Array, "..."], kind: LeafType) -> Array:
    """Return an array as what it was before it became float64."""
    if kind == "float64":
        return jnp.asarray(x)
    if kind in ("uint32", "bool"):
        return jnp.asarray(x).astype(kind)
    return jax.random.wrap_key_data(jnp.asarray(x).astype(jnp.uint32), impl=kind)

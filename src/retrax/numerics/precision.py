"""Double precision, always."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.numerics.checks import is_traced


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
    try:
        return jax.device_put(np.array(value, dtype=np.float64))
    except (TypeError, ValueError) as cause:
        raise BadInput(f"{name} = {value!r} must be an array of real numbers.") from cause

"""The cross product of R^3, in components."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def cross(a: Float[Array, "3"], b: Float[Array, "3"]) -> Float[Array, "3"]:
    """a x b, as six products: `jnp.cross` moves axes about and handles cases not needed here."""
    return jnp.stack(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    )

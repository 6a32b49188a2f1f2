"""The cross product of R^3."""

from jax import lax
from jaxtyping import Array, Float


def cross(a: Float[Array, "3"], b: Float[Array, "3"]) -> Float[Array, "3"]:
    """a x b, whose shifted entries are $a_i b_{i+1} - a_{i+1} b_i$.

    Few and plain operations: a step holds dozens of cross products, and is traced entry by entry.
    """
    return _shifted(lax.sub(lax.mul(a, _shifted(b)), lax.mul(_shifted(a), b)))


def _shifted(a: Float[Array, "3"]) -> Float[Array, "3"]:
    """(a_2, a_3, a_1)."""
    return lax.concatenate([lax.slice(a, (1,), (3,)), lax.slice(a, (0,), (1,))], 0)

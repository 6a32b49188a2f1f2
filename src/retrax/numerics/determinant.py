"""Determinants of small matrices."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.numerics.cross import cross


def determinant(A: Float[Array, "n n"]) -> Float[Array, ""]:
    """det A, written out for up to three rows."""
    n = A.shape[0]
    if n == 1:
        return A[0, 0]
    if n == 2:
        return A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]
    if n == 3:
        return A[0] @ cross(A[1], A[2])
    return jnp.linalg.det(A)

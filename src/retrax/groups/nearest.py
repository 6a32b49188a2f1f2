r"""The rotation nearest to a matrix.

With the singular values of $M = U\Sigma V^T$ in falling order it is $U\,\mathrm{diag}(1, \dots, 1,
\det UV^T)\,V^T$, and the only one where $\sigma_{n-1} + \det(UV^T)\,\sigma_n > 0$.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.numerics.checks import ArrayLike, finite64
from retrax.numerics.known import require_each
from retrax.numerics.small_matrices import determinant, inverse

# Rotations are equally near where the sum above is this part of the largest singular value.
_EQUAL = 1e-12
_POLAR_STEPS = 12


def nearest_rotation(g: ArrayLike, n: int) -> Float[Array, "n n"]:
    """Return the rotation nearest to a matrix.

    **Raises:** `BadInput` if `g` is not a matrix, or if several rotations are equally near.
    """
    g = finite64("g", g, (n, n))
    left, singular, right = jnp.linalg.svd(jax.lax.stop_gradient(g))
    sign = jnp.sign(determinant(left @ right))
    require_each(_require_one, singular, sign)
    mirrored = (left * jnp.ones(n).at[-1].set(sign)[None, :]) @ right
    # Near a rotation the same by a way that has smooth derivatives.
    plain = (sign > 0) & (singular[-1] > 0.1 * singular[0])
    return jnp.where(plain, _polar(jnp.where(plain, g / singular[0], jnp.eye(n))), mirrored)


def _polar(g: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Return the polar factor by Newton's iteration g <- (g + g^-T) / 2: it is smooth."""
    for _ in range(_POLAR_STEPS):
        g = (g + inverse(g).T) / 2
    return g


def require_projected(where: str, result: Float[Array, "..."]) -> None:
    """Reject what has no nearest point: its projection is not finite."""

    def check(values: np.ndarray) -> None:
        if not np.isfinite(values).all():
            raise BadInput(f"this has no nearest point of {where}: it is singular, or too far off.")

    require_each(check, result)


def _require_one(singular: np.ndarray, sign: np.ndarray) -> None:
    if not singular[-2] + sign * singular[-1] > _EQUAL * singular[0]:
        raise BadInput(
            f"g has no nearest rotation: with the singular values {singular.tolist()}"
            f"{' and a negative determinant' if sign < 0 else ''} several are equally near."
        )

r"""Linear equations by products with their matrix alone.

The method of van der Vorst, stabilised biconjugate gradients: for $Ax = b$ with $A$ near the
identity, as the equations of the stages of a step are, a handful of products lead to round-off.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from retrax.numerics.roundoff import AIM

# What is promised of the residual, relative to the right side.
_DIGITS = 1e-12
_MOST = 200


class _Iterate(NamedTuple):
    x: Array
    r: Array
    p: Array
    v: Array
    rho: Float[Array, ""]
    alpha: Float[Array, ""]
    omega: Float[Array, ""]
    iterations: Int[Array, ""]


def by_products(apply: Callable[[Array], Array], b: Array) -> Array:
    """Solve `apply(x) = b` for a linear map; NaN where that does not lead to 12 digits.

    References: [VanDerVorst1992].
    """
    size = _size(b)

    def is_unfinished(it: _Iterate) -> Bool[Array, ""]:
        return (_size(it.r) > AIM * size) & (it.iterations < _MOST)

    def again(it: _Iterate) -> _Iterate:
        rho = _dot(b, it.r)
        beta = _over(rho, it.rho) * _over(it.alpha, it.omega)
        p = it.r + beta * (it.p - it.omega * it.v)
        v = apply(p)
        alpha = _over(rho, _dot(b, v))
        s = it.r - alpha * v
        t = apply(s)
        omega = _over(_dot(t, s), _dot(t, t))
        x = it.x + (alpha * p + omega * s)
        return _Iterate(x, s - omega * t, p, v, rho, alpha, omega, it.iterations + 1)

    zero, one = jnp.zeros_like(b), jnp.ones(())
    last = lax.while_loop(
        is_unfinished, again, _Iterate(zero, b, zero, zero, one, one, one, jnp.asarray(0))
    )
    good = _size(b - apply(last.x)) <= _DIGITS * size
    return jnp.where(good, last.x, jnp.nan)


def _size(x: Array) -> Float[Array, ""]:
    return jnp.sum(jnp.abs(x))


def _dot(x: Array, y: Array) -> Float[Array, ""]:
    return jnp.sum(x * y)


def _over(x: Float[Array, ""], y: Float[Array, ""]) -> Float[Array, ""]:
    """Divide, with zero where the divisor is zero: then there is nothing left to do."""
    return jnp.where(y == 0, 0.0, x / jnp.where(y == 0, 1.0, y))

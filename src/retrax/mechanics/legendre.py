"""The Legendre transform, inverted."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.numerics.newton import newton
from retrax.numerics.small_matrices import solve


def invert(
    fibre_derivative: Callable[[Float[Array, " dim"]], Float[Array, " dim"]],
    target: Float[Array, " dim"],
) -> Float[Array, " dim"]:
    r"""The $x$ with $DF(x) = $ `target`, for $DF$ the fibre derivative of $L$ or of $H$.

    The guess $x_0 = D^2F(0)^{-1}(\texttt{target} - DF(0))$ is the answer itself where the energy is
    quadratic. Where Newton's method does not converge the result is NaN, which stops a run.
    """
    zero = jnp.zeros_like(target)
    at_rest = fibre_derivative(zero)
    guess = solve(jax.jacfwd(fibre_derivative)(zero), target - at_rest)
    scale = jnp.maximum(jnp.max(jnp.abs(target)), jnp.max(jnp.abs(at_rest)))
    x, status = newton(lambda x: fibre_derivative(x) - target, guess, scale)
    return jnp.where(status.converged, x, jnp.nan)

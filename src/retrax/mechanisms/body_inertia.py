"""The inertia of a body of a mechanism, as users write it."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.so3 import SO3
from retrax.mechanics.inertia import require_body, require_positive
from retrax.mechanisms.written import naming
from retrax.numerics.checks import ArrayLike, float64, require_finite
from retrax.numerics.evaluate import evaluate_in_jax
from retrax.numerics.known import require_each


def body_inertia(
    name: str, inertia: ArrayLike, d: int, physical: bool
) -> Float[Array, "turns turns"]:
    """Return the inertia of a body as a matrix, if a body can have it."""
    moments = float64(f"inertia of {name!r}", inertia)
    allowed = ((3,), (3, 3)) if d == 3 else ((), (1,), (1, 1))
    if moments.shape not in allowed:
        wanted = "three principal moments or a 3 x 3 matrix" if d == 3 else "one number"
        raise BadInput(f"inertia of {name!r} has shape {moments.shape}, but it is {wanted}.")
    require_finite(f"inertia of {name!r}", moments)

    def check(moments: np.ndarray) -> None:
        with naming(f"the body {name!r}"):
            require_positive(np.atleast_1d(moments))
            if d == 3 and physical:
                require_body(SO3(), moments)

    require_each(check, moments)
    if d == 2:
        return evaluate_in_jax(lambda x: x.reshape(1, 1), moments)
    return evaluate_in_jax(jnp.diag, moments) if moments.ndim == 1 else moments

r"""What a plan is to make small: running costs $l(g, \xi, u, t)$ that come up often."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import Coordinates, Element
from retrax.mechanics.actuated import Inputs
from retrax.numerics.checks import ArrayLike, float64, quote, require_finite
from retrax.numerics.frozen import Frozen
from retrax.numerics.known import require_each


class MinimumTime(Frozen):
    """The time it takes: $l = 1$, for problems whose duration is `Free`, and no others."""

    def __call__(
        self, g: Element, xi: Coordinates, u: Inputs, t: Float[Array, ""]
    ) -> Float[Array, ""]:
        return jnp.ones(())


class MinimumEffort(Frozen):
    r"""The effort of the inputs: $l = \tfrac12 u^T W u$.

    **Arguments:** `weights`: $W$, as a number, one for each input, or a symmetric matrix; 1 unless
    it is given.
    """

    weights: Float[Array, "*m"] | None

    def __init__(self, weights: ArrayLike | None = None):
        self.weights = None
        if weights is None:
            return
        given = float64("weights", weights)
        require_finite("weights", given)
        if not given.size:
            raise BadInput(
                "weights are empty, but must be a number, one for each input, or a matrix."
            )
        require_each(_require_weights, given)
        self.weights = given

    def __call__(
        self, g: Element, xi: Coordinates, u: Inputs, t: Float[Array, ""]
    ) -> Float[Array, ""]:
        if self.weights is None:
            return 0.5 * (u @ u)
        weighted = self.weights @ u if self.weights.ndim == 2 else self.weights * u
        return 0.5 * (u @ weighted)


def _require_weights(given: np.ndarray) -> None:
    if given.ndim > 2 or (given.ndim == 2 and not np.array_equal(given, given.T)):
        raise BadInput(
            "weights must be a number, one for each input, or a symmetric matrix, and has shape"
            f" {given.shape}{'' if given.ndim > 2 else ' but is not symmetric'}."
        )
    least = np.linalg.eigvalsh(given)[0] if given.ndim == 2 else np.min(given)
    if not least > 0:
        raise BadInput(f"weights = {quote(given.tolist())} must be positive.")

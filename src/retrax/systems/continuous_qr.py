"""The orthogonal factor of a growing matrix, followed without ever forming the matrix."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.mechanics.flow import AbstractSpaceFlow
from retrax.mechanics.state import State
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import float64, require_finite
from retrax.spaces.stiefel import Stiefel

Scalar = Float[Array, ""]
Frame = Float[Array, "n k"]


class ContinuousQR(AbstractSpaceFlow):
    r"""$Q(t)$ in $e^{tA}Q_0 = Q(t)R(t)$, with $R$ upper triangular and a positive diagonal.

    With $B = Q^TAQ$ and $B_-$ its part strictly below the diagonal,

    $$ \dot Q = AQ - Q(B - S), \qquad S = B_- - B_-^T. \tag{1} $$

    This is how Lyapunov exponents are computed: they are the mean growth of the diagonal of $R$.

    **Arguments:**

    - `matrix`: $A$, any real square matrix (1/s).
    - `columns`: how many columns $Q$ has.

    References: [DieciRussellVanVleck1994].
    """

    matrix: Float[Array, "n n"]
    space: Stiefel

    def __init__(self, matrix: ArrayLike, columns: int):
        self.matrix = square("matrix", matrix)
        self.space = Stiefel(self.matrix.shape[0], columns)

    @classmethod
    def example(cls) -> tuple["ContinuousQR", State, float, int]:
        """A rotating and stretching flow of four dimensions: system, state, h, steps."""
        A = [
            [0.3, -1.2, 0.4, 0.1],
            [0.9, -0.2, 0.5, 0.7],
            [-0.3, 0.2, -0.5, 1.1],
            [0.2, -0.6, -0.8, 0.1],
        ]
        system = cls(A, 2)
        return system, system.at(jnp.eye(4)[:, :2]), 0.02, 2_000

    @property
    def name(self) -> str:
        return "continuous QR factorisation"

    def generator(self, t: Scalar, y: Frame) -> Float[Array, " dim"]:
        grown = self.matrix @ y
        B = y.T @ grown
        below = jnp.tril(B, -1)
        return self.space.lift(y, grown - y @ (B - below + below.T))  # (1)

    def exact(self, start: ArrayLike, t: float) -> np.ndarray:
        """The frame at the time `t`, by a factorisation of the exponential."""
        grown = matrix_exponential(t * self.matrix) @ np.asarray(start, dtype=float)
        return positive_qr(grown)[0]


def square(name: str, value: ArrayLike) -> Float[Array, "n n"]:
    """A finite square matrix, refused where it is none."""
    matrix = float64(name, value)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] < 2:
        raise BadInput(f"{name} has shape {matrix.shape}, but must be square, at least 2 by 2.")
    require_finite(name, matrix)
    return matrix


def matrix_exponential(A: ArrayLike) -> np.ndarray:
    """exp(A), dense."""
    return np.asarray(jax.scipy.linalg.expm(jnp.asarray(A)))


def positive_qr(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The one factorisation A = QR whose R has a positive diagonal."""
    Q, R = np.linalg.qr(A)
    signs = np.sign(np.diagonal(R))
    return Q * signs[None, :], R * signs[:, None]

"""A subspace that a linear flow carries along."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.mechanics.flow import AbstractSpaceFlow
from retrax.mechanics.state import State
from retrax.mechanics.system import ArrayLike
from retrax.numerics.known import require_each
from retrax.spaces.grassmann import Grassmann
from retrax.systems.continuous_qr import matrix_exponential, positive_qr, square

Scalar = Float[Array, ""]
Projector = Float[Array, "n n"]


def _require_symmetric(matrix: np.ndarray) -> None:
    skew = float(np.max(np.abs(matrix - matrix.T)))
    if skew > 1e-12 * float(np.max(np.abs(matrix))):
        raise BadInput(f"matrix must be symmetric, but max |A - A^T| = {skew:.3g}.")


class SubspaceFlow(AbstractSpaceFlow):
    r"""The projector $P$ on $e^{tA}\,\mathrm{range}\,P_0$, with $A = A^T$: a double bracket flow.

    $$ \dot P = [\Omega, P], \qquad \Omega = [A, P]. \tag{1} $$

    It turns towards the eigenvectors of the largest eigenvalues, and $\mathrm{tr}(AP)$ grows.

    **Arguments:**

    - `matrix`: $A$, symmetric (1/s).
    - `dimension`: of the subspace.

    References: [Brockett1991].
    """

    matrix: Projector
    space: Grassmann

    def __init__(self, matrix: ArrayLike, dimension: int):
        self.matrix = square("matrix", matrix)
        require_each(_require_symmetric, self.matrix)
        self.space = Grassmann(self.matrix.shape[0], dimension)

    @classmethod
    def example(cls) -> tuple["SubspaceFlow", State, float, int]:
        """A plane in space that turns to the plane of fastest growth: system, state, h, steps."""
        system = cls([[0.9, 0.3, -0.2], [0.3, 0.4, 0.5], [-0.2, 0.5, -0.7]], 2)
        start = system.space.projector(jnp.array([[0.1, 0.2], [0.3, -1.0], [1.0, 0.4]]))
        return system, system.at(start), 0.02, 1_000

    @property
    def name(self) -> str:
        return "subspace flow"

    def generator(self, t: Scalar, y: Projector) -> Float[Array, " dim"]:
        half = self.matrix @ y
        return self.space.group.vee(half - half.T)  # (1)

    def exact(self, start: ArrayLike, t: float) -> np.ndarray:
        """The projector at the time `t`."""
        _, vectors = np.linalg.eigh(np.asarray(start, dtype=float))
        frame = vectors[:, self.space.n - self.space.k :]
        Q, _ = positive_qr(matrix_exponential(t * self.matrix) @ frame)
        return Q @ Q.T

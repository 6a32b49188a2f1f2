"""Flows of matrices with QR factorisations as exact solutions: frames, subspaces, the Toda flow."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.mechanics.flow import AbstractSpaceFlow
from retrax.mechanics.state import State
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import float64, require_finite
from retrax.numerics.evaluate import evaluate_in_jax
from retrax.numerics.known import require_each
from retrax.spaces.grassmann import Grassmann
from retrax.spaces.isospectral import Isospectral
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
        """Return a rotating and stretching flow of four dimensions: system, state, h, steps."""
        A = [
            [0.3, -1.2, 0.4, 0.1],
            [0.9, -0.2, 0.5, 0.7],
            [-0.3, 0.2, -0.5, 1.1],
            [0.2, -0.6, -0.8, 0.1],
        ]
        system = cls(A, 2)
        return system, system.at(np.eye(4)[:, :2]), 0.02, 2_000

    @property
    def name(self) -> str:
        return "continuous QR factorisation"

    def generator(self, t: Scalar, y: Frame) -> Float[Array, " dim"]:
        grown = self.matrix @ y
        B = y.T @ grown
        below = jnp.tril(B, -1)
        return self.space.lift(y, grown - y @ (B - below + below.T))  # (1)

    def exact(self, start: ArrayLike, t: float) -> np.ndarray:
        """Return the frame at the time `t`, by a factorisation of the exponential."""
        grown = matrix_exponential(t * self.matrix) @ np.asarray(start, dtype=float)
        return positive_qr(grown)[0]


def square(name: str, value: ArrayLike) -> Float[Array, "n n"]:
    """Return `value` as a finite square matrix of at least two rows."""
    matrix = float64(name, value)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] < 2:
        raise BadInput(f"{name} has shape {matrix.shape}, but must be square, at least 2 by 2.")
    require_finite(name, matrix)
    return matrix


def matrix_exponential(A: ArrayLike) -> np.ndarray:
    """Return exp(A), dense."""
    return np.asarray(jax.scipy.linalg.expm(jnp.asarray(A)))


def positive_qr(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the factorisation A = QR whose R has a positive diagonal."""
    Q, R = np.linalg.qr(A)
    signs = np.sign(np.diagonal(R))
    return Q * signs[None, :], R * signs[:, None]


Projector = Float[Array, "n n"]


def _require_symmetric(matrix: np.ndarray) -> None:
    skew = float(np.max(np.abs(matrix - matrix.T)))
    if skew > 1e-12 * float(np.max(np.abs(matrix))):
        raise BadInput(f"matrix must be symmetric, but max |A - A^T| = {skew:.3g}.")


class SubspaceFlow(AbstractSpaceFlow):
    r"""The projector $P$ on $e^{tA}\,\mathrm{range}\,P_0$, with $A = A^T$: a double bracket flow.

    $$ \dot P = [\Omega, P], \qquad \Omega = [A, P]. \tag{1} $$

    The subspace turns towards the eigenvectors of the largest eigenvalues: $\mathrm{tr}(AP)$ grows.

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
        """Return system, state, h, steps of a plane that turns to the one of fastest growth."""
        system = cls([[0.9, 0.3, -0.2], [0.3, 0.4, 0.5], [-0.2, 0.5, -0.7]], 2)
        start = evaluate_in_jax(
            Grassmann.projector, system.space, np.array([[0.1, 0.2], [0.3, -1.0], [1.0, 0.4]])
        )
        return system, system.at(start), 0.02, 1_000

    @property
    def name(self) -> str:
        return "subspace flow"

    def generator(self, t: Scalar, y: Projector) -> Float[Array, " dim"]:
        half = self.matrix @ y
        return self.space.group.vee(half - half.T)  # (1)

    def exact(self, start: ArrayLike, t: float) -> np.ndarray:
        """Return the projector at the time `t`."""
        _, vectors = np.linalg.eigh(np.asarray(start, dtype=float))
        frame = vectors[:, self.space.n - self.space.k :]
        Q, _ = positive_qr(matrix_exponential(t * self.matrix) @ frame)
        return Q @ Q.T


Symmetric = Float[Array, "n n"]


class Toda(AbstractSpaceFlow):
    r"""The flow $\dot L = [B, L]$ of symmetric matrices, with $L_-$ the part below the diagonal.

    $$
    \begin{aligned}
    B &= L_-^T - L_-                                                               &&\text{(1)}\\
    L(t) &= Q^TL_0Q, \qquad e^{tL_0} = QR                                          &&\text{(2)}
    \end{aligned}
    $$

    On tridiagonal matrices it is the lattice of $n$ particles with $H = \tfrac12\sum_ip_i^2
    + \sum_ie^{q_i - q_{i+1}}$, at half its speed; on all of them the flow that the QR algorithm for
    eigenvalues samples.

    **Arguments:** `n`: the size of the matrices.

    **Invariants:** the eigenvalues, to round-off.

    References: [Flaschka1974]; [Symes1982].
    """

    space: Isospectral

    def __init__(self, n: int):
        self.space = Isospectral(n)

    @classmethod
    def example(cls) -> tuple["Toda", State, float, int]:
        """Return three particles that come together and fly apart: system, state, h, steps."""
        lattice = cls(3)
        start = lattice.lattice([0.0, 0.4, 1.5], [1.0, 0.2, -1.2])
        return lattice, lattice.at(start), 0.02, 1_000

    @property
    def name(self) -> str:
        return "Toda flow"

    def lattice(self, q: ArrayLike, p: ArrayLike) -> Symmetric:
        r"""Return Flaschka's matrix: $-\tfrac12p_i$ inside, $\tfrac12e^{(q_i - q_{i+1})/2}$."""
        return evaluate_in_jax(_flaschka, float64("q", q), float64("p", p))

    def generator(self, t: Scalar, y: Symmetric) -> Float[Array, " dim"]:
        below = jnp.tril(y, -1)
        return self.space.group.vee(below.T - below)  # (1)

    def exact(self, start: ArrayLike, t: float) -> np.ndarray:
        """Return the matrix at the time `t`, by (2)."""
        L = np.asarray(start, dtype=float)
        Q, _ = positive_qr(matrix_exponential(t * L))
        return Q.T @ L @ Q


def _flaschka(q: Float[Array, " n"], p: Float[Array, " n"]) -> Symmetric:
    beside = jnp.exp((q[:-1] - q[1:]) / 2) / 2
    return jnp.diag(-p / 2) + jnp.diag(beside, 1) + jnp.diag(beside, -1)

"""The Toda lattice in Lax form."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.mechanics.flow import AbstractSpaceFlow
from retrax.mechanics.state import State
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import float64
from retrax.spaces.isospectral import Isospectral
from retrax.systems.continuous_qr import matrix_exponential, positive_qr

Scalar = Float[Array, ""]
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
        """Three particles that come together and fly apart: system, state, h, steps."""
        lattice = cls(3)
        start = lattice.lattice([0.0, 0.4, 1.5], [1.0, 0.2, -1.2])
        return lattice, lattice.at(start), 0.02, 1_000

    @property
    def name(self) -> str:
        return "Toda flow"

    def lattice(self, q: ArrayLike, p: ArrayLike) -> Symmetric:
        r"""Flaschka's matrix: $-\tfrac12p_i$ inside, $\tfrac12e^{(q_i - q_{i+1})/2}$."""
        q, p = float64("q", q), float64("p", p)
        beside = jnp.exp((q[:-1] - q[1:]) / 2) / 2
        return jnp.diag(-p / 2) + jnp.diag(beside, 1) + jnp.diag(beside, -1)

    def generator(self, t: Scalar, y: Symmetric) -> Float[Array, " dim"]:
        below = jnp.tril(y, -1)
        return self.space.group.vee(below.T - below)  # (1)

    def exact(self, start: ArrayLike, t: float) -> np.ndarray:
        """The matrix at the time `t`, by (2)."""
        L = np.asarray(start, dtype=float)
        Q, _ = positive_qr(matrix_exponential(t * L))
        return Q.T @ L @ Q

"""Subspaces, as projectors."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from retrax.groups.base import AbstractLieGroup, Coordinates
from retrax.spaces.base import AbstractHomogeneousSpace, rotations
from retrax.spaces.stiefel import Stiefel, require_subspace

Projector = Float[Array, "n n"]


class Grassmann(AbstractHomogeneousSpace):
    r"""The $k$-dimensional subspaces of $\mathbb R^n$, $G_k(\mathbb R^n)$, as projectors $P$.

    $$
    \begin{aligned}
    P &\mapsto \exp(\hat u)\,P\exp(-\hat u), \qquad \dot P = [\hat\xi, P]          &&\text{(1)}\\
    \hat\xi &= [V, P] \quad\text{for a tangent } V = V^T,\ VP + PV = V             &&\text{(2)}\\
    P &\leftarrow P - (P^2 - P)(2P - 1)                                            &&\text{(3)}
    \end{aligned}
    $$

    Every move begins with (3), which squares the defect $P^2 - P$ left by earlier ones.

    **Arguments:** `n`, `k`: the dimensions of the space and of its subspaces.

    References: [MuntheKaas1999].
    """

    n: int = eqx.field(static=True)
    k: int = eqx.field(static=True)
    side: ClassVar[int] = 1

    def __init__(self, n: int, k: int):
        self.n, self.k = require_subspace("Grassmann", n, k)

    def __repr__(self) -> str:
        return f"Grassmann({self.n}, {self.k})"

    @property
    def group(self) -> AbstractLieGroup:
        return rotations(self.n)

    @property
    def name(self) -> str:
        return f"G_{self.k}(R^{self.n})"

    @property
    def dimension(self) -> int:
        return self.k * (self.n - self.k)

    def projector(self, frame: Float[Array, "n k"]) -> Projector:
        """Return the projector on the subspace that the columns of a matrix of full rank span."""
        q, _ = jnp.linalg.qr(jnp.asarray(frame))
        return q @ q.T

    def move(self, y: Projector, u: Coordinates) -> Projector:
        wrong = y @ y - y
        clean = y - (2 * wrong @ y - wrong)  # (3)
        return conjugate(clean, self.group.expm1_in_chart(u))  # (1)

    def defect(self, y: Projector) -> Float[Array, ""]:
        wrong = [y @ y - y, y - y.T, jnp.trace(y) - self.k]
        return jnp.max(jnp.stack([jnp.max(jnp.abs(part)) for part in wrong]))

    def project(self, y: Projector) -> Projector:
        """Return the projector on the eigenvectors of the `k` largest eigenvalues."""
        _, vectors = jnp.linalg.eigh((y + y.T) / 2)
        frame = vectors[:, self.n - self.k :]
        return frame @ frame.T

    def random(self, key: Key[Array, ""]) -> Projector:
        frame = Stiefel(self.n, self.k).random(key)
        return frame @ frame.T

    def lift(self, y: Projector, v: Projector) -> Coordinates:
        half = v @ y
        return self.group.vee(half - half.T)  # (2)


def conjugate(m: Projector, delta: Projector) -> Projector:
    r"""Return $(1 + \delta)\,m\,(1 + \delta)^T$, `m` symmetric: exactly so, `m` plus a change.

    $$ m + s + s^T, \qquad s = (1 + \tfrac12\delta)\,m\,\delta^T $$
    """
    right = m @ delta.T
    half = right + delta @ right / 2
    sym = (m + m.T) / 2
    return sym + (half + half.T)

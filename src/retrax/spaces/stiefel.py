"""Orthonormal frames."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup, Coordinates
from retrax.groups.nearest import require_projected
from retrax.spaces.base import AbstractHomogeneousSpace, require_size, rotations

Frame = Float[Array, "n k"]


class Stiefel(AbstractHomogeneousSpace):
    r"""$k$ orthonormal columns in $\mathbb R^n$, $V_k(\mathbb R^n)$, turned by $SO(n)$.

    $$
    \begin{aligned}
    Q &\mapsto \exp(\hat u)\,Q, \qquad \dot Q = \hat\xi Q                          &&\text{(1)}\\
    \hat\xi &= aQ^T - Qa^T, \quad a = V - \tfrac12Q(Q^TV)
        \quad\text{for a tangent } V,\ Q^TV + V^TQ = 0                             &&\text{(2)}
    \end{aligned}
    $$

    Every move also takes out the defect $Q^TQ - 1$ left by earlier ones.

    **Arguments:** `n`, `k`: rows and columns, $k \le n$. For $k = n$ a motion keeps the sign of
    $\det Q$.

    References: [MuntheKaas1999].
    """

    n: int = eqx.field(static=True)
    k: int = eqx.field(static=True)
    side: ClassVar[int] = 1

    def __init__(self, n: int, k: int):
        self.n, self.k = require_subspace("Stiefel", n, k)

    def __repr__(self) -> str:
        return f"Stiefel({self.n}, {self.k})"

    @property
    def group(self) -> AbstractLieGroup:
        return rotations(self.n)

    @property
    def name(self) -> str:
        return f"V_{self.k}(R^{self.n})"

    @property
    def dimension(self) -> int:
        return self.n * self.k - self.k * (self.k + 1) // 2

    def move(self, y: Frame, u: Coordinates) -> Frame:
        skew = y.T @ y - jnp.eye(self.k)
        return y + (self.group.expm1_in_chart(u) @ y - y @ skew / 2)  # (1)

    def defect(self, y: Frame) -> Float[Array, ""]:
        return jnp.max(jnp.abs(y.T @ y - jnp.eye(self.k)))

    def project(self, y: Frame) -> Frame:
        """Return the nearest frame: the polar factor."""
        left, singular, right = jnp.linalg.svd(y, full_matrices=False)
        full = singular[-1] > 1e-14 * singular[0]
        near = jnp.where(full, left @ right, jnp.nan)  # of less than full rank: many are near
        require_projected(self.name, near)
        return near

    def random(self, key: Key[Array, ""]) -> Frame:
        return self.project(jax.random.normal(key, (self.n, self.k)))

    def lift(self, y: Frame, v: Frame) -> Coordinates:
        a = v - y @ (y.T @ v) / 2
        half = a @ y.T
        return self.group.vee(half - half.T)  # (2)


def require_subspace(space: str, n: object, k: object) -> tuple[int, int]:
    """Return the sizes of frames if they fit: $2 \\le n$ and $k \\le n$."""
    rows, columns = require_size(space, n=n, k=k)
    if rows < 2 or columns > rows:
        raise BadInput(f"{space}(n={n}, k={k}): n must be at least 2 and k at most n.")
    return rows, columns

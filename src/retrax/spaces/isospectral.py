"""Symmetric matrices with the same eigenvalues."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup, Coordinates
from retrax.spaces.base import AbstractHomogeneousSpace, require_size, rotations
from retrax.spaces.grassmann import conjugate

Symmetric = Float[Array, "n n"]

# Eigenvalues closer than this, relative to the largest, count as one.
_EQUAL = 1e-9


class Isospectral(AbstractHomogeneousSpace):
    r"""Symmetric $n\times n$ matrices, turned by $SO(n)$: every orbit is a set of eigenvalues.

    $$
    \begin{aligned}
    L &\mapsto \exp(\hat u)\,L\exp(-\hat u), \qquad \dot L = [\hat\xi, L]          &&\text{(1)}\\
    w_i^T\hat\xi w_j &= \frac{w_i^TVw_j}{\lambda_j - \lambda_i}
        \quad\text{for a tangent } V, \text{ with } Lw_i = \lambda_iw_i            &&\text{(2)}
    \end{aligned}
    $$

    In (2) pairs with $\lambda_i = \lambda_j$ are left out. The eigenvalues are among the invariants
    of every flow; the defect is that of symmetry.

    **Arguments:** `n`: the size of the matrices.

    References: [CalvoIserlesZanna1997].
    """

    n: int = eqx.field(static=True)
    side: ClassVar[int] = 1

    def __init__(self, n: int):
        (self.n,) = require_size("Isospectral", n=n)
        if self.n < 2:
            raise BadInput("Isospectral(n=1) is a point; n must be at least 2.")

    def __repr__(self) -> str:
        return f"Isospectral({self.n})"

    @property
    def group(self) -> AbstractLieGroup:
        return rotations(self.n)

    @property
    def name(self) -> str:
        return f"Sym({self.n})"

    @property
    def dimension(self) -> int:
        """Of the orbits with different eigenvalues."""
        return self.n * (self.n - 1) // 2

    def move(self, y: Symmetric, u: Coordinates) -> Symmetric:
        return conjugate(y, self.group.expm1_in_chart(u))  # (1)

    def defect(self, y: Symmetric) -> Float[Array, ""]:
        return jnp.max(jnp.abs(y - y.T))

    def project(self, y: Symmetric) -> Symmetric:
        return (y + y.T) / 2

    def random(self, key: Key[Array, ""]) -> Symmetric:
        return self.project(jax.random.normal(key, (self.n, self.n)))

    def lift(self, y: Symmetric, v: Symmetric) -> Coordinates:
        values, vectors = jnp.linalg.eigh(y)
        gaps = values[None, :] - values[:, None]
        apart = jnp.abs(gaps) > _EQUAL * jnp.max(jnp.abs(values))
        inner = vectors.T @ v @ vectors
        inner = jnp.where(apart, inner / jnp.where(apart, gaps, 1.0), 0.0)
        return self.group.vee(vectors @ inner @ vectors.T)  # (2)

    def orbit_invariants(self, y: Symmetric) -> dict[str, Float[Array, ""]]:
        values = jnp.linalg.eigvalsh(y)
        return {f"eigenvalue {k + 1}": values[k] for k in range(self.n)}

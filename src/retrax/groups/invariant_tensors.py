"""The tensors that a matrix group leaves fixed: how to tell whether a matrix belongs to it."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

_RANK_TOLERANCE = 1e-10


class InvariantTensors(eqx.Module):
    r"""What every $g$ in the group with algebra $\mathfrak g = \mathrm{span}(e_i)$ preserves:

    $$
    \begin{aligned}
    & g v = v, \quad a^T g = a^T, \quad g^T B g = B, \quad g C g^T = C, \quad g M = M g
                                                                          &&\text{(1)}\\
    & \det g = 1 \text{ if the algebra is traceless}                      &&\text{(2)}
    \end{aligned}
    $$
    for a basis of such vectors, covectors, forms on $V$ and $V^*$, and commuting matrices. Each
    basis is the null space of the linear equations that (1) gives for $g = 1 + \epsilon e_i$.
    """

    vectors: Float[Array, "n a"]
    covectors: Float[Array, "b n"]
    forms: Float[Array, "c n n"]
    coforms: Float[Array, "d n n"]
    commuting: Float[Array, "e n n"]
    traceless: bool = eqx.field(static=True)

    def __init__(self, basis: np.ndarray):
        n = basis.shape[1]
        one = np.eye(n)
        left = np.array([np.kron(e, one) for e in basis])  # X -> e X on flattened X
        right = np.array([np.kron(one, e.T) for e in basis])  # X -> X e
        left_t = np.array([np.kron(e.T, one) for e in basis])  # X -> e^T X
        right_t = np.array([np.kron(one, e) for e in basis])  # X -> X e^T
        self.vectors = jnp.asarray(null_space(basis).T)
        self.covectors = jnp.asarray(null_space(basis.transpose(0, 2, 1)))
        self.forms = jnp.asarray(null_space(left_t + right).reshape(-1, n, n))
        self.coforms = jnp.asarray(null_space(left + right_t).reshape(-1, n, n))
        self.commuting = jnp.asarray(null_space(left - right).reshape(-1, n, n))
        self.traceless = bool(np.all(np.abs(np.trace(basis, axis1=1, axis2=2)) < _RANK_TOLERANCE))

    def residual(self, g: Float[Array, "n n"]) -> Float[Array, " m"]:
        """By how much `g` fails (1) and (2), one entry an equation."""
        wrong = [
            g @ self.vectors - self.vectors,
            self.covectors @ g - self.covectors,
            jnp.einsum("ji,cjk,kl->cil", g, self.forms, g) - self.forms,
            jnp.einsum("ij,djk,lk->dil", g, self.coforms, g) - self.coforms,
            jnp.einsum("ij,ejk->eik", g, self.commuting)
            - jnp.einsum("eij,jk->eik", self.commuting, g),
        ]
        if self.traceless:
            wrong.append(jnp.linalg.det(g) - 1)
        return jnp.concatenate([part.reshape(-1) for part in wrong])


def null_space(equations: np.ndarray) -> np.ndarray:
    """An orthonormal basis, in rows, of the x with `equations[i] @ x == 0` for every i."""
    stacked = equations.reshape(-1, equations.shape[-1])
    _, sizes, rows = np.linalg.svd(stacked)
    rank = int(np.sum(sizes > _RANK_TOLERANCE * max(sizes[0], 1.0)))
    return rows[rank:]

"""Quadratic polynomials by their nonzero coefficients."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.numerics.checks import float64, require_finite, require_shape


class SparseQuadratic(eqx.Module):
    r"""$f_i(x) = \sum_{jk}Q_{ijk}x_jx_k + \sum_jB_{ij}x_j + c_i$, terms that are zero left out.

    Which terms there are belongs to the structure; their coefficients are an array.

    **Arguments:** `Q`: of shape (n, n, n), symmetric in its last two axes or not; `B`: (n, n);
    `c`: (n,). `B` and `c` may be `None`.
    """

    coefficients: Float[Array, " terms"]
    terms: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    dim: int = eqx.field(static=True)

    def __init__(self, Q: Any, B: Any = None, c: Any = None):
        quadratic = np.asarray(float64("Q", Q))
        n = len(quadratic) if quadratic.ndim else 0
        if n == 0 or quadratic.shape != (n, n, n):
            raise BadInput(f"Q has shape {quadratic.shape}, but must have shape (n, n, n).")
        linear = np.zeros((n, n)) if B is None else np.asarray(float64("B", B))
        constant = np.zeros(n) if c is None else np.asarray(float64("c", c))
        require_shape("B", linear, (n, n))
        require_shape("c", constant, (n,))
        for name, part in (("Q", quadratic), ("B", linear), ("c", constant)):
            require_finite(name, part)
        # x_j x_k and x_k x_j are one term.
        folded = np.triu(quadratic + np.swapaxes(quadratic, 1, 2))
        folded[:, range(n), range(n)] /= 2
        parts = (constant, linear, folded)
        self.terms = tuple(tuple(map(int, at)) for part in parts for at in np.argwhere(part))
        values = [part[tuple(at)] for part in parts for at in np.argwhere(part)]
        self.coefficients = float64("coefficients", values)
        self.dim = n

    def __call__(self, x: Float[Array, " n"]) -> Float[Array, " n"]:
        if x.shape != (self.dim,):
            raise BadInput(f"x has shape {x.shape}, but must have shape {(self.dim,)}.")
        rows = [jnp.zeros(()) for _ in range(self.dim)]
        for number, (i, *factors) in enumerate(self.terms):
            term = self.coefficients[number]
            for j in factors:
                term = term * x[j]
            rows[i] = rows[i] + term
        return jnp.stack(rows)

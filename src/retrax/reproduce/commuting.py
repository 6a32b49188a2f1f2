r"""The commuting diagrams of the pseudospectral paper, measured on the sphere.

$G = SO(3)$ acts on $S^2$ by $\Phi_g(y) = gy$; $\Phi_y(g) = gy$, $L_g(k) = gk$, and
$B_g(u) = \log(g\exp u)$. The paper's Figs. 1 to 3 say

$$
\begin{aligned}
\Phi_y \circ L_g &= \Phi_g \circ \Phi_y                                     &&\text{(1)}\\
\exp \circ B_g &= L_g \circ \exp                                            &&\text{(2)}\\
\xi \times (\exp(\hat u)\,y) &= \tfrac{d}{d\epsilon}\Big|_0
    \exp\bigl(\hat u + \epsilon\,\widehat{d\exp^{-1}_u\xi}\bigr)\,y         &&\text{(3)}
\end{aligned}
$$

with the right-trivialised $d\exp$ in (3). Exponentials, logarithms and derivatives are those of
general matrices, so that nothing of the group is taken for granted but $d\exp^{-1}$.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from retrax.groups.so3 import SO3

_SAMPLES = 25


class Commuting(NamedTuple):
    """The largest defects of (1), (2), (3), and of (3) with the map of the other side."""

    samples: int
    action: float
    translation: float
    right: float
    left: float


def commuting(samples: int = _SAMPLES, seed: int = 0) -> Commuting:
    """The defects over random rotations, coordinates and points."""
    from scipy.linalg import expm, expm_frechet, logm

    draw = np.random.default_rng(seed).normal(size=(4, samples, 3))
    # The group's own dexp is the left-trivialised one: at -u it is the right-trivialised one.
    inverse = jax.jit(jax.vmap(SO3().dexp_inv))
    u, xi = jnp.asarray(draw[1]), jnp.asarray(draw[2])
    sides = np.asarray(inverse(-u, xi)), np.asarray(inverse(u, xi))
    found = []
    for n, (w, u, xi, y) in enumerate(zip(*draw, strict=True)):
        g, k, y = expm(_hat(w)), expm(_hat(u)), y / np.linalg.norm(y)
        moved = [expm_frechet(_hat(u), _hat(side[n]), compute_expm=False) @ y for side in sides]
        action = (g @ k) @ y - g @ (k @ y)  # (1)
        translation = expm(np.real(logm(g @ k))) - g @ k  # (2)
        related = [np.cross(xi, k @ y) - one for one in moved]  # (3)
        found.append([np.max(np.abs(x)) for x in (action, translation, *related)])
    worst = np.max(found, axis=0)
    return Commuting(samples, *(float(x) for x in worst))


def _hat(x: np.ndarray) -> np.ndarray:
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])

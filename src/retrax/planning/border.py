r"""The few unknowns that all stages share: the change of the step and the multipliers of the end.

The sweep leaves $\tfrac12\theta^T W\theta$ with $\theta = (1, \delta h, \nu)$: a minimum in
$\delta h$ and a maximum in $\nu$.
"""

import numpy as np

# Multipliers of equations that the inputs cannot change, to this accuracy, are zero.
_DEPENDENT = 1e-12


def solve_border(
    W: np.ndarray, free: int, extra: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return theta, whether it is a minimum in the step, and the least eigenvalue for the end.

    **Arguments:** `W`: [problem, q, q]; `extra`: [problem, 2], what bounds of the duration add to
    the slope and to the curvature in the step.
    """
    P, q, _ = W.shape
    first = 1 + free
    F = -W[:, first:, first:]
    size = np.sqrt(np.maximum(np.abs(np.einsum("pii->pi", F)), 1e-300))
    scaled = F / size[:, :, None] / size[:, None, :]
    bad = ~np.isfinite(scaled).all(axis=(1, 2))
    scaled[bad] = 0.0
    values, vectors = np.linalg.eigh(scaled)
    least = values.min(axis=1, initial=np.inf)
    inverse = np.where(values > _DEPENDENT, 1 / np.where(values > _DEPENDENT, values, 1.0), 0.0)

    def solve(right: np.ndarray) -> np.ndarray:
        turned = np.einsum("pij,pi->pj", vectors, right / size)
        return np.einsum("pij,pj->pi", vectors, inverse * turned) / size

    theta = np.zeros((P, q))
    theta[:, 0] = 1.0
    nu = solve(W[:, first:, 0])
    minimum = ~bad & np.isfinite(W[:, 0, 0])
    if free:
        along = solve(W[:, first:, 1])
        c = W[:, first:, 1]
        curvature = W[:, 1, 1] + extra[:, 1] + np.einsum("pi,pi->p", c, along)
        slope = W[:, 0, 1] + extra[:, 0] + np.einsum("pi,pi->p", c, nu)
        minimum &= curvature > 0
        dh = -slope / np.where(curvature > 0, curvature, 1.0)
        theta[:, 1] = dh
        nu = nu + dh[:, None] * along
    theta[:, first:] = nu
    return theta, minimum, least

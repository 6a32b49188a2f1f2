r"""A chain of Gaussian states: elimination forwards and backwards.

$$
\begin{aligned}
\delta_{k+1} &= F_k\delta_k + b_k + \text{noise of covariance } Q_k, \qquad
r_j + H_j\delta_k = \text{noise of covariance } 1                                  &&\text{(1)}\\
P^-_{k+1} &= F_kP_kF_k^T + Q_k, \qquad S_k = P_kF_k^T(P^-_{k+1})^{-1}              &&\text{(2)}\\
\hat\delta_k &= m_k + S_k(\hat\delta_{k+1} - m^-_{k+1}), \qquad
\hat P_k = P_k + S_k(\hat P_{k+1} - P^-_{k+1})S_k^T                                &&\text{(3)}
\end{aligned}
$$

This solves the block tridiagonal equations of all states, and gives the diagonal blocks of their
inverse.

References: [RauchTungStriebel1965].
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

# The residuals seen at a state, and their slopes.
Seen = Sequence[tuple[np.ndarray, np.ndarray]]


class Forward(NamedTuple):
    """Means and covariances of each state from what was seen up to it, and before it was seen."""

    means: Float[np.ndarray, "state n"]
    spreads: Float[np.ndarray, "state n n"]
    expected: Float[np.ndarray, "state n"]
    expected_spreads: Float[np.ndarray, "state n n"]
    moves: Float[np.ndarray, "step n n"]


def forward(
    moves: np.ndarray,
    offsets: np.ndarray,
    pushes: np.ndarray,
    start: np.ndarray,
    seen: Sequence[Seen],
) -> Forward:
    """Eliminate forwards, from a start of mean zero and covariance `start`."""
    count, n = len(moves) + 1, moves.shape[1]
    means, spreads = np.zeros((count, n)), np.zeros((count, n, n))
    expected, before = np.zeros((count, n)), np.zeros((count, n, n))
    mean, spread = np.zeros(n), start
    for k in range(count):
        expected[k], before[k] = mean, spread
        for r, slope in seen[k]:
            gain = np.linalg.solve(slope @ spread @ slope.T + np.eye(len(r)), slope @ spread).T
            mean = mean - gain @ (r + slope @ mean)
            kept = np.eye(n) - gain @ slope
            spread = kept @ spread @ kept.T + gain @ gain.T
        means[k], spreads[k] = mean, spread
        if k < count - 1:
            mean = moves[k] @ mean + offsets[k]
            spread = moves[k] @ spread @ moves[k].T + pushes[k]  # (2)
    return Forward(means, spreads, expected, before, moves)


def backward(ahead: Forward) -> tuple[Float[np.ndarray, "state n"], Float[np.ndarray, "state n n"]]:
    """Eliminate backwards: mean and covariance of each state from everything."""
    means, spreads = ahead.means.copy(), ahead.spreads.copy()
    for k in range(len(means) - 2, -1, -1):
        gain = np.linalg.solve(ahead.expected_spreads[k + 1], ahead.moves[k] @ ahead.spreads[k]).T
        means[k] += gain @ (means[k + 1] - ahead.expected[k + 1])  # (3)
        spreads[k] += gain @ (spreads[k + 1] - ahead.expected_spreads[k + 1]) @ gain.T
    return means, spreads

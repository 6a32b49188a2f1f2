r"""Levenberg's and Marquardt's method, with the unknowns on a manifold.

With $r$ the weighted residuals and $J$ their derivative in changes $\delta$ of the unknowns,

$$
\begin{aligned}
(J^TJ + \lambda D^2)\,\delta &= -J^Tr, \qquad D^2 = \mathrm{diag}(J^TJ)   &&\text{(1)}\\
\rho &= \frac{|r(x)|^2 - |r(x\oplus\delta)|^2}{|r|^2 - |r + J\delta|^2}   &&\text{(2)}
\end{aligned}
$$

A step that makes the sum smaller is taken, and $\lambda$ falls with (2) near 1; any other raises
it. Equations (1) are solved as a least-squares problem, without squaring the condition of $J$.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from retrax.estimation.problem import Linear
from retrax.estimation.unknowns import Point

_FIRST, _LEAST, _MOST = 1e-3, 1e-15, 1e12
# Rounding errors alone ask for a change that lowers a square by less than this.
_ROUNDING = 1e-26


class Found(NamedTuple):
    """Where a search ended: the point, how often it looked, and whether it had converged.

    At an `edge` the next change leads to no system, or to a motion that fails: the point says where
    the search was stopped, not where the sum is smallest.
    """

    point: Point
    looks: int
    converged: bool
    edge: bool = False


def levenberg_marquardt(
    linear: Callable[[Point], Linear],
    moved: Callable[[Point, np.ndarray], Point],
    point: Point,
    most: int,
    enough: Callable[[float], float],
) -> Found:
    """Make the sum of squares small, from `point` on, looking at most `most` times.

    The search ends where a change is expected to lower the sum by no more than `enough` of it.
    Where residuals are not finite, a step has gone too far; a search that such steps have stopped
    has not converged.
    """
    here = linear(point)
    if not _finite(here):
        return Found(point, 1, False)
    size, damping = float(here.residuals @ here.residuals), _FIRST
    scale, edge = np.zeros(here.jacobian.shape[1]), False
    for look in range(2, most + 1):
        scale = np.maximum(scale, np.linalg.norm(here.jacobian, axis=0))
        weights = np.maximum(scale, 1e-12 * max(np.max(scale), 1e-300))
        change = _solve_damped(here, weights, damping)
        there_linear = here.residuals + here.jacobian @ change
        expected = size - float(there_linear @ there_linear)
        if expected <= max(enough(size), _ROUNDING * len(here.residuals)):
            return Found(point, look - 1, not edge, edge)
        trial = moved(point, change)
        there = linear(trial)
        edge = not _finite(there)
        smaller = np.inf if edge else float(there.residuals @ there.residuals)
        gain = (size - smaller) / expected  # (2)
        if gain > 0:
            point, here, size = trial, there, smaller
            damping = max(damping * (0.1 if gain > 0.75 else 0.5 if gain > 0.25 else 2.0), _LEAST)
        else:
            damping *= 10.0
            if damping > _MOST:
                return Found(point, look, not edge and expected <= 1e-6 * size, edge)
    return Found(point, most, False, edge)


def _solve_damped(here: Linear, weights: np.ndarray, damping: float) -> np.ndarray:
    """Solve (1), in unknowns scaled by the weights."""
    n = len(weights)
    turned, triangle = np.linalg.qr(here.jacobian / weights)
    rows = np.concatenate([triangle, np.sqrt(damping) * np.eye(n)])
    right = np.concatenate([-(turned.T @ here.residuals), np.zeros(n)])
    return np.linalg.lstsq(rows, right, rcond=None)[0] / weights


def _finite(here: Linear) -> bool:
    return bool(np.isfinite(here.residuals).all() and np.isfinite(here.jacobian).all())

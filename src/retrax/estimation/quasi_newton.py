r"""The method of Broyden, Fletcher, Goldfarb and Shanno with little memory, on a manifold.

Gradients and changes are left trivialised, so that those of neighbouring points are compared as
vectors of one space; a step that makes the value smaller by less than a part of what its slope
promises is halved.
"""

from collections.abc import Callable

import numpy as np

from retrax.estimation.least_squares import Found
from retrax.estimation.problem import Sloped
from retrax.estimation.unknowns import Point

_MEMORY, _PART, _HALVINGS = 12, 1e-4, 40


def limited_memory_bfgs(
    sloped: Callable[[Point], Sloped],
    moved: Callable[[Point, np.ndarray], Point],
    point: Point,
    most: int,
    enough: Callable[[float], float],
) -> Found:
    """Make half a sum of squares small, from `point` on, by at most `most` steps.

    The search ends where a step is expected to lower the sum by no more than `enough` of it.
    """
    here = sloped(point)
    if not _finite(here):
        return Found(point, 1, False)
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    looks = 1
    for _ in range(most):
        direction = -_inverse_hessian(pairs, here.gradient)
        slope = float(direction @ here.gradient)
        if slope >= 0:
            pairs, direction = [], -here.gradient
            slope = float(direction @ here.gradient)
        length = 1.0 if pairs else min(1.0, 0.1 * here.value / max(-slope, 1e-300))
        if -slope * length <= enough(2 * here.value) or slope == 0:
            return Found(point, looks, True)
        for _ in range(_HALVINGS):
            change = length * direction
            trial = moved(point, change)
            there = sloped(trial)
            looks += 1
            if _finite(there) and there.value <= here.value + _PART * length * slope:
                break
            length /= 2
        else:
            return Found(point, looks, False)
        turned = there.gradient - here.gradient
        if turned @ change > 1e-12 * np.linalg.norm(turned) * np.linalg.norm(change):
            pairs = [*pairs[-_MEMORY + 1 :], (change, turned)]
        point, here = trial, there
    return Found(point, looks, False)


def _inverse_hessian(
    pairs: list[tuple[np.ndarray, np.ndarray]], gradient: np.ndarray
) -> np.ndarray:
    """Apply the estimate of the inverse Hessian to a gradient, by two loops."""
    q, factors = gradient.copy(), []
    for change, turned in reversed(pairs):
        factor = (change @ q) / (change @ turned)
        factors.append(factor)
        q -= factor * turned
    if pairs:
        change, turned = pairs[-1]
        q *= (change @ turned) / (turned @ turned)
    for (change, turned), factor in zip(pairs, reversed(factors), strict=True):
        q += change * (factor - (turned @ q) / (change @ turned))
    return q


def _finite(here: Sloped) -> bool:
    return bool(np.isfinite(here.value) and np.isfinite(here.gradient).all())

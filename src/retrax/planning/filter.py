"""Which of two iterates is better: a filter of pairs (violation, cost), for problems side by side.

References: [WaechterBiegler2006].
"""

import numpy as np

_LESS_VIOLATION, _LESS_COST = 1e-5, 1e-5
_ARMIJO = 1e-4
# Cost and violation are known up to so many rounding errors.
_ROUND = 64 * np.finfo(float).eps


class Filter:
    """Pairs that no later iterate may be worse than, for each problem."""

    def __init__(self, problems: int):
        self._violations: list[np.ndarray] = []
        self._costs: list[np.ndarray] = []
        self.most = np.full(problems, np.inf)
        self.small = np.zeros(problems)

    def begin(self, which: np.ndarray, violation: np.ndarray) -> None:
        """Forget the pairs of some problems, whose cost has become another."""
        for x in self._violations:
            x[which] = np.inf
        first = np.maximum(1.0, violation)
        self.most = np.where(which, 1e1 * first, self.most)
        self.small = np.where(which, 1e-4 * first, self.small)

    def accepts(
        self,
        violation: np.ndarray,
        cost: np.ndarray,
        tried_violation: np.ndarray,
        tried_cost: np.ndarray,
        length: np.ndarray,
        slope: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Tell which trials are good enough, and for which of them the old pair is kept."""
        slack = _ROUND * np.maximum(np.abs(cost), 1e-300)
        falls = slope < 0
        with np.errstate(over="ignore", invalid="ignore"):
            promise = length * np.where(falls, -slope, 0.0) ** 2.3
        switching = falls & (promise > violation**1.1) & (violation <= self.small)
        armijo = tried_cost <= cost + _ARMIJO * length * slope + slack
        less = tried_violation <= (1 - _LESS_VIOLATION) * violation
        better = less | (tried_cost <= cost - _LESS_COST * violation + slack)
        good = np.where(switching, armijo, better) & (tried_violation <= self.most)
        for v, c in zip(self._violations, self._costs, strict=True):
            ok = (tried_violation < (1 - _LESS_VIOLATION) * v) | (tried_cost < c + slack)
            good &= ok | np.isinf(v)
        good &= np.isfinite(tried_cost) & np.isfinite(tried_violation)
        return good, ~(switching & armijo)

    def keep(self, which: np.ndarray, violation: np.ndarray, cost: np.ndarray) -> None:
        """Take the pairs of some problems into the filter."""
        if which.any():
            self._violations.append(np.where(which, violation, np.inf))
            self._costs.append(np.where(which, cost - _LESS_COST * violation, np.inf))

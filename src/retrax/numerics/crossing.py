"""Where a function of one variable crosses zero, between two ends that lie on both sides."""

import sys
from collections.abc import Callable

# Regula falsi takes some ten looks; bisection alone would take sixty.
_MOST = 100
_EPS = sys.float_info.epsilon


def crossing(value: Callable[[float], float], h: float, before: float, after: float) -> float:
    """Return the first number behind a zero of `value` between 0 and `h`, to round-off.

    By the method of Illinois: regula falsi, with the value at an end that stays halved.

    **Arguments:** `before`, `after`: the values at 0 and at `h`, of other signs.
    """
    near = 2 * _EPS * abs(h)
    (a, fa), (b, fb) = (0.0, before), (h, after)
    kept = 0  # which end the last look has kept
    for _ in range(_MOST):
        if fb == 0 or abs(b - a) <= near:
            break
        c = b - fb * (b - a) / (fb - fa)
        # Never nearer to an end than what is near: the last look has to leave it behind.
        margin = min(near, abs(b - a) / 2)
        low, high = min(a, b) + margin, max(a, b) - margin
        c = min(max(c, low), high) if c == c else (a + b) / 2
        fc = value(c)
        if fc == 0 or (fc > 0) == (after > 0):
            if kept == 1:
                fa /= 2
            (b, fb), kept = (c, fc), 1
        else:
            if kept == -1:
                fb /= 2
            (a, fa), kept = (c, fc), -1
    return b

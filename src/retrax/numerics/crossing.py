"""Where a function of one variable crosses zero: between two ends, and within a step."""

import sys
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

# Regula falsi takes some ten looks; bisection alone would take sixty.
_MOST = 100
_EPS = sys.float_info.epsilon
# A parabola through three values is believed to so much of its second difference.
_DOUBT = 0.25
_GOLDEN = (3 - 5**0.5) / 2
# Where a function is lowest is found to this part of an interval, and not this near to its ends.
_FOUND, _EDGE = 1e-9, 1e-6
# A function may touch zero if it comes as near as this part of the values beside.
_TOUCHES = 1e-9

Value = Callable[[float], float]
Point = tuple[float, float]


class Crossing(NamedTuple):
    """A zero at `tau`: 1 where the function rises and -1 where it falls.

    Or the place where it turns back, 0, at a value `off` zero that may be one to round-off.
    """

    tau: float
    turn: int
    off: float = 0.0


class Start(NamedTuple):
    """How a function leaves a zero: to or from which side, 0 for neither; its rate there.

    Below `doubt` a value is zero to round-off.
    """

    side: float
    rate: float
    doubt: float


def crossing(value: Value, h: float, before: float, after: float) -> float:
    """Return the first number behind a zero of `value` between 0 and `h`, to round-off.

    **Arguments:** `before`, `after`: the values at 0 and at `h`, of other signs.
    """
    return _between(value, (0.0, before), (h, after), 2 * _EPS * abs(h))


def crossings(
    value: Value, times: np.ndarray, values: np.ndarray, start: Start | None = None
) -> list[Crossing]:
    """Return all zeros that the values of a function at some times, from 0 on, let find.

    Between two values of one sign there are two zeros where the function turns across zero, which
    is seen from the values beside them.

    **Arguments:** `start`: how it leaves zero, where the first value is zero.
    """
    known = ~np.isnan(values)
    known[1:-1] &= values[1:-1] != 0  # what touches zero there is seen from both sides
    points = list(zip(times[known].tolist(), values[known].tolist(), strict=True))
    near, found = 2 * _EPS * abs(float(times[-1])), []
    if start is not None or points[0][1] == 0:
        points = points[1:]
    for tau, low, across in _turns(value, points):
        if across:
            points.append((tau, low))
        else:
            found.append(Crossing(tau, 0, abs(low)))
    points.sort(key=lambda point: abs(point[0]))
    if start is not None and points and start.side * points[0][1] < 0:
        left = _leave_zero(value, points[0], start, near)
        if left[1] == 0:
            found.append(Crossing(left[0], -int(start.side)))
        else:
            points = [left, *points]
    for one, other in pairwise(points):
        if one[1] > 0 >= other[1] or one[1] < 0 <= other[1]:
            found.append(Crossing(_between(value, one, other, near), -1 if one[1] > 0 else 1))
    return found


def _leave_zero(value: Value, first: Point, start: Start, near: float) -> Point:
    """Return a point on the side to which a function leaves zero, or where it is back there.

    It comes back before `first`. A flight below round-off ends where a parabola does.
    """
    tau, f = first
    while abs(tau) > near:
        tau /= 2
        if start.side * (here := value(tau)) > start.doubt:
            return tau, here
    bend = 2 * (f - start.rate * first[0]) / first[0] ** 2
    back = -2 * start.rate / bend
    return (back if near < abs(back) < abs(first[0]) and back * first[0] > 0 else tau), 0.0


def _turns(value: Value, points: list[Point]) -> list[tuple[float, float, bool]]:
    """Return points to which a function turns: on the other side of zero, or nearly on zero."""
    found = []
    for first, middle, last in zip(points, points[1:], points[2:], strict=False):
        side = 1.0 if middle[1] > 0 else -1.0
        p, a, b = (side * point[1] for point in (first, middle, last))
        c, m = b - 2 * a + p, (b - p) / 2
        if min(p, a, b) <= 0 or not abs(m) < 1.5 * c:
            continue
        s = min(max(-m / c, -1.0), 1.0)
        if a + s * (m + s * c / 2) > _DOUBT * c:
            continue
        tau, low = _lowest(lambda x, side=side: side * value(x), first[0], last[0])
        part = (tau - first[0]) / (last[0] - first[0])
        if low < 0 or (low <= _TOUCHES * max(p, b) and _EDGE < part < 1 - _EDGE):
            found.append((tau, side * low, low < 0))
    return found


def _lowest(value: Value, start: float, end: float) -> Point:
    """Return the lowest point of a function between two numbers, or one below zero.

    By golden sections.
    """
    a, d = start, end
    b, c = a + _GOLDEN * (d - a), d - _GOLDEN * (d - a)
    fb, fc = value(b), value(c)
    while min(fb, fc) >= 0 and abs(d - a) > _FOUND * abs(end - start):
        if fb <= fc:
            c, d, fc = b, c, fb
            b = a + _GOLDEN * (d - a)
            fb = value(b)
        else:
            a, b, fb = b, c, fc
            c = d - _GOLDEN * (d - a)
            fc = value(c)
    return (b, fb) if fb <= fc else (c, fc)


def _between(value: Value, one: Point, other: Point, near: float) -> float:
    """Return the first number behind a zero between two points on both sides of it.

    By the method of Illinois: regula falsi, with the value at an end that stays halved.
    """
    (a, fa), (b, fb) = one, other
    after = fb
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

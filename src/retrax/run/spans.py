"""How many steps a span of time has: `until` beside `steps`."""

import math
from typing import Any

import numpy as np

from retrax.errors import BadInput
from retrax.numerics.checks import as_float, is_traced, quote
from retrax.run.checks import require_step_size

# A span is a whole number of steps if it misses one by less than this part of a step, or by the
# rounding errors of its two ends.
_SLACK, _ROUNDING = 1e-9, 8


def whole_steps(t0: float, until: object, h: float, taken: int = 0) -> int:
    """Return how many steps of size `h` are left to the time `until`, from step `taken` on.

    Step 0 is at `t0`.

    **Raises:** `BadInput` where that is no whole number, or the time lies behind.
    """
    end = as_float(until)
    count = (end - t0) / h
    if not math.isfinite(count):
        raise BadInput(
            f"until = {quote(until)} must be a time in seconds, a finite number that steps of h = "
            f"{h:g} s can reach."
        )
    steps, now = round(count), t0 + taken * h
    if steps <= taken:
        raise BadInput(
            f"until = {end:.12g} s is not a step ahead of t = {now:.12g} s, with steps of "
            f"h = {h:g} s."
        )
    off = abs(t0 + steps * h - end)
    if off > max(_SLACK * abs(h), _ROUNDING * math.ulp(max(abs(t0), abs(end)))):
        low = max(taken + 1, math.floor(count))
        raise BadInput(
            f"until = {end:.12g} s is {count - taken:.6g} steps of h = {h:g} s from t = {now:.12g} "
            f"s, which is no whole number: take until = {t0 + low * h:.12g} or "
            f"{t0 + (low + 1) * h:.12g}, or h = {(end - now) / (steps - taken):.12g}."
        )
    return steps - taken


def count_steps(state: object, h: object, steps: Any, until: object) -> Any:
    """Return how many steps a run shall have: `steps`, or those that end at the time `until`.

    **Raises:** `BadInput` unless exactly one of them is given, and `until` can be reached.
    """
    if (steps is None) == (until is None):
        told = "both are" if steps is not None else "none is"
        raise BadInput(f"a run needs steps=... or until=..., one of the two, but {told} given.")
    if until is None:
        return steps
    t0 = getattr(state, "t", 0.0)
    if is_traced(t0, h, until):
        raise BadInput("until = ... needs the numbers of t and h, but JAX is tracing them.")
    times = np.ravel(np.asarray(t0, float))
    if not len(times) or np.any(times != times[0]):
        raise BadInput("until = ... needs members that start at one time; give steps.")
    require_step_size(h)
    return whole_steps(float(times[0]), until, float(as_float(h)))

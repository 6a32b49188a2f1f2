"""Rounding errors of long runs: do they grow like a random walk, and is there a bias?"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from retrax.errors import BadInput
from retrax.numerics.checks import host_float64, require_finite, require_shape

_SHORTEST, _BLOCKS = 32, 16
_LONGEST_LAG = 8  # of the length of a run: longer lags overlap too much to average


class Slope(NamedTuple):
    """The mean slope of errors per unit of time, and its standard error."""

    value: float
    standard_error: float

    @property
    def ratio(self) -> float:
        """The slope in standard errors: of size one if there is no bias."""
        return self.value / self.standard_error if self.standard_error > 0 else 0.0


def growth_exponent(errors: Float[np.ndarray, " n"]) -> float:
    r"""Return the exponent $p$ with which errors at equal distances in time grow.

    $$ S(\ell) = \frac1{n-\ell}\sum_k (e_{k+\ell} - e_k)^2 \sim \ell^{2p}, \tag{1} $$

    fitted over the lags $\ell = 1, 2, 4, \dots$ up to an eighth of the run. A random walk has
    $p = 1/2$, a drift $p = 1$, an error that stays where it is, however it moves there, $p = 0$.
    Errors that never change have no exponent: the result is then 0 as well.
    """
    e = _check_errors(errors)
    lags = 2 ** np.arange(1 + int(math.log2(len(e) // _LONGEST_LAG)))
    e = np.ldexp(e, -math.frexp(np.max(np.abs(e)))[1])  # of size one: no square overflows
    moved = np.array([np.mean((e[lag:] - e[:-lag]) ** 2) for lag in lags])  # (1)
    if not np.all(moved > 0):
        return 0.0
    return float(np.polyfit(np.log(lags), np.log(moved), 1)[0]) / 2


def bias(t: Float[np.ndarray, " n"], errors: Float[np.ndarray, " n"]) -> Slope:
    r"""Return the slope of errors, from the straight lines through 16 equal parts of the run.

    Within a part the errors of a random walk lean one way or the other by chance; the leanings of
    different parts are independent, so that the spread of their slopes $b_i$ tells how well their
    mean is known: $s = \sqrt{\sum_i(b_i - \bar b)^2/(m(m-1))}$. The line through the whole run has
    no such measure: its residuals are not independent, and a random walk would pass for a drift.
    """
    e, m = _check_errors(errors), _BLOCKS
    t = host_float64("t", t)
    require_shape("t", t, e.shape)
    require_finite("t", t)
    if not np.all(np.diff(t) > 0):
        raise BadInput("t must increase from each entry to the next.")
    size = len(e) // m
    parts = e[: m * size].reshape(m, size)
    time = t[: m * size].reshape(m, size)
    time = time - time.mean(axis=1, keepdims=True)
    with np.errstate(all="ignore"):
        slopes = np.sum(time * (parts - parts.mean(axis=1, keepdims=True)), axis=1)
        slopes = slopes / np.sum(time**2, axis=1)
        found = Slope(float(slopes.mean()), float(slopes.std(ddof=1)) / math.sqrt(m))
    if not all(map(math.isfinite, found)):
        raise BadInput(
            f"errors of up to {np.max(np.abs(e)):g} over times up to {np.max(np.abs(t)):g} have no "
            "finite slope: their products are too large or too small for float64."
        )
    return found


def _check_errors(errors: Float[np.ndarray, " n"]) -> np.ndarray:
    e = host_float64("errors", errors)
    if e.ndim != 1 or len(e) < _SHORTEST:
        raise BadInput(
            f"errors must be a row of at least {_SHORTEST} numbers, but their shape is {e.shape}."
        )
    require_finite("errors", e)
    return e

"""How well a quantity that should stay constant did."""

import math

import numpy as np

from retrax.errors import BadInput
from retrax.numerics.checks import host_float64, require_finite


def deviations(values: np.ndarray) -> np.ndarray:
    """The values less the first one."""
    values = np.asarray(values)
    return values - values[0]


def drift(t: np.ndarray, values: np.ndarray) -> float:
    r"""The slope of the least-squares line through the values, per second.

    $$ \frac{\sum_k (t_k - \bar t)(x_k - \bar x)}{\sum_k (t_k - \bar t)^2} $$

    A bounded oscillation has none in the long run; a secular error has nothing else.
    """
    t, x = host_float64("t", t), host_float64("values", values)
    if t.ndim != 1 or t.shape != x.shape:
        raise BadInput(
            f"t and values have shapes {t.shape} and {x.shape}, but must be two vectors of one "
            "length."
        )
    require_finite("t", t)
    require_finite("values", x)
    if len(t) < 2:
        return 0.0
    t, x = t - t.mean(), deviations(x)
    squares = float(t @ t)
    if not 0 < squares < math.inf:
        raise BadInput(
            f"t goes from {t.min():.3g} s to {t.max():.3g} s about its mean: a slope needs times "
            "that differ, and whose squares are numbers."
        )
    with np.errstate(all="ignore"):
        slope = float(t @ (x - x.mean()) / squares)
    if not math.isfinite(slope):
        raise BadInput(f"values differ by up to {np.ptp(x):g}, too much for a slope in float64.")
    return slope

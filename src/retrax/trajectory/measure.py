"""How well a quantity that should stay constant did."""

import numpy as np


def deviations(values: np.ndarray) -> np.ndarray:
    """The values less the first one."""
    values = np.asarray(values)
    return values - values[0]


def drift(t: np.ndarray, values: np.ndarray) -> float:
    r"""The slope of the least-squares line through the values, per second.

    $$ \frac{\sum_k (t_k - \bar t)(x_k - \bar x)}{\sum_k (t_k - \bar t)^2} $$

    A bounded oscillation has none in the long run; a secular error has nothing else.
    """
    t, x = np.asarray(t, dtype=float), deviations(values)
    if len(t) < 2:
        return 0.0
    t = t - t.mean()
    return float(t @ (x - x.mean()) / (t @ t))

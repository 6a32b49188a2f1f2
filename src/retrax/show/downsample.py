"""Fewer points, same extremes: a peak that was computed stays in the picture."""

from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int


def extremes(values: Float[np.ndarray, " time"], points: int) -> Int[np.ndarray, " kept"]:
    """Indices of at most `points` values (4 or more), in order.

    A series that is short enough is kept whole. Any other is cut into buckets of equal length; kept
    are the least and the largest value of each, and both ends.
    """
    count = len(values)
    if count <= points:
        return np.arange(count)
    edges = np.linspace(0, count, max(1, (points - 2) // 2) + 1).astype(int)
    kept = {0, count - 1}
    for first, end in pairwise(edges):
        bucket = values[first:end]
        kept |= {first + int(np.argmin(bucket)), first + int(np.argmax(bucket))}
    return np.array(sorted(kept))

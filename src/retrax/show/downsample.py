"""Fewer points, same extremes: a peak that was computed stays in the picture."""

import numpy as np
from jaxtyping import Float, Int


def extremes(values: Float[np.ndarray, " time"], points: int) -> Int[np.ndarray, " kept"]:
    """Indices of at most `points` values, in order: the ends, and the least and largest of each bucket.

    The series is cut into buckets of equal length; where it is short enough, all of it is kept.
    """
    count = len(values)
    if count <= points:
        return np.arange(count)
    edges = np.linspace(0, count, max(1, (points - 2) // 2) + 1).astype(int)
    kept = {0, count - 1}
    for first, end in zip(edges[:-1], edges[1:], strict=True):
        bucket = values[first:end]
        kept |= {first + int(np.argmin(bucket)), first + int(np.argmax(bucket))}
    return np.array(sorted(kept))

"""The saved states of a run as the rows of numbers that a kernel leaves, and as arrays."""

from typing import Any

import numpy as np

from retrax.engine.progress import Interval, Packing
from retrax.mechanics.state import State


class Records:
    """Rows of numbers, made into states and statistics when these are asked for.

    **Arguments:**

    - `packing`: where the numbers of a state lie in a row.
    - `numbers`: a row for each saved state; the last number of a row is the time.
    - `intervals`: iterations, residual and increment since the row before.
    """

    __slots__ = ("intervals", "numbers", "packing")

    def __init__(self, packing: Packing, numbers: np.ndarray, intervals: np.ndarray):
        self.packing, self.numbers, self.intervals = packing, numbers, intervals

    def __len__(self) -> int:
        return len(self.numbers)

    def states(self, rows: Any = slice(None)) -> State:
        """Return the states, or some of them, stacked along time."""
        return self.packing.unpack_one(self.numbers[rows], copy=True)

    def times(self) -> np.ndarray:
        return self.numbers[:, -1].copy()

    def last(self) -> State:
        """Return the last state."""
        return self.packing.unpack_one(self.numbers[-1], copy=True)

    def info(self) -> Interval:
        """Return the solver statistics."""
        iterations, residual, increment = (column.copy() for column in self.intervals.T)
        whole: Any = iterations.astype(int)
        return Interval(whole, residual, increment)

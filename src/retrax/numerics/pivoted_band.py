"""Banded systems, by elimination with exchange of rows: $O(N)$, on the host."""

import numpy as np
from jaxtyping import Float, Int


class PivotedBand:
    """A banded matrix from entries that add up, factored once for all right sides.

    **Arguments:** `rows`, `columns`, `values`: the entries; those at the same place add up; `size`:
    the number of rows.
    """

    def __init__(
        self,
        rows: Int[np.ndarray, " m"],
        columns: Int[np.ndarray, " m"],
        values: Float[np.ndarray, " m"],
        size: int,
    ):
        from scipy.linalg import get_lapack_funcs  # takes a while to import, and few need it
        from scipy.sparse import csr_array

        factor, solve = get_lapack_funcs(("gbtrf", "gbtrs"))
        self.matrix = csr_array((values, (rows, columns)), shape=(size, size))
        self.sizes, self.width = abs(self.matrix), int(np.max(np.abs(rows - columns)))
        self.singular, self._solve = not np.isfinite(values).all(), solve
        if not self.singular:
            table = np.zeros((3 * self.width + 1, size))
            np.add.at(table, (2 * self.width + rows - columns, columns), values)
            self._factors, self._exchanged, zero = factor(table, self.width, self.width)
            self.singular = zero != 0

    def product(self, x: Float[np.ndarray, "n m"]) -> Float[np.ndarray, "n m"]:
        """Return the matrix times the columns of `x`."""
        return self.matrix @ x

    def cancelling(self, x: Float[np.ndarray, "n m"]) -> Float[np.ndarray, "n m"]:
        """Return the sums of the sizes of what cancels in `product`."""
        return self.sizes @ np.abs(x)

    def solve(self, b: Float[np.ndarray, "n m"]) -> Float[np.ndarray, "n m"]:
        """Solve for the columns of `b`, and refine once; infinite where the matrix is singular."""
        if self.singular or not np.isfinite(b).all():
            return np.full_like(b, np.inf)
        x = self._once(b)
        return x + self._once(b - self.product(x))

    def _once(self, b: Float[np.ndarray, "n m"]) -> Float[np.ndarray, "n m"]:
        return self._solve(self._factors, self.width, self.width, b, self._exchanged)[0]

r"""Systems of linear equations in which each block knows its neighbours only, on the host.

$$ L_k x_{k-1} + D_k x_k + U_k x_{k+1} = b_k, \qquad k = 0, \dots, n. \tag{1} $$

Elimination from the top leaves $x_k = y_k - W_k x_{k+1}$ with

$$ P_k = D_k - L_k W_{k-1}, \qquad W_k = P_k^{-1} U_k, \qquad
   y_k = P_k^{-1}(b_k - L_k y_{k-1}): \tag{2} $$

one small system a block, so the work grows like $n$.
"""

import numpy as np
from jaxtyping import Float

Blocks = Float[np.ndarray, "n b b"]


class BlockTridiagonal:
    """The matrix of (1), its pivots $P_k$ inverted once for all right sides.

    **Arguments:** `lower`, `diagonal`, `upper`: the blocks of each row; the first of `lower` and
    the last of `upper` are not looked at.
    """

    def __init__(self, lower: Blocks, diagonal: Blocks, upper: Blocks):
        n = len(diagonal)
        self.lower, self.pivots, self.upper = lower, np.empty_like(diagonal), np.zeros_like(upper)
        for k in range(n):
            pivot = diagonal[k] - lower[k] @ self.upper[k - 1] if k else diagonal[k]
            self.pivots[k] = np.linalg.inv(pivot)
            if k < n - 1:
                self.upper[k] = self.pivots[k] @ upper[k]  # (2)

    def solve(self, b: Float[np.ndarray, "n b *m"]) -> Float[np.ndarray, "n b *m"]:
        """The solution for a right side, or for several beside each other."""
        x = np.empty_like(b)
        for k in range(len(b)):
            x[k] = self.pivots[k] @ (b[k] - self.lower[k] @ x[k - 1] if k else b[k])
        for k in reversed(range(len(b) - 1)):
            x[k] -= self.upper[k] @ x[k + 1]  # (2)
        return x

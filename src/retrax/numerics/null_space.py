"""Null spaces on the host, in a form that people can read."""

import numpy as np
from jaxtyping import Float


def null_space(
    matrix: Float[np.ndarray, "rows n"], tolerance: float
) -> Float[np.ndarray, "nullity n"]:
    """A basis of the null space in reduced row echelon form: axes come out as axes.

    Singular values up to `tolerance` count as zero.
    """
    _, singular, rows = np.linalg.svd(matrix)
    return echelon(rows[np.sum(singular > tolerance) :])


def echelon(basis: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "m n"]:
    """The same span in reduced row echelon form; the rows must be independent and of size one."""
    basis = np.array(basis, dtype=float)
    pivot = 0
    for column in range(basis.shape[1]):
        if pivot == len(basis):
            break
        best = pivot + int(np.argmax(np.abs(basis[pivot:, column])))
        if abs(basis[best, column]) < 1e-6:
            continue
        basis[[pivot, best]] = basis[[best, pivot]]
        basis[pivot] /= basis[pivot, column]
        others = [i for i in range(len(basis)) if i != pivot]
        basis[others] -= np.outer(basis[others, column], basis[pivot])
        pivot += 1
    return np.where(np.abs(basis) < 1e-9, 0.0, basis)

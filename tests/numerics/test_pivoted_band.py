"""Banded systems on the host against dense ones."""

import numpy as np

from retrax.numerics.pivoted_band import PivotedBand


def band(size, width, seed):
    """Entries of a random band, the first pivot of which is zero; each of them in two parts."""
    rng = np.random.default_rng(seed)
    rows, columns = np.nonzero(np.abs(np.subtract.outer(*[np.arange(size)] * 2)) <= width)
    values = rng.standard_normal(len(rows))
    values[(rows == 0) & (columns == 0)] = 0.0
    twice = [np.concatenate([x, x]) for x in (rows, columns)]
    full = np.zeros((size, size))
    full[rows, columns] = values
    return PivotedBand(*twice, np.concatenate([0.3 * values, 0.7 * values]), size), full


def test_a_band_solves_as_a_dense_matrix_does_though_its_first_pivot_is_zero():
    matrix, full = band(30, 4, 1)
    b = np.random.default_rng(2).standard_normal((30, 3))
    np.testing.assert_allclose(matrix.solve(b), np.linalg.solve(full, b), rtol=0, atol=2e-13)
    np.testing.assert_allclose(matrix.product(b), full @ b, rtol=0, atol=3e-15)
    np.testing.assert_allclose(matrix.cancelling(b), np.abs(full) @ np.abs(b), rtol=1e-14)


def test_a_singular_band_has_no_finite_solution():
    rows = np.arange(3)
    assert np.isinf(
        PivotedBand(rows, rows, np.array([1.0, 0.0, 1.0]), 3).solve(np.ones((3, 1)))
    ).all()

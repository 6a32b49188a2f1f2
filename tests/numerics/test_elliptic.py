"""Elliptic functions against mpmath, and a determinant against NumPy."""

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from retrax.numerics.elliptic import complete, incomplete, jacobi
from retrax.numerics.small_matrices import solve_and_determinant


@pytest.mark.parametrize("m", [0.0, 0.01, 7 / 15, 0.93, 1 - 1e-9])
def test_functions_and_integrals_agree_with_mpmath(m):
    u = np.array([-7.3, -0.4, 0.0, 1.1, 3.7])
    ours = np.array(jacobi(jnp.asarray(u), jnp.asarray(m)))
    theirs = [[float(mpmath.ellipfun(f, x, m=m)) for x in u] for f in ("sn", "cn", "dn")]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-13)
    assert float(complete(jnp.asarray(m))) == pytest.approx(float(mpmath.ellipk(m)), rel=1e-15)
    ours = np.array(incomplete(jnp.asarray(u), jnp.asarray(m)))
    theirs = [float(mpmath.ellipf(x, m)) for x in u]
    np.testing.assert_allclose(ours, theirs, rtol=1e-14, atol=0)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6, 8, 9])
def test_a_solution_comes_with_the_determinant(n):
    rng = np.random.default_rng(n)
    for _ in range(5):  # rows in random order: the sign is that of the swaps
        A, b = rng.standard_normal((n, n)), rng.standard_normal(n)
        x, determinant = solve_and_determinant(jnp.asarray(A), jnp.asarray(b))
        assert float(determinant) == pytest.approx(np.linalg.det(A), rel=1e-12)
        np.testing.assert_allclose(A @ np.asarray(x), b, rtol=0, atol=1e-12)

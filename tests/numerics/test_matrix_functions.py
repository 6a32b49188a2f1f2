"""phi1 and the principal logarithm of a matrix, against 60 digits and against each other."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
import scipy.linalg

from retrax.numerics.matrix_functions import logm, phi1

EPS = float(np.finfo(float).eps)


@pytest.mark.parametrize("size", [1e-12, 1e-3, 0.7, 3.0, 20.0])
def test_phi1_is_exact_to_round_off(size):
    A = np.random.default_rng(0).standard_normal((3, 3))
    A = size * A / np.linalg.norm(A, 2)
    with mp.workdps(60):
        M = mp.matrix(A.tolist())
        exact = (mp.expm(M, method="taylor") - mp.eye(3)) * M**-1
        exact = np.array(exact.tolist(), dtype=float)
    error = np.max(np.abs(np.asarray(phi1(jnp.asarray(A))) - exact)) / np.max(np.abs(exact))
    assert error < 5 * EPS * max(1.0, size)  # measured at most 0.7


def test_phi1_of_zero_is_one_with_derivative_one_half():
    zero, direction = jnp.zeros((3, 3)), jnp.arange(9.0).reshape(3, 3)
    value, slope = jax.jvp(phi1, (zero,), (direction,))
    np.testing.assert_array_equal(value, np.eye(3))
    np.testing.assert_allclose(slope, direction / 2, rtol=1e-15)


@pytest.mark.parametrize("size", [1e-9, 0.1, 1.0, 3.0])
def test_logm_undoes_the_exponential(size):
    A = np.random.default_rng(1).standard_normal((4, 4))
    A = size * A / np.linalg.norm(A, 2)
    value = np.asarray(logm(jnp.asarray(scipy.linalg.expm(A))))
    bound = 1e-15 if size <= 0.1 else 1e-13
    assert np.max(np.abs(value - A)) < bound  # measured 1e-16 and 1.4e-14

"""Rotations of n dimensions on n by n matrices, against those of the general matrix group."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import retrax as rx
from retrax.numerics.matrix_functions import phi1_short
from retrax.testing import check_group


def test_laws():
    errors = check_group(rx.SO(4))
    assert max(errors.values()) < 1e-14  # measured: 1.3e-15


@pytest.mark.parametrize("length", [1e-6, 0.7, 3.1])
def test_the_inverse_tangent_map_in_all_of_the_chart(length):
    """By a solve with the series of dexp on matrices of as many rows as there are planes."""
    group = rx.SO(5)
    xi, eta = np.random.default_rng(2).standard_normal((2, group.dim))
    xi *= length / np.linalg.norm(xi)
    ad = np.asarray(group.ad(jnp.asarray(xi)))
    n = group.dim
    block = np.block([[-ad, np.eye(n)], [np.zeros((n, 2 * n))]])
    dexp = scipy.linalg.expm(block)[:n, n:]
    wanted = np.linalg.solve(dexp, eta)
    seen = jax.jit(group.dexp_inv)(jnp.asarray(xi), jnp.asarray(eta))
    np.testing.assert_allclose(seen, wanted, atol=3e-14)  # measured: 4e-15
    assert bool(rx.Exp().covers(group, jnp.asarray(xi)))
    assert not bool(rx.Exp().covers(group, jnp.asarray(xi) * 1.1 * np.pi / length))


@pytest.mark.parametrize("length", [1e-4, 3.0, 12.0])
def test_the_short_series_of_the_exponential_map(length):
    xi = np.random.default_rng(3).standard_normal(10)
    X = np.asarray(rx.SO(5).hat(jnp.asarray(xi * length / np.linalg.norm(xi))))
    short = X @ np.asarray(phi1_short(jnp.asarray(X)))
    np.testing.assert_allclose(short, scipy.linalg.expm(X) - np.eye(5), atol=3e-14)

"""Chains of equations, solved in one sweep down and one up, against dense matrices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from retrax.numerics.tridiagonal import (
    factor,
    product,
    solve,
    solve_blocks,
    solve_line,
    solve_ring,
)


def chain(n, b, seed):
    """Blocks of a symmetric positive definite matrix, none like its neighbour, and the matrix."""
    rng = np.random.default_rng(seed)
    below = rng.standard_normal((n, b, b))
    diagonal = rng.standard_normal((n, b, b))
    diagonal = diagonal @ diagonal.transpose(0, 2, 1) + (3 + 2 * b) * np.eye(b)
    return diagonal, below, dense(below, diagonal, np.roll(below, -1, axis=0).transpose(0, 2, 1))


def dense(lower, diagonal, upper):
    n, b, _ = diagonal.shape
    full = np.zeros((n, b, n, b))
    for k in range(n):
        full[k, :, k] = diagonal[k]
        if k:
            full[k, :, k - 1] = lower[k]
        if k < n - 1:
            full[k, :, k + 1] = upper[k]
    return full.reshape(n * b, n * b)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_a_chain_of_numbers(n):
    diagonal, below, full = chain(n, 1, n)
    a, b = jnp.asarray(diagonal.reshape(n)), jnp.asarray(below.reshape(n))
    q = np.random.default_rng(9).standard_normal((n, 2))
    x = solve(factor(a, b), jnp.asarray(q))
    np.testing.assert_allclose(x, np.linalg.solve(full, q), rtol=0, atol=1e-15)
    np.testing.assert_allclose(product(a, b, jnp.asarray(q)), full @ q, rtol=0, atol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_chain_of_blocks(n):
    diagonal, below, full = chain(n, 3, n)
    q = np.random.default_rng(9).standard_normal((n, 3, 2))
    x = solve_blocks(jnp.asarray(diagonal), jnp.asarray(below), jnp.asarray(q))
    exact = np.linalg.solve(full, q.reshape(3 * n, 2)).reshape(n, 3, 2)
    np.testing.assert_allclose(x, exact, rtol=0, atol=1e-15)


def test_a_line_and_a_ring_solve_as_dense_matrices_do(key):
    n, e = 23, jnp.asarray(-0.37)
    b, more = jax.random.normal(key, (2, n))
    d = 1.8 + 0.3 * jnp.abs(more)
    dense = np.diag(np.asarray(d)) + float(e) * (np.eye(n, k=1) + np.eye(n, k=-1))
    found = np.asarray(solve_line(d, e, b))
    assert np.max(np.abs(found - np.linalg.solve(dense, np.asarray(b)))) < 5e-15
    ring = 1.9 * np.eye(n) + float(e) * (np.roll(np.eye(n), 1, 0) + np.roll(np.eye(n), -1, 0))
    found = np.asarray(solve_ring(jnp.asarray(1.9), e, b))
    assert np.max(np.abs(found - np.linalg.solve(ring, np.asarray(b)))) < 5e-15

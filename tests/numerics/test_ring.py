"""Tridiagonal systems against dense ones."""

import jax
import jax.numpy as jnp
import numpy as np

from retrax.numerics.ring import solve_line, solve_ring


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

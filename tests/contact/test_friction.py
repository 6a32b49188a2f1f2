"""Friction of one contact: the nearest impulse within a disc."""

import jax
import numpy as np
import pytest

from retrax.contact.solver.friction import rubbing


@pytest.mark.parametrize("ratio", [1.0, 3.0, 100.0])
def test_friction_is_at_its_limit_against_the_slip_that_is_left(ratio):
    draws, count = np.random.default_rng(2), 2000
    angle = draws.uniform(0, np.pi, count)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    W = np.einsum("ijn,j,kjn->nik", turn, [1.0, ratio], turn)
    aim, limit = draws.normal(size=(count, 2)), 10 ** draws.uniform(-14, 1, count)
    limit[0] = 0.0
    q, slips = map(np.asarray, jax.jit(jax.vmap(rubbing))(W, aim, limit))
    assert np.array_equal(slips, np.linalg.norm(aim, axis=1) > limit)
    np.testing.assert_array_equal(q[~slips], aim[~slips])
    np.testing.assert_allclose(np.linalg.norm(q, axis=1)[slips], limit[slips], rtol=1e-15)
    slip = np.einsum("nij,nj->ni", W, q - aim)
    across = slip[:, 0] * q[:, 1] - slip[:, 1] * q[:, 0]
    size = np.linalg.norm(W, axis=(1, 2)) * np.linalg.norm(aim, axis=1) * limit
    assert np.all(np.abs(across[slips]) <= 4e-15 * size[slips])
    assert np.all(np.sum(slip * q, axis=1)[slips] <= 0)

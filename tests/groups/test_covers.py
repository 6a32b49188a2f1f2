"""How far a retraction reaches, and the coadjoint action of what is near the identity."""

import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx


def test_the_exponential_covers_less_than_a_full_turn_and_cayley_everything():
    axis = jnp.array([2.0, -1.0, 2.0]) / 3
    for angle, covered in ((3.6, True), (6.28, True), (6.29, False), (9.0, False)):
        assert bool(rx.Exp().covers(rx.SO3(), angle * axis)) == covered
        assert bool(rx.Cayley().covers(rx.SO3(), angle * axis))


@pytest.mark.parametrize(
    "group", [rx.SO2(), rx.SO3(), rx.SE2(), rx.SE3()], ids=lambda group: group.name
)
def test_the_coadjoint_action_less_the_identity(group):
    rng = np.random.default_rng(6)
    xi, mu = (jnp.asarray(x) for x in rng.standard_normal((2, group.dim)))
    change = group.coAdm1(group.expm1(xi), mu)
    np.testing.assert_allclose(change, group.Ad(group.exp(xi)).T @ mu - mu, atol=1e-14)

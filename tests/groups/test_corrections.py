"""What the laws of a group do not see: the correction in `advance`, the gradient of `dexp`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.groups.base import AbstractLieGroup
from retrax.groups.so_n import SO

ROTATIONS = [rx.SO2(), rx.SO3(), SO(4)]


@pytest.mark.parametrize("turn", [0.0, 0.3, 3.0])
@pytest.mark.parametrize("group", ROTATIONS, ids=lambda group: group.name)
def test_advance_takes_away_the_defect_that_it_finds(group, turn):
    """To second order: of a defect of 1e-5 it leaves 3/4 of its square; half a correction, half.

    However far it turns: a correction after the turn would double the defect at half a turn.
    """
    g = group.random(jax.random.key(3))
    stretch = np.diag(np.linspace(0.4, 1.0, len(g))) + 0.2 * np.ones_like(g)
    off = g @ jnp.asarray(np.eye(len(g)) + 0.5e-5 * stretch)
    xi = np.random.default_rng(4).standard_normal(group.dim)
    delta = group.expm1(jnp.asarray(turn * xi / np.linalg.norm(xi)))
    before, after = group.defect(off), group.defect(group.advance(off, delta))
    assert before > 5e-6
    assert after < 2 * before**2  # measured: 1.8 times


@pytest.mark.parametrize("size", [2.0, 1e-4])
@pytest.mark.parametrize(
    "group", [rx.SO2(), rx.SO3(), rx.SE2(), rx.SE3()], ids=lambda group: group.name
)
def test_the_gradient_of_dexp_is_that_of_jax(group, size):
    rng = np.random.default_rng(5)
    xi, eta, mu = (jnp.asarray(x) for x in rng.standard_normal((3, group.dim)))
    given = group.dexp_gradient(size * xi, eta, mu)
    exact = AbstractLieGroup.dexp_gradient(group, size * xi, eta, mu)
    np.testing.assert_allclose(given, exact, rtol=0, atol=3e-14)  # measured: 4e-15

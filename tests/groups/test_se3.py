"""Rigid motions: blocks of very different size, against 60 digits."""

import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest

import retrax as rx
from retrax.numerics.matrix_functions import phi1

EPS = float(np.finfo(float).eps)
MIXED = [(5e-6, 1.0), (1e-9, 1.0), (1.0, 5e-6), (1e-9, 1e3), (2.5, 1.0), (3.0, 1e-9), (4.5, 1.0)]


def twist(turn, shift, seed=0):
    w, v = np.random.default_rng(seed).standard_normal((2, 3))
    return np.concatenate([turn * w / np.linalg.norm(w), shift * v / np.linalg.norm(v)])


def ad(xi):
    w, v = (np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]) for x, y, z in (xi[:3], xi[3:]))
    return np.block([[w, np.zeros((3, 3))], [v, w]])


def exact_dexp(xi):
    """phi(-ad xi) as a series in 60 digits."""
    with mp.workdps(60):
        A, term, total = -mp.matrix(ad(xi).tolist()), mp.eye(6), mp.eye(6)
        for k in range(1, 80):
            term = term * A / (k + 1)
            total += term
        return total, total**-1


def test_a_small_turn_shifts_by_half_the_cross_product():
    _, r = rx.SE3().exp(jnp.array([5e-6, 0.0, 0.0, 0.0, 1.0, 0.0]))
    np.testing.assert_allclose(r, [0.0, 1.0, 2.5e-6], rtol=1e-10)


@pytest.mark.parametrize(("turn", "shift"), MIXED)
def test_tangent_maps_at_mixed_scales(turn, shift):
    G, xi = rx.SE3(), twist(turn, shift)
    eta = np.random.default_rng(1).standard_normal(6)
    x, e = jnp.asarray(xi), jnp.asarray(eta)
    for value, exact in zip((G.dexp(x, e), G.dexp_inv(x, e)), exact_dexp(xi), strict=True):
        with mp.workdps(60):
            exact = np.array((exact * mp.matrix(eta.tolist())).T.tolist()[0], dtype=float)
        assert np.max(np.abs(value - exact)) < 6 * EPS * max(1.0, np.max(np.abs(exact)))


@pytest.mark.parametrize(("turn", "shift"), MIXED)
def test_exp_and_log_at_mixed_scales(turn, shift):
    G, xi = rx.SE3(), twist(turn, shift, seed=2)
    R, r = G.exp(jnp.asarray(xi))
    hat = np.asarray(G.hat(jnp.asarray(xi)))
    dense = np.eye(4) + hat @ np.asarray(phi1(jnp.asarray(hat)))
    size = max(1.0, shift)
    assert np.max(np.abs(np.asarray(R) - dense[:3, :3])) < 20 * EPS  # measured 2e-15
    assert np.max(np.abs(np.asarray(r) - dense[:3, 3])) < 20 * EPS * size
    if turn < np.pi:
        back = np.asarray(G.log((R, r)))
        assert np.max(np.abs(back[:3] - xi[:3])) < 4 * EPS * turn
        assert np.max(np.abs(back[3:] - xi[3:])) < 6 * EPS * size


def test_planar_motions_are_motions_of_space():
    rng = np.random.default_rng(5)
    plane, space = rx.SE2(), rx.SE3()

    def lift(xi):
        return jnp.array([0.0, 0.0, xi[0], xi[1], xi[2], 0.0])

    def drop(xi):
        return jnp.array([xi[2], xi[3], xi[4]])

    xi, eta = (jnp.asarray(x) for x in rng.standard_normal((2, 3)))
    for name in ("dexp", "dexp_inv", "dcay", "dcay_inv", "ad"):
        flat = getattr(plane, name)(xi, eta)
        np.testing.assert_allclose(
            flat, drop(getattr(space, name)(lift(xi), lift(eta))), atol=4 * EPS, err_msg=name
        )
    for name in ("exp", "cay"):
        R, r = getattr(space, name)(lift(xi))
        flat_R, flat_r = getattr(plane, name)(xi)
        np.testing.assert_allclose(flat_R, R[:2, :2], atol=4 * EPS, err_msg=name)
        np.testing.assert_allclose(flat_r, r[:2], atol=4 * EPS, err_msg=name)

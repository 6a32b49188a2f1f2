"""Rotations at the angles where code is quietly wrong: 0, tiny, near pi, pi."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import retrax as rx

EPS = float(np.finfo(float).eps)
ANGLES = [1e-12, 1e-9, 1e-5, 1e-2, 0.7, 2.0, 3.1, np.pi - 1e-5, np.pi - 1e-9]


def directions(count, seed=0):
    n = np.random.default_rng(seed).standard_normal((count, 3))
    return n / np.linalg.norm(n, axis=1, keepdims=True)


def exact_rotation(xi):
    """Rodrigues' formula in 40 digits, rounded once."""
    with mp.workdps(40):
        x, y, z = (mp.mpf(float(a)) for a in xi)
        t = mp.sqrt(x * x + y * y + z * z)
        X = mp.matrix([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        R = mp.eye(3) + mp.sin(t) / t * X + (1 - mp.cos(t)) / t**2 * X * X
        return np.array(R.tolist(), dtype=float)


@pytest.mark.parametrize("angle", ANGLES)
def test_log_is_exact_to_a_few_ulp(angle):
    xi = angle * directions(20)
    R = np.stack([exact_rotation(x) for x in xi])
    log = jax.jit(jax.vmap(rx.SO3().log))
    assert np.max(np.abs(log(jnp.asarray(R)) - xi)) < 4 * EPS * angle  # measured 1.7 eps
    back = log(jax.jit(jax.vmap(rx.SO3().exp))(jnp.asarray(xi)))
    assert np.max(np.abs(back - xi)) < 4 * EPS * angle  # measured 1.5 eps


@pytest.mark.parametrize("angle", ANGLES)
def test_expm1_is_exact_relative_to_the_angle(angle):
    xi = angle * directions(10)
    exact = np.stack([exact_rotation(x) for x in xi]) - np.eye(3)
    value = jax.vmap(rx.SO3().expm1)(jnp.asarray(xi))
    # The reference is rounded next to 1, so it is itself off by an ulp of 1 on the diagonal.
    assert np.max(np.abs(value - exact)) < (10 if angle > 1 else 1) * EPS  # measured 5.5, 0.5


@pytest.mark.parametrize("n", [*np.eye(3), -np.eye(3)[1], *directions(5)], ids=str)
def test_half_turns_have_a_logarithm(n):
    xi = np.asarray(rx.SO3().log(jnp.asarray(2 * np.outer(n, n) - np.eye(3))))
    assert min(np.max(np.abs(xi - np.pi * n)), np.max(np.abs(xi + np.pi * n))) < 4 * EPS


def test_derivative_of_log_is_dexp_inv_from_zero_to_pi():
    G, one = rx.SO3(), jnp.eye(3)

    def derivatives(xi):
        R = G.exp(xi)

        def log_near(e):
            return G.log(R + G.tangent(R, e))

        exact = jax.vmap(lambda e: G.dexp_inv(G.log(R), e), out_axes=1)(one)
        first = [jacobian(log_near)(jnp.zeros(3)) for jacobian in (jax.jacfwd, jax.jacrev)]
        return exact, first, jax.jacfwd(jax.jacrev(log_near))(jnp.zeros(3))

    angles = np.array([0.0, *ANGLES, np.pi])
    xi = angles[:, None] * directions(len(angles), seed=3)
    exact, first, second = jax.jit(jax.vmap(derivatives))(jnp.asarray(xi))
    for value in first:
        assert float(jnp.max(jnp.abs(value - exact))) < 4e-15  # measured 4.5e-16
    assert bool(jnp.all(jnp.isfinite(second)))


def test_project_finds_the_nearest_rotation():
    M = np.eye(3) + 0.3 * np.random.default_rng(1).standard_normal((3, 3))
    u, _, vt = np.linalg.svd(M)
    np.testing.assert_allclose(rx.SO3().project(jnp.asarray(M)), u @ vt, atol=4 * EPS)


def test_defect_sees_reflections():
    assert float(rx.SO3().defect(-jnp.eye(3))) == 2.0


def test_random_rotations_are_uniform():
    R = jax.vmap(rx.SO3().random)(jax.random.split(jax.random.key(0), 20_000))
    # Every entry has mean 0 and variance 1/3; three standard errors are 0.012 and 0.007.
    assert float(jnp.max(jnp.abs(jnp.mean(R, axis=0)))) < 0.0125
    assert float(jnp.max(jnp.abs(jnp.var(R, axis=0) - 1 / 3))) < 0.0075


@pytest.mark.parametrize("angle", [0.0, *ANGLES, np.pi])
def test_quaternions_in_both_orders(angle):
    group = rx.SO3()
    turns = Rotation.from_rotvec(angle * directions(20, seed=3))
    for q, R in zip(turns.as_quat(canonical=True), turns.as_matrix(), strict=True):
        for sign in (1, -1):
            found = group.from_quaternion(sign * q, order="xyzw")
            assert np.max(np.abs(found - R)) < 6 * EPS  # measured 3.5 eps, and 1.5 of the other
            assert np.array_equal(found, group.from_quaternion(np.roll(sign * q, 1), order="wxyz"))
        back = group.to_quaternion(R, order="xyzw")
        same = back if angle < np.pi else back * np.sign(back @ q)  # w = 0: q and -q are as good
        assert np.max(np.abs(same - q)) < 4 * EPS
        assert np.array_equal(group.to_quaternion(R, order="wxyz"), np.roll(back, 1))


def test_a_quaternion_that_is_none():
    group = rx.SO3()
    with pytest.raises(rx.BadInput, match=r"q has length 1\.1, but the quaternion of a rotation"):
        group.from_quaternion([1.1, 0, 0, 0], order="wxyz")
    with pytest.raises(rx.BadInput, match=r"order = 'zyxw' must be 'wxyz'"):
        group.from_quaternion([1.0, 0, 0, 0], order="zyxw")
    with pytest.raises(rx.BadInput, match="g is not a rotation"):
        group.to_quaternion(2 * np.eye(3), order="wxyz")
    with pytest.raises(rx.BadInput, match="q has shape"):
        group.from_quaternion(np.eye(4), order="wxyz")
    with pytest.raises(rx.BadInput, match="q"):
        group.from_quaternion([1.0, np.nan, 0, 0], order="wxyz")


def test_quaternions_can_be_transformed():
    group = rx.SO3()
    q = jnp.asarray(Rotation.random(5, random_state=1).as_quat())
    many = jax.jit(jax.vmap(lambda q: group.from_quaternion(q, order="xyzw")))(q)
    np.testing.assert_allclose(many, Rotation.from_quat(q).as_matrix(), atol=4 * EPS)

    def trace(q):
        return jnp.trace(group.from_quaternion(q, order="xyzw"))

    slope = jax.grad(trace)(q[0])
    assert abs(slope @ q[0]) < 1e-15  # the length is divided out
    np.testing.assert_allclose(
        slope, [*(-8 * q[0, 3] ** 2 * q[0, :3]), 8 * q[0, 3] * (1 - q[0, 3] ** 2)], atol=1e-14
    )

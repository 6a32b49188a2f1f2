"""The laws of every space, and what a user reads where a point is none."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import retrax as rx
from retrax.testing import check_space

SPACES = {
    "S^2": lambda: rx.Sphere(3),
    "T^3": lambda: rx.Torus(3),
    "V_2(R^4)": lambda: rx.Stiefel(4, 2),
    "G_2(R^3)": lambda: rx.Grassmann(3, 2),
    "Sym(3)": lambda: rx.Isospectral(3),
    "coadjoint orbit of SE(3)": lambda: rx.CoadjointOrbit(rx.SE3()),
    "SO(3)": lambda: rx.GroupItself(rx.SO3(), side=1),
}
DIMENSIONS = {
    "S^2": 2,
    "T^3": 3,
    "V_2(R^4)": 5,
    "G_2(R^3)": 2,
    "Sym(3)": 3,
    "coadjoint orbit of SE(3)": 4,
    "SO(3)": 3,
}


@pytest.mark.parametrize("name", SPACES)
def test_laws(name):
    space = SPACES[name]()
    assert (space.name, space.dimension) == (name, DIMENSIONS[name])
    errors = check_space(space)
    assert max(errors.values()) < 5e-15  # measured: at most 1.6e-15


def test_moves_in_four_dimensions_against_the_matrix_exponential():
    rng = np.random.default_rng(5)
    u, Q = rng.standard_normal(6), np.linalg.qr(rng.standard_normal((4, 2)))[0]
    turn = scipy.linalg.expm(np.asarray(rx.SO(4).hat(jnp.asarray(u))))
    P, L = Q @ Q.T, np.diag([1.0, 2.0, -0.5, 0.3])
    moved = rx.Stiefel(4, 2).move(jnp.asarray(Q), jnp.asarray(u))
    np.testing.assert_allclose(moved, turn @ Q, atol=4e-15)
    moved = rx.Grassmann(4, 2).move(jnp.asarray(P), jnp.asarray(u))
    np.testing.assert_allclose(moved, turn @ P @ turn.T, atol=6e-15)
    moved = rx.Isospectral(4).move(jnp.asarray(L), jnp.asarray(u))
    np.testing.assert_allclose(moved, turn @ L @ turn.T, atol=9e-15)
    np.testing.assert_allclose(
        rx.Sphere(4).move(jnp.asarray(Q[:, 0]), jnp.asarray(u)), turn @ Q[:, 0], atol=4e-15
    )


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: rx.Sphere(1), "Sphere.n=1. is two points; n must be at least 2"),
        (lambda: rx.Sphere(2.5), "Sphere: n = 2.5 must be a whole number from 1 to 1000"),
        (lambda: rx.Torus(0), "Torus: n = 0 must be a whole number of at least 1"),
        (lambda: rx.Stiefel(3, 4), r"Stiefel\(n=3, k=4\): n must be at least 2 and k at most n"),
        (lambda: rx.Grassmann(3, 0), "Grassmann: k = 0 must be a whole number of at least 1"),
        (lambda: rx.Isospectral(1), "Isospectral.n=1. is a point"),
        (lambda: rx.CoadjointOrbit(rx.SE3), "is not a Lie group; pass an instance"),
        (lambda: rx.GroupItself(rx.SO3(), side=0), r"side = 0 must be -1 \(g exp u\) or \+1"),
        (lambda: rx.SO(1), "SO: n = 1 must be a whole number of at least 2"),
    ],
)
def test_what_is_no_space_is_refused(make, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        make()


@pytest.mark.parametrize(
    ("space", "y", "sentence"),
    [
        (
            rx.Sphere(3),
            jnp.ones(3),
            r"y0 is not a point of S\^2: its defect is 0.73, .*Sphere\(3\)",
        ),
        (rx.Sphere(3), jnp.ones(4), r"expected an array of shape \(3,\), got an array of shape"),
        (rx.Torus(2), jnp.ones(2), r"point of T\^2: expected an array of shape \(2, 2\)"),
        (rx.Stiefel(4, 2), jnp.ones((4, 2)), r"its defect is 4, allowed 1e-09; make it one with"),
        (rx.Grassmann(3, 1), jnp.eye(3), r"point of G_1\(R\^3\): its defect is 2"),
        (rx.Isospectral(2), jnp.array([[0.0, 1.0], [0.0, 0.0]]), r"point of Sym\(2\): .* is 1,"),
        (rx.Sphere(3), jnp.full(3, jnp.nan), r"y0 must be finite"),
        (rx.GroupItself(rx.SO3()), 2 * jnp.eye(3), r"y0 is not a rotation"),
    ],
)
def test_what_is_no_point_is_refused(space, y, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        space.check("y0", y)


@pytest.mark.parametrize("name", [name for name in SPACES if "orbit" not in name])
def test_methods_refuse_what_is_no_point(name):
    space = SPACES[name]()
    y = jnp.arange(np.prod(space.layout().shape) * 1.0).reshape(space.layout().shape)
    u = jnp.full(space.group.dim, 0.1)
    for method in (space.move, space.near, space.tangent):
        with pytest.raises(rx.BadInput, match=rf"{method.__name__}: y is not "):
            method(y, u)
    with pytest.raises(rx.BadInput, match="lift: y is not "):
        space.lift(y, jnp.zeros_like(y))


@pytest.mark.parametrize("name", [name for name in SPACES if "orbit" not in name])
def test_a_velocity_that_is_not_tangent_is_not_lifted(name):
    space = SPACES[name]()
    y = space.random(jax.random.key(1))
    v = space.tangent(y, jnp.full(space.group.dim, 1e3))
    np.testing.assert_allclose(space.tangent(y, space.lift(y, v)), v, atol=1e-11)
    with pytest.raises(rx.BadInput, match=r"lift: v = .* is not tangent to .* misses"):
        space.lift(y, v + 1e-3 * y)

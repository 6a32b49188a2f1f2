"""Small linear systems: the unrolled solvers against LAPACK and against what they should give."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from retrax.numerics.small_matrices import (
    cross,
    determinant,
    echelon,
    inverse,
    null_space,
    solve,
    solve_and_determinant,
)

SIZES = [1, 2, 3, 4, 6, 8, 12, 13]
EPS = float(np.finfo(float).eps)


def system(n, columns, seed=0):
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.standard_normal((n, n))), jnp.asarray(rng.standard_normal((n, *columns)))


@pytest.mark.parametrize("columns", [(), (2,)], ids=["vector", "matrix"])
@pytest.mark.parametrize("n", SIZES)
def test_solution_satisfies_the_system(n, columns):
    A, b = system(n, columns)
    x = jax.jit(solve)(A, b)
    assert x.shape == b.shape
    size = jnp.max(jnp.abs(A)) * jnp.max(jnp.abs(x))
    assert float(jnp.max(jnp.abs(A @ x - b)) / size) < 4 * EPS  # measured at most 0.9 eps


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6, 13])
def test_the_determinant_comes_with_the_solution(n):
    A, b = system(n, ())
    x, determinant = solve_and_determinant(A, b)
    np.testing.assert_allclose(x, np.linalg.solve(A, b), rtol=0, atol=2e-13)
    np.testing.assert_allclose(determinant, np.linalg.det(A), rtol=2e-14)


@pytest.mark.parametrize("n", SIZES)
def test_inverse_times_matrix_is_one(n):
    A, _ = system(n, ())
    condition = float(np.linalg.cond(A))
    error = float(jnp.max(jnp.abs(jax.jit(inverse)(A) @ A - jnp.eye(n))))
    assert error < EPS * condition  # measured at most 0.27


@pytest.mark.parametrize("n", [4, 6, 8])
def test_rows_are_exchanged_where_the_diagonal_is_zero(n):
    A = jnp.asarray(np.roll(np.eye(n), 1, axis=0) * np.arange(1.0, n + 1))
    b = jnp.arange(1.0, n + 1)
    np.testing.assert_array_equal(A @ jax.jit(solve)(A, b), b)


@pytest.mark.parametrize("n", [4, 8])
def test_tiny_pivots_are_avoided(n):
    A, b = system(n, (), seed=1)
    A = A.at[0, 0].set(1e-18).at[1, 1].set(1e-18)
    error = jnp.max(jnp.abs(jax.jit(solve)(A, b) - np.linalg.solve(A, b)))
    assert float(error) < 2e-15  # measured 2.6e-16


@pytest.mark.parametrize("n", [3, 6, 13])
def test_derivatives_and_transposes_agree_with_lapack(n):
    A, b = system(n, (), seed=2)

    def through(solver):
        return tuple(jax.jit(jac(lambda A: solver(A, b)))(A) for jac in (jax.jacfwd, jax.jacrev))

    for ours, lapack in zip(through(solve), through(jnp.linalg.solve), strict=True):
        scale = float(jnp.max(jnp.abs(lapack)))
        assert float(jnp.max(jnp.abs(ours - lapack))) < 5e-15 * scale  # measured 6e-16
    (transposed,) = jax.jit(jax.linear_transpose(lambda b: solve(A, b), b))(b)
    size = jnp.max(jnp.abs(A)) * jnp.max(jnp.abs(transposed))
    assert float(jnp.max(jnp.abs(A.T @ transposed - b)) / size) < 4 * EPS


@pytest.mark.parametrize("n", [2, 3, 6])
def test_vmap_solves_each(n):
    systems = [system(n, (), seed) for seed in range(3)]
    A, b = (jnp.stack(part) for part in zip(*systems, strict=True))
    each = jnp.stack([jax.jit(solve)(A, b) for A, b in systems])
    np.testing.assert_allclose(jax.jit(jax.vmap(solve))(A, b), each, rtol=1e-13)


def test_cross_product():
    a, b = jnp.array([1.0, 2.0, 3.0]), jnp.array([-4.0, 5.0, 0.5])
    np.testing.assert_array_equal(cross(a, b), np.cross(a, b))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_determinants_are_those_of_lapack(n):
    A, _ = system(n, (), seed=n)
    assert float(determinant(A)) == pytest.approx(float(np.linalg.det(np.asarray(A))), rel=1e-13)
    flipped = jnp.concatenate([A[1:2], A[:1], A[2:]]) if n > 1 else -A
    assert float(determinant(flipped)) == pytest.approx(-float(determinant(A)), rel=1e-13)


def test_null_spaces_show_axes_as_axes():
    turned = np.linalg.qr(np.random.default_rng(3).standard_normal((3, 3)))[0]
    rows = turned @ np.array([[0.0, 2.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    np.testing.assert_allclose(
        null_space(rows, 1e-12), [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0]], atol=1e-15
    )
    assert null_space(np.eye(3), 1e-12).shape == (0, 3)
    np.testing.assert_array_equal(null_space(1e-13 * np.eye(3), 1e-12), np.eye(3))


def test_echelon_keeps_the_span_of_any_basis():
    basis = np.linalg.qr(np.random.default_rng(4).standard_normal((5, 3)))[0].T
    reduced = echelon(basis)
    np.testing.assert_allclose(reduced[:, :3], np.eye(3), atol=1e-12)
    np.testing.assert_allclose(reduced @ basis.T @ basis, reduced, atol=1e-12)

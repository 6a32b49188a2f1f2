"""Newton's method: round-off, honest failure, exact derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from retrax.numerics.newton import newton, to_stagnation

EPS = np.finfo(float).eps


def circle_and_line(x, a):
    return jnp.stack([x[0] ** 2 + x[1] ** 2 - a, x[0] - x[1] ** 3])


def test_converges_to_roundoff_and_counts_iterations():
    x, status = newton(lambda x: circle_and_line(x, 2.0), jnp.array([1.3, 0.7]))
    assert bool(status.converged)
    assert np.max(np.abs(x - 1.0)) <= 2 * EPS
    assert 3 <= int(status.iterations) <= 7


def test_an_exact_guess_needs_no_iteration():
    _, status = newton(lambda x: x - 1.0, jnp.array([1.0, 1.0]))
    assert bool(status.converged)
    assert int(status.iterations) == 0


def test_a_zero_solution_of_zero_scale_converges():
    x, status = newton(lambda x: 3.0 * x, jnp.array([1.0, -2.0]))
    assert bool(status.converged)
    assert np.all(np.asarray(x) == 0.0)
    assert np.isfinite(status.residual)


@pytest.mark.parametrize("condition", [1e2, 1e5, 1e8])
def test_an_ill_conditioned_system_converges_to_condition_times_eps(condition):
    rng = np.random.default_rng(1)
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    matrix = jnp.array(q @ np.diag([1.0, condition**-0.5, 1 / condition]) @ q.T)
    exact = jnp.array([0.3, -0.8, 0.5])

    def residual(x):
        return (
            matrix @ x
            + 0.01 * jnp.sin(matrix @ x)
            - matrix @ exact
            - 0.01 * jnp.sin(matrix @ exact)
        )

    x, status = newton(residual, jnp.zeros(3), jnp.max(jnp.abs(matrix @ exact)))
    assert bool(status.converged)
    assert np.max(np.abs(x - exact)) < 10 * condition * EPS


def test_no_root_is_said_so():
    _, status = newton(lambda x: x**2 + 1.0, jnp.array([0.7]))
    assert not bool(status.converged)
    assert float(status.residual) > 1e-3


def test_no_root_is_said_so_in_any_units():
    """The residual is relative to the terms, however small these are."""
    for unit in (1e-20, 1e20):
        x, status = newton(lambda x, unit=unit: unit * (x**2 + 1), jnp.array([0.3]))
        assert not bool(status.converged) and float(status.residual) > 1e-3
        x, status = newton(lambda x, unit=unit: unit * (x**2 - 2), jnp.array([1.3]))
        assert bool(status.converged) and abs(float(x[0]) - 2**0.5) < 4e-16


def test_a_nan_ends_the_iteration_at_once():
    _, status = newton(lambda x: jnp.log(x), jnp.array([-1.0]))
    assert not bool(status.converged)
    assert int(status.iterations) <= 1


def test_derivatives_are_those_of_the_implicit_function():
    def root(a):
        return newton(lambda x: circle_and_line(x, a), jnp.array([1.3, 0.7]))[0]

    # On the curve x = y^3, x^2 + y^2 = a: dy/da = 1/(6 y^5 + 2 y), dx/da = 3 y^2 dy/da.
    _, y = root(2.5)
    dy = 1 / (6 * y**5 + 2 * y)
    exact = jnp.stack([3 * y**2 * dy, dy])
    assert np.max(np.abs(jax.jacfwd(root)(2.5) - exact)) < 10 * EPS
    assert np.max(np.abs(jax.jacrev(root)(2.5) - exact)) < 10 * EPS
    second = jax.jacfwd(jax.jacrev(root))(2.5)
    finite = (jax.jacrev(root)(2.5 + 1e-5) - jax.jacrev(root)(2.5 - 1e-5)) / 2e-5
    assert np.max(np.abs(second - finite)) < 1e-9


def test_works_batched_and_compiled():
    roots = jax.jit(jax.vmap(lambda a: newton(lambda x: x**3 - a, jnp.array([1.0]))[0][0]))
    a = jnp.linspace(0.5, 8.0, 7)
    assert np.max(np.abs(roots(a) - np.cbrt(a))) < 4 * EPS


def test_the_solution_does_not_depend_on_the_guess():
    def root(guess):
        return newton(lambda x: x**3 - 2.0, guess)[0]

    assert np.all(np.asarray(jax.jacfwd(root)(jnp.array([1.0]))) == 0.0)
    assert np.all(np.asarray(jax.jacrev(root)(jnp.array([1.0]))) == 0.0)


def test_whole_numbers_may_be_closed_over_while_derivatives_are_taken():
    def root(a, n):
        x, _ = newton(lambda x: x**3 - n.astype(jnp.float64) * a, jnp.array([1.0]))
        return x[0]

    n, a = jnp.arange(1, 5), 2.0
    slope = jax.jit(jax.vmap(jax.grad(root), in_axes=(None, 0)))(a, n)
    exact = np.cbrt(np.arange(1, 5)) * a ** (-2 / 3) / 3
    assert np.max(np.abs(slope - exact)) < 4 * EPS


def test_derivatives_pass_through_a_loop_of_solves():
    """x <- root of y^3 + y = x, three times; dy/dx = 1 / (3 y^2 + 1) each time."""

    def last(x):
        def solved(x, _):
            y, _ = newton(lambda y: y**3 + y - x, x)
            return y, y

        return jax.lax.scan(solved, x, None, length=3)

    _, ys = last(jnp.array([2.0]))
    exact = np.prod(1 / (3 * np.asarray(ys) ** 2 + 1))
    for derivative in (jax.jacfwd, jax.jacrev):
        slope = jax.jit(derivative(lambda x: last(x)[0]))(jnp.array([2.0]))
        assert abs(slope[0, 0] - exact) < 4 * EPS


def test_an_iteration_that_gets_no_better_stops_with_what_it_has():
    """A jump at the root keeps the residual above the aim and within what is accepted."""

    def residual(x):
        return x**2 - 2 + 5e-15 * jnp.sign(x**2 - 2)

    x, status = newton(residual, jnp.array([1.4]))
    assert bool(status.converged)
    assert 3 <= int(status.iterations) <= 6
    assert abs(float(x[0]) - 2**0.5) < 16 * EPS


@pytest.mark.parametrize("gain, ends_after", [(0.5, 14), (0.9, 17)])
def test_an_iteration_ends_where_it_stalls(gain, ends_after):
    """Residuals fall to a quarter down to 2^-26, and then to 0.81 of the one before."""

    def improve(k):
        k = jnp.where(k < 26, k + 2.0, k + 0.3)
        return k, (2.0**-k, jnp.ones(()))

    limits = {"aim": 2.0**-27.05, "accept": 2.0**-25, "most": 40}
    unknown = jnp.asarray(jnp.inf), jnp.zeros(())
    _, status = to_stagnation(improve, jnp.zeros(()), unknown, **limits, gain=gain)
    assert int(status.iterations) == ends_after
    assert bool(status.converged) and float(status.residual) < 2.0**-26
    _, status = to_stagnation(improve, jnp.zeros(()), unknown, **limits | {"most": 5}, iterations=2)
    assert int(status.iterations) == 5 and not bool(status.converged)

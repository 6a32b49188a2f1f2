"""NumPy evaluates what JAX has traced: the same numbers as XLA, and nothing is compiled."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import retrax as rx
from retrax.numerics.evaluate import Evaluated, evaluate, evaluate_in_jax
from retrax.numerics.host.program import NoRule
from retrax.numerics.host.rules import host_program

X = np.random.default_rng(0).normal(size=5)
# Far from singular: rounding errors stay as they are.
A = np.random.default_rng(1).normal(size=(3, 3)) + 3 * np.eye(3)
STACK = np.random.default_rng(2).normal(size=(6, 4, 4)) + 5 * np.eye(4)


def random_numbers(seed):
    keys = jax.random.split(jax.random.key(seed), 3)
    return (
        jax.random.normal(keys[0], (4,), jnp.float64),
        jax.random.uniform(keys[1], (), jnp.float64),
        jax.random.randint(keys[2], (5,), 0, 100),
        jax.random.key_data(jax.random.fold_in(keys[0], 7)),
        jax.random.permutation(keys[1], 6),
    )


def moved(x):
    return (
        x[1:], x[::-2], x.at[2].set(1.0), x.at[jnp.array([1, 1])].add(2.0), x[jnp.array([0, 3, 9])],
        x.at[9].set(3.0), jnp.pad(x, (2, 3)), jnp.roll(x, 2), jnp.take(x, jnp.array([5, -1])),
        lax.pad(x, 0.0, [(-1, 2, 1)]), lax.pad(x, 0.0, [(2, -3, 2)]), lax.pad(x, 1.0, [(-3, 0, 1)]),
        jnp.argsort(x), jnp.sort(x)[::-1], jnp.cumsum(x), lax.cummax(x, reverse=True),
        jnp.interp(0.3, jnp.arange(5.0), x),
    )  # fmt: skip


def arithmetic(x):
    # XLA must not know the numbers: it divides by zero where it folds constants, and is gone.
    nothing = jnp.where(x[0] == 0.123, 1, 0)
    whole, by = jnp.array([-7, 7, 0, 5, -5]) + nothing, jnp.array([2, -2, 3, 0, 5]) + nothing
    return (
        x.astype(int), (x * 1e30).astype(jnp.int32), jnp.round(x), jnp.sinc(x), jnp.mod(x, 0.3),
        jnp.floor_divide(x, 0.3), x**3, x**-2, jnp.abs(x) ** 0.7, lax.erf(x), lax.erfc(x),
        lax.erf_inv(jnp.tanh(x)), jnp.max(x), jnp.argmin(x), jnp.clip(x, -0.2, 0.4),
        lax.div(whole, by), lax.rem(whole, by), whole // by, whole % by, whole << 2, whole >> 1,
        lax.shift_right_logical(whole, jnp.full(5, 1)), lax.population_count(whole), lax.clz(whole),
        jnp.where(x > 0, jnp.log(x), x / 0.0), jnp.nanmax(jnp.sqrt(x)),
    )  # fmt: skip


def loops(x):
    return (
        lax.while_loop(lambda c: c[0] < 10, lambda c: (c[0] + 1, c[1] * 1.1), (0, x)),
        jax.vmap(lambda x: lax.while_loop(lambda c: c < 9, lambda c: 1.3 * c, 1 + x * x))(x),
        lax.scan(lambda c, y: (c * 0.5 + y, c), 0.0, x, reverse=True),
        lax.cond(x[0] > 0, lambda x: x * 2, lambda x: x - 1, x),
        jax.vmap(lambda k, x: lax.switch(k, [jnp.sin, jnp.cos, jnp.exp], x))(
            jnp.array([0, 2, 1, 1, 0]), x
        ),
        jax.vmap(lambda k: lax.dynamic_slice(x, (k,), (2,)))(jnp.array([0, 4, -1])),
        jax.vmap(lambda k: lax.dynamic_update_slice(x, x[:2] * 9, (k,)))(jnp.array([0, 4, 1])),
    )


def matrices(a):
    symmetric = a @ a.T + jnp.eye(3)
    q, r = jnp.linalg.qr(a)
    return (
        jnp.linalg.solve(a, a[0]), jnp.linalg.inv(a), jnp.linalg.det(a), q @ r,
        jnp.linalg.eigh(symmetric)[0], jnp.linalg.cholesky(symmetric), jnp.linalg.slogdet(a),
        jnp.linalg.svd(a, compute_uv=False), jax.scipy.linalg.expm(a),
        jnp.linalg.cholesky(-a @ a.T),
    )  # fmt: skip


def stacks(b):
    return jax.vmap(lambda b: (jnp.linalg.inv(b), jnp.linalg.solve(b.T, b[0]), b @ b[0], b.T @ b))(
        b
    )


def slopes(x):
    def solved(x):
        return jnp.linalg.solve(jnp.outer(x, x) + jnp.eye(5), x)

    ordered = jax.grad(lambda x: jnp.sum(jnp.sort(x) ** 3 * x[jnp.array([0, 0, 2, 1, 4])]))
    return jax.jacfwd(solved)(x), jax.jacrev(solved)(x), ordered(x)


def on_groups(x):
    def on(group, xi):
        g = group.exp(xi)
        return group.log(g), group.coAd(g, xi), group.dexp_inv(xi, xi), group.defect(g)

    return [on(group, x[: group.dim]) for group in (rx.SO3(), rx.SE2(), rx.Translation(2))]


@pytest.mark.parametrize(
    ("function", "argument"),
    [
        (random_numbers, 3),
        (random_numbers, -(2**40)),
        (moved, X),
        (arithmetic, X),
        (loops, X),
        (matrices, A),
        (stacks, STACK),
        (slopes, X),
        (on_groups, X),
    ],
)
def test_numpy_gives_what_xla_gives(function, argument):
    got = jax.tree.leaves(evaluate(function, argument))
    assert host_program(jax.make_jaxpr(function)(argument))  # and not by falling back on XLA
    for here, there in zip(got, jax.tree.leaves(jax.jit(function)(argument)), strict=True):
        assert type(here) is np.ndarray
        assert (here.dtype, here.shape) == (there.dtype, there.shape)
        np.testing.assert_allclose(here, there, rtol=1e-13, atol=1e-14)


def test_what_numpy_has_no_rule_for_is_compiled():
    with pytest.raises(NoRule, match="lgamma"):
        host_program(jax.make_jaxpr(lax.lgamma)(3.5))
    assert evaluate(lambda x: lax.lgamma(x), 3.5) == pytest.approx(np.log(15 * np.sqrt(np.pi) / 8))


def test_an_evaluated_function_can_be_transformed():
    twice = Evaluated(lambda x: jnp.sin(x) * 2)
    assert jax.grad(twice)(0.3) == pytest.approx(2 * np.cos(0.3))
    np.testing.assert_allclose(jax.vmap(twice)(jnp.asarray(X)), 2 * np.sin(X))
    assert jax.jit(lambda x: twice(x) + 1)(0.3) == pytest.approx(2 * np.sin(0.3) + 1)

    def closes_over(a):
        return evaluate(lambda x: a * x, 3.0)

    assert jax.grad(closes_over)(2.0) == 3.0
    assert isinstance(evaluate_in_jax(jnp.sin, np.array(0.3)), jax.Array)


def test_a_changed_global_and_other_numbers_are_seen():
    scale = {"by": 2.0}
    function = Evaluated(lambda x: scale["by"] * x)
    assert function(3.0) == 6.0
    scale["by"] = 5.0
    assert function(3.0) == 15.0 and function(4.0) == 20.0


def test_results_are_arrays_of_their_own():
    given = np.arange(3.0)
    same, row = evaluate(lambda x: (x, jnp.broadcast_to(x, (2, 3))), given)
    same[0], row[0, 0] = 7.0, 8.0
    assert given[0] == 0.0 and row[1, 0] == 0.0

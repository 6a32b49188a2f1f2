"""Scalar programs compute what the functions compute that they were made from."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from evaluate import evaluate_program
from jax import lax

from retrax.engine.passes.live import live
from retrax.engine.program import Operation, Value, walk
from retrax.engine.trace.scalarise import Unscalarisable, scalarise

V = jnp.array([0.3, -0.7, 1.1])
M = jnp.array([[1.2, 0.3, -0.4], [0.1, 0.9, 0.5], [-0.2, 0.6, 1.5]])


def evaluate(program, *arguments):
    """Run a program on NumPy scalars: a third implementation, only for these tests."""
    numbers = [x for leaf in jax.tree.leaves(arguments) for x in np.asarray(leaf).ravel()]
    return np.array(evaluate_program(program, numbers), dtype=float)


def newton_root(x):
    def improve(carry):
        y, k = carry
        return y - (y**3 - x) / (3 * y**2), k + 1

    return lax.while_loop(lambda c: jnp.abs(c[0] ** 3 - x) > 1e-13, improve, (x + 1.0, 0))


FUNCTIONS = {
    "matrix products": (lambda v, m: m @ v + v @ m.T + (m @ m)[1], (V, M)),
    "outer, trace, einsum": (lambda v, m: jnp.einsum("i,ij->j", v, jnp.outer(v, v) @ m), (V, M)),
    "trigonometry": (lambda v: jnp.sin(v) * jnp.exp(jnp.cos(v)) + jnp.arctan2(v, v[::-1]), (V,)),
    "roots and powers": (lambda v: jnp.sqrt(jnp.abs(v)) + v**3 + v**-2 + jnp.abs(v) ** 0.3, (V,)),
    "hyperbolic": (lambda v: jnp.tanh(v) + jnp.sinh(v) * jnp.cosh(v) + jnp.log1p(v * v), (V,)),
    "comparisons": (lambda v: jnp.where(v > 0.2, v, -2.0 * v) + jnp.maximum(v, 0.1), (V,)),
    "structure": (lambda m: jnp.concatenate([m[1:, ::-1], jnp.pad(m[:1], ((1, 0), (0, 0)))]), (M,)),
    "reductions": (lambda m: jnp.sum(m, 0) * jnp.max(m) + jnp.prod(m, 1) - jnp.min(m, 0), (M,)),
    "entries replaced": (lambda v, m: m.at[1].set(v).at[:, 2].set(0.0).at[0, 0].add(v[1]), (V, M)),
    "unpacked": (lambda v: [x * y for x, y in zip(v, jnp.unstack(v[::-1]), strict=True)], (V,)),
    "nothing summed": (lambda v, m: m[:, :0] @ v[:0] + v, (V, M)),
    "stack and split": (lambda v, m: jnp.stack([v, *m]).reshape(2, 6).T.ravel(), (V, M)),
    "gradient": (jax.grad(lambda v: jnp.sum(jnp.sin(M @ v) ** 2)), (V,)),
    "Jacobian": (jax.jacfwd(lambda v: jnp.cross(v, M @ v)), (V,)),
    "vmap": (lambda m: jax.vmap(lambda row: row / jnp.linalg.norm(row))(m), (M,)),
    "while": (lambda v: newton_root(v[0])[0] + 1.0 * newton_root(v[2])[1], (jnp.abs(V),)),
    "scan with a table": (
        lambda v: lax.scan(lambda c, x: (c * x + 1.0, None), v, jnp.array([0.5, -0.2, 2.0]))[0],
        (V,),
    ),
    "scan with outputs": (lambda v: lax.scan(lambda c, x: (c + x, c * x), 0.0, v)[1], (V,)),
    "cond": (lambda v: lax.cond(v[0] > 0, lambda w: w * 2.0, lambda w: jnp.sin(w), v), (V,)),
    "cond, other branch": (lambda v: lax.cond(v[1] > 0, jnp.cos, jnp.sin, v), (V,)),
    "checkpoint": (jax.checkpoint(lambda v: jnp.sin(v) * v), (V,)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_program_computes_the_function(name):
    function, arguments = FUNCTIONS[name]
    program = live(scalarise(function, *arguments))
    exact = np.concatenate([np.ravel(x) for x in jax.tree.leaves(function(*arguments))])
    np.testing.assert_allclose(evaluate(program, *arguments), exact, rtol=1e-14, atol=1e-15)


def operations(program):
    return [i for i in walk(program.block) if isinstance(i, Operation)]


def test_moving_entries_about_costs_nothing():
    program = scalarise(lambda m: m.T[::-1].reshape(9)[2:5], M)
    assert operations(program) == []
    assert all(isinstance(x, Value) for x in program.outputs)


def test_zeros_and_ones_are_folded_and_equal_expressions_shared():
    identity = scalarise(lambda v: jnp.eye(3) @ v + jnp.zeros(3), V)
    assert operations(identity) == []
    shared = scalarise(lambda v: (v[0] * v[1]) + jnp.sin(v[1] * v[0]), V)
    assert [o.name for o in operations(shared)] == ["mul", "sin", "add"]


def test_what_no_result_needs_is_removed():
    def wasteful(v):
        carried = (v[0], v[1])
        used, _ = lax.fori_loop(0, 3, lambda k, c: (c[0] * 2.0, jnp.exp(c[1])), carried)
        jnp.cos(v[2])
        return used

    names = {o.name for o in operations(live(scalarise(wasteful, V)))}
    assert "exp" not in names and "cos" not in names and "mul" in names


def test_a_primitive_without_a_scalar_form_is_named():
    with pytest.raises(Unscalarisable, match="primitive 'lgamma'"):
        scalarise(lax.lgamma, V)
    with pytest.raises(Unscalarisable, match="array of 10000 numbers"):
        scalarise(lambda x: x, jnp.zeros((2, 5000)))


def test_a_program_that_would_take_an_hour_to_compile_is_given_up():
    def long(x):
        for _ in range(40):
            x = jnp.sin(x)
        return jnp.sum(x)

    with pytest.raises(Unscalarisable, match="more than 100000 values"):
        scalarise(long, jnp.zeros((15, 15, 15)))

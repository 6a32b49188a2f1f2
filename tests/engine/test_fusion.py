"""Loops that are joined do what they did apart, to the last bit."""

import jax.numpy as jnp
import numpy as np
import pytest
from evaluate import OPERATIONS, evaluate_program
from jax import lax
from native_function import flat, programme, run_natively
from test_placement import rod, thrown

import retrax as rx
from retrax.engine.llvm.kernel import assemble
from retrax.engine.llvm.machine_code import compile_code
from retrax.engine.passes.fusion import fuse
from retrax.engine.program import Each, Operation, Program, walk
from retrax.engine.progress import FAILURE, INTERVAL, Packing
from retrax.engine.step_program import signature, step_program

OPERATIONS["stored"] = lambda x: x
N = 37
RNG = np.random.default_rng(18)
X = jnp.asarray(RNG.normal(size=(N, 3)))
Y = jnp.asarray(RNG.normal(size=(N, 2)))


def after_a_sum(x, y):
    """The second loop needs what the first has made; a third needs the sum of all."""
    a = x * x + 0.3
    total = jnp.sum(a)
    b = jnp.sin(a) * 1.7 - y[:, :1] * a
    return b, total + 2.0 * jnp.sum(b), b * total


def around_neighbours(x, y):
    """Loops of two lengths take turns, and the later ones belong to the earlier."""
    d = x[1:] - x[:-1]
    stretch = jnp.sqrt(jnp.sum(d * d, axis=1))
    swung = x * y[:, 1:] + 2.0
    f = d * (stretch - 0.1)[:, None]
    pulled = jnp.concatenate([f[:1], f[1:] - f[:-1], -f[-1:]])
    return swung * swung + pulled, jnp.max(stretch), jnp.sum(swung)


def overwritten(x, y):
    """A loop carries an array; work after it may not go up past the rounds that change it."""

    def body(carry):
        k, a = carry
        return k + 1, a + 0.1 * jnp.cos(a) * y[:, :1] / (1.0 + jnp.sum(a * a))

    _, a = lax.while_loop(lambda c: c[0] < 5, body, (0, x * 0.25))
    return a * x, x * 0.25 + a, jnp.sum(a)


def by_truths(x, y):
    """Truths come back from memory as what they are."""
    high = x > 0.2
    some = jnp.any(high)
    small = jnp.where(high, x * y[:, :1], -x)
    return small, jnp.where(some, 1.0, 2.0)


def turned_round(x, y):
    """A loop that reads the other end of what an earlier one makes cannot be part of it."""
    a = jnp.sin(x) * y[:, :1]
    total = jnp.sum(a)
    return a * jnp.flip(a, axis=0) + x, jnp.exp(a), total


FUNCTIONS = [after_a_sum, around_neighbours, overwritten, by_truths]


def loops(program: Program) -> int:
    return sum(isinstance(x, Each) and not x.carried for x in walk(program.block))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_joined_loops_have_the_same_bits(function):
    apart, joined = programme(function, X, Y), fuse(programme(function, X, Y))
    assert loops(joined) < loops(apart)
    np.testing.assert_array_equal(run_natively(joined, X, Y), run_natively(apart, X, Y))
    exact = flat(function(X, Y))
    np.testing.assert_allclose(run_natively(joined, X, Y), exact, rtol=1e-13, atol=1e-13)
    slow = np.array(evaluate_program(joined, flat((X, Y))), float)
    np.testing.assert_allclose(slow, exact, rtol=1e-13, atol=1e-13)


def test_loops_that_need_more_than_their_own_round_stay_apart():
    joined = fuse(programme(turned_round, X, Y))
    exact = flat(turned_round(X, Y))
    np.testing.assert_allclose(run_natively(joined, X, Y), exact, rtol=1e-13, atol=1e-13)


def test_what_passes_between_joined_loops_sees_no_memory():
    apart, joined = (f(programme(after_a_sum, X, Y)) for f in (lambda p: p, fuse))
    first, second = (
        next(x for x in p.block.instructions if isinstance(x, Each)) for p in (apart, joined)
    )
    assert len(first.reads) == 3 and len(second.reads) == 4  # x, and one number of y
    fences = [x for x in walk(second.body) if isinstance(x, Operation) and x.name == "stored"]
    assert len(fences) >= 3


def test_expressions_of_joined_loops_are_not_shared():
    """A product that two sums take in would be rounded if both took it from one place."""

    def function(x, y):
        a = x[:, 0] * x[:, 1] + y[:, 0]
        b = jnp.max(a)
        c = x[:, 0] * x[:, 1] + y[:, 1]
        d = jnp.max(c)
        return a, c, x[:, 0] * x[:, 1] - y[:, 0], b + d

    joined = fuse(programme(function, X, Y))
    np.testing.assert_array_equal(
        run_natively(joined, X, Y), run_natively(programme(function, X, Y), X, Y)
    )


def kernel_bits(program, layout, system, state, h, steps):
    params = Packing.rows((system, rx.LieVerlet(), []))
    at, memory = Packing.rows(state)[:, 0].copy(), np.zeros(max(1, layout.memory.size))
    out, interval = np.empty(len(at)), np.zeros(len(INTERVAL))
    failure, flag = np.full(len(FAILURE), np.nan), np.zeros(1, np.int32)
    arrays = (params, at, memory, out, interval, failure)
    code = compile_code(assemble(program, layout, lanes=1, shared=True))
    code.run(*(x.ctypes.data for x in arrays), h, 0, 1, steps, 1, 1, 0, 1, flag.ctypes.data)
    assert np.isnan(failure[0])
    return np.concatenate([out, interval])


def string():
    system, state, h, _ = rx.systems.StringPendulum.paper(elements=33)
    return system, state, h


def swinging_rod():
    system = rod(elements=29, ends=("clamped", "free"), gravity=(0.3, -9.81, 0.1), damping=1e-4)
    return system, thrown(system), 2e-3


@pytest.mark.parametrize("make", [string, swinging_rod])
def test_a_step_has_the_same_bits_with_and_without(make, monkeypatch):
    system, state, h = make()
    made_for = signature(system, rx.LieVerlet(), state)
    joined = step_program(*made_for)
    monkeypatch.setattr("retrax.engine.step_program.fuse", lambda program: program)
    step_program.cache_clear()
    apart = step_program(*made_for)
    step_program.cache_clear()
    assert loops(joined[0]) < loops(apart[0])
    bits = [kernel_bits(*found, system, state, h, 40) for found in (joined, apart)]
    np.testing.assert_array_equal(*bits)

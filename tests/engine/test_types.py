"""A program computes with JAX's types: the same numbers as XLA, or a reason why it has none."""

import warnings

import functions
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from native_function import flat, has_buffers, programme, run_natively
from operations import PLAIN, TABLE

import retrax as rx
from retrax.engine.backends.interpret import interpret
from retrax.engine.program import While, walk
from retrax.engine.trace.endings import MOST_ROUNDS
from retrax.engine.trace.scalarise import Unscalarisable

assert functions.LONG.shape  # importing it fills the table
# Rounding errors of two libraries of functions, and sums in another order; measured up to 3e-14.
ROUNDING = {"rtol": 1e-13, "atol": 1e-300, "equal_nan": True}
# What has a scalar program, and had a wrong one or none.
CORE = [
    "products of single entries", "add of int32 and int32", "mul of uint8 and uint8",
    "wrap of int8", "div of int32 and int32",
    "rem of int16 and int16", "sign of int64", "not of uint32", "neg of uint64, folded",
    "shl of int8 and int8", "sar of uint16 and uint16", "div of int64 and int64, folded",
    "floats to int32", "floats to uint8, folded", "floats to int64, folded", "uint64 to int8",
    "sum of no entries", "least of no entries", "a matrix without rows: product",
    "a loop until it is small", "a loop with 32 bits", "a loop of each member",
    "a branch with a loop that would not end on the other side", "a switch of each member",
    "select between three", "argmax of uint8", "mod at pairs of edges", "round away at edges",
    "zero times log at pairs of edges", "zero over at pairs of edges", "constants of float32",
    "entries: out of range, filled", "entries: by the state, out of range",
    "random numbers: normal", "random numbers of the state: normal",
    "entries: bits", "a loop of each of many members", "entries: set out of range",
]  # fmt: skip
# What has none, and why.
REFUSED = {
    "an island of float32": "numbers of type float32",
    "an island of bfloat16": "numbers of type bfloat16",
    "entries: complex": "numbers of type complex128",
    "less digits at edges": "rounds numbers to fewer digits",
    "entries: truths": "array of type bool",
    "calls: printed": "primitive 'debug_print'",
    "products of 64 bits along a long axis": "whole numbers of 64 bits along a long axis",
}


@pytest.fixture(autouse=True)
def types_as_users_have_them():
    """The functions of the table mix types as users do."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def compare(name, arrays=False):
    """The function as machine code for one body and for eight, and on arrays, against XLA."""
    function, arguments, plain, given = TABLE[name]
    program = programme(function, *arguments)
    exact = flat(jax.jit(plain)(*given))
    np.testing.assert_allclose(run_natively(program, *arguments), exact, **ROUNDING)
    if has_buffers(program):
        return
    np.testing.assert_allclose(run_natively(program, *arguments, lanes=8), exact, **ROUNDING)
    if arrays:
        leaves = [x.ravel() for x in jax.tree.leaves(arguments)]
        inputs = [jnp.stack([x, x]) for leaf in leaves for x in leaf]
        ours, _ = interpret(program, inputs, jnp.array([True, True]))
        np.testing.assert_allclose(flat([x[0] for x in ours]), exact, **ROUNDING)


@pytest.mark.parametrize("name", CORE)
def test_the_same_number_as_xla(name):
    compare(name)


@pytest.mark.parametrize("name", ["wrap of int8", "div of int32 and int32", "floats to uint8"])
def test_the_same_number_on_arrays_of_members(name):
    compare(name, arrays=True)


@pytest.mark.parametrize("name", REFUSED)
def test_no_program_and_the_reason(name):
    function, arguments, *_ = TABLE[name]
    with pytest.raises(Unscalarisable, match=REFUSED[name]):
        programme(function, *arguments)


@pytest.mark.campaign
@pytest.mark.parametrize("name", TABLE)
def test_every_operation_in_every_type(name):
    function, arguments, *_ = TABLE[name]
    try:
        programme(function, *arguments)
    except Unscalarisable as reason:
        assert str(reason)
        return
    compare(name, arrays=True)


def test_constants_beyond_the_range_of_floats_stay_apart():
    """(x 2^1000) 2^-1000 is x 1, but no float is 2^2000, and 1/2^-1074 is none."""

    def scaled(x):
        return x * 2.0**-1000 * 2.0**-1000, x * 2.0**1000 * 2.0**1000, x / 5e-324

    x = np.array([1e300, 1e-300])
    ours = run_natively(programme(scaled, jnp.asarray(x)), x)
    with np.errstate(over="ignore"):
        exact = [x * 2.0**-1000 * 2.0**-1000, x * 2.0**1000 * 2.0**1000, x / 5e-324]
    np.testing.assert_array_equal(ours, np.concatenate(exact))


def endless(x):
    return lax.while_loop(lambda y: y > 0, lambda y: y + 1e-3 * jnp.cos(y) ** 2, x)


def test_a_loop_that_cannot_end_does_not_hang():
    """It is cut off, and its numbers are NaN: the step fails, with a sentence."""
    program = programme(lambda x: endless(x) + 1.0, jnp.asarray(0.3))
    (loop,) = [i for i in walk(program.block) if isinstance(i, While)]
    assert MOST_ROUNDS in [x for i in walk(loop.condition) for x in i.operands]
    assert np.isnan(run_natively(program, jnp.asarray(0.3))).all()
    assert run_natively(program, jnp.asarray(-0.3)) == 0.7


def test_a_loop_that_counts_is_left_alone():
    def counted(x):
        going = (lambda c: (c[0] > 1e-3) & (c[1] < 25), lambda c: (c[0] * 0.5, c[1] + 1), (x, 0))
        return lax.while_loop(*going)

    for function in (counted, jax.vmap(counted)):
        x = jnp.asarray(0.3) if function is counted else PLAIN
        (loop,) = [i for i in walk(programme(function, x).block) if isinstance(i, While)]
        assert len(loop.carried) == 2 * x.size


# Potentials of five coordinates, each with something that once was wrong or raised.
POTENTIALS = {
    "float32": lambda x: jnp.sum(jnp.sin(x.astype(jnp.float32) * jnp.float32(1.1))).astype(float),
    "bytes that wrap": lambda x: x @ ((x * 900).astype(jnp.uint8) * jnp.uint8(7)).astype(float),
    "32 bits that wrap": lambda x: x[0] * (jnp.int32(2**31 - 1) + jnp.int32(9)) * 1e-9,
    "quotient of whole numbers": lambda x: x[1] ** 2 * lax.div((x[0] * 10).astype(int), 3),
    "no entries": lambda x: jnp.sum(x[:0]) + x @ x,
    "sign of a whole number": lambda x: x @ x * jnp.sign((x[0] * 3).astype(int)).astype(float),
    "bits": lambda x: x @ x * (~(x[0] * 3).astype(jnp.int32)).astype(float),
    "NaN as a whole number": lambda x: x @ x + (jnp.log(-x[0] ** 2 - 1)).astype(int).astype(float),
    "loop": lambda x: lax.fori_loop(0, 3, lambda k, y: y * 0.9 + x[0], x @ x),
    "guard": lambda x: jnp.sum(jnp.where(x > 0, jnp.log(jnp.where(x > 0, x, 1.0)), 0.0)),
    "largest": lambda x: jnp.max(x) ** 2 + x[jnp.argmin(x)],
    "sorted": lambda x: jnp.sort(x)[2] + x @ x,
    "branches": lambda x: lax.switch((x[0] * 3).astype(jnp.int32), [jnp.sum, lambda y: y @ y], x),
    "clipped": lambda x: jnp.sum(jnp.clip(x, -0.5, 0.4) ** 2),
    "cumulated": lambda x: jnp.sum(jnp.cumsum(x) ** 2),
    "rounded": lambda x: x @ x * jnp.round(x[0] * 7),
    "remainder": lambda x: jnp.sum(jnp.mod(x, 0.3) ** 2),
    "error function": lambda x: jnp.sum(lax.erf(x)),
    "complex": lambda x: jnp.sum(jnp.abs(x + 1j)),
    "random": lambda x: x @ jax.random.normal(jax.random.key(3), (5,)),
}  # fmt: skip
START = np.array([0.31, -0.72, 1.13, 0.25, -0.94])


def moved(name, backend, integrator):
    system = rx.MechanicalSystem(rx.Translation(5), np.ones(5), POTENTIALS[name])
    start = system.state(START, velocity=0.1 * START[::-1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = rx.simulate(system, integrator, start, h=0.01, steps=5, backend=backend)
    return np.asarray(run.momentum[-1]), run.provenance["backend"]


@pytest.mark.parametrize("name, backend", [("float32", "xla"), ("bytes that wrap", "native")])
def test_a_run_has_the_numbers_of_xla(name, backend):
    ours, used = moved(name, "auto", rx.RKMK("euler"))
    theirs, _ = moved(name, "xla", rx.RKMK("euler"))
    assert used == backend
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-14)


def test_a_run_in_float32_says_that_it_runs_on_xla():
    system = rx.MechanicalSystem(rx.Translation(5), np.ones(5), POTENTIALS["float32"])
    with pytest.warns(UserWarning, match="computes with numbers of type float32. It runs on XLA"):
        rx.simulate(system, rx.RKMK("euler"), system.state(START, velocity=START), h=0.01, steps=1)


@pytest.mark.campaign
@pytest.mark.parametrize("name", POTENTIALS)
def test_whole_runs_agree_on_every_potential(name):
    for integrator in (rx.RKMK("rk4"), rx.LieVerlet()):
        ours, _ = moved(name, "auto", integrator)
        theirs, _ = moved(name, "xla", integrator)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)

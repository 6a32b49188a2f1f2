"""Many entries read and replaced at places found at run time: programs against JAX, bit by bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from evaluate import evaluate_program
from jax import lax
from native_function import flat, programme, run_members, run_natively

from retrax.engine.passes.fusion import fuse
from retrax.engine.passes.live import live
from retrax.engine.program import Choose, Each, Repeat, StoreAt, While, walk
from retrax.engine.trace.scalarise import Unscalarisable, scalarise
from retrax.numerics.host.rules import host_program

N, M, LANES = 40, 64, 8
X, V, R = ((N, 3), float), ((M, 3), float), ((N, 3, 3), float)
W, AT, K = ((N,), float), ((M,), jnp.int32), ((), jnp.int32)


def halved(x, i, count):
    """Rows a and a + 5 share half of their difference, one pair after the other."""

    def pair(k, x):
        a = i[k]
        b = (a + 5) % N
        d = 0.5 * (x[a] - x[b])
        return x.at[a].add(-d).at[b].add(d)

    return lax.fori_loop(0, count, pair, x)


def swept(x, i, count):
    return lax.fori_loop(0, 3, lambda _, x: halved(x, i, count), x)


def while_far(x, i, count):
    """Rounds that differ from member to member, and a second array beside the first."""

    def test(carry):
        x, _, k = carry
        return (jnp.abs(x[k % N, 0]) > 0.125) & (k < 3 * count)

    def improve(carry):
        x, p, k = carry
        a = i[k % M]
        return x.at[k % N].multiply(0.5), p.at[a].add(1.0), k + 1

    return lax.while_loop(test, improve, (x, jnp.zeros(N), jnp.asarray(0)))


def near(x, by_choice):
    """List all pairs of near rows."""
    room = 16

    def outer(a, carry):
        def inner(b, carry):
            pairs, count = carry
            hit = jnp.abs(x[a] - x[b]) < 0.1
            pair = jnp.stack([a, b]).astype(jnp.int32)
            if by_choice:
                pairs = lax.cond(hit, lambda p: p.at[count].set(pair), lambda p: p, pairs)
            else:
                pairs = pairs.at[jnp.where(hit, count, room)].set(pair, mode="drop")
            return pairs, count + hit.astype(int)

        return lax.fori_loop(a + 1, N, inner, carry)

    return lax.fori_loop(0, N, outer, (jnp.full((room, 2), -1, jnp.int32), jnp.asarray(0)))


def along(x, i, v, reverse=False):
    def one(x, here):
        k, u = here
        twice = 2.0 * x[k]
        return x.at[k].add(u), twice

    return lax.scan(one, x, (i % N, v), reverse=reverse)


FORMS = {
    "rows": (lambda x, i: x[i], X, AT),
    "numbers": (lambda x, i: 2.0 * x[i], W, AT),
    "matrices": (lambda x, i: jnp.swapaxes(x[i], 1, 2), R, AT),
    "each row": (lambda x, i: jax.vmap(lambda j: -x[j])(i), X, AT),
    "rows, filled": (lambda x, i: x.at[i].get(mode="fill", fill_value=3.0), X, AT),
    "rows, clipped": (lambda x, i: x.at[i].get(mode="clip"), X, AT),
    "pairs of rows": (lambda x, i: x[i.reshape(M // 2, 2)].sum(1), X, AT),
    "a column of rows": (lambda x, i: x[i, 1], X, AT),
    "entries of each": (lambda v, i: jax.vmap(lambda a, j: a[j % 3])(v, i), V, AT),
    "of what is made": (lambda x, i: (2.0 * x)[i] + x[i], X, AT),
    "of a few": (lambda i: jnp.array([1.0, 2.0, 3.0, 5.0, 7.0])[i % 5], AT),
    "of eight bits": (lambda x, i: x[i.astype(jnp.uint8)], ((300, 2), float), AT),
    "add": (lambda x, i, v: x.at[i].add(v), X, AT, V),
    "add, clipped": (lambda x, i, v: x.at[i].add(v, mode="clip"), X, AT, V),
    "add, in bounds": (lambda x, i, v: x.at[i % N].add(v, mode="promise_in_bounds"), X, AT, V),
    "add to nothing": (lambda i, v: jnp.zeros((N, 3)).at[i].add(v), AT, V),
    "add to a few": (lambda x, i, v: x[:5].at[i % 5].add(v), X, AT, V),
    "add one number": (lambda x, i: x.at[i].add(1.0), W, AT),
    "add pairs": (
        lambda x, i, v: x.at[i.reshape(M // 2, 2)].add(v.reshape(M // 2, 2, 3)),
        *(X, AT, V),
    ),
    "add matrices": (lambda r, i, v: r.at[i].add(v[:, :, None] * v[:, None, :]), R, AT, V),
    "set": (lambda x, i, v: x.at[i].set(v), X, AT, V),
    "multiply": (lambda x, i, v: x.at[i].multiply(v), X, AT, V),
    "largest": (lambda x, i, v: x.at[i].max(v), X, AT, V),
    "smallest": (lambda x, i, v: x.at[i].min(v), X, AT, V),
    "whole numbers": (lambda x, i: jnp.arange(N, dtype=jnp.int32).at[i].add(i), X, AT),
    "one row": (lambda x, k, v: x.at[k].set(v[0]), X, K, V),
    "one row, in bounds": (
        lambda x, k, v: x.at[k].set(v[0], mode="promise_in_bounds"),
        *(X, K, V),
    ),
    "the old one too": (lambda x, k, v: x.at[k].set(v[0]) - x, X, K, V),
    "one entry": (lambda x, k: x.at[k, 1].set(5.0), X, K),
    "an entry of a row": (lambda x, k: x.at[k, k % 3].add(5.0), X, K),
    "known rows": (lambda x, v: x.at[0].set(v[0]).at[-1].add(v[1]), X, V),
    "a known column": (lambda x, v: x.at[:, 1].add(v[:N, 0]), X, V),
    "known columns": (lambda x, v: x.at[:, 1:].set(v[:N, :2]), X, V),
    "one of the columns": (lambda x, v, k: x.at[:, k].add(v[:N, 0]), X, V, K),
    "a known part": (lambda x, v: x.at[2:-1].add(v[: N - 3]).at[::1, 0].multiply(2.0), X, V),
    "a part of a column": (lambda x, v: x.at[1:30, 2].set(v[:29, 0]), X, V),
    "a column of what is made": (lambda v: jnp.zeros((N, 3)).at[:, 1].set(v[:N, 0]), V),
    "of three": (lambda x, k: x[0].at[k % 3].add(5.0), X, K),
    "a window": (lambda x, v, k: lax.dynamic_update_slice(x, v[:2, :2], (k, k % 2)), X, V, K),
    "a long window": (lambda x, v, k: lax.dynamic_update_slice(x, v[:30], (k, k * 0)), X, V, K),
    "a window of what is made": (
        lambda k: lax.dynamic_update_slice(jnp.zeros((N, 3)), jnp.ones((2, 3)), (k, k * 0)),
        K,
    ),
    "one after the other": (halved, X, AT, K),
    "sweeps": (swept, X, AT, K),
    "while": (while_far, X, AT, K),
    "a list": (lambda x: near(x, False), W),
    "a list by choice": (lambda x: near(x, True), W),
    "along": (along, X, AT, V),
    "back": (lambda x, i, v: along(x, i, v, reverse=True), X, AT, V),
    "arrays collected": (
        lambda x, k: lax.scan(lambda x, t: (x.at[k].add(t), x), x, jnp.arange(4.0))[1].sum(0),
        *(X, K),
    ),
    "chosen or not": (
        lambda x, k: lax.cond(k > 5, lambda x: x.at[k].set(1.0), lambda x: x, x),
        *(X, K),
    ),
    "one of two": (
        lambda x, k: lax.cond(k > 5, lambda x: x.at[k].set(1.0), lambda x: 2.0 * x, x),
        *(X, K),
    ),
    "one of three": (
        lambda x, k: lax.switch(k % 3, [lambda x: x, lambda x: x.at[k].set(0.0), jnp.negative], x),
        *(X, K),
    ),
    "a number of a choice": (
        lambda x, k: lax.cond(k > 5, lambda x: x.at[k].set(9.0), lambda x: x, 2.0 * x).max(),
        *(X, K),
    ),
    "a number of one side": (
        lambda x, k: lax.cond(
            k > 5, lambda x: jnp.max(x.at[k].set(9.0)), lambda x: jnp.max(x), 2.0 * x
        ),
        *(X, K),
    ),
    "changing places": (
        lambda x, k: lax.fori_loop(
            0, k, lambda j, c: (c[1].at[j].set(1.0), c[0], c[2]), (x, 2.0 * x, 3.0 * x)
        ),
        *(X, K),
    ),
}
# Where XLA may take a product and a sum together.
ROUNDED = {"one after the other", "sweeps", "add matrices"}


def numbers(shapes, seed):
    """Arguments of a function; places lie a little beyond the ends of arrays too."""
    rng = np.random.default_rng(seed)

    def one(shape, dtype):
        if dtype is float:
            return jnp.asarray(rng.integers(-64, 64, size=shape) / 64)
        return jnp.asarray(
            rng.integers(-3, N + 3, size=shape) if shape else rng.integers(12), dtype
        )

    return [one(shape, dtype) for shape, dtype in shapes]


@pytest.mark.parametrize("form", FORMS)
def test_programs_read_and_replace_what_jax_does(form):
    function, *shapes = FORMS[form]
    members = [numbers(shapes, seed) for seed in range(LANES)]
    wanted = [flat(jax.jit(function)(*arguments)) for arguments in members]
    error = 1e-15 if form in ROUNDED else 0.0
    for better in (lambda program: program, fuse):
        program = better(programme(function, *members[0]))
        given = [x for a in members[0] for x in np.ravel(a).tolist()]
        told = np.array(evaluate_program(program, given), float)
        np.testing.assert_allclose(told, wanted[0], rtol=0, atol=error)
        np.testing.assert_allclose(
            run_natively(program, *members[0]), wanted[0], rtol=0, atol=error
        )
        for found, want in zip(run_members(program, members), wanted, strict=True):
            np.testing.assert_allclose(found, want, rtol=0, atol=error)


@pytest.mark.parametrize("form", FORMS)
def test_numpy_reads_and_replaces_the_same(form):
    function, *shapes = FORMS[form]
    arguments = numbers(shapes, 0)
    found = host_program(jax.make_jaxpr(function)(*arguments))([np.asarray(x) for x in arguments])
    np.testing.assert_array_equal(flat(found), flat(jax.jit(function)(*arguments)))


def loops_of(form):
    function, *shapes = FORMS[form]
    program = fuse(programme(function, *numbers(shapes, 0)))
    return [x for x in walk(program.block) if isinstance(x, While | Repeat | Choose)]


@pytest.mark.parametrize(
    "form", ["one after the other", "sweeps", "while", "a list", "a list by choice", "along"]
)
def test_loops_replace_entries_where_they_are(form):
    """No loop along an axis is left inside: nothing is copied."""
    for loop in loops_of(form):
        if not isinstance(loop, Choose):
            assert any(isinstance(x, StoreAt) for x in walk(loop.body))
            assert not any(isinstance(x, Each) for x in walk(loop.body))


def test_what_is_not_chosen_costs_nothing():
    (choice,) = [x for x in loops_of("a list by choice") if isinstance(x, Choose)]
    assert not choice.blocks[0].instructions and choice.blocks[1].instructions


def test_an_old_array_that_is_read_again_is_kept():
    def function(x, k):
        def shifted(j, x):
            new = x.at[j].set(x[j + 1])
            return new.at[j + 1].set(x[j])  # of the old one

        return lax.fori_loop(0, k, shifted, x)

    x, k = numbers((X, K), 1)
    program = fuse(programme(function, x, k))
    np.testing.assert_array_equal(run_natively(program, x, k), flat(function(x, k)))
    np.testing.assert_array_equal(run_natively(program, x, k, lanes=8), flat(function(x, k)))


@pytest.mark.parametrize("mode", ["drop", "clip", "promise_in_bounds"])
@pytest.mark.parametrize("place", [-(2**31), -N - 1, N, 2**31 - 1])
def test_nothing_is_written_outside(mode, place):
    """The interpreter of programs asserts it; where JAX says what happens, it happens."""

    def function(x, k):
        return x.at[k].set(7.0, mode=mode, wrap_negative_indices=False)

    (x,) = numbers((X,), 2)
    program = live(scalarise(function, x, jnp.int32(0)))
    found = evaluate_program(program, [*np.ravel(x).tolist(), place])
    if mode != "promise_in_bounds":
        np.testing.assert_array_equal(found, flat(function(x, jnp.int32(place))))
        np.testing.assert_array_equal(run_natively(program, x, jnp.int32(place)), found)


def test_loops_that_count_up_to_a_number_they_carry_need_no_bound():
    """As those of `fori_loop` do: nothing is made NaN after them."""
    function, *shapes = FORMS["one after the other"]
    program = fuse(programme(function, *numbers(shapes, 0)))
    assert not any(getattr(x, "name", "") == "ge" for x in program.block.instructions)


REFUSED = {
    "many arrays at once": lambda x, i: jax.vmap(lambda a, k: a.at[k % 3].set(0.0))(x[:20], i[:20]),
    "along another axis": lambda x, i: lax.map(lambda k: jnp.sum(x.at[k].set(0.0)), i),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_program_says_so(what):
    with pytest.raises(Unscalarisable):
        scalarise(REFUSED[what], *numbers((X, AT), 0))

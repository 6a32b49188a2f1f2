"""A long axis is kept: the program does not grow with it, and computes the same."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from evaluate import evaluate_program
from jax import lax

import retrax as rx
from retrax.engine.listing import listing
from retrax.engine.passes.live import live
from retrax.engine.program import Each, walk
from retrax.engine.trace.scalarise import Unscalarisable, scalarise

N = 20
RNG = np.random.default_rng(4)
X = jnp.asarray(RNG.normal(size=(N, 3)))
R = jnp.asarray(RNG.normal(size=(N, 3, 3)))
W = jnp.asarray(RNG.uniform(0.5, 2.0, size=N))
M = jnp.asarray(RNG.normal(size=(3, 3)))
S = jnp.asarray(0.7)
# Each place once, in no order, and then some of them again.
PLACES = np.concatenate([RNG.permutation(N), [3, 3, 0, N - 1]])


def cube_root(x):
    """Newton's method with a number of iterations that depends on the node."""

    def improve(carry):
        y, k = carry
        return y - (y**3 - x) / (3 * y**2), k + 1

    y, k = lax.while_loop(lambda c: jnp.abs(c[0] ** 3 - x) > 1e-12, improve, (x + 1.0, 0))
    return y + 0.001 * k


def springs(x):
    d = x[1:] - x[:-1]
    length = jnp.sqrt(jnp.sum(d * d, axis=1))
    return jnp.sum(W[:-1] * (length - 0.3) ** 2) + 2.0 * jnp.sum(x[0] ** 2) + x[-1, 2]


def along_and_back(carry, x):
    return carry * 0.5 + x, carry @ x


FUNCTIONS = {
    "entry by entry": (lambda x, s: jnp.sin(x) * s + x**2 - jnp.where(x > 0, x, 0.1), (X, S)),
    "alike": (lambda x, r: jax.vmap(lambda a, b: jnp.cross(a, b @ a))(x, r), (X, R)),
    "matrix times all": (lambda x, m: x @ m + (m @ x.T).T, (X, M)),
    "neighbours": (lambda x: x[2:] - 2.0 * x[1:-1] + x[:-2], (X,)),
    "ends": (lambda x: jnp.concatenate([x[:1] * 2.0, x[1:-1], -x[-1:]]), (X,)),
    "nothing of it": (lambda x: jnp.concatenate([x[N:], 2.0 * x, x[5:5]]), (X,)),
    "padding": (lambda w: jnp.pad(w, (2, 1), constant_values=0.5), (W,)),
    "sums": (lambda x, r: jnp.sum(x, 0) + jnp.sum(r) + jnp.max(jnp.abs(x)), (X, R)),
    "products over the axis": (lambda x, w: w @ x + jnp.einsum("ki,kj->ij", x, x)[0], (X, W)),
    "flat and back": (lambda x: (x.reshape(-1) * 2.0).reshape(N, 3) + x, (X,)),
    "every other": (lambda x: x[::2] + x[1::2] * x[::-2], (X,)),
    "the axis moved": (lambda r: jnp.moveaxis(r, 0, 2)[1, 2] * r[:, 0, 0], (R,)),
    "constants along it": (lambda w: w * jnp.linspace(0.0, 1.0, N) + jnp.ones(N), (W,)),
    "energy and gradient": (jax.value_and_grad(springs), (X,)),
    "a map with Newton": (lambda w: lax.map(cube_root, w), (W,)),
    "one after the other": (lambda x: lax.scan(along_and_back, jnp.zeros(3), x), (X,)),
    "and backwards": (lambda x: lax.scan(along_and_back, jnp.ones(3), x, reverse=True), (X,)),
    "a loop that carries it": (
        lambda x: lax.fori_loop(0, 5, lambda k, y: y + 0.1 * jnp.roll(y, 1, axis=0), x),
        (X,),
    ),
    "a loop that swaps": (
        lambda w: lax.fori_loop(0, 3, lambda k, c: (c[1] * 1.5, c[0][::-1]), (w, w + 1.0)),
        (W,),
    ),
    "until all are small": (
        lambda w: lax.while_loop(lambda v: jnp.max(v) > 0.1, lambda v: v * v / 3.0, w),
        (W,),
    ),
    "truths": (
        lambda x: jnp.all(x > -9.0, axis=1).astype(float) + jnp.any(x > 1.0).astype(float),
        (X,),
    ),
    "known places": (lambda x: jnp.sin(x)[PLACES] * 2.0, (X,)),
    "known places of what is known": (lambda x: (x * x)[PLACES][PLACES[:N]] - x, (X,)),
    "known places of a later axis": (lambda r: (r[:, :, 1].T[:, PLACES] + 1.0) ** 2, (R,)),
    "places evenly spaced": (lambda x: x[np.arange(17, 0, -2)] + x[np.arange(2, 20, 2)], (X,)),
    "a few places": (lambda x: (2.0 * x)[np.array([7, 2, 11])], (X,)),
    "one place many times": (lambda x: x[np.full(N, 6)] * x, (X,)),
    "the gradient at known places": (
        lambda x: jax.jvp(lambda y: jnp.sum(y[PLACES] ** 3, axis=1), (x,), (x + 1.0,)),
        (X,),
    ),
    "stages": (
        lambda m: jnp.sum(lax.map(lambda c: jnp.sin(c * m) @ m, jnp.linspace(0.1, 1.0, 6)), 0),
        (M,),
    ),
}


def flat(tree):
    return np.concatenate([np.ravel(np.asarray(x, float)) for x in jax.tree.leaves(tree)])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_program_computes_the_function(name):
    function, arguments = FUNCTIONS[name]
    program = live(scalarise(function, *arguments))
    assert any(isinstance(i, Each) for i in walk(program.block))
    ours = np.array(evaluate_program(program, flat(arguments)), float)
    np.testing.assert_allclose(ours, flat(function(*arguments)), rtol=1e-13, atol=1e-13)


def test_the_program_does_not_grow_with_the_axis():
    def springs_of(n):
        def energy(x):
            d = x[1:] - x[:-1]
            return jnp.sum(jnp.sqrt(jnp.sum(d * d, axis=1))) + jnp.sum(x[0] ** 2)

        program = live(scalarise(jax.grad(energy), jnp.ones((n, 3))))
        return len(list(walk(program.block)))

    assert springs_of(2000) == springs_of(50)


def test_known_places_do_not_make_the_program_grow():
    def operations(n):
        places = np.random.default_rng(5).permutation(n)
        program = live(scalarise(lambda x: jnp.sin(x)[places] + x, jnp.ones((n, 3))))
        return len(list(walk(program.block)))

    assert operations(2000) == operations(50)


def test_a_listing_shows_loops_and_neighbours():
    text = listing(
        live(scalarise(lambda x, s: jnp.sum(x[1:] - x[:-1]) * s, jnp.ones(60), S)),
        {0: "w", 1: "s"},
    )
    assert text.startswith("program(w, s):")
    assert "for each k below 59:" in text and "w[k + 1]" in text and "for k in order" in text


def test_what_cannot_go_along_a_long_axis_is_named():
    with pytest.raises(Unscalarisable, match="the primitive 'sort' has no form along a long axis"):
        scalarise(lambda x: jnp.sort(x, axis=0), jnp.ones((50, 3)))
    with pytest.raises(Unscalarisable, match="two long axes"):
        scalarise(lambda x: x @ x.T, jnp.ones((50, 3)))


def chain(n):
    """Masses on springs in space, the first of them held."""

    def potential(x):
        x = x.reshape(n, 3)
        d = x[1:] - x[:-1]
        length = jnp.sqrt(jnp.sum(d * d, axis=1))
        held = 50.0 * jnp.sum(x[0] ** 2)
        return 25.0 * jnp.sum((length - 0.1) ** 2) + 0.1 * jnp.sum(x[:, 2]) + held

    system = rx.MechanicalSystem(rx.Translation(3 * n), jnp.linspace(0.01, 0.02, 3 * n), potential)
    k = np.arange(n)
    start = np.stack([0.1 * k, 0.0 * k, 0.01 * np.sin(k)], axis=1).ravel()
    return system, system.state(start, velocity=np.zeros(3 * n))


@pytest.mark.parametrize("n", [6, 21, 40])
def test_machine_code_of_a_chain(n):
    """Lengths that do not fill the vector units, and one that is not kept at all."""
    system, start = chain(n)
    run = {
        backend: rx.simulate(
            system, rx.RKMK("rk4"), start, h=1e-3, steps=200, save_every=50, backend=backend
        )
        for backend in ("native", "xla")
    }
    assert run["native"].provenance["backend"] == "native"
    for name in ("g", "momentum"):
        ours, theirs = (np.asarray(getattr(run[b], name)) for b in ("native", "xla"))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-13)


def test_a_failing_chain_stops_where_it_was():
    """A step that is not finite leaves the rows of the last good state."""
    n = 20

    def potential(x):
        return -jnp.sum(jnp.sqrt(1.0 - x))

    system = rx.MechanicalSystem(rx.Translation(n), jnp.linspace(1.0, 2.0, n), potential)
    start = system.state(jnp.zeros(n), velocity=jnp.linspace(0.5, 1.0, n))
    ends = []
    for backend in ("native", "xla"):
        with pytest.raises(rx.StepFailed) as failure:
            rx.simulate(system, rx.RKMK("euler"), start, h=0.4, steps=99, backend=backend)
        ends.append(failure.value.trajectory)
    assert ends[0].completed == ends[1].completed > 0
    np.testing.assert_allclose(ends[0].g, ends[1].g, rtol=0, atol=1e-15)


def test_ensembles_of_chains():
    system, start = chain(20)
    states = jax.tree.map(lambda x: jnp.stack([x, x * 1.01, x * 0.99]), start)
    runs = rx.ensemble(system, rx.RKMK("rk4"), states, h=1e-3, steps=50, save_every=20)
    assert runs.attrs["provenance_backend"] == "native"
    one = jax.tree.map(lambda x: x[1], states)
    alone = rx.simulate(system, rx.RKMK("rk4"), one, h=1e-3, steps=50, save_every=20)
    np.testing.assert_array_equal(runs["g"].values[:, 1], alone.g)


def test_numbers_of_a_long_axis_are_stacked_along_any_other():
    def function(x):
        return jnp.stack([x[:, 0], 2.0 * x[:, 1]], axis=1), jnp.stack([x, x * x], axis=0)[1]

    rows = jnp.asarray(np.random.default_rng(5).normal(size=(N, 3)))
    program = live(scalarise(function, rows))
    ours = np.array(evaluate_program(program, flat((rows,))), float)
    np.testing.assert_allclose(ours, flat(function(rows)), rtol=1e-14)

"""Runs that JAX is tracing: what they depend on is found out, and what fails in them shows."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx

LINE = rx.Translation(1)
METHOD = rx.RKMK()
FREE = rx.MechanicalSystem(LINE, [1.0])
START = FREE.state([0.3], velocity=[0.5])
stiffness: Any = 2.0


class Spring:
    """A callable object: no pytree, so JAX does not see what it holds."""

    def __init__(self, k):
        self.k = k

    def __call__(self, x):
        return self.k * x[0] ** 2 / 2


class Module(eqx.Module):
    k: Any

    def __call__(self, x):
        return self.k * x[0] ** 2 / 2


def by_global(x):
    return stiffness * x[0] ** 2 / 2


def through_global(k):
    global stiffness
    stiffness = k
    return rx.MechanicalSystem(LINE, [1.0], by_global)


def spring(k, x):
    return k * x[0] ** 2 / 2


# Ways for a number to come into a system; each is a spring of stiffness k.
WAYS = {
    "a closure": lambda k: rx.MechanicalSystem(LINE, [1.0], lambda x: k * x[0] ** 2 / 2),
    "a global": through_global,
    "a partial": lambda k: rx.MechanicalSystem(LINE, [1.0], partial(spring, k)),
    "an object": lambda k: rx.MechanicalSystem(LINE, [1.0], Spring(k)),
    "a module": lambda k: rx.MechanicalSystem(LINE, [1.0], Module(k)),
    "a force": lambda k: rx.MechanicalSystem(LINE, [1.0], force=lambda x, v, t: -k * x),
}


def moved(make, k):
    return rx.simulate(make(k), METHOD, START, h=0.1, steps=2).final.g[0]


def exactly(k):
    """The same by hand: `RKMK` is the classical method of Runge and Kutta on a line."""
    y, f = np.array([0.3, 0.5], dtype=type(k)), np.array([[0, 1], [-k, 0]])
    for _ in range(2):
        z = 0.1 * f
        y = y + z @ (y + z @ (y / 2 + z @ (y / 6 + z @ y / 24)))
    return y[0]


SLOPE = exactly(2.0 + 1e-30j).imag / 1e-30


@pytest.mark.parametrize("way", WAYS)
def test_a_number_that_only_a_function_holds_is_differentiated(way):
    value, slope = jax.jvp(partial(moved, WAYS[way]), (jnp.asarray(2.0),), (jnp.asarray(1.0),))
    np.testing.assert_allclose(value, exactly(2.0), rtol=1e-15)
    np.testing.assert_allclose(slope, SLOPE, rtol=1e-14)


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: jax.grad(f)(2.0),
        lambda f: jax.jit(jax.jacfwd(f))(2.0),
        lambda f: jax.vmap(jax.grad(f))(jnp.array([2.0, 3.0]))[0],
        lambda f: jax.grad(lambda k: jax.vmap(f)(k[None])[0])(jnp.asarray(2.0)),
    ],
    ids=["grad", "jit of jacfwd", "vmap of grad", "grad of vmap"],
)
def test_every_transformation_finds_the_number_in_a_closure(transform):
    np.testing.assert_allclose(transform(partial(moved, WAYS["a closure"])), SLOPE, rtol=1e-14)


def test_maps_over_a_closure_give_what_single_runs_give():
    run = partial(moved, WAYS["a closure"])
    got = jax.vmap(run)(jnp.array([2.0, 3.0]))
    np.testing.assert_allclose(got, [exactly(2.0), exactly(3.0)], rtol=1e-15)


def test_a_run_that_uses_nothing_traced_runs_as_ever_inside_a_derivative():
    names = []

    def f(a):
        run = rx.simulate(WAYS["a module"](2.0), METHOD, START, h=0.1, steps=2)
        names.append(run.provenance["backend"])
        return a * run.final.g[0]

    np.testing.assert_allclose(jax.grad(f)(1.0), exactly(2.0), rtol=1e-15)
    assert names == ["native"]


def test_an_ensemble_that_depends_on_a_traced_number_says_so():
    def f(k):
        states = jax.tree.map(lambda x: jnp.stack([x, x]), START)
        return rx.ensemble(WAYS["a closure"](k), METHOD, states, h=0.1, steps=2)

    with pytest.raises(rx.BadInput, match=r"cannot be traced; .* jax.vmap of simulate"):
        jax.grad(f)(2.0)


BOWL = rx.MechanicalSystem(
    rx.SO3(),
    [1.0, 2.0, 2.5],
    lambda R: -R[2, 2],
    constraint=rx.Distribution([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
)


def rolling(w):
    zero = jnp.zeros(())
    state = BOWL.state(jnp.eye(3), velocity=jnp.stack([w, 0.5 * w, zero]))
    return rx.simulate(BOWL, METHOD, state, h=0.1, steps=2)


READ = ("velocity", "multipliers", "reaction", "momentum", "g", "y", "t", "final", "states", "info",
        "failed", "constraint_violation", "group_defect", "observables")  # fmt: skip


def test_what_a_run_says_of_itself_can_be_had_while_it_is_traced():
    def read(w):
        run = rolling(w)
        values = {name: getattr(run, name) for name in READ}
        values = {name: x() if callable(x) else x for name, x in values.items()}
        return values | {"energy": run.along(BOWL.energy), "length": len(run)}

    def read_all(w):
        return read(w) | {"invariants": rolling(w).invariants()}

    plain, traced = read_all(jnp.asarray(1.0)), jax.jvp(read_all, (1.0,), (1.0,))[0]
    assert jax.tree.structure(plain) == jax.tree.structure(traced)
    for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(traced), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-14)
    hidden = jax.jit(read)(1.0)
    np.testing.assert_allclose(hidden["reaction"], plain["reaction"], atol=1e-14)
    # The numbers of the system are known also where those of the run are not.
    kept = jax.jit(lambda w: rolling(w).invariants())(1.0)
    assert kept.keys() == plain["invariants"].keys()
    for name, values in kept.items():
        np.testing.assert_allclose(values, plain["invariants"][name], atol=1e-14)


def test_symmetries_of_a_system_whose_numbers_are_hidden_must_be_declared():
    def found(moments):
        top = rx.MechanicalSystem(rx.SO3(), moments, lambda R: R[2, 2], physical=False)
        return moments * len(top.symmetries().space)

    with pytest.raises(rx.BadInput, match=r"declare them with symmetry="):
        jax.jit(found)(jnp.array([1.0, 1.7, 2.3]))


def test_what_needs_numbers_says_so_while_there_are_none():
    def f(h):
        run = rx.simulate(FREE, METHOD, START, h=h, steps=1)
        for what in ("save", "report", "sound", "plot", "summary", "measures", "dataset"):
            arguments = ["x"] if what in ("save", "report", "sound") else []
            with pytest.raises(rx.BadInput, match=rf"^{what}\(.*needs the numbers of the run"):
                getattr(run, what)(*arguments)
        assert "steps of a traced size" in repr(run) and "traced" in run._repr_html_()
        return h

    jax.jit(f)(0.1)


CLIFF = rx.MechanicalSystem(LINE, [1.0], lambda x: -jnp.sqrt(1 - x[0]))


def fallen(v):
    state = CLIFF.state(jnp.zeros(1), velocity=jnp.atleast_1d(v))
    return rx.simulate(CLIFF, METHOD, state, h=0.1, steps=6, save_every=2)


def test_a_step_that_fails_under_jit_shows_from_there_on():
    """The step into the cliff gives no number: the run ends at the record before it."""
    with pytest.raises(rx.StepFailed) as failure:
        fallen(3.0)
    kept = failure.value.trajectory
    run = jax.jit(lambda v: (lambda r: (r.states, r.info, r.failed))(fallen(v)))(3.0)
    states, info, failed = run
    records = kept.completed // 2 + 1
    assert failed.tolist() == [k >= records for k in range(4)] and 1 < records < 4
    np.testing.assert_allclose(states.g[:records], kept.g[:records], rtol=1e-15)
    assert np.isnan(states.g[records:]).all() and np.isnan(states.momentum[records:]).all()
    assert np.isnan(info.residual[records:]).all() and np.isnan(info.increment[records:]).all()
    assert (np.asarray(info.iterations[records:]) == -1).all()
    np.testing.assert_allclose(states.t, [0.0, 0.2, 0.4, 0.6], rtol=1e-15)


def test_of_many_runs_only_those_that_fail_are_lost():
    def end(v):
        run = fallen(v)
        return run.final.g[0], run.failed[-1]

    (final, failed), (slope, _) = jax.vmap(lambda v: jax.jvp(end, (v,), (1.0,)))(
        jnp.array([-0.5, 3.0])
    )
    assert failed.tolist() == [False, True] and np.isnan(final[1])
    well = fallen(-0.5)
    np.testing.assert_allclose(final[0], well.final.g[0], rtol=1e-15)
    assert np.isfinite(slope[0]) and well.failed.tolist() == [False] * 4

"""States between those that were saved, and the ends of runs as times."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx

BODY = rx.MechanicalSystem(rx.SO3(), [1.0, 2.0, 2.5], lambda R: 3 * R[2, 2] + R[0, 1])
START = BODY.state(np.eye(3), velocity=[0.3, 0.2, -0.5], t=0.1)


def simulate(integrator="lie-verlet", **more):
    return rx.simulate(BODY, integrator, START, **({"h": 0.01, "steps": 200} | more))


def test_saved_states_are_given_back_bit_for_bit():
    run = simulate(save_every=9)
    found = run.at(run.t)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(run.states), strict=True):
        assert np.array_equal(a, b)
    assert np.array_equal(run.at(float(run.t[3])).g, run.g[3])


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_steps_that_were_not_saved_are_taken_again(backend):
    every, few = simulate(backend=backend), simulate(save_every=30, backend=backend)
    found = few.at(every.t)
    assert np.array_equal(found.g, every.g) and np.array_equal(found.t, every.t)


@pytest.mark.parametrize("integrator", [rx.LieVerlet(), rx.Collocation(rx.gauss(2))], ids=repr)
def test_between_steps_a_state_has_the_order_of_the_method(integrator):
    times = 0.1 + np.array([0.123456, 0.5, 1.717171])
    exact = simulate(rx.Taylor(16)).at(times)
    errors = [
        np.max(np.abs(simulate(integrator, h=2 / n, steps=n, save_every=3).at(times).g - exact.g))
        for n in (100, 200)
    ]
    assert abs(np.log2(errors[0] / errors[1]) - integrator.order) < 0.3
    assert np.array_equal(exact.t, times)


def test_driven_runs_have_states_at_any_time():
    plant = rx.Actuated(BODY, jnp.eye(3))
    control = rx.Signal(0.1 + 0.5 * np.arange(5), np.random.default_rng(3).normal(size=(5, 3)))
    few, fine = (
        rx.simulate(plant, rx.Taylor(12), START, h=h, steps=n, save_every=k, control=control)
        for h, n, k in ((0.02, 100, 10), (0.005, 400, 1))
    )
    gap = np.abs(few.at(fine.t).g - fine.g)
    assert np.max(gap) < 1e-13  # inputs jump at the ends of steps only


def test_runs_back_in_time_have_states_too():
    back = rx.simulate(BODY, rx.LieVerlet(), START, h=-0.01, steps=100, save_every=7)
    every = rx.simulate(BODY, rx.LieVerlet(), START, h=-0.01, steps=100)
    assert np.array_equal(back.at(every.t).g, every.g)
    assert back.at(-0.3333).t == -0.3333


def test_a_state_between_starts_another_run():
    state = simulate(save_every=50).at(0.12345)
    assert isinstance(state, rx.State) and state.t == 0.12345
    rx.simulate(BODY, "lie-verlet", state, h=0.01, steps=2)


@pytest.mark.parametrize(
    ("t", "sentence"),
    [
        (0.05, "from 0.1 to 2.1 s"),
        (2.2, "from 0.1 to 2.1 s"),
        (np.nan, "finite"),
        ([[1.0]], "a time or a list"),
        ("noon", "t = 'noon'"),
    ],
)
def test_a_sentence_for_a_time_that_is_none(t, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        simulate().at(t)


def test_a_loaded_run_without_its_functions_says_so(tmp_path):
    run = rx.load(simulate().save(tmp_path / "run.nc"))
    with pytest.raises(rx.BadInput, match="but not its functions"):
        run.at(0.123)


@pytest.mark.parametrize("until", [2.1, 0.1 + 200 * 0.01])
def test_until_is_the_end_of_a_run(until):
    run = rx.simulate(BODY, "lie-verlet", START, h=0.01, until=until)
    assert run.completed == 200 and run.t[-1] == simulate().t[-1]
    states = jax.tree.map(lambda x: jnp.stack([x] * 4), START)
    assert rx.ensemble(BODY, "lie-verlet", states, h=0.01, until=until).attrs["steps"] == 200
    assert rx.prepare(BODY, "lie-verlet", h=0.01)(START, until=until).completed == 200


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"until": 1.2345}, r"until = 1.23 or 1.24, or h = 0.01003982"),
        ({"until": 0.1}, "not a step ahead"),
        ({"until": -3.0}, "not a step ahead"),
        ({"until": np.inf}, "finite number"),
        ({"until": 1.1, "steps": 100}, "both are given"),
        ({}, "none is given"),
    ],
)
def test_a_sentence_for_an_end_that_is_none(asked, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        rx.simulate(BODY, "lie-verlet", START, h=0.01, **asked)

"""Numbers of other types are taken for what they mean; what means nothing gets a sentence."""

import copy
import datetime
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.trajectory.members import observe_members

BODY = rx.systems.FreeRigidBody([1.3, 2.1, 2.9])
PLANT = rx.Actuated(BODY, np.eye(3))
START = BODY.state(np.eye(3), velocity=[0.4, 1.1, -0.7])
MANY = jax.tree.map(lambda x: jnp.stack([x, x]), START)


def run(**options):
    return rx.simulate(BODY, "lie-verlet", START, **{"h": 0.01, "steps": 4} | options)


@pytest.mark.parametrize("steps", [4.0, np.float32(4), np.float64(4)])
def test_a_whole_number_may_be_a_float(steps):
    assert run(steps=steps).completed == 4
    assert rx.prepare(BODY, "lie-verlet", h=0.01)(START, steps).completed == 4
    assert run(save_every=steps / 2).t.shape == (3,)
    stepper = rx.Stepper(BODY, "lie-verlet", START, h=0.01)
    assert stepper.step(steps=steps).t == pytest.approx(0.04)
    assert rx.ensemble(BODY, "lie-verlet", MANY, h=0.01, steps=steps).attrs["steps"] == 4


@pytest.mark.parametrize("steps", [4.5, True, float("nan"), float("inf"), 10**400, "4"])
def test_what_is_no_whole_number_is_still_refused(steps):
    with pytest.raises(rx.BadInput, match="steps ="):
        run(steps=steps)


@pytest.mark.parametrize("kind", ["int32", "int64", "float32"])
def test_a_law_may_return_numbers_of_any_real_type(kind):
    def law(g, xi, t):
        return jnp.ones(3).astype(kind)

    for control in (rx.Feedback(law), rx.Sampled(law, 0.02)):
        driven = rx.simulate(PLANT, "lie-verlet", START, h=0.01, steps=4, control=control)
        assert np.all(driven.inputs == 1.0) and driven.inputs.dtype == np.float64


def test_a_fleet_with_inputs_is_observed():
    fleet = rx.ensemble(
        PLANT, "lie-verlet", MANY, h=0.01, steps=4, control=rx.Feedback(lambda g, xi, t: -xi)
    )
    one, other = (observe_members(system, fleet) for system in (PLANT, BODY))
    assert np.array_equal(one.velocity, other.velocity)


@pytest.mark.parametrize("until", [1e308, -1e308, float("inf")])
def test_an_end_out_of_reach(until):
    with pytest.raises(rx.BadInput, match=r"until = .* can reach"):
        run(steps=None, until=until)


@pytest.mark.parametrize("make", [rx.Feedback, lambda law: rx.Sampled(law, 0.1), rx.Event])
def test_a_class_is_no_function(make):
    with pytest.raises(rx.BadInput, match="is a class: give a function"):
        make(int)


def test_costs_and_ends_of_nothing():
    with pytest.raises(rx.BadInput, match="weights are empty"):
        rx.MinimumEffort([])
    for pose in ((x for x in range(3)), "pose", object(), {}):
        with pytest.raises(rx.BadInput, match="pose = "):
            rx.Reach(pose)
    with pytest.raises(rx.BadInput, match="velocity of the end"):
        rx.Reach(np.eye(3), velocity=(x for x in range(3)))


def test_compiled_steps_are_not_sent_to_another_process():
    for made in (
        rx.Stepper(BODY, "lie-verlet", START, h=0.01),
        rx.prepare(BODY, "lie-verlet", h=0.01),
    ):
        for act in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(rx.BadInput, match="holds compiled steps"):
                act(made)


def test_a_step_size_is_a_number_where_steps_are_written_out(tmp_path):
    with pytest.raises(rx.BadInput, match=r"h = .*timedelta"):
        rx.export(PLANT, rx.LieVerlet(), tmp_path / "x.c", h=datetime.timedelta(seconds=1))


def test_a_callback_that_takes_no_batch_is_told():
    @jax.custom_jvp
    def height(R):
        shape = jax.ShapeDtypeStruct((), jnp.float64)
        return jax.pure_callback(lambda x: np.asarray(x, float), shape, R[2, 2])

    height.defjvp(lambda at, moved: (height(*at), moved[0][2, 2]))
    top = rx.MechanicalSystem(rx.SO3(), [1.0, 2.0, 2.5], height)
    start = top.state(np.eye(3), velocity=[0.1, 0.2, 0.3])
    with pytest.warns(UserWarning, match="no scalar form"):
        done = rx.prepare(top, "lie-verlet", h=0.01)(start, 3)
    with pytest.raises(rx.BadInput, match="cannot be looked at for many states"):
        done.energy()

"""Stepping from Python: the bits of a run, one body or many; a sentence for what is wrong."""

import os
import signal
import subprocess
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import gammaln

import retrax as rx
from retrax.integrators.driven import Driven

pytestmark = pytest.mark.filterwarnings("ignore:the actuators saturate")
H, HELD = 0.01, 5
BODY = rx.MechanicalSystem(rx.SO3(), [1.0, 2.0, 2.5], lambda R: 3 * R[2, 2] + R[0, 1])


def two_thrusters(R):
    return jnp.stack([R[0], R[1]], axis=1)


PLANT = rx.Actuated(BODY, two_thrusters, bounds=(-1.0, 1.2))
START = BODY.state(np.eye(3), velocity=[0.3, 0.2, -0.5], t=0.25)
INPUTS = np.random.default_rng(0).normal(size=(12, 2))


def member(states, k):
    return jax.tree.map(lambda x: x[k], states)


def alike(a, b):
    return all(np.array_equal(x, y) for x, y in zip(*map(jax.tree.leaves, (a, b)), strict=True))


def driven(integrator, backend="auto"):
    table = rx.Signal(0.25 + H * (HELD * np.arange(len(INPUTS))), INPUTS)
    method = Driven(integrator, PLANT.actuators, table)
    steps = HELD * len(INPUTS)
    return rx.simulate(BODY, method, START, h=H, steps=steps, save_every=HELD, backend=backend)


@pytest.mark.parametrize(
    ("integrator", "gap"),
    [
        (rx.LieVerlet(), 0.0),
        (rx.Composition(rx.CotangentLift(), order=4), 0.0),
        (rx.Collocation(rx.gauss(2)), 1e-15),  # 1.1e-16: LLVM fuses other products and sums
    ],
    ids=repr,
)
def test_steps_are_those_of_a_run_with_a_table_of_the_same_inputs(integrator, gap):
    stepper = rx.Stepper(PLANT, integrator, START, h=H)
    ends = [stepper.step(u, steps=HELD) for u in INPUTS]
    run, reference = stepper.run(), driven(integrator)
    assert np.array_equal(run.t, reference.t) and stepper.t == reference.t[-1]
    assert np.max(np.abs(run.g - reference.g)) <= gap
    assert np.max(np.abs(run.momentum - reference.momentum)) <= gap
    assert alike(ends[-1].g, run.final.g)
    assert run.completed == reference.completed and run.save_every == HELD


def test_inputs_are_clipped_at_the_bounds_and_kept_as_they_were_asked_for():
    assert np.abs(INPUTS).max() > 1.2  # so that the run above has seen it
    stepper = rx.Stepper(PLANT, rx.LieVerlet(), START, h=H)
    for u in INPUTS:
        stepper.step(u, steps=2)
    held = np.asarray(stepper.run().states.control)
    assert np.array_equal(held[:-1], INPUTS) and np.array_equal(held[-1], INPUTS[-1])


def test_inputs_stay_until_others_are_given():
    one, other = (rx.Stepper(PLANT, rx.LieVerlet(), START, h=H) for _ in range(2))
    one.step([0.5, -0.2], steps=3), one.step(steps=4)
    assert alike(other.step([0.5, -0.2], steps=7), one.state)


def test_reset_starts_again_without_inputs():
    stepper = rx.Stepper(PLANT, rx.LieVerlet(), START, h=H)
    first = stepper.step([0.3, 0.1], steps=4)
    assert stepper.reset(START).t == 0.25 and not np.any(stepper.state.control)
    assert alike(stepper.step([0.3, 0.1], steps=4), first) and len(stepper.run()) == 2


def test_what_was_passed_grows_without_bound_and_states_stay_as_they_were():
    stepper = rx.Stepper(PLANT, rx.LieVerlet(), START, h=1e-4)
    ends = [stepper.step(u) for u in np.resize(INPUTS, (1000, 2))]
    run = stepper.run()
    assert len(run) == 1001 and alike(np.stack([end.g for end in ends]), run.g[1:])
    with pytest.raises(ValueError, match="read-only"):
        ends[0].momentum[0] = 1.0


def test_nothing_is_kept_where_nothing_shall_be():
    stepper = rx.Stepper(PLANT, rx.LieVerlet(), START, h=1e-4, keep=False)
    for u in np.resize(INPUTS, (300, 2)):
        stepper.step(u)
    with pytest.raises(rx.BadInput, match="keep"):
        stepper.run()


def test_a_system_without_inputs_steps_too():
    stepper = rx.Stepper(BODY, "lie-verlet", START, h=H)
    stepper.step(), stepper.step(steps=9)
    assert alike(stepper.run().final, rx.simulate(BODY, "lie-verlet", START, h=H, steps=10).final)
    with pytest.raises(rx.BadInput, match="no inputs"):
        stepper.step([1.0])


def starts(count=11):
    velocities = np.random.default_rng(1).normal(size=(count, 3))
    return jax.vmap(lambda v: BODY.state(jnp.eye(3), velocity=v))(velocities)


def test_members_of_a_batch_are_single_steppers():
    states, inputs = starts(), np.random.default_rng(2).normal(size=(4, 11, 2))
    many = rx.Stepper(PLANT, rx.LieVerlet(), states, h=H)
    for u in inputs:
        end = many.step(u, steps=3)
    for k in (0, 10):
        one = rx.Stepper(PLANT, rx.LieVerlet(), member(states, k), h=H)
        for u in inputs[:, k]:
            alone = one.step(u, steps=3)
        gaps = jax.tree.map(lambda a, b, k=k: np.max(np.abs(a - b[k])), alone, end)
        assert max(jax.tree.leaves(gaps)) <= 1e-15
    runs = many.run()
    assert runs.sizes["time"] == 5 and np.array_equal(runs["g"][-1], end.g)


def test_one_input_for_all_members():
    a, b = (rx.Stepper(PLANT, rx.LieVerlet(), starts(3), h=H) for _ in range(2))
    assert alike(a.step([0.4, 0.1]), b.step(np.tile([0.4, 0.1], (3, 1))))


def falling(R):
    return jnp.sqrt(R[2, 2] - 0.2)  # not a number beyond an angle that the body falls to


CLIFF = rx.Actuated(rx.MechanicalSystem(rx.SO3(), [1.0, 2.0, 2.5], falling), jnp.eye(3))


def test_a_step_that_fails_is_told_and_what_was_passed_is_kept():
    start = CLIFF.state(np.eye(3), velocity=[1.0, 0.0, 0.0])
    stepper = rx.Stepper(CLIFF, rx.LieVerlet(), start, h=H)
    with pytest.raises(rx.StepFailed, match=r"step \d+ of \d+") as told:
        while True:
            stepper.step([1.0, 0.0, 0.0], steps=7)
    run = told.value.trajectory
    assert stepper.failed and run.t[-1] == stepper.t and run.completed % 7 != 0
    assert np.array_equal(run.final.g, stepper.state.g) and len(run) == run.completed // 7 + 2
    again = rx.simulate(
        CLIFF.system,
        Driven(
            rx.LieVerlet(),
            CLIFF.actuators,
            rx.Signal(np.array([0.0, 9.0]), np.array([[1.0, 0.0, 0.0]] * 2)),
        ),
        start,
        h=H,
        steps=run.completed,
    )
    assert np.array_equal(again.final.g, run.final.g)
    stepper.step([-300.0, 0.0, 0.0])  # and back from the cliff
    assert not stepper.failed


def test_members_that_fail_do_not_stop_the_others():
    velocities = jnp.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.5], [-2.0, 0.0, 0.0]])
    states = jax.vmap(lambda v: CLIFF.state(jnp.eye(3), velocity=v))(velocities)
    many = rx.Stepper(CLIFF, rx.LieVerlet(), states, h=H)
    for _ in range(30):
        end = many.step([0.0, 0.0, 0.1], steps=7)
    assert many.failed.tolist() == [True, False, True]
    assert np.isnan(end.g[0]).all() and np.isfinite(end.g[1]).all()
    assert many.run()["failed_step"].values[1] == -1
    many.reset(states)
    assert not many.failed.any() and np.isfinite(many.step().g).all()


def test_steps_without_a_scalar_program_run_on_xla():
    odd = rx.MechanicalSystem(rx.SO3(), [1.0, 2.0, 2.5], lambda R: gammaln(3 + R[2, 2]))
    plant, state = rx.Actuated(odd, jnp.eye(3)), odd.state(np.eye(3), velocity=[0.1, 0.5, -0.3])
    states = jax.tree.map(lambda x: np.stack([x, x]), state)
    with pytest.warns(UserWarning, match="no machine code of retrax"):
        stepper = rx.Stepper(plant, rx.LieVerlet(), state, h=H)
    with pytest.warns(UserWarning, match="no machine code of retrax"):
        many = rx.Stepper(plant, rx.LieVerlet(), states, h=H)
    for _ in range(3):
        end, ends = stepper.step([0.3, 0.1, 0.2], steps=2), many.step([0.3, 0.1, 0.2], steps=2)
    table = rx.Signal(np.array([0.0, 9.0]), np.array([[0.3, 0.1, 0.2]] * 2))
    method = Driven(rx.LieVerlet(), plant.actuators, table)
    run = rx.simulate(odd, method, state, h=H, steps=6, backend="xla")
    assert np.array_equal(end.g, run.final.g) and np.array_equal(ends.g[1], run.final.g)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda s: s.step([1.0]), r"u has shape \(1,\)"),
        (lambda s: s.step(np.zeros((3, 2))), r"u has shape \(3, 2\)"),
        (lambda s: s.step([np.nan, 0.0]), "u must be finite"),
        (lambda s: s.step([np.inf, 0.0]), "u must be finite"),
        (lambda s: s.step("full ahead"), "u = 'full ahead'"),
        (lambda s: s.step(steps=0), "steps = 0"),
        (lambda s: s.step(steps=2.5), "steps = 2.5"),
        (lambda s: s.step(steps=2, until=1.0), "give one"),
        (lambda s: s.step(until=0.2), "not a step ahead"),
        (lambda s: s.step(until=0.3333), "0.33 or 0.34"),
        (lambda s: s.reset("start"), "is not a State"),
    ],
)
def test_a_sentence_for_what_is_wrong(call, sentence):
    stepper = rx.Stepper(PLANT, rx.LieVerlet(), START, h=H)
    before = stepper.state
    with pytest.raises(rx.BadInput, match=sentence):
        call(stepper)
    assert stepper.state is before and stepper.t == 0.25


def test_until_is_a_time():
    stepper = rx.Stepper(PLANT, rx.LieVerlet(), START, h=H)
    assert stepper.step([0.1, 0.2], until=0.31).t == 0.25 + 6 * H
    assert stepper.step(until=0.4).t == 0.25 + 15 * H


def test_ctrl_c_ends_a_long_call_and_the_plant_stands_where_it_stood():
    stepper = rx.Stepper(PLANT, rx.LieVerlet(), START, h=1e-6)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    clock = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        stepper.step([0.1, 0.0], steps=10**10)
    assert time.perf_counter() - clock < 30 and stepper.t == 0.25
    other = rx.Stepper(PLANT, rx.LieVerlet(), START, h=1e-6)
    assert alike(stepper.step([0.1, 0.0]), other.step([0.1, 0.0]))


_COST = """
import time, numpy as np, retrax as rx
body = rx.systems.FreeRigidBody([1.0, 2.0, 3.0])
start = body.state(np.eye(3), velocity=[0.3, 0.2, -0.5])
stepper = rx.Stepper(rx.Actuated(body, np.eye(3)), rx.LieVerlet(), start, h=1e-3)
u, best = np.array([0.1, 0.2, 0.3]), np.inf
for _ in range(10):
    clock = time.process_time()
    for _ in range(2000):
        stepper.step(u)
    best = min(best, time.process_time() - clock)
print(best / 2000)
"""


def test_a_call_costs_microseconds():
    told = subprocess.run([sys.executable, "-c", _COST], capture_output=True, text=True, check=True)
    assert float(told.stdout) < 20e-6  # 6.0 us of processor time, 7.6 on a very busy machine


def test_calls_of_unequal_length_cannot_be_saved_and_say_so(tmp_path):
    stepper = rx.Stepper(PLANT, "rkmk-5", START, h=H)
    for u, steps in zip(INPUTS[:3], (3, 5, 2), strict=True):
        stepper.step(u, steps=steps)
    with pytest.raises(rx.BadInput, match="cannot be saved: it has 4 states after 10 steps"):
        stepper.run().save(tmp_path / "uneven.nc")
    assert not list(tmp_path.iterdir())
    stepper.reset(START)
    for u, steps in zip(INPUTS[:3], (3, 3, 2), strict=True):  # only the last one is shorter
        stepper.step(u, steps=steps)
    run = stepper.run()
    read = rx.load(run.save(tmp_path / "even.nc"))
    assert read.save_every == 3 and alike(read.states.momentum, run.momentum)


def test_the_dataset_of_a_batch_has_inputs_and_times_of_failed_members_too():
    def steep(R):  # no number behind a wall
        return jnp.where(R[0, 1] < 0.25, 1.0, jnp.nan) * R[2, 2]

    plant = rx.Actuated(rx.MechanicalSystem(rx.SO3(), [1.0, 2.0, 2.5], steep), two_thrusters)
    velocities = jnp.array([[0.0, 0.0, -1.0], [0.1, 0.0, 0.4]])
    states = jax.vmap(lambda v: plant.state(jnp.eye(3), velocity=v))(velocities)
    many = rx.Stepper(plant, rx.LieVerlet(), states, h=H)
    for u, steps in zip(INPUTS, (20, 20, 10), strict=False):
        many.step(0.1 * u, steps=steps)
    runs = many.run()
    assert many.failed.tolist() == [True, False] and runs.attrs["save_every"] == 20
    np.testing.assert_allclose(runs["time"], [0.0, 0.2, 0.4, 0.5], rtol=1e-15)
    wanted = 0.1 * INPUTS[[0, 1, 2, 2]]
    np.testing.assert_array_equal(runs["inputs"][:, 1], wanted)
    np.testing.assert_array_equal(runs["inputs"][0, 0], wanted[0])
    assert np.isnan(runs["inputs"][2:, 0]).all()
    many.step(steps=1)
    many.step(steps=2)
    assert "save_every" not in many.run().attrs

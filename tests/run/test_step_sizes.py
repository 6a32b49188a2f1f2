"""Steps that are too long, advice that has been tried, and steps back in time."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx

BODY = rx.systems.FreeRigidBody([1.0, 2.0, 2.5])
TOP = rx.systems.HeavyTop([1.0, 1.2, 0.9], 1.0, [0.0, 0.0, 0.5])


def spinning(*rates):
    states = [BODY.state(jnp.eye(3), velocity=[0.0, 0.0, rate]) for rate in rates]
    return states[0] if len(rates) == 1 else jax.tree.map(lambda *xs: jnp.stack(xs), *states)


def test_a_step_of_a_thousand_radians_is_told_and_stays_in_the_summary():
    """Solved in Cayley's coordinates its increment is 15.8; the energy is kept to round-off."""
    with pytest.warns(UserWarning, match=r"turned the free rigid body by \|h xi\| = 1000 rad") as w:
        run = rx.simulate(BODY, rx.LieVerlet(), spinning(1e5), h=0.01, steps=3)
    assert "Note: a step near t = 0 s turned" in run.summary()
    assert "use a step below 3.1e-05 s" in str(w[0].message)
    assert np.ptp(run.invariants()["energy"]) == 0


def test_a_turn_just_below_and_just_above_pi_are_told_apart():
    rx.simulate(BODY, rx.LieVerlet(), spinning(3.1), h=1.0, steps=2)  # no warning
    with pytest.warns(UserWarning, match=r"= 3.2 rad"):
        rx.simulate(BODY, rx.LieVerlet(), spinning(3.2), h=1.0, steps=2)


def test_in_ensembles_and_sweeps_the_members_that_turn_too_far_are_counted(tmp_path):
    with pytest.warns(UserWarning, match=r"turned 1 of 2 members .* first of them member 1, by"):
        rx.ensemble(BODY, rx.LieVerlet(), spinning(1.0, 1e5), h=0.01, steps=2)

    def make(rate):
        return BODY, BODY.state(jnp.eye(3), velocity=jnp.stack([0 * rate, 0 * rate, rate]))

    with pytest.warns(UserWarning, match=r"turned 1 of 2 members .* first of them rate = 500.0"):
        rx.sweep(make, rx.LieVerlet(), grid={"rate": [1.0, 500.0]}, h=0.01, steps=2,
                 store=tmp_path / "s", client="serial")  # fmt: skip


def test_places_do_not_alias():
    line = rx.MechanicalSystem(rx.Translation(1), [1.0])
    rx.simulate(line, rx.LieVerlet(), line.state([0.0], velocity=[1e3]), h=1.0, steps=2)


@pytest.mark.parametrize(
    ("method", "h"),
    [
        (rx.CotangentLift(), 4.0),
        (rx.RKMK(), 9.0),
        (rx.GalerkinVariational(rx.gauss(2)), 1.0),
        (rx.RKMK(), -9.0),
    ],
    ids=["implicit", "chart", "stages", "backwards"],
)
@pytest.mark.filterwarnings("ignore:a step near")
def test_the_step_that_is_advised_can_be_taken(method, h):
    state = TOP.state(jnp.eye(3), velocity=[3.0, 0.2, 6.0])
    with pytest.raises(rx.StepFailed) as failure:
        rx.simulate(TOP, method, state, h=h, steps=5)
    found = re.search(r"Try h = (\S+) \(it is", str(failure.value))
    assert found is not None, str(failure.value)
    advised = float(found[1])
    assert 1e-4 < advised / h < 1
    rx.simulate(TOP, method, failure.value.trajectory.final, h=advised, steps=1)
    longest = re.search(r"from there is h = (\S+) \(", str(failure.value))
    assert longest is None or advised / h <= float(longest[1]) / h


def test_where_no_step_can_be_taken_none_is_advised():
    wall = rx.MechanicalSystem(rx.Translation(1), [1.0], lambda x: -jnp.sqrt(x[0]))
    state = wall.state([0.0], velocity=[-1.0])
    with pytest.raises(
        rx.StepFailed,
        match=r"No shorter step was found that works there, down to h = .*; the run up to",
    ):
        rx.simulate(wall, rx.RKMK(), state, h=0.1, steps=2)


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_a_symmetric_method_comes_back_with_negative_steps(backend):
    state = TOP.state(jnp.eye(3), velocity=[0.3, 0.2, 6.0], t=1.0)
    there = rx.simulate(TOP, rx.LieVerlet(), state, h=0.01, steps=50, backend=backend)
    back = rx.simulate(TOP, rx.LieVerlet(), there.final, h=-0.01, steps=50, backend=backend)
    np.testing.assert_allclose(back.final.g, state.g, atol=2e-14)
    np.testing.assert_allclose(back.final.momentum, state.momentum, atol=5e-14)
    assert np.all(np.diff(back.t) < 0) and abs(float(back.final.t) - 1.0) < 1e-14


def test_negative_steps_in_ensembles_sweeps_and_files(tmp_path):
    state = TOP.state(jnp.eye(3), velocity=[0.3, 0.2, 6.0])
    run = rx.simulate(TOP, rx.RKMK(), state, h=-0.01, steps=4)
    states = jax.tree.map(lambda x: jnp.stack([x, x]), state)
    runs = rx.ensemble(TOP, rx.RKMK(), states, h=-0.01, steps=4, save_every=2)
    np.testing.assert_allclose(runs["momentum"].values[-1, 0], run.final.momentum, rtol=1e-14)
    np.testing.assert_allclose(runs["time"], [0.0, -0.02, -0.04])
    swept = rx.sweep(lambda m: (rx.systems.HeavyTop([1.0, 1.2, 0.9], m, [0.0, 0.0, 0.5]), state),
                     rx.RKMK(), grid={"m": [1.0, 2.0]}, h=-0.01, steps=4, save_every=2,
                     store=tmp_path / "s", client="serial")  # fmt: skip
    np.testing.assert_allclose(swept["momentum"].values[-1, 0], run.final.momentum, rtol=1e-14)
    np.testing.assert_allclose(swept["time"], [0.0, -0.02, -0.04])
    again = rx.load(run.save(tmp_path / "run.nc"))
    np.testing.assert_array_equal(again.t, run.t)
    assert "h = -0.01 s, from t = 0 to -0.04 s" in run.summary()


def test_damping_grows_back_and_adaptive_steps_go_back():
    damped = rx.MechanicalSystem(rx.Translation(1), [1.0], force=lambda x, v, t: -v)
    start = damped.state([0.0], velocity=[1.0])
    run = rx.simulate(damped, rx.Adaptive(rx.RKMK(), 1e-10), start, h=-0.5, steps=2)
    np.testing.assert_allclose(run.velocity[-1], np.exp(1.0), rtol=1e-9)  # measured 8e-11


def test_a_checkpoint_goes_on_backwards(tmp_path):
    state = TOP.state(jnp.eye(3), velocity=[0.3, 0.2, 6.0])
    whole = rx.simulate(TOP, rx.RKMK(), state, h=-0.01, steps=8)
    rx.simulate(TOP, rx.RKMK(), state, h=-0.01, steps=4, checkpoint=tmp_path / "c.zarr")
    again = rx.resume(tmp_path / "c.zarr", steps=8)
    np.testing.assert_array_equal(again.momentum, whole.momentum)


@pytest.mark.parametrize(
    ("h", "momentum", "least"), [(1e308, [1.0, 1.0, 1.0], "1e+302"), (0.01, [1e308, 0, 0], "1e-08")]
)
def test_no_step_is_advised_where_none_was_found(h, momentum, least):
    top = rx.systems.HeavyTop([1.0, 1.7, 2.3], 1.0, [0.4, -0.3, 1.1])
    with pytest.raises(rx.StepFailed) as told:
        rx.simulate(top, rx.LieVerlet(), rx.State(jnp.eye(3), jnp.array(momentum)), h=h, steps=20)
    said = str(told.value)
    assert f"No shorter step was found that works there, down to h = {least};" in said
    assert "Try" not in said

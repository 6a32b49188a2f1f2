"""What cannot be driven, or goes wrong on the way: a sentence each, and the run is kept."""

import jax.numpy as jnp
import numpy as np
import pytest
from driven_plants import MATRIX, Gains, plant, start

import retrax as rx

PLANT, START = plant(), start()
BODY = PLANT.system


def law(R, xi, t):
    return jnp.array([-R[0, 2] - xi[0], R[1, 0]])


def late(R, xi, t):
    return jnp.where(t > 0.5, jnp.nan, 1.0) * jnp.ones(2)


def driven(control, of=PLANT, integrator="lie-verlet", h=0.01, steps=100):
    return rx.simulate(of, integrator, START, h=h, steps=steps, control=control)


def feedback(function):
    return lambda: driven(rx.Feedback(function))


def sampled(function, period=0.05, **options):
    return lambda: driven(rx.Sampled(function, period, **options))


REFUSED = {
    "a law of the wrong shape": (
        feedback(lambda R, xi, t: jnp.zeros(3)),
        "returns float64 of shape (3,), but this plant has 2 inputs",
    ),
    "a law of truths": (feedback(lambda R, xi, t: jnp.zeros(2, bool)), "returns bool"),
    "a law that raises": (feedback(lambda R, xi, t: 1 / 0), "ZeroDivisionError"),
    "a law of other arguments": (feedback(lambda R, xi: xi[:2]), "positional arguments"),
    "a law with an if": (
        feedback(lambda R, xi, t: xi[:2] if t > 0 else -xi[:2]),
        "decides by a value that JAX traces",
    ),
    "a sample of the wrong shape": (sampled(lambda R, xi, t: xi), "has 2 inputs"),
    "a state that changes its shape": (
        sampled(lambda R, xi, t, s: (xi[:2], s[:1]), state=jnp.zeros(3)),
        "given float64[3] and returns float64[1]",
    ),
    "a state that is not returned": (
        sampled(lambda R, xi, t, s: xi[:2], state=jnp.zeros(3)),
        "returns the pair (u, state)",
    ),
    "a state of another form": (
        sampled(lambda R, xi, t, s: (xi[:2], {"a": s}), state=jnp.zeros(2)),
        "it is given float64[2] and returns {'a': float64[2]}",
    ),
    "a state that is not finite": (
        lambda: rx.Sampled(law, 0.1, state=[0.0, np.nan]),
        "state must be finite",
    ),
    "an absurd delay": (
        lambda: rx.Sampled(law, 0.04, delay=2e9),
        "delay = 2e+09 s is 5e+10 periods of 0.04 s",
    ),
    "a period that misses whole steps by little": (
        sampled(law, 0.0500001),
        "period = 0.0500001 s is 5.00001 steps of h = 0.01 s, but a digital controller acts where "
        "steps end: use period = 0.05 s, or h = 0.01000002 s",
    ),
    "a state without numbers": (lambda: rx.Sampled(law, 0.1, state={}), "holds no numbers"),
    "a period between steps": (
        sampled(law, 0.055),
        "use period = 0.06 s, or h = 0.00916667 s",
    ),
    "a delay between steps": (sampled(law, delay=0.033), "use delay = 0.03 s, or h = 0.00825 s"),
    "a period below a step": (sampled(law, 0.004), "use period = 0.01 s, or h = 0.004 s"),
    "no period": (lambda: rx.Sampled(law, 0.0), "period = 0.0 s must be a positive"),
    "samples back in time": (
        lambda: driven(rx.Sampled(law, 0.05), h=-0.01),
        "cannot run back in time",
    ),
    "an array": (lambda: driven(np.zeros((100, 2))), "a table is rx.Signal(t, u)"),
    "a function": (lambda: driven(law), "rx.Feedback(law) lets it act within each step"),
    "no inputs": (
        lambda: driven(rx.Feedback(law), of=BODY),
        "run rx.Actuated(system, inputs=B)",
    ),
    "a table that begins too late": (
        lambda: driven(rx.Signal([1.0, 2.0], np.ones((2, 2)))),
        "the table of the Signal begins at t = 1 s",
    ),
    "a table of other inputs": (
        lambda: driven(rx.Signal([0.0], [1.0])),
        "u of the Signal has 1 columns, but the plant has 2 inputs",
    ),
    "a table back in time": (
        lambda: rx.Signal([0.0, 2.0, 1.0], np.ones(3)),
        "t[2] = 1 s comes after t[1] = 2 s",
    ),
    "a table of another length": (lambda: rx.Signal([0.0, 1.0], np.ones(3)), "with 2 times"),
    "a table with a hole": (lambda: rx.Signal([0.0, 1.0], [0.0, np.nan]), "u must be finite"),
    "an unknown hold": (lambda: rx.Signal([0.0], [0.0], hold="cubic"), "one of zero, linear"),
    "a matrix of other rows": (
        lambda: rx.Actuated(BODY, inputs=np.eye(2)),
        "a matrix of 3 rows with a column for each input",
    ),
    "a matrix that is not finite": (
        lambda: rx.Actuated(BODY, inputs=np.full((3, 2), np.nan)),
        "inputs holds numbers that are not finite",
    ),
    "an idle input": (
        lambda: rx.Actuated(BODY, inputs=[[1, 0], [0, 0], [0, 0]]),
        "column 1 of inputs is zero",
    ),
    "idle everywhere": (
        lambda: rx.Actuated(BODY, inputs=lambda R: 0 * R),
        "column 0 of inputs is zero",
    ),
    "bounds that cross": (
        lambda: rx.Actuated(BODY, inputs=MATRIX, bounds=(1.0, [2.0, 0.0])),
        "the bounds of input 1 leave it no room: lower = 1, upper = 0",
    ),
    "bounds at infinity": (
        lambda: rx.Actuated(BODY, inputs=MATRIX, bounds=([-1.0, np.inf], np.inf)),
        "the bounds of input 1 leave it no finite number: lower = inf",
    ),
    "bounds below minus infinity": (
        lambda: rx.Actuated(BODY, inputs=MATRIX, bounds=(-np.inf, -np.inf)),
        "the bounds of input 0 leave it no finite number",
    ),
    "a free run where inputs cannot be zero": (
        lambda: driven(None, of=plant(bounds=([-1.0, 0.2], 1.0))),
        "its bounds leave out zero",
    ),
    "free members where inputs cannot be zero": (
        lambda: rx.ensemble(plant(bounds=(-1.0, -0.2)), "lie-verlet", _two(), h=0.01, steps=2),
        "its bounds leave out zero",
    ),
    "inputs of a plant": (
        lambda: rx.Actuated(PLANT, inputs=MATRIX),
        "which has inputs already",
    ),
    "bounds of other inputs": (
        lambda: rx.Actuated(BODY, inputs=MATRIX, bounds=(np.zeros(3), 1.0)),
        "give a number, or one for each",
    ),
    "one bound": (lambda: rx.Actuated(BODY, inputs=MATRIX, bounds=3.0), "a pair (lower, upper)"),
    "a flow": (
        lambda: rx.Actuated(rx.systems.EulerTop([1.0, 2.0, 3.0]), inputs=MATRIX),
        "has no momenta that inputs could change",
    ),
    "an integrator without forces": (
        lambda: driven(
            rx.Feedback(law),
            of=rx.Actuated(rx.systems.FreeRigidBody([1.0, 2.8, 2.0]), MATRIX),
            integrator="kahan-attitude",
        ),
        "KahanAttitude knows no forces",
    ),
    "controllers for other members": (
        lambda: rx.ensemble(
            PLANT, "lie-verlet", _two(), h=0.01, steps=2, control=[rx.Feedback(law)] * 3
        ),
        "a list of 3 controllers, but there are 2 states",
    ),
    "a sampled model in a fit": (
        lambda: rx.fit(
            lambda p: PLANT,
            rx.Measurements([0.1, 0.2], np.zeros((2, 3)), of="velocity"),
            {"k": 1.0},
            control=rx.Sampled(law, 0.1),
        ),
        "a fit takes the inputs that were recorded, rx.Signal(t, u), or a law that acts within",
    ),
}


def _two():
    import jax

    return jax.tree.map(lambda x: jnp.stack([jnp.asarray(x)] * 2), START)


@pytest.mark.parametrize("what", list(REFUSED))
def test_what_cannot_be_driven_is_said_in_a_sentence(what):
    attempt, words = REFUSED[what]
    with pytest.raises(rx.BadInput) as refusal:
        attempt()
    assert words in str(refusal.value)
    assert str(refusal.value).endswith(".")


@pytest.mark.parametrize(
    ("control", "time"),
    [
        (rx.Feedback(late), "0.51"),
        (rx.Sampled(late, 0.05), "0.55"),
        (rx.Sampled(late, 0.05, delay=0.03), "0.55"),
        (
            rx.Sampled(
                lambda R, xi, t, s: (0 * xi[:2], jnp.where(t > 0.5, jnp.nan, s)), 0.05, state=[0.0]
            ),
            "0.55",
        ),
    ],
)
def test_a_controller_that_fails_is_named_with_the_time_and_the_run_is_kept(control, time):
    with pytest.raises(rx.StepFailed) as failure:
        driven(control)
    words = str(failure.value)
    assert f"the controller {control!r} gave [nan" in words
    assert f"at t = {time} s" in words
    kept = failure.value.trajectory
    assert kept.t[-1] == pytest.approx(float(time) - 0.01)
    assert np.isfinite(kept.momentum).all()


def test_actuators_that_saturate_are_told_and_clipped():
    bounded = plant(bounds=(-0.5, [0.4, np.inf]))
    with pytest.warns(UserWarning, match=r"saturate: input 0 at \d+ of 101 saved states"):
        run = driven(rx.Feedback(Gains(jnp.array([2.0, 1.0]))), of=bounded)
    assert run.inputs[:, 0].min() == -0.5
    assert run.inputs[:, 0].max() <= 0.4
    with pytest.warns(UserWarning, match="saved states of members"):
        rx.ensemble(
            bounded, "lie-verlet", _two(), h=0.01, steps=100, save_every=10,
            control=rx.Feedback(Gains(jnp.array([2.0, 1.0]))),
        )  # fmt: skip


def test_what_was_asked_for_is_told_as_it_was():
    above = plant(bounds=(0.2, 1.0))
    with pytest.warns(UserWarning, match=r"the farthest was input 1 = -0.3\."):
        driven(rx.Signal([0.0, 0.5], [[0.5, 0.0], [0.5, -0.3]]), of=above)
    with pytest.warns(UserWarning, match=r"the farthest was input 0 = 0\."):
        run = driven(rx.Sampled(lambda R, xi, t: 0.5 + 0 * xi[:2], 0.05, delay=0.1), of=above)
    np.testing.assert_array_equal(run.inputs[[0, 9, 10]], [[0.2, 0.2], [0.2, 0.2], [0.5, 0.5]])


def test_a_step_that_fails_tells_its_inputs():
    with pytest.raises(rx.StepFailed, match=r"The inputs are \[-?\d\S*e\+299, .* at its start"):
        driven(rx.Feedback(lambda R, xi, t: 1e300 * xi[:2]))


def test_an_input_at_its_bound_is_no_saturation(recwarn):
    run = driven(rx.Signal([0.0], [[0.4, -0.5]]), of=plant(bounds=(-0.5, 0.4)))
    assert not recwarn.list
    np.testing.assert_array_equal(run.inputs[0], [0.4, -0.5])


def test_a_table_that_ends_or_jumps_within_steps_gives_a_warning():
    ends = rx.Signal([0.0, 0.2], np.ones((2, 2)))
    said = "is that of t = 0.2 s, and lasts .* until t = 0.4 s, but the run goes on until t = 1 s"
    with pytest.warns(UserWarning, match=said):
        driven(ends)
    joined = rx.Signal([0.0, 0.2], np.ones((2, 2)), hold="linear")
    with pytest.warns(UserWarning, match="is that of t = 0.2 s, but the run goes on until t = 1 s"):
        driven(joined)
    within = rx.Signal([0.0, 0.505], [[0.0, 0.0], [1.0, 1.0]])
    with pytest.warns(UserWarning, match="1 of the 1 jumps of the Signal lie within a step"):
        driven(within)


def test_a_list_of_numbers_is_a_state_and_a_matrix_may_depend_on_place():
    turning = rx.Actuated(BODY, inputs=lambda R: R.T[:, :2])
    control = rx.Sampled(lambda R, xi, t, s: (s, s + 1), 0.5, state=[0, 1])
    run = driven(control, of=turning)
    np.testing.assert_array_equal(run.inputs[[0, 49, 50, 100]], [[0, 1], [0, 1], [1, 2], [2, 3]])

"""What cannot keep positions says so, and so does a constraint that makes no sense."""

import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx

SPACE = rx.Translation(3)


def sphere(x):
    return x @ x - 1


def bead(phi=sphere, potential=lambda x: 9.81 * x[2], rolling=None):
    held = rx.Holonomic(phi, rolling)
    return rx.MechanicalSystem(SPACE, 2.0 * np.ones(3), potential, constraint=held)


@pytest.mark.parametrize("name", rx.INTEGRATORS)
def test_every_integrator_keeps_positions_or_names_one_that_does(name):
    system, method = bead(), rx.INTEGRATORS[name]
    state = system.state([0.6, 0.0, -0.8], velocity=[0.0, 0.7, 0.0])
    if "positions" in method.preserves:
        run = rx.simulate(system, method, state, h=0.01, steps=20)
        assert run.constraint_violation().max() < 2e-15
        return
    with pytest.raises(rx.BadInput, match=r"LieVerlet\(\), or Composition") as refused:
        rx.simulate(system, method, state, h=0.01, steps=20)
    assert "drift" in str(refused.value) or not system.has_momentum


def test_wrapped_methods_ask_what_they_wrap():
    system = bead()
    state = system.state([0.6, 0.0, -0.8], velocity=[0.0, 0.7, 0.0])
    kept = rx.simulate(system, rx.Adaptive("lie-verlet", 1e-6), state, h=0.1, steps=5)
    assert kept.constraint_violation().max() < 2e-15
    for method in (rx.Adaptive("rkmk-5", 1e-6), rx.Composition("hamel-midpoint", 4)):
        with pytest.raises(rx.BadInput, match="drift off its constraint on positions"):
            rx.simulate(system, method, state, h=0.1, steps=5)


class Own(rx.RKMK):
    """A method of a user's, which knows nothing of constraints."""


def test_a_method_of_ones_own_does_not_ignore_the_constraint():
    system = bead()
    state = system.state([0.6, 0.0, -0.8], velocity=[0.0, 0.7, 0.0])
    with pytest.raises(rx.BadInput, match="drift"):
        rx.simulate(system, Own("rk4"), state, h=0.1, steps=5)
    with pytest.raises(rx.BadInput, match="drift"):
        rx.export(system, Own("rk4"), "bead.c", state=state, h=0.1)


@pytest.mark.parametrize(
    "phi, sentence",
    [
        (lambda x: jnp.ones((2, 2)) * x[0], r"phi\(g\) has shape \(2, 2\)"),
        (lambda x: x[:0], r"has shape \(0,\)"),
        (lambda x: 1, "int64"),
        (lambda x, t, a: x, "phi takes the arguments x, t, a"),
        (3.0, "must be a function"),
    ],
)
def test_what_is_no_constraint(phi, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        bead(phi)


@pytest.mark.parametrize(
    "phi, place, sentence",
    [
        (sphere, [1.1, 0, 0], r"equation 1 of phi misses zero by 0.21.*assembled"),
        (lambda x: 1e-12 * (x[0] - 1), [1.1, 0, 0], "misses zero by 1e-13, which is 9.1e-02"),
        (lambda x: (x @ x - 1) ** 2, [1.0, 0, 0], "derivative of equation 1 of phi vanishes"),
        (lambda x: (x[0] - 1) ** 2, [1 + 2.3e-16, 0, 0], "derivative of equation 1 .* vanishes"),
        (lambda x: jnp.stack([x[0], x[1] * x[2]]), [0, 0, 0], "derivative of equation 2 of phi"),
        (lambda x: jnp.log(-x @ x), [1.0, 0, 0], "has no value at this g: equation 1 of phi"),
        (lambda x: jnp.sqrt(x @ x), [0, 0, 0], "equation 1 of phi has no derivative"),
    ],
)
def test_places_at_which_nothing_can_start(phi, place, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        bead(phi).state(np.array(place, float), velocity=np.zeros(3))


def test_large_coordinates_are_no_gap():
    """A sphere of 1000 km: phi is known to 1e-4 of 1e12."""
    system = bead(lambda x: x @ x - 1e12)
    state = system.state([0.0, 0.0, -1e6], velocity=[10.0, 0.0, 0.0])
    run = rx.simulate(system, rx.LieVerlet(), state, h=0.01, steps=100)
    assert run.constraint_violation().max() < 1e-3  # measured: 2.4e-4, two rounding errors of 1e12


def test_velocities_across_and_equations_that_contradict_each_other():
    with pytest.raises(rx.BadInput, match=r"breaks the constraint .* project=True"):
        bead().state([0.0, 0.0, -1.0], velocity=[0.0, 0.0, 1.0])
    torn = bead(lambda x, t: jnp.stack([x[0] - t, x[0] - 2 * t]))
    with pytest.raises(rx.BadInput, match=r"equation \d of phi contradicts the others"):
        torn.state(np.zeros(3), velocity=np.zeros(3), project=True)


def test_equations_that_come_to_contradict_each_other_stop_the_run():
    torn = bead(lambda x, t: jnp.stack([x[0] - t, x[0] - t - 1e-3 * t**2]))
    state = torn.state(np.zeros(3), velocity=np.zeros(3), project=True)
    with pytest.raises(rx.StepFailed, match=r"No place was found for it at t = 0.01 s") as failure:
        rx.simulate(torn, rx.LieVerlet(), state, h=0.01, steps=10)
    said = str(failure.value)
    assert "Shorter steps come to the same" in said
    assert "energy" not in said and "Try h" not in said


def test_lost_rank_stops_the_run_with_the_equation_and_its_pivot():
    """A bead is led along a circle to where the leading plane is tangent to it."""
    led = bead(lambda x, t: jnp.stack([x @ x - 0.25, x[0] - 0.3 - 0.2 * t, x[2]]))
    state = led.state([0.3, 0.4, 0.0], velocity=np.zeros(3), project=True)
    sentence = r"loses rank on the way: the pivot of equation 2 of phi falls from 0.00\d+ to 0.00"
    with pytest.raises(rx.StepFailed, match=sentence) as failure:
        rx.simulate(led, rx.LieVerlet(), state, h=0.01, steps=200)
    assert 0.95 < float(failure.value.trajectory.final.t) < 1.0


def test_places_that_cannot_be_found():
    with pytest.raises(
        rx.BadInput, match=r"cannot be assembled .* equation 1 of phi misses zero by 1"
    ):
        bead(lambda x: jnp.stack([x @ x + 1, x[0]])).assembled([1.0, 0.0, 0.0])
    assert np.allclose(bead().assembled([3.0, 0.0, 4.0]), [0.6, 0.0, 0.8], atol=1e-15, rtol=0)


def test_what_rolls_is_a_velocity_constraint():
    with pytest.raises(rx.BadInput, match=r"rolling = .* is not a Distribution"):
        rx.Holonomic(sphere, rolling=sphere)
    with pytest.raises(rx.BadInput, match="write both in one phi"):
        rx.Holonomic(sphere, rolling=rx.Holonomic(sphere))


def test_a_fit_does_not_leave_the_constraint():
    system = bead()
    state = system.state([0.6, 0.0, -0.8], velocity=[0.0, 0.7, 0.0])
    run = rx.simulate(system, rx.LieVerlet(), state, h=0.01, steps=50)
    data = rx.Measurements(run.t, np.asarray(run.g), of="configuration", noise=0.01)

    def weighed(p):
        return bead(potential=lambda x: p["g"] * x[2])

    with pytest.raises(rx.BadInput, match="starts on a constraint on positions"):
        rx.fit(weighed, data, start={"g": 9.0}, state=state, free_state=True)

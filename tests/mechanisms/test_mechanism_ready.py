"""Every ready mechanism goes together, has the freedoms it should have, and moves."""

import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx

S = rx.systems
READY = {
    "four_bar": (lambda: S.four_bar(3), {"A0": -1.0}, 1),
    "chain": (lambda: S.chain(3), {}, 9),
    "free chain": (lambda: S.chain(3, anchored=False), {}, 12),
    "double_pendulum": (S.double_pendulum, {"shoulder": 1.0, "elbow": -2.0}, 2),
    "bricard": (S.bricard, {"A": 0.5}, 1),
    "andrews_squeezer": (S.andrews_squeezer, {}, 1),
    "bicycle": (S.bicycle, {"rear axle": -10.0}, 3),
    "strandbeest_leg": (S.strandbeest_leg, {"crank": 2.0}, 1),
    "robot_arm": (S.robot_arm, {"elbow": 1.0}, 6),
}


@pytest.mark.parametrize("name", READY)
def test_a_ready_mechanism_is_assembled_with_its_freedoms(name):
    make, rates, freedoms = READY[name]
    system = make()
    state = system.assemble(joint_rates=rates)
    assert system.freedoms(state) == freedoms
    assert float(system.constraint_violation(state)) < 1e-13


def test_the_foot_of_a_beach_animal_walks():
    """Over one turn of the crank every point comes back; the foot's centre strides 0.47 m."""
    system = S.strandbeest_leg(gravity=0.0)
    start = system.assemble(joint_rates={"crank": 2.0})
    run = rx.simulate(system, rx.LieVerlet(), start, h=0.005, steps=1200)
    R, x = np.asarray(run.g[0]), np.asarray(run.g[1])
    crank = np.unwrap(np.arctan2(R[:, 0, 1, 0], R[:, 0, 0, 0]))
    assert crank[-1] > 2 * np.pi
    foot = np.stack([np.interp(2 * np.pi, crank, x[:, 6, i]) for i in range(2)])
    assert np.abs(foot - x[0, 6]).max() < 1e-4
    once = crank <= 2 * np.pi
    assert 0.3 < np.ptp(x[once, 6, 0]) < 0.6
    assert np.max(run.constraint_violation()) < 1e-13


@pytest.mark.filterwarnings("ignore:.*machine code of retrax")
def test_an_arm_is_held_where_it_is_by_its_motors():
    """The torques that balance its weight, from statics by hand: with them it stays at rest."""
    plant, system = S.driven_arm(), S.robot_arm()
    state = system.assemble(joints={"shoulder": 0.6, "elbow": 0.9, "pitch": -0.5})
    x, m = np.asarray(state.g[1]), np.asarray(system.mass)
    shoulder = np.array([0, 0, 0.16])
    upper = np.array([np.sin(0.6), 0, np.cos(0.6)])
    elbow = shoulder + 0.425 * upper
    fore = np.array([np.sin(1.5), 0, np.cos(1.5)])
    pitch = elbow + (0.392 + 0.11) * fore
    torques = np.zeros(6)
    for k, pivot, carried in (
        (1, shoulder, slice(1, 6)),
        (2, elbow, slice(2, 6)),
        (4, pitch, slice(4, 6)),
    ):
        torques[k] = -9.81 * m[carried] @ (x[carried, 0] - pivot[0])
    held = rx.simulate(
        plant,
        rx.LieVerlet(),
        state,
        h=0.005,
        steps=40,
        control=rx.Feedback(lambda g, xi, t: jnp.asarray(torques)),
    )
    assert np.abs(np.asarray(held.g[1])[-1] - x).max() < 1e-10
    falls = rx.simulate(system, rx.LieVerlet(), state, h=0.005, steps=40)
    assert np.abs(np.asarray(falls.g[1])[-1] - x).max() > 0.01


def test_bad_numbers_are_named():
    for make in (
        lambda: S.four_bar(0),
        lambda: S.chain(2, mass=-1.0),
        lambda: S.bicycle(wheelbase=0),
    ):
        with pytest.raises(rx.BadInput, match=r"N = 0|mass = -1|wheelbase = 0"):
            make()

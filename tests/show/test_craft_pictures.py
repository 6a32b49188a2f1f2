"""Pictures of craft: wheels on their axes, rotors on their arms, a load below its trolley."""

import numpy as np
import pytest

import retrax as rx
from retrax.show.drawn import drawn_bodies
from retrax.show.page import page
from retrax.show.pictures.choose import picture

S = rx.systems


def run_of(plant, state, h=0.01, steps=30):
    return rx.simulate(plant, rx.LieVerlet(), state, h=h, steps=steps)


def poses(thing):
    values = thing["poses"].values
    return values[:, :9].reshape(-1, 3, 3), values[:, 9:]


def things(run):
    return {thing["label"]: thing for thing in picture(run).things}


def test_wheels_sit_on_their_axes_and_turn_about_them():
    axes = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0] / np.sqrt(3)])
    plant = S.spacecraft([5.0, 7.0, 9.0], wheels=S.Wheels(axes, 0.01))
    run = run_of(plant, plant.state((np.eye(3), np.zeros(2)), velocity=[0.3, 0.2, -0.1, 9.0, -7.0]))
    shown = things(run)
    R, angles = (np.asarray(x) for x in run.g)
    for k in range(2):
        rotation, place = poses(shown[f"wheel {k + 1}"])
        axle = rotation[:, :, 1]  # a disk turns about its second axis
        np.testing.assert_allclose(axle, R @ axes[k], atol=1e-14)
        np.testing.assert_allclose(np.cross(place, axle), 0, atol=1e-14)
        still = np.einsum("tji,tjk->tik", R, rotation)
        turn = still[0].T @ still[-1]
        angle = angles[-1, k] - angles[0, k]
        assert np.trace(turn) == pytest.approx(1 + 2 * np.cos(angle), abs=1e-12)
    (craft,) = drawn_bodies(run)
    assert craft.position is None and list(craft.coordinates) == [0, 1, 2]
    assert "wheel 2" in page(run)


def test_a_craft_in_orbit_is_drawn_without_wheels():
    plant = S.spacecraft([5.0, 7.0, 9.0], rate=1e-3)
    run = run_of(plant, plant.state(np.eye(3), velocity=[1e-3, 0.0, 2e-3]), h=1.0)
    assert not any(label.startswith("wheel") for label in things(run))
    assert "craft" in things(run)


def test_rotors_are_where_the_quadrotor_has_them():
    plant = S.quadrotor([0.01, 0.012, 0.02], 1.1, arm=0.2, drag=0.016, layout="x")
    start = plant.state((np.eye(3), np.zeros(3)), velocity=[0.4, 0.2, 0.3, 1.0, 0.0, 2.0])
    run = run_of(plant, start)
    R, x = (np.asarray(part) for part in run.g)
    _, place = poses(things(run)["rotor 2"])
    at = 0.2 * np.array([-np.sqrt(0.5), np.sqrt(0.5), 0.0])
    np.testing.assert_allclose(place, x + R @ at, atol=1e-14)


def test_a_load_hangs_below_its_trolley():
    plant = S.crane(S.StringPendulum.paper(elements=3)[0], 0.4)
    push = np.zeros(plant.group.dim)
    push[-2:] = [0.7, -0.3]
    run = run_of(plant, plant.state(plant.hanging([0.5, 0.2]).g, velocity=push), h=2e-3)
    shown = things(run)
    _, trolley = poses(shown["trolley"])
    np.testing.assert_allclose(trolley[:, :2], run.g[-1], atol=1e-15)
    nodes = shown["string"]["points"].values.reshape(len(run.t), -1, 3)
    np.testing.assert_allclose(nodes[:, 0], trolley, atol=1e-15)
    np.testing.assert_allclose(nodes[:, 1:], trolley[:, None] + run.g[0], atol=1e-15)
    (load,) = drawn_bodies(run)
    seen = run.observables()["place of the load"][:, 0]
    np.testing.assert_allclose(load.position, seen, atol=1e-14)

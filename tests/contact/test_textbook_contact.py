"""Boxes and balls that touch, against what textbooks say in closed form."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.spatial.transform import Rotation

import retrax as rx

GRAVITY = 9.81
BODY = rx.Product(rx.SO3(), rx.Translation(3))
SIZE, MASS = np.array([0.3, 0.2, 0.1]), 1.3
RADIUS, HEAVY = 0.1, 2.0


class Weight:
    """The potential of a weight along some direction; a class, so that runs share a program."""

    def __init__(self, pull):
        self.pull = pull

    def __call__(self, g):
        return -self.pull[0] * g[1][0] - self.pull[2] * g[1][2]


def box(friction, tilt):
    """A box on a floor, under gravity that leans towards the first axis."""
    pull = MASS * GRAVITY * np.array([np.sin(tilt), 0.0, -np.cos(tilt)])
    return rx.MechanicalSystem(
        BODY,
        np.r_[MASS / 12 * (np.sum(SIZE**2) - SIZE**2), 3 * [MASS]],
        Weight(pull),
        contact=rx.Contacts([(rx.Box(SIZE, body=0), rx.Plane(name="floor"))], friction=friction),
    )


def ball(friction=0.0, restitution=0.0):
    """A ball over a floor."""
    shapes = rx.Ball(RADIUS, body=0), rx.Plane(name="floor")
    return rx.MechanicalSystem(
        BODY,
        np.r_[3 * [0.4 * HEAVY * RADIUS**2], 3 * [HEAVY]],
        Weight(HEAVY * GRAVITY * np.array([0.0, 0.0, -1.0])),
        contact=rx.Contacts([shapes], friction=friction, restitution=restitution),
    )


def ran(system, g, velocity, h, steps, **settings):
    start = system.state(g, velocity=np.asarray(velocity, float))
    return rx.simulate(system, rx.NonsmoothRattle(), start, h=h, steps=steps, **settings)


@pytest.mark.campaign
def test_a_box_rests_below_the_angle_of_friction_and_slides_above_it():
    tilt, place = np.deg2rad(20), np.array([0.0, 0.0, SIZE[2] / 2])
    still = ran(box(0.5, tilt), (np.eye(3), place), np.zeros(6), 0.005, 2000)
    assert np.max(np.abs(np.asarray(still.g[1]) - place)) < 1e-14  # measured 1e-15
    run = ran(box(0.2, tilt), (np.eye(3), place), np.zeros(6), 0.005, 400)
    speed, t = np.asarray(run.velocity)[:, 3], np.asarray(run.t)
    acceleration = GRAVITY * (np.sin(tilt) - 0.2 * np.cos(tilt))
    np.testing.assert_allclose(speed, acceleration * t, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(run.g[1][:, 0], acceleration * t**2 / 2, rtol=1e-12, atol=1e-13)


@pytest.mark.campaign
def test_a_box_that_tumbles_sinks_nowhere_into_the_floor():
    turned = np.asarray(Rotation.from_rotvec(jnp.array([0.4, -0.7, 0.3])).as_matrix())
    g = (turned, np.array([0.0, 0.0, 0.5]))
    run = ran(box(0.3, 0.0), g, [3.0, -5.0, 2.0, 1.0, 0.5, 0.0], 0.002, 1000)
    corners = np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, 8).T * SIZE / 2
    R, x = (np.asarray(part) for part in run.g)
    heights = np.einsum("kj,ij->ki", R[:, 2], corners) + x[:, 2, None]
    assert np.min(heights) > -1e-14
    assert np.max(np.abs(np.asarray(run.velocity)[-1])) < 1e-9  # it lies


def test_a_bowling_ball_rolls_at_five_sevenths_of_its_speed():
    v, f = 6.0, 0.2
    run = ran(ball(f), (np.eye(3), [0.0, 0.0, RADIUS]), [0, 0, 0, v, 0, 0], 0.005, 400)
    speed, t = np.asarray(run.velocity)[:, 3], np.asarray(run.t)
    rolls = 2 * v / (7 * f * GRAVITY)
    exact = np.where(t < rolls, v - f * GRAVITY * t, 5 / 7 * v)
    np.testing.assert_allclose(speed, exact, rtol=0, atol=1e-12)  # measured 1e-13


def test_a_ball_comes_to_rest_through_all_of_its_bounces():
    high, h = 0.5, 0.001
    g = (np.eye(3), [0.0, 0.0, RADIUS + high])
    run = ran(ball(0.0, 0.5), g, np.zeros(6), h, 1200)
    rest = 3 * np.sqrt(2 * high / GRAVITY)
    speed, gap = np.asarray(run.velocity)[:, 5], np.asarray(run.g[1])[:, 2] - RADIUS
    assert np.min(gap) > -1e-14  # measured -1.1e-15
    last = np.nonzero((np.abs(speed) > 1e-12) | (gap > 1e-12))[0][-1] + 1
    assert abs(run.t[last] - rest) < 8 * h


@pytest.mark.campaign
def test_elastic_balls_hand_on_momentum_and_energy():
    balls = [rx.Ball(RADIUS, body=k, name=f"ball {k}") for k in range(2)]
    system = rx.MechanicalSystem(
        rx.Product(*[rx.SO3(), rx.Translation(3)] * 2),
        np.tile(np.r_[3 * [0.4 * HEAVY * RADIUS**2], 3 * [HEAVY]], 2),
        contact=rx.Contacts([tuple(balls)], restitution=1.0),
    )
    there = np.array([0.27, 0.0, 0.0])
    g = (np.eye(3), np.zeros(3), np.eye(3), there)
    run = ran(system, g, np.r_[0, 0, 0, 1.5, np.zeros(8)], 0.001, 500)
    v = np.asarray(run.velocity)[:, [3, 9]]
    np.testing.assert_allclose(v[-1], [0.0, 1.5], rtol=0, atol=1e-13)
    np.testing.assert_allclose(v.sum(axis=1), 1.5, rtol=1e-13)
    np.testing.assert_allclose((v**2).sum(axis=1), 1.5**2, rtol=1e-13)
    # Off the middle the line of their centres turns within the step that they meet in.
    g = (np.eye(3), np.array([0.0, 0.07, 0.0]), np.eye(3), there)
    run = ran(system, g, np.r_[0, 0, 0, 1.5, np.zeros(8)], 0.001, 500)
    v = np.asarray(run.velocity)[-1]
    first, second = v[3:6], v[9:12]
    np.testing.assert_allclose(first + second, [1.5, 0, 0], rtol=0, atol=1e-13)
    assert first @ first + second @ second == pytest.approx(1.5**2, rel=1e-6)  # measured 3e-7

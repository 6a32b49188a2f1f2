"""Order 2 of an asymmetric body that rolls, slips and flies, against DOP853 on its equations."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.spatial.transform import Rotation
from scipy.integrate import solve_ivp

import retrax as rx

G, MASS, MOMENTS = 9.81, 1.3, np.array([0.02, 0.013, 0.007])
RADIUS, CENTRE = 0.1, np.array([0.01, -0.015, 0.008])  # of a ball on the body
UP = np.array([0.0, 0.0, 1.0])
TURNED = np.asarray(Rotation.from_rotvec(jnp.array([0.3, -0.4, 0.2])).as_matrix())
SPIN, END = np.array([3.0, 2.0, -1.5]), 0.2


class Weight:
    """The potential; a class, so that all tests share a program."""

    def __call__(self, g):
        return MASS * G * g[1][2]


def hat(w):
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def accelerations(R, w, v, friction, mode):
    """Newton's and Euler's equations with the ball on the floor: it rolls, slips, or flies.

    The unknowns are the angular acceleration in the body, the acceleration, and the force.
    """
    spin, d = R @ w, R @ CENTRE
    c = d - RADIUS * UP
    A, b = np.zeros((9, 9)), np.zeros(9)
    A[:3, :3], A[:3, 6:], b[:3] = np.diag(MOMENTS), -R.T @ hat(c), -np.cross(w, MOMENTS * w)
    A[3:6, 3:6], A[3:6, 6:], b[5] = MASS * np.eye(3), -np.eye(3), -MASS * G
    if mode == "flies":
        A[6:, 6:] = np.eye(3)
        return np.linalg.solve(A, b)
    turns = -np.cross(spin, np.cross(spin, d))
    A[6, 3:6], A[6, :3], b[6] = UP, -UP @ hat(d) @ R, turns[2]
    if mode == "rolls":
        A[7:, 3:6], A[7:, :3], b[7:] = np.eye(3)[:2], (-hat(c) @ R)[:2], turns[:2]
    else:
        slip = (v + np.cross(spin, c))[:2]
        A[7:, 6:8], A[7:, 8] = np.eye(2), friction * slip / np.linalg.norm(slip)
    return np.linalg.solve(A, b)


def exact(start, friction, mode):
    def rates(t, y):
        R, w, v = y[:9].reshape(3, 3), y[12:15], y[15:]
        return np.r_[(R @ hat(w)).ravel(), v, accelerations(R, w, v, friction, mode)[:6]]

    return solve_ivp(rates, (0, END), start, method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]


def rolling():
    """The velocity at which the ball rolls; that of its centre is level."""
    spin, d = TURNED @ SPIN, TURNED @ CENTRE
    return -np.cross(spin, d - RADIUS * UP)


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("mode", "friction", "more", "height"),
    [
        ("rolls", 0.9, np.zeros(3), 0.0),
        ("slips", 0.15, np.array([1.5, 0.8, 0.0]), 0.0),
        ("flies", 0.9, UP, 1.0),
    ],
)
def test_errors_fall_as_the_square_of_the_step(mode, friction, more, height):
    contact = rx.Contacts([(rx.Ball(RADIUS, at=CENTRE, body=0), rx.Plane())], friction=friction)
    system = rx.MechanicalSystem(
        rx.Product(rx.SO3(), rx.Translation(3)),
        np.r_[MOMENTS, 3 * [MASS]],
        Weight(),
        contact=contact,
    )
    place, velocity = (RADIUS + height) * UP - TURNED @ CENTRE, rolling() + more
    start = system.state((TURNED, place), velocity=np.r_[SPIN, velocity])
    end = exact(np.r_[TURNED.ravel(), place, SPIN, velocity], friction, mode)
    errors = []
    for n in (80, 160):
        run = rx.simulate(system, rx.NonsmoothRattle(), start, h=END / n, steps=n, save_every=n)
        R, x = run.final.g
        found = np.r_[np.asarray(R).ravel(), np.asarray(x), np.asarray(run.velocity[-1])]
        errors.append(np.max(np.abs(found - end)))
    assert errors[0] < 1e-3
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.01)

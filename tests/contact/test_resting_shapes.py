"""A cylinder stands, slides and rolls as the textbook says."""

import jax.numpy as jnp
import numpy as np

import retrax as rx

BODY = rx.Product(rx.SO3(), rx.Translation(3))
MASS, GRAVITY, TILT = 2.0, 9.81, np.deg2rad(10)


def on(shape, moments, grounds, tilt, friction):
    """A body under gravity that is tilted towards the first axis."""
    pull = MASS * GRAVITY * np.array([np.sin(tilt), 0.0, -np.cos(tilt)])
    return rx.MechanicalSystem(
        BODY,
        np.r_[moments, 3 * [MASS]],
        lambda g: -jnp.asarray(pull) @ g[1],
        contact=rx.Contacts([(shape, ground) for ground in grounds], friction=friction),
    )


def test_a_cylinder_stands_slides_and_rolls():
    a, length = 0.1, 0.3
    moments = MASS * np.array([*[(3 * a * a + length * length) / 12] * 2, a * a / 2])
    cylinder, floor = rx.Cylinder(a, length, body=0), rx.Plane()
    upright = (np.eye(3), np.array([0.0, 0.0, length / 2]))
    lying = (np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]]), np.array([0.0, 0.0, a]))

    def after(friction, place, steps=400, h=0.005):
        system = on(cylinder, moments, [floor], TILT, friction)
        start = system.state(place, velocity=np.zeros(6))
        run = rx.simulate(system, rx.NonsmoothRattle(), start, h=h, steps=steps)
        return np.asarray(run.g[1][-1]) - place[1], np.asarray(run.velocity[-1])

    moved, _ = after(0.5, upright)
    assert np.max(np.abs(moved)) < 2e-14  # measured 2e-15
    _, v = after(0.1, upright)
    slides = 2 * GRAVITY * (np.sin(TILT) - 0.1 * np.cos(TILT))
    np.testing.assert_allclose(v[[0, 1, 3, 5]], [0, 0, slides, 0], atol=2e-13)
    assert abs(v[2]) < 5e-12 and abs(v[4]) < 5e-12  # measured 9e-13, 7e-13
    _, v = after(0.5, lying)
    rolls = 2 * GRAVITY * np.sin(TILT) / 1.5
    np.testing.assert_allclose(v, [0, 0, -rolls / a, rolls, 0, 0], atol=1e-12)  # measured 4e-14

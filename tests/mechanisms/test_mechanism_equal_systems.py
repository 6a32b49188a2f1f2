"""Mechanisms that are systems known in another form."""

import jax.numpy as jnp
import numpy as np

import retrax as rx

J = np.array([[0.9, 0.05, -0.1], [0.05, 1.1, 0.08], [-0.1, 0.08, 0.6]])  # about the centre of mass
MASS, ARM = 1.4, np.array([0.1, -0.2, 0.7])


def turned(*w):
    return np.asarray(rx.SO3().exp(jnp.array(w)))


def test_a_body_on_a_spherical_joint_is_the_heavy_top():
    """On SO(3) x R^3 with a joint, and on SO(3): the same rotations. Measured: 2.6e-12."""
    R, w = turned(0.4, -0.3, 0.2), np.array([0.5, -0.8, 6.0])
    about_pivot = J + MASS * (ARM @ ARM * np.eye(3) - np.outer(ARM, ARM))
    top = rx.systems.HeavyTop(about_pivot, mass=MASS, arm=ARM, gravity=9.81)
    jointed = rx.Mechanism(gravity=[0, 0, -9.81])
    body = jointed.body("top", MASS, J, at=R @ ARM, turned=R)
    jointed.join(rx.Spherical(jointed.ground, body, at=[0, 0, 0], name="tip"))
    system = jointed.system()
    integrator = rx.Composition(rx.LieVerlet(), order=6)
    alone = rx.simulate(top, integrator, top.state(R, velocity=w), h=0.005, steps=200)
    start = system.assemble(velocities={"top": [*w, *(R @ np.cross(w, ARM))]})
    held = rx.simulate(system, integrator, start, h=0.005, steps=200)
    assert np.abs(np.asarray(held.g[0])[:, 0] - np.asarray(alone.g)).max() < 2e-11
    assert np.max(held.constraint_violation()) < 1e-14


def test_two_plates_welded_on_a_blade_are_chaplygin_s_sleigh():
    """v = V tanh k(t - t0) along the blade, w = W sech k(t - t0); order 2 measured."""
    m = np.array([0.5, 1.0])
    at = np.array([[0.2, 0.4], [0.5, -0.2]])  # together their centre lies 0.4 m ahead
    moments = np.array([0.05, 0.09])
    arm = 0.4
    assert np.abs(m @ at / m.sum() - [arm, 0]).max() < 1e-15
    total = m.sum()
    inertia = moments.sum() + m @ np.sum(at**2, axis=1)  # about the blade
    omega, v = 1.25, -0.6
    V = np.sqrt((total * v**2 + inertia * omega**2) / total)
    W, k = V * np.sqrt(total / inertia), total * arm * V / inertia
    t0 = -np.arctanh(v / V) / k

    sleigh = rx.Mechanism(gravity=[0.0, 0.0])
    plates = [sleigh.body(f"plate {i}", m[i], moments[i], at=at[i]) for i in range(2)]
    sleigh.join(rx.Fixed(*plates, name="weld"))
    above = ([0.0, 0.0], [0.0, 1.0])  # seen from above there is no gravity that tells the plane
    sleigh.roll(rx.KnifeEdge(plates[0], at=[0.0, 0.0], direction=[1.0, 0.0], plane=above))
    system = sleigh.system()
    start = system.assemble(
        velocities={f"plate {i}": [omega, v - omega * at[i, 1], omega * at[i, 0]] for i in range(2)}
    )

    def error(h):
        run = rx.simulate(system, rx.LieVerlet(), start, h=h, steps=round(2.0 / h))
        assert np.max(run.constraint_violation()) < 1e-14
        t = np.asarray(run.t)
        R = np.asarray(run.g[0])[:, 0]
        heading = np.unwrap(np.arctan2(R[:, 1, 0], R[:, 0, 0]))
        gudermann = 2 * np.arctan(np.tanh(k * (np.stack([t, 0 * t]) - t0) / 2))
        return np.abs(heading - W / k * (gudermann[0] - gudermann[1])).max()

    errors = [error(0.02), error(0.01)]
    assert errors[1] < 1e-4
    assert abs(np.log2(errors[0] / errors[1]) - 2) < 0.05

"""Joints against mechanisms in minimal coordinates: places, coordinates, rates, accelerations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from minimal import Minimal, anyhow, motion, rate_of_velocity, turn, turn2

import retrax as rx
from retrax.mechanisms.system import MechanismSystem
from retrax.numerics.evaluate import evaluate

P, Q = np.array([0.5, 0.1, 0.3]), np.array([1.1, -0.4, 0.6])
AXIS = np.array([1.0, 2.0, 0.5]) / np.linalg.norm([1.0, 2.0, 0.5])
SIDE = np.cross(AXIS, [0.0, 0.0, 1.0]) / np.linalg.norm(np.cross(AXIS, [0.0, 0.0, 1.0]))
A0, B0 = np.array([0.3, 0.1, 0.2]), np.array([0.9, -0.2, 0.1])
RA, RB = np.asarray(anyhow([0.3, -0.4, 1.1])), np.asarray(anyhow([-0.7, 0.2, 0.5]))
JA = np.array([0.1, 0.2, 0.25])
JB = np.array([[0.1, 0.02, 0.0], [0.02, 0.12, 0.01], [0.0, 0.01, 0.09]])


def pair(joint):
    """Two free bodies with one joint."""
    m = rx.Mechanism(gravity=[0.3, -0.2, -9.81])
    a = m.body("a", 1.3, JA, at=A0, turned=RA)
    b = m.body("b", 0.7, JB, at=B0, turned=RB)
    m.join(joint(a, b))
    return m.system()


def across(axis):
    """The two directions in which travels across an axis are told."""
    aside = np.eye(3)[np.argmin(np.abs(axis))]
    first = aside - aside @ axis * axis
    first /= np.linalg.norm(first)
    return first, np.cross(axis, first)


def whole(at):
    """Make places of both bodies from how the second moves, seen from the first as drawn.

    `at(q)` is the turn and the new place of the point P of the second body, where the first is at
    rest as drawn.
    """

    def places(q):
        S, s = anyhow(q[:3]), q[3:6]
        T, p = at(q[6:])
        x = p + T @ (B0 - P)
        R = jnp.stack([S @ RA, S @ T @ RB])
        return R, jnp.stack([s + S @ A0, s + S @ x])

    return places


def screwed(q):
    return turn(AXIS, q[0]), P + 0.3 * q[0] / (2 * np.pi) * AXIS


def planar(q):
    e, f = across(AXIS)
    return turn(AXIS, q[2]), P + q[0] * e + q[1] * f


def on_plane(q):
    e, f = across(AXIS)
    return anyhow(q[2:]), P + q[0] * e + q[1] * f


def universal(q):
    return turn(AXIS, q[0]) @ turn(SIDE, q[1]), P


# How many coordinates, of which the first are told; the joint; how the second body moves.
JOINTS = {
    "Fixed": (0, 0, lambda a, b: rx.Fixed(a, b), lambda q: (jnp.eye(3), P)),
    "Revolute": (
        1,
        1,
        lambda a, b: rx.Revolute(a, b, at=P, axis=3 * AXIS),
        lambda q: (turn(AXIS, q[0]), P),
    ),
    "Prismatic": (
        1,
        1,
        lambda a, b: rx.Prismatic(a, b, axis=AXIS),
        lambda q: (jnp.eye(3), P + q[0] * AXIS),
    ),
    "Cylindrical": (
        2,
        2,
        lambda a, b: rx.Cylindrical(a, b, at=P, axis=AXIS),
        lambda q: (turn(AXIS, q[0]), P + q[1] * AXIS),
    ),
    "Screw": (1, 1, lambda a, b: rx.Screw(a, b, at=P, axis=AXIS, pitch=0.3), screwed),
    "Universal": (2, 2, lambda a, b: rx.Universal(a, b, at=P, axes=(AXIS, SIDE)), universal),
    "Spherical": (3, 0, lambda a, b: rx.Spherical(a, b, at=P), lambda q: (anyhow(q), P)),
    "Planar": (3, 3, lambda a, b: rx.Planar(a, b, at=P, normal=AXIS), planar),
    "PointOnLine": (
        4,
        1,
        lambda a, b: rx.PointOnLine(a, b, at=P, axis=AXIS),
        lambda q: (anyhow(q[1:]), P + q[0] * AXIS),
    ),
    "PointOnPlane": (5, 2, lambda a, b: rx.PointOnPlane(a, b, at=P, normal=AXIS), on_plane),
    "Distance": (
        5,
        0,
        lambda a, b: rx.Distance(a, b, at=[Q, P]),
        lambda q: (anyhow(q[2:]), Q + turn([0, 1, 0], q[0]) @ turn([0, 0, 1], q[1]) @ (P - Q)),
    ),
}


@pytest.mark.parametrize("kind", JOINTS)
def test_two_bodies_with_a_joint_move_as_in_minimal_coordinates(kind):
    count, told, joint, at = JOINTS[kind]
    system = pair(joint)
    oracle = Minimal(system, whole(at))
    rng = np.random.default_rng(3)
    for _ in range(2):
        q, v = rng.uniform(-1, 1, 6 + count), rng.normal(size=6 + count)
        g, xi, expected = motion(oracle, q, v)
        state = system.state(g, velocity=xi)
        assert system.freedoms(state) == 6 + count
        assert system.redundant(state) == ()
        seen = evaluate(MechanismSystem.observables, system, state)
        names = system.observables(state)  # in the order of the joint, which a pytree forgets
        words = [name for name in names if not name.startswith("rate")]
        values = [float(seen[name]) for name in words]
        rates = [float(seen[f"rate of {name}"]) for name in words]
        if kind == "Screw":
            values, rates = values[:1], rates[:1]
        np.testing.assert_allclose(values, q[6 : 6 + told], atol=1e-14)
        np.testing.assert_allclose(rates, v[6 : 6 + told], atol=1e-13)
        found = rate_of_velocity(system, g, xi)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.max(np.abs(expected)))


FLAT = {
    "Fixed": (0, lambda a, b: rx.Fixed(a, b), lambda q: (jnp.eye(2), P[:2])),
    "Revolute": (1, lambda a, b: rx.Revolute(a, b, at=P[:2]), lambda q: (turn2(q[0]), P[:2])),
    "Spherical": (1, lambda a, b: rx.Spherical(a, b, at=P[:2]), lambda q: (turn2(q[0]), P[:2])),
    "Prismatic": (
        1,
        lambda a, b: rx.Prismatic(a, b, axis=[3.0, 4.0]),
        lambda q: (jnp.eye(2), P[:2] + q[0] * np.array([0.6, 0.8])),
    ),
    "PointOnLine": (
        2,
        lambda a, b: rx.PointOnLine(a, b, at=P[:2], axis=[3.0, 4.0]),
        lambda q: (turn2(q[1]), P[:2] + q[0] * np.array([0.6, 0.8])),
    ),
    "Distance": (
        2,
        lambda a, b: rx.Distance(a, b, at=[Q[:2], P[:2]]),
        lambda q: (turn2(q[0]), Q[:2] + turn2(q[1]) @ (P[:2] - Q[:2])),
    ),
}


@pytest.mark.parametrize("kind", FLAT)
def test_two_bodies_in_the_plane_move_as_in_minimal_coordinates(kind):
    count, joint, at = FLAT[kind]
    m = rx.Mechanism(gravity=[0.3, -9.81])
    R = np.asarray(turn2(0.4)), np.asarray(turn2(-1.3))
    a = m.body("a", 1.3, 0.1, at=A0[:2], turned=R[0])
    b = m.body("b", 0.7, 0.2, at=B0[:2], turned=R[1])
    m.join(joint(a, b))
    system = m.system()

    def places(q):
        S, s = turn2(q[0]), q[1:3]
        T, p = at(q[3:])
        x = p + T @ (B0[:2] - P[:2])
        return jnp.stack([S @ R[0], S @ T @ R[1]]), jnp.stack([s + S @ A0[:2], s + S @ x])

    oracle = Minimal(system, places)
    rng = np.random.default_rng(4)
    q, v = rng.uniform(-1, 1, 3 + count), rng.normal(size=3 + count)
    g, xi, expected = motion(oracle, q, v)
    state = system.state(g, velocity=xi)
    assert system.freedoms(state) == 3 + count
    if kind in ("Revolute", "Prismatic", "PointOnLine"):
        name = "angle of joint 1" if kind == "Revolute" else "position of joint 1"
        seen = evaluate(MechanismSystem.observables, system, state)
        np.testing.assert_allclose(seen[name], q[3], atol=1e-14)
    found = rate_of_velocity(system, g, xi)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.max(np.abs(expected)))


def geared(teeth):
    """A carrier that hangs free, and two wheels on it."""
    m = rx.Mechanism(gravity=[0.3, -0.2, -9.81])
    a = m.body("a", 1.3, JA, at=A0, turned=RA)
    one = m.body("one", 0.7, JB, at=B0, turned=RB)
    two = m.body("two", 0.4, 0.5 * JA, at=Q, turned=RA)
    first = rx.Revolute(a, one, at=P, axis=AXIS, name="first")
    second = rx.Revolute(a, two, at=Q, axis=SIDE, name="second")
    m.join(first, second, rx.Gear(first, "second", teeth=teeth, name="mesh"))
    return m.system()


@pytest.mark.parametrize("teeth", [(2, 3), (20, -40), (7, 1)])
def test_gears_move_as_in_minimal_coordinates_however_often_they_went_round(teeth):
    system = geared(teeth)

    def places(q):
        S, s = anyhow(q[:3]), q[3:6]
        T, U = turn(AXIS, q[6]), turn(SIDE, -q[6] * teeth[0] / teeth[1])
        R = jnp.stack([S @ RA, S @ T @ RB, S @ U @ RA])
        return R, jnp.stack([s + S @ A0, s + S @ (P + T @ (B0 - P)), s + S @ Q])

    oracle = Minimal(system, places)
    rng = np.random.default_rng(5)
    for angle in (0.3, 25.0):
        q, v = rng.uniform(-1, 1, 7), rng.normal(size=7)
        q[6] = angle
        g, xi, expected = motion(oracle, q, v)
        state = system.state(g, velocity=xi)
        assert system.freedoms(state) == 7
        found = rate_of_velocity(system, g, xi)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.max(np.abs(expected)))


@pytest.mark.parametrize("radius", [0.4, -0.15])
def test_a_rack_moves_as_in_minimal_coordinates(radius):
    m = rx.Mechanism(gravity=[0.3, -0.2, -9.81])
    a = m.body("a", 1.3, JA, at=A0, turned=RA)
    one = m.body("one", 0.7, JB, at=B0, turned=RB)
    two = m.body("two", 0.4, 0.5 * JA, at=Q, turned=RA)
    m.join(
        rx.Revolute(a, one, at=P, axis=AXIS, name="pinion"),
        rx.Prismatic(a, two, axis=SIDE, name="rack"),
        rx.Rack("pinion", "rack", radius=radius),
    )
    system = m.system()

    def places(q):
        S, s = anyhow(q[:3]), q[3:6]
        T = turn(AXIS, q[6])
        R = jnp.stack([S @ RA, S @ T @ RB, S @ RA])
        x = [A0, P + T @ (B0 - P), Q + radius * q[6] * SIDE]
        return R, jnp.stack([s + S @ y for y in x])

    oracle = Minimal(system, places)
    rng = np.random.default_rng(6)
    for angle in (0.3, -25.0):
        q, v = rng.uniform(-1, 1, 7), rng.normal(size=7)
        q[6] = angle
        g, xi, expected = motion(oracle, q, v)
        system.state(g, velocity=xi)
        found = rate_of_velocity(system, g, xi)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.max(np.abs(expected)))


def test_springs_and_dampers_push_as_their_energies_and_rates_say():
    m = rx.Mechanism(gravity=[0.3, -0.2, -9.81])
    a = m.body("a", 1.3, JA, at=A0, turned=RA)
    b = m.body("b", 0.7, JB, at=B0, turned=RB)
    m.join(rx.Revolute(a, b, at=P, axis=AXIS, name="hinge"))
    anchor, end = np.array([0.0, 1.0, 2.0]), np.array([1.0, 0.5, 0.0])
    m.add(
        rx.Spring("ground", b, at=[anchor, end], stiffness=30.0, length=0.7),
        rx.Damper(a, b, at=[A0 + np.array([0, 0, 1]), end], damping=0.8),
        rx.TorsionSpring("hinge", stiffness=5.0, rest=0.2),
        rx.TorsionDamper("hinge", damping=0.3),
    )
    system = m.system(potential=lambda g: 2.0 * jnp.sum(g[1][:, 0] ** 2))
    assert not system.conservative

    class Pulled(Minimal):
        def lengths(self, q):
            (R, x), tip = self.places(q), RB.T @ (end - B0)
            held = x[0] + R[0] @ RA.T @ np.array([0.0, 0.0, 1.0])
            far = x[1] + R[1] @ tip
            return jnp.linalg.norm(far - anchor), jnp.linalg.norm(far - held)

        def lagrangian(self, q, v):
            _, x = self.places(q)
            stretch = self.lengths(q)[0] - 0.7
            energy = 15.0 * stretch**2 + 2.5 * (q[6] - 0.2) ** 2 + 2.0 * jnp.sum(x[:, 0] ** 2)
            return super().lagrangian(q, v) - energy

        def push(self, q, v):
            slope = jax.grad(lambda q: self.lengths(q)[1])(q)
            return -0.8 * (slope @ v) * slope - 0.3 * v[6] * jnp.eye(7)[6]

    oracle = Pulled(system, whole(lambda q: (turn(AXIS, q[0]), P)))
    rng = np.random.default_rng(7)
    q, v = rng.uniform(-1, 1, 7), rng.normal(size=7)
    g, xi, expected = motion(oracle, q, v)
    state = system.state(g, velocity=xi)
    found = rate_of_velocity(system, g, xi)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.max(np.abs(expected)))
    # The power is what the dampers take: minus twice Rayleigh's function.
    rate = evaluate(lambda q, v: jax.jvp(oracle.lengths, (q,), (v,))[1][1], q, v)
    lost = 0.8 * rate**2 + 0.3 * v[6] ** 2
    np.testing.assert_allclose(system.power(state), -lost, rtol=1e-11)
    lively, still = (float(evaluate(oracle.lagrangian, q, u)) for u in (v, 0 * v))
    np.testing.assert_allclose(system.energy(state), lively - 2 * still, rtol=1e-13)

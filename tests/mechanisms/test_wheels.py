"""Wheels, balls and blades against rolling in minimal coordinates, written by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from minimal import Minimal, anyhow, motion, rate_of_velocity, turn

import retrax as rx

J = np.array([[0.1, 0.02, 0.0], [0.02, 0.12, 0.01], [0.0, 0.01, 0.09]])


def agree(oracle, q, v):
    """Compare accelerations where the velocity has been made one that rolls."""
    B = np.asarray(jax.jacfwd(oracle.slip, 1)(jnp.asarray(q), jnp.asarray(v)))
    v = v - np.linalg.pinv(B) @ (B @ v)
    g, xi, expected = motion(oracle, q, v)
    state = oracle.system.state(g, velocity=xi)
    assert oracle.system.freedoms(state) == len(q) - len(B)
    found = rate_of_velocity(oracle.system, g, xi)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.max(np.abs(expected)))
    return state


class Disk(Minimal):
    """A lopsided body that rolls on a circle of radius r: heading, lean, roll, and where it is."""

    def __init__(self, system, r, centre):
        self.r, self.centre = r, np.asarray(centre)
        super().__init__(system, self._places)

    def _lean(self, q):
        return turn([0, 0, 1], q[0]) @ turn([1, 0, 0], q[1])

    def _middle(self, q):
        return jnp.stack([q[3], q[4], self.r * jnp.cos(q[1])])

    def _places(self, q):
        R = self._lean(q) @ turn([0, 1, 0], q[2])
        return R[None], (self._middle(q) - R @ self.centre)[None]

    def slip(self, q, v):
        R, dR = jax.jvp(lambda q: self._places(q)[0][0], (q,), (v,))
        W = dR @ R.T
        up = self._lean(q) @ jnp.array([0.0, 0.0, 1.0])
        return (jax.jvp(self._middle, (q,), (v,))[1] - self.r * W @ up)[:2]


@pytest.mark.parametrize("centre", [[0.0, 0.0, 0.0], [0.03, 0.02, -0.05]])
def test_a_disk_rolls_as_in_minimal_coordinates(centre):
    r, centre = 0.35, np.array(centre)
    m = rx.Mechanism(gravity=[0.0, 0.0, -9.81])
    disk = m.body("disk", 1.4, J, at=[0.0, 0.0, r] - centre)
    m.roll(rx.RollingWheel(disk, radius=r, axis=[0, 1, 0], at=[0.0, 0.0, r]))
    oracle = Disk(m.system(), r, centre)
    rng = np.random.default_rng(1)
    for _ in range(2):
        agree(oracle, rng.uniform(-1, 1, 5), rng.normal(size=5))


def test_a_wheel_takes_its_axle_from_its_hinge_and_its_plane_from_gravity():
    m = rx.Mechanism(gravity=[0.0, 0.0, 9.81])
    frame = m.body("frame", 2.0, J, at=[0.1, 0.0, -0.6])
    wheel = m.body("wheel", 1.0, [0.1, 0.2, 0.1], at=[0.0, 0.0, -0.3])
    m.join(rx.Revolute(frame, wheel, at=[0.0, 0.0, -0.3], axis=[0.0, 2.0, 0.0], name="axle"))
    m.roll(rx.RollingWheel(wheel, radius=0.3, name="tyre"))
    system = m.system()
    state = system.assemble(joint_rates={"axle": -5.0}, velocities={"frame": [0, 0, 0, 1.5, 0, 0]})
    turns, travels = system.split(system.velocity_at(state))
    np.testing.assert_allclose(turns[1], [0.0, -5.0, 0.0], atol=1e-13)
    np.testing.assert_allclose(travels[1], [1.5, 0.0, 0.0], atol=1e-13)
    assert [c.name for c in system.constraint.connections] == ["axle", "tyre"]


class Ball(Minimal):
    """A lopsided ball: three angles and where it is."""

    def __init__(self, system, r, centre):
        self.r, self.centre = r, np.asarray(centre)
        super().__init__(system, self._places)

    def _places(self, q):
        R = anyhow(q[:3])
        return R[None], (jnp.stack([q[3], q[4], self.r + 0 * q[0]]) - R @ self.centre)[None]

    def slip(self, q, v):
        R, dR = jax.jvp(lambda q: anyhow(q[:3]), (q,), (v,))
        return v[3:] - self.r * (dR @ R.T)[:2, 2]


def test_a_lopsided_ball_rolls_as_in_minimal_coordinates():
    r, centre = 0.35, np.array([0.03, 0.02, -0.05])
    m = rx.Mechanism(gravity=[0.0, 0.0, -9.81])
    ball = m.body("ball", 1.4, J, at=[0.0, 0.0, r] - centre)
    m.roll(rx.RollingBall(ball, radius=r, at=[0.0, 0.0, r]))
    rng = np.random.default_rng(2)
    agree(Ball(m.system(), r, centre), rng.uniform(-1, 1, 5), rng.normal(size=5))


def test_chaplygins_ball_is_the_one_of_the_catalogue():
    r, moments = 0.35, np.array([0.1, 0.12, 0.17])
    m = rx.Mechanism(gravity=[0.0, 0.0, -9.81])
    m.roll(rx.RollingBall(m.body("ball", 1.4, moments, at=[0.0, 0.0, r]), radius=r))
    system = m.system()
    known = rx.systems.ChaplyginBall(moments, mass=1.4, radius=r)
    R = anyhow([0.3, -0.7, 1.1])
    omega = np.array([0.7, -1.2, 0.4])
    velocity = np.asarray(known.velocity_of((R, jnp.array([0.2, 0.1])), omega))
    one = known.state((R, jnp.array([0.2, 0.1])), velocity=velocity)
    g = (R[None], np.array([[0.2, 0.1, r]]))
    two = system.state(g, velocity=[*velocity, 0.0])
    a = rx.simulate(known, rx.LagrangeDAlembert(), one, h=0.01, steps=50)
    b = rx.simulate(system, rx.LieVerlet(), two, h=0.01, steps=50)
    # Two second-order methods on two groups: the difference falls by four with half the step.
    first = np.max(np.abs(a.g[0][-1] - b.g[0][-1, 0]))
    a = rx.simulate(known, rx.LagrangeDAlembert(), one, h=0.005, steps=100)
    b = rx.simulate(system, rx.LieVerlet(), two, h=0.005, steps=100)
    second = np.max(np.abs(a.g[0][-1] - b.g[0][-1, 0]))
    assert second < 3e-5
    assert second < 0.3 * first


class Skate(Minimal):
    """A free body with a blade whose point does not move sideways."""

    def __init__(self, system, at, ahead):
        self.at, self.ahead = np.asarray(at), np.asarray(ahead)
        super().__init__(system, lambda q: (anyhow(q[:3])[None], q[None, 3:]))

    def slip(self, q, v):
        (R, dR) = jax.jvp(lambda q: anyhow(q[:3]), (q,), (v,))
        side = jnp.cross(jnp.array([0.0, 0.0, 1.0]), R @ self.ahead)
        return jnp.stack([side @ (v[3:] + dR @ self.at)])


def test_a_knife_edge_in_space_glides_as_in_minimal_coordinates():
    at, ahead = np.array([0.2, -0.1, 0.3]), np.array([0.6, 0.8, 0.0])
    m = rx.Mechanism(gravity=[0.0, 0.0, -9.81])
    m.roll(rx.KnifeEdge(m.body("skate", 1.4, J, at=[0.0, 0.0, 0.0]), at=at, direction=ahead))
    rng = np.random.default_rng(3)
    agree(Skate(m.system(), at, ahead), rng.uniform(-1, 1, 6), rng.normal(size=6))


def test_a_knife_edge_in_the_plane_is_chaplygins_sleigh():
    mass, inertia, arm = 1.7, 0.3, 0.25
    m = rx.Mechanism(gravity=[0.0, 0.0])
    sleigh = m.body("sleigh", mass, inertia, at=[arm, 0.0])
    m.roll(rx.KnifeEdge(sleigh, at=[0.0, 0.0], direction=[1.0, 0.0]))
    system = m.system()
    u, w = 0.8, 1.1  # along the blade, and turning
    state = system.state((np.eye(2)[None], np.array([[arm, 0.0]])), velocity=[w, u, w * arm])
    assert system.freedoms(state) == 2
    run = rx.simulate(system, rx.LieVerlet(), state, h=0.01, steps=200)
    # du/dt = a w^2, (I + m a^2) dw/dt = -m a u w: an ellipse in (u, w), along which
    # u = c tanh(k c t + b), with c the last speed and k = m a / (I + m a^2).
    k = mass * arm / (inertia + mass * arm**2)
    ratio = (inertia + mass * arm**2) / mass
    c = np.sqrt(u**2 + ratio * w**2)
    speed = c * np.tanh(k * c * run.t + np.arctanh(u / c))
    turning, travel = run.velocity[:, 0], run.velocity[:, 1:]
    ahead = np.einsum("tij,j->ti", run.g[0][:, 0], [1.0, 0.0])
    found = np.einsum("ti,ti->t", travel, ahead)
    assert np.max(np.abs(found - speed)) < 3e-5
    assert np.max(run.constraint_violation()) < 1e-14
    np.testing.assert_allclose(turning[-1], np.sqrt((c**2 - found[-1] ** 2) / ratio), atol=1e-4)


def test_a_wheel_in_the_plane_rolls_down_a_slope_as_galilei_found():
    slope, r, mass, inertia = 0.3, 0.2, 1.5, 0.02
    n = np.array([-np.sin(slope), np.cos(slope)])
    m = rx.Mechanism(gravity=[0.0, -9.81])
    wheel = m.body("wheel", mass, inertia, at=np.array([1.0, 2.0]) + r * n)
    m.roll(rx.RollingWheel(wheel, radius=r, name="rim", plane=([1.0, 2.0], n)))
    system = m.system()
    # Exp takes a constant torque about a constant axis exactly; Cayley misses by (h w)^2.
    exact = rx.LieVerlet(rx.Exp())
    run = rx.simulate(system, exact, system.assemble(), h=0.01, steps=50)
    down = np.array([-np.cos(slope), -np.sin(slope)])
    fall = 9.81 * np.sin(slope) / (1 + inertia / (mass * r**2))
    moved = (run.g[1][:, 0] - run.g[1][0, 0]) @ down
    np.testing.assert_allclose(moved, fall * run.t**2 / 2, atol=1e-12)
    np.testing.assert_allclose(run.velocity[-1, 0], fall * run.t[-1] / r, rtol=1e-12)
    # The ground presses with m g cos, and pulls back with m (g sin - a).
    force = run.joints["rim"].force
    expected = mass * 9.81 * np.cos(slope) * n - mass * (9.81 * np.sin(slope) - fall) * down
    np.testing.assert_allclose(force, np.broadcast_to(expected, force.shape), atol=1e-11)


def test_a_wheel_that_falls_flat_stops_the_run_and_says_so():
    m = rx.Mechanism()
    disk = m.body("disk", 1.0, [0.05, 0.1, 0.05], at=[0.0, 0.0, 0.3])
    m.roll(rx.RollingWheel(disk, radius=0.3, axis=[0, 1, 0], name="rim"))
    system = m.system()
    leaning = turn([1, 0, 0], 1.2)
    g = (np.asarray(leaning)[None], np.array([[0.0, 0.0, 0.3 * np.cos(1.2)]]))
    state = system.state(g, velocity=np.zeros(6))
    with pytest.raises(rx.StepFailed, match=r"flat|did not converge"):
        rx.simulate(system, rx.LieVerlet(), state, h=0.002, steps=1000)


def test_what_cannot_roll_is_a_sentence():
    m = rx.Mechanism()
    body = m.body("b", 1.0, J, at=[0.0, 0.0, 0.3])
    for wheel, words in [
        (rx.RollingWheel(body, radius=0.3), "needs axis"),
        (rx.RollingWheel(body, radius=0.3, axis=[0, 0, 1]), "lies flat"),
        (rx.RollingWheel("ground", radius=0.3, axis=[0, 1, 0]), "ground cannot roll"),
        (rx.KnifeEdge(body, at=[0, 0, 0], direction=[0, 0, 2]), "stands on its tip"),
        (rx.KnifeEdge(body, at=[0, 0], direction=[0, 0, 2]), "in space"),
        (body, "is not a RollingWheel"),
    ]:
        with pytest.raises(rx.BadInput, match=words):
            m.roll(wheel)
    with pytest.raises(rx.BadInput, match="radius"):
        rx.RollingWheel(body, radius=-1.0)
    with pytest.raises(rx.BadInput, match="pair"):
        rx.RollingBall(body, radius=1.0, plane=3)
    floating = rx.Mechanism(gravity=[0.0, 0.0, 0.0])
    floating.body("b", 1.0, J, at=[0.0, 0.0, 0.3])
    with pytest.raises(rx.BadInput, match="no gravity"):
        floating.roll(rx.RollingBall("b", radius=0.3))
    flat = rx.Mechanism(gravity=[0.0, -1.0])
    flat.body("b", 1.0, 0.1, at=[0.0, 0.3])
    with pytest.raises(rx.BadInput, match="in space"):
        flat.roll(rx.RollingBall("b", radius=0.3))
    with pytest.raises(rx.BadInput, match="no axis"):
        flat.roll(rx.RollingWheel("b", radius=0.3, axis=[0, 1, 0]))
    lifted = rx.Mechanism()
    lifted.roll(rx.RollingBall(lifted.body("b", 1.0, J, at=[0.0, 0.0, 0.5]), radius=0.3))
    state = lifted.system().assemble()
    np.testing.assert_allclose(state.g[1][0, 2], 0.3, atol=1e-15)


@pytest.mark.parametrize(("tau", "part"), [(rx.Cayley(), 0.9406), (rx.Exp(), 1.0)])
def test_a_wheel_that_turns_far_in_a_step_asks_for_the_exponential_map(tau, part):
    """One radian a step: the docs tell by how much Cayley's map falls short."""
    cart = rx.Mechanism(gravity=(0.0, -9.81))
    disk = cart.body("disk", 1.0, 0.1, at=(0.0, 0.5))
    cart.roll(rx.RollingWheel(disk, 0.5))
    system = cart.system()
    state = system.assemble(velocities={"disk": (-50.0, 25.0, 0.0)})
    run = rx.simulate(system, rx.LieVerlet(tau), state, h=0.02, steps=50)
    assert abs(float(run.states.g[1][-1, 0, 0]) / 25.0 - part) < 1e-4
    assert abs(float(run.momentum[-1, 1]) - 25.0) < 1e-12

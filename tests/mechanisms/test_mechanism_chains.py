"""Chains: joint forces in closed form, momenta of free ones, orders on a loop in space."""

import numpy as np
import pytest

import retrax as rx

GRAVITY = 9.81


def forces(system, state):
    """The force that each joint exerts on its second body, a row a joint, in space axes."""
    d = state.g[1].shape[1]
    return np.asarray(system.multipliers(state)).reshape(-1, d)


def test_a_hanging_chain_carries_what_is_below_each_joint():
    n, mass = 5, 0.7
    system = rx.systems.chain(n, mass=mass, length=0.3)
    held = forces(system, system.assemble())
    below = mass * GRAVITY * np.arange(n, 0, -1)
    assert np.abs(held - below[:, None] * [0, 0, 1]).max() < 1e-11


def test_a_swinging_bar_pulls_at_its_joint_as_a_physical_pendulum():
    """m (a - g), with the acceleration of the centre from theta'' = -m g l/2 sin(theta) / I."""
    mass, length, width, angle, rate = 1.3, 0.8, 0.1, 0.7, 2.5
    system = rx.systems.chain(1, mass=mass, length=length, width=width)
    moment = mass * (width**2 + length**2) / 12 + mass * length**2 / 4
    start = system.assemble()
    c, s = np.cos(angle), np.sin(angle)
    turn = np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]])  # to the right, about -e2
    R = turn @ np.asarray(start.g[0])[0]
    ahead, inwards = np.array([c, 0, s]), np.array([-s, 0, c])
    state = system.state(
        (R[None], (-length / 2 * inwards)[None]),
        velocity=[*(R.T @ [0, -rate, 0]), *(length / 2 * rate * ahead)],
    )
    slows = -mass * GRAVITY * length / 2 * s / moment
    acceleration = length / 2 * (slows * ahead + rate**2 * inwards)
    exact = mass * (acceleration + np.array([0, 0, GRAVITY]))
    assert np.abs(forces(system, state)[0] - exact).max() < 1e-12


def test_two_bars_let_go_in_a_line_lift_the_elbow():
    """Level and at rest: 2/7 of a bar's weight at the shoulder, -1/14 of it at the elbow."""
    system = rx.systems.double_pendulum()
    level = np.asarray(system.assemble(joints={"shoulder": np.pi / 2, "elbow": 0.0}).g[1])
    state = system.assemble(joints={"shoulder": np.pi / 2, "elbow": 0.0})
    assert np.abs(level - [[0.5, 0], [1.5, 0]]).max() < 1e-12
    exact = GRAVITY * np.array([[0, 2 / 7], [0, -1 / 14]])
    assert np.abs(forces(system, state) - exact).max() < 1e-11


def spinning(n):
    """A free chain in space without gravity, whose bars spin and travel at random."""
    system = rx.systems.chain(n, anchored=False, gravity=0.0, width=0.3)
    rng = np.random.default_rng(3)
    start = system.state(system.reference, velocity=rng.normal(size=6 * n), project=True)
    return system, start


def drift(run):
    """The change of momentum and angular momentum, relative to the terms of these sums."""
    R, x = (np.asarray(part) for part in run.g)
    mu = np.asarray(run.states.momentum).reshape(*x.shape[:-1], 6)
    spins = np.einsum("tnij,tnj->tni", R, mu[..., :3]) + np.cross(x, mu[..., 3:])
    changes = []
    for terms in (mu[..., 3:], spins):
        total = terms.sum(axis=1)
        changes.append(np.abs(total - total[0]).max() / np.abs(terms).sum(axis=1).max())
    return max(changes)


def test_a_free_chain_keeps_momentum_and_angular_momentum():
    system, start = spinning(4)
    run = rx.simulate(system, rx.LieVerlet(), start, h=0.01, steps=2000, save_every=20)
    assert drift(run) < 1e-13
    assert np.max(run.constraint_violation()) < 1e-13


@pytest.mark.slow
def test_a_free_chain_keeps_its_momenta_over_a_million_steps():
    """Measured: 4.7e-14."""
    system, start = spinning(3)
    centre = start.momentum.reshape(-1, 6)[:, 3:].sum(0) / float(np.sum(system.mass))
    xi = np.array(system.velocity_at(start)).reshape(-1, 6)
    xi[:, 3:] -= np.asarray(centre)  # it stays where it is
    start = system.state(start.g, velocity=xi.reshape(-1), project=True)
    run = rx.simulate(system, rx.LieVerlet(), start, h=0.01, steps=1_000_000, save_every=10_000)
    assert drift(run) < 1e-13
    assert np.max(run.constraint_violation()) < 1e-13


def asymmetric_loop():
    """A crank, a coupler on two balls and a rocker, all without any symmetry."""
    loop = rx.Mechanism(gravity=[1.0, -2.0, -9.0])
    J = np.array([[0.5, 0.03, -0.06], [0.03, 0.7, 0.04], [-0.06, 0.04, 0.6]])
    crank = loop.body("crank", 1.2, 0.3 * J, at=[0.1, 0.2, 0.1])
    coupler = loop.body("coupler", 0.8, J, at=[0.6, 0.5, 0.4])
    rocker = loop.body("rocker", 1.7, 0.6 * J, at=[1.3, 0.3, 0.5])
    loop.join(
        rx.Revolute(loop.ground, crank, at=[0, 0, 0], axis=[0.1, 0.3, 1.0], name="motor"),
        rx.Spherical(crank, coupler, at=[0.0, 0.4, 0.2], name="ball"),
        rx.Spherical(coupler, rocker, at=[1.2, 0.6, 0.6], name="socket"),
        rx.Revolute(loop.ground, rocker, at=[1.5, 0, 0.2], axis=[1.0, 0.2, 0.1], name="hinge"),
    )
    return loop.system()


@pytest.mark.parametrize(("order", "h"), [(2, 0.01), (4, 0.02), (6, 0.0125)])
def test_orders_on_a_loop_of_asymmetric_bodies(order, h):
    """Measured: 1.96, 3.92 and 5.73; with halved steps 3.99."""
    system = asymmetric_loop()
    start = system.assemble(
        joint_rates={"motor": 1.5}, velocities={"coupler": [1, 2, -1, 0, 0, 0]}, project=True
    )
    assert system.freedoms(start) == 2
    fine = rx.Composition(rx.LieVerlet(), order=6)
    base = rx.LieVerlet()
    integrator = base if order == 2 else rx.Composition(base, order=order)
    exact = rx.simulate(system, fine, start, h=0.0025, steps=200, save_every=200).final
    errors = []
    for size in (h, h / 2):
        run = rx.simulate(system, integrator, start, h=size, steps=round(0.5 / size))
        errors.append(np.abs(np.asarray(run.final.g[1]) - np.asarray(exact.g[1])).max())
        assert np.max(run.constraint_violation()) < 1e-13
    assert abs(np.log2(errors[0] / errors[1]) - order) < 0.35

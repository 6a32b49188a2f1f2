"""Closed forms: equilibrium, waves, modes, and the systems that a string becomes in its limits."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from oracle import Chain

import retrax as rx

PENDULUM = rx.systems.StringPendulum
ARM = np.array([0.04, 0.01, 0.05])
PAPER = {"length": 1.0, "density": 0.025, "stiffness": 40.0, "elements": 20}
INERTIA = rx.solids.elliptic_cylinder(0.1, (0.06, 0.04), 0.1, ARM)
BODY = {"mass": 0.1, "arm": ARM, "inertia": INERTIA}


def simulated(system, state, h, steps, **more):
    return rx.simulate(system, rx.LieVerlet(), state, h=h, steps=steps, **more)


def test_the_string_hangs_as_the_continuum_does_and_stays():
    system = PENDULUM.paper()[0]
    state = system.hanging()
    s = np.arange(1, 21) / 20
    z = s + (0.1 * 9.81 * s + 0.025 * 9.81 * (s - s**2 / 2)) / 40
    assert np.max(np.abs(state.g[0][:, 2] - z)) < 2e-15
    assert abs(float(state.g[0][-1, 2]) - 1.027590625) < 2e-15
    assert np.max(np.abs(np.asarray(state.g[1]) @ ARM - [0, 0, np.linalg.norm(ARM)])) < 2e-17
    tension = system.observables(state)["tension"]
    assert np.max(np.abs(tension[jnp.array([0, -1])] - np.array([1.22011875, 0.98713125]))) < 1e-13
    assert abs(float(system.energy(state)) + 1.182488415) < 5e-10
    run = simulated(system, state, 1e-4, 2000, save_every=100)
    assert np.max(np.abs(run.g[0] - run.g[0][0])) < 2e-14  # measured 3e-15


def axial_modes(chain):
    """Frequencies and shapes along the hanging line, from the stiffness and mass matrices."""
    n = chain.n
    K = chain.kappa * (2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1))
    K[-1, -1] = chain.kappa
    w2, shapes = np.linalg.eig(np.linalg.solve(chain.T, K))
    order = np.argsort(w2)
    return np.sqrt(w2[order].real), shapes[:, order].real


def test_axial_waves_follow_the_discrete_cosine_and_the_bound_is_theirs():
    chain = Chain(**PAPER, nodes=[20], mass=[0.1], arm=[ARM], inertia=[INERTIA])
    w, shapes = axial_modes(chain)
    assert np.max(np.abs(w[:3] - [19.2038140, 128.896446, 253.949377])) < 5e-7
    system = PENDULUM(**PAPER, **BODY)
    # The bound takes the body for the least mass that it can show, so it is a little shorter.
    assert 0.99998 < system.longest_stable_step() * w[-1] / 2 < 1
    # The equilibrium plus two modes: exactly linear, each with 2/h sin(w_d h/2) = w.
    rest = system.hanging()
    shape = 0.01 * (shapes[:, 0] / shapes[-1, 0] + 0.05 * shapes[:, 6])
    r = np.asarray(rest.g[0]) + shape[:, None] * np.array([[0, 0, 1.0]])
    state = system.state((r, rest.g[1]), velocity=np.zeros(63))
    h, k = 2e-4, np.arange(1001)
    run = simulated(system, state, h, 1000)
    amplitudes = np.linalg.solve(shapes, shape)
    phase = np.outer(k, 2 * np.arcsin(w * h / 2))
    z = np.asarray(rest.g[0])[:, 2] + np.cos(phase) * amplitudes @ shapes.T
    assert np.max(np.abs(run.g[0][:, :, 2] - z)) < 2e-13  # measured 3e-14
    assert np.max(np.abs(run.g[0][:, :, :2])) < 1e-15


def linear_modes(system):
    """Frequencies about the hanging state: mass and stiffness by differentiating energies."""
    rest = system.hanging()
    group = system.group

    def potential(q):
        return system.potential_energy(group.compose(rest.g, group.exp(q)))

    zero = jnp.zeros(group.dim)
    K = np.asarray(jax.jit(jax.hessian(potential))(zero))
    M = np.asarray(jax.jit(jax.jacfwd(lambda xi: system.momentum(rest.g, xi)))(zero))
    yaw = np.concatenate([np.zeros(group.dim - 3), np.asarray(system.arm[0])])
    # Without the yaw, which has no stiffness: what is left is orthogonal to it.
    Z = np.linalg.svd((M @ yaw)[None, :])[2][1:].T
    period2, shapes = np.linalg.eig(np.linalg.solve(Z.T @ K @ Z, Z.T @ M @ Z))
    order = np.argsort(-period2.real)
    return 1 / np.sqrt(period2.real[order]), Z @ shapes[:, order].real


def test_lateral_modes_and_the_lowest_one_in_a_nonlinear_run():
    system = PENDULUM(**PAPER, **BODY)
    w, shapes = linear_modes(system)
    lateral = [3.05323421, 3.05385268, 16.8474462, 17.9717750, 23.7738578, 25.5885173]
    axial = 19.2038140
    found = [x for x in w[:8] if abs(x - axial) > 1e-5][:6]
    assert np.max(np.abs(np.array(found) - lateral)) < 6e-8
    rest, size, h = system.hanging(), 1e-7, 2e-4
    shape = shapes[:, 0] / np.max(np.abs(shapes[:, 0]))
    g = system.group.compose(rest.g, system.group.exp(jnp.asarray(size * shape)))
    run = simulated(system, system.state(g, velocity=np.zeros(63)), h, 2000, save_every=50)
    discrete = 2 / h * np.arcsin(w[0] * h / 2)
    along = shape[57:60] / (size * shape[57:60] @ shape[57:60])
    x = (run.g[0][:, -1] - np.asarray(rest.g[0][-1])) @ along
    assert np.max(np.abs(x - np.cos(discrete * run.t))) < 1e-7  # size / length


def test_a_light_stiff_string_is_the_rod_of_a_double_pendulum():
    system = PENDULUM(1.0, 1e-7, 4e5, 2, **BODY)
    w, _ = linear_modes(system)
    found = [x for x in w if 1 < x < 100]
    expected = [3.03292871, 3.03356915, 19.8619420, 23.2065214]
    assert np.max(np.abs(np.divide(found, expected) - 1)) < 2e-6


def test_one_massless_element_is_the_spring_pendulum_of_stoermer_and_verlet():
    inertia = np.diag([1e-4, 2e-4, 1.5e-4])
    system = PENDULUM(1.0, 0.0, 40.0, 1, 0.1, np.zeros(3), inertia)
    v, h = np.array([0.3, -0.2, 0.5]), 5e-3
    state = system.state(([[0.2, 0.1, 1.05]], np.eye(3)), velocity=[*v, 0.0, 0.0, 0.0])
    run = simulated(system, state, h, 200)
    r = np.array([0.2, 0.1, 1.05])
    for k in range(200):

        def force(r):
            size = np.linalg.norm(r)
            return -40.0 * (size - 1.0) / size * r + [0, 0, 0.981]

        half = v + h / 2 * force(r) / 0.1
        r = r + h * half
        v = half + h / 2 * force(r) / 0.1
        assert np.max(np.abs(run.g[0][k + 1, 0] - r)) < 2e-14
    # Vertical: 2/h sin(w_d h/2) = sqrt(k/M).
    rest = system.hanging()
    up = system.state(
        (np.asarray(rest.g[0]) + np.array([[0, 0, 0.02]]), np.eye(3)), velocity=np.zeros(6)
    )
    run = simulated(system, up, h, 500)
    angle = 2 * math.asin(20 * h / 2)
    z = np.asarray(rest.g[0])[0, 2] + 0.02 * np.cos(angle * np.arange(501))
    assert np.max(np.abs(run.g[0][:, 0, 2] - z)) < 2e-13


def free_body(inertia, omega, h, steps):
    """A body held by its centre of mass: its attitude does not know of the string."""
    data = {"length": 3.0, "density": 0.1, "stiffness": 1.0, "elements": 3, "gravity": 0.05}
    system = PENDULUM(**data, mass=1.0, arm=np.zeros(3), inertia=np.diag(inertia))
    rest = system.hanging()
    velocity = [0.3, 0.1, 0, 0, 0.2, 0.1, -0.2, 0, 0.4, *omega]
    state = system.state(rest.g, velocity=velocity)
    return simulated(system, state, h, steps, save_every=steps)


def test_a_body_held_in_its_centre_of_mass_is_free():
    """Discrete Moser-Veselov: momentum and energy exact, the phase of order two."""
    inertia, omega = np.array([1.0, 2.0, 3.0]), np.array([0.3, 0.0, 0.9])
    exact = np.array([-0.0748760194209138, -0.2905057343937961, 0.8842334567832016])
    errors = []
    for h, expected in ((0.05, 4.98e-4), (0.025, 1.24e-4)):
        run = free_body(inertia, omega, h, round(5 / h))
        pi, R = run.momentum[-1, -3:], run.g[1][-1]
        errors.append(np.max(np.abs(pi / inertia - exact)))
        assert abs(errors[-1] / expected - 1) < 0.01
        assert np.max(np.abs(R @ pi - inertia * omega)) < 5e-15
        assert abs(pi @ (pi / inertia) - inertia @ omega**2) < 2e-14
    assert abs(errors[0] / errors[1] - 4) < 0.02
    run = free_body([2.0, 2.0, 1.0], [0.5, 0.0, 1.2], 0.005, 1000)
    expected = [0.5 * math.cos(3.0), -0.5 * math.sin(3.0), 1.2]
    assert np.max(np.abs(run.momentum[-1, -3:] / [2, 2, 1] - expected)) < 2e-5


def test_on_a_stiff_heavy_thread_hangs_the_3d_pendulum():
    """The attitude equation by itself: a body about a node too heavy to move."""
    J, arm, h = np.diag([0.13, 0.28, 0.17]), np.array([0, 0, 0.3]), 0.01
    exact = [3.34976891619, -3.35795332769, 1.30445744132]

    # The discrete equations of the pendulum, by hand: F from Newton, R and Pi.
    def pendulum(h, steps):
        R, Pi = np.eye(3), J @ np.full(3, 4.14)
        for _ in range(steps):
            goal = h * (Pi + h / 2 * 9.81 * np.cross(arm, R[2]))
            f = np.linalg.solve(J, goal) / 2
            for _ in range(30):
                G = goal + np.cross(goal, f) + f * (goal @ f) - 2 * J @ f
                hat = np.array(
                    [[0, -goal[2], goal[1]], [goal[2], 0, -goal[0]], [-goal[1], goal[0], 0]]
                )
                f = f - np.linalg.solve(hat + goal @ f * np.eye(3) + np.outer(f, goal) - 2 * J, G)
            hat = np.array([[0, -f[2], f[1]], [f[2], 0, -f[0]], [-f[1], f[0], 0]])
            F = np.eye(3) + 2 * (hat + hat @ hat) / (1 + f @ f)
            Pi = F.T @ (goal / h)
            R = R @ F
            Pi = Pi + h / 2 * 9.81 * np.cross(arm, R[2])
        return R, np.linalg.solve(J, Pi)

    _, omega = pendulum(h, 200)
    assert np.max(np.abs(omega - exact)) < 0.05
    finer = pendulum(h / 2, 400)[1]
    assert abs(np.max(np.abs(omega - exact)) / np.max(np.abs(finer - exact)) - 4) < 0.1
    # The same from the string: drift and kick of one body, the node held by a huge mass.
    held = PENDULUM(1.0, 1.0, 1e9, 1, 1.0, arm, J)
    bodies = held.bodies
    from retrax.systems.strings import drift

    none = jnp.zeros((1, 1))
    attitude, pi = jnp.eye(3)[None], jnp.asarray(J @ np.full(3, 4.14))[None]
    for _ in range(3):
        pi = pi + h / 2 * 9.81 * jnp.cross(arm, attitude[0, 2])[None]
        x, _ = drift.turns(bodies, attitude, drift.eliminate_bodies(bodies, none), none, h * pi)
        pi = pi + drift.precession(bodies, attitude, x, jnp.zeros((1, 3)), jnp.asarray(h))
        attitude = rx.SO3().advance(attitude[0], rx.SO3().caym1(x[0]))[None]
        pi = pi + h / 2 * 9.81 * jnp.cross(arm, attitude[0, 2])[None]
    R3, omega3 = pendulum(h, 3)
    assert np.max(np.abs(attitude[0] - R3)) < 1e-15
    assert np.max(np.abs(pi[0] - J @ omega3)) < 1e-15

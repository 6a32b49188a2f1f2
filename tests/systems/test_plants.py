"""Ready plants: their free motion against equations written down independently."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial
from scipy.integrate import solve_ivp

import retrax as rx

S = rx.systems
J = np.array([[5.0, 0.3, -0.4], [0.3, 7.0, 0.6], [-0.4, 0.6, 9.0]])
AXES = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 1.0] / np.sqrt(3)])
SPIN = np.array([0.05, 0.07, 0.04])


def hat(a):
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def turned(*w):
    return np.asarray(rx.SO3().exp(jnp.array(w)))


def end(plant, state, h, steps, integrator=None):
    run = rx.simulate(plant, integrator or rx.LieVerlet(), state, h=h, steps=steps)
    return run.final, run


def second_order(error):
    """Whether halving the step divides an error by four."""
    coarse, fine = error(1), error(2)
    return 3.6 < coarse / fine < 4.4


# Wheels


def gyrostat(t, y, J=J, axes=AXES, spin=SPIN):
    """The equations of a body with wheels, in velocities: attitude, body rates, wheel speeds."""
    R, w, s = y[:9].reshape(3, 3), y[9:12], y[12:]
    stored = axes.T @ (spin * (s + axes @ w))
    bare = J - (axes.T * spin) @ axes
    # Without motors each wheel keeps its momentum, so the bare body turns as if alone.
    rate = np.linalg.solve(bare, -np.cross(w, bare @ w + stored))
    return np.concatenate([(R @ hat(w)).ravel(), rate, -axes @ rate])


def test_a_body_with_wheels_moves_as_the_equations_of_a_gyrostat_say():
    plant = S.spacecraft(J, wheels=S.Wheels(AXES, SPIN))
    R, w, s = turned(0.3, -0.5, 0.7), np.array([0.2, -0.1, 0.3]), np.array([40.0, -25.0, 60.0])
    start = plant.state((R, np.zeros(3)), velocity=[*w, *s])
    exact = solve_ivp(
        gyrostat, (0, 4), np.concatenate([R.ravel(), w, s]), rtol=1e-12, atol=1e-12
    ).y[:, -1]

    def error(fineness):
        final, _ = end(plant.system, start, 0.04 / fineness, 100 * fineness)
        xi = np.linalg.solve(plant.inertia_at(start.g), final.momentum)
        return max(
            np.max(np.abs(np.ravel(final.g[0]) - exact[:9])),
            np.max(np.abs(np.asarray(xi) - exact[9:])),
        )

    assert error(8) < 3e-5  # measured 8e-6
    assert second_order(lambda k: error(4 * k))


def test_wheels_without_spin_of_their_own_leave_the_locked_inertia():
    """With wheels that turn with the body the momentum is that of one rigid body."""
    body = S.WheeledBody(J, AXES, SPIN)
    w = np.array([0.3, -0.2, 0.5])
    g = (jnp.eye(3), jnp.zeros(3))
    mu = np.asarray(body.momentum(g, jnp.array([*w, 0.0, 0.0, 0.0])))
    np.testing.assert_allclose(mu[:3], J @ w, rtol=1e-15)
    np.testing.assert_allclose(mu[3:], SPIN * (AXES @ w), rtol=1e-14)


def test_the_total_momentum_and_that_of_each_wheel_are_the_invariants():
    body = S.WheeledBody(J, AXES, SPIN)
    state = body.state((turned(1.0, 0.2, -0.3), np.zeros(3)), velocity=[0.1, 0.2, -0.3, 9, 8, -7])
    names = set(body.invariants(state))
    assert names == {"energy"} | {f"spatial momentum e{k}" for k in range(1, 7)}


# Orbits


def test_small_motions_in_orbit_have_the_known_libration_frequencies():
    """Pitch at n sqrt(3 (I2 - I1) / I3); roll and yaw by the quartic of the textbooks."""
    yaw, roll, pitch, n = 4.0, 7.0, 9.0, 1.3e-3  # about e1 (up), e2 (ahead), e3 (normal)
    body = S.OrbitingBody(S.FreeRigidBody([yaw, roll, pitch]), n)
    rest = body.state(np.eye(3), velocity=np.zeros(3))

    def rate(x):
        g = body.group.compose(rest.g, body.group.exp(x[:3]))
        mu = rest.momentum + x[3:]
        d = body.vector_field(g, mu, jnp.zeros(()))
        return jnp.concatenate([d.velocity, d.momentum_rate])

    assert np.max(np.abs(jax.jit(rate)(jnp.zeros(6)))) < 1e-18
    A = np.asarray(jax.jit(jax.jacfwd(rate))(jnp.zeros(6)))
    # A velocity is not the rate of the coordinates x by a term that vanishes at rest.
    found = np.linalg.eigvals(A)
    assert np.max(np.abs(found.real)) < 1e-12 * n
    found = np.sort(np.abs(found.imag))[::2]
    in_plane = n * np.sqrt(3 * (roll - yaw) / pitch)
    kr, ky = (pitch - yaw) / roll, (pitch - roll) / yaw
    across = np.sqrt(np.roots([1, -(1 + 3 * kr + kr * ky), 4 * kr * ky]).real) * n
    np.testing.assert_allclose(found, np.sort([in_plane, *across]), rtol=1e-12)


@pytest.mark.parametrize("wheels", [False, True])
def test_a_body_in_orbit_is_the_free_body_under_the_torque_of_the_gradient(wheels):
    """Seen from the stars, where the direction to the Earth goes round."""
    n = 0.05
    free = S.WheeledBody(J, AXES, SPIN) if wheels else S.FreeRigidBody(J)
    body = S.OrbitingBody(free, n)

    def gradient(g, xi, t):
        R = g[0] if wheels else g
        out = R.T @ jnp.array([jnp.cos(n * t), jnp.sin(n * t), 0.0])
        torque = 3 * n**2 * jnp.cross(out, jnp.asarray(J) @ out)
        return jnp.concatenate([torque, jnp.zeros(len(xi) - 3)])

    Q, spins = turned(0.4, -0.2, 0.9), [3.0, -2.0, 5.0] if wheels else []
    g = (Q, np.zeros(3)) if wheels else Q
    seen = body.state(g, velocity=[0.02, -0.03, 0.01, *spins])
    stars = free.with_force(Partial(gradient))
    xi = np.array([0.02, -0.03, 0.01, *spins]) + np.concatenate([n * Q[2], 0 * np.array(spins)])
    start = free.state(g, velocity=xi)
    np.testing.assert_allclose(start.momentum, seen.momentum, rtol=1e-14)

    def error(fineness):
        h, steps = 0.5 / fineness, 60 * fineness
        ours, _ = end(body, seen, h, steps)
        theirs, _ = end(stars, start, h, steps)
        a = n * h * steps
        C = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]])
        Q1, R1 = (jax.tree.leaves(x.g)[0] for x in (ours, theirs))
        return np.max(np.abs(C @ Q1 - R1))

    assert error(8) < 5e-5  # measured 1.5e-5 with wheels, 4e-6 without
    assert second_order(lambda k: error(4 * k))


def test_jacobis_integral_is_kept_in_orbit():
    body = S.OrbitingBody(S.FreeRigidBody(J), 0.05)
    _, run = end(body, body.state(turned(0.4, -0.2, 0.9), velocity=[0.02, -0.03, 0.01]), 0.5, 4000)
    energy = run.observations.invariants["energy"]
    assert np.ptp(energy) < 2e-3 * np.ptp([x for x in (0.0, energy[0])])  # measured 3e-4 of it


# Thrusters and rotors


def test_thrusters_push_where_they_sit():
    places, ways = [[1.0, 0.5, -0.2], [0.0, -1.0, 0.3]], [[0.0, 2.0, 0.0], [1.0, 0.0, 1.0]]
    thrusters = S.Thrusters(places, ways, thrust=[3.0, 4.0])
    unit = np.array([[0.0, 1.0, 0.0], [np.sqrt(0.5), 0.0, np.sqrt(0.5)]])
    torque = np.stack([hat(r) @ f for r, f in zip(np.array(places), unit, strict=True)], axis=1)
    for mass, rows in ((None, torque), (12.0, np.concatenate([torque, unit.T]))):
        plant = S.spacecraft(J, thrusters=thrusters, mass=mass)
        np.testing.assert_allclose(plant.actuators.matrix(plant.group.identity()), rows, atol=1e-15)
        np.testing.assert_array_equal(plant.actuators.lower, [0, 0])
        np.testing.assert_array_equal(plant.actuators.upper, [3, 4])


def test_wheels_come_before_thrusters_among_the_inputs():
    plant = S.spacecraft(
        J, wheels=S.Wheels(AXES, SPIN, 0.2), thrusters=S.Thrusters([[1, 0, 0]], [[0, 1, 0]])
    )
    matrix = np.asarray(plant.actuators.matrix(plant.group.identity()))
    np.testing.assert_array_equal(matrix[:3, :3], 0)
    np.testing.assert_array_equal(matrix[3:, :3], np.eye(3))
    np.testing.assert_array_equal(matrix[:, 3], [0, 0, 1, 0, 0, 0])
    np.testing.assert_array_equal(plant.actuators.lower, [-0.2, -0.2, -0.2, 0])
    np.testing.assert_array_equal(plant.actuators.upper, [0.2, 0.2, 0.2, np.inf])


@pytest.mark.parametrize(("layout", "first"), [("+", 0.0), ("x", np.pi / 4)])
def test_rotors_turn_the_body_by_their_lever_and_their_drag(layout, first):
    plant = S.quadrotor([0.01, 0.012, 0.02], 1.1, arm=0.2, drag=0.016, layout=layout)
    matrix = np.asarray(plant.actuators.matrix(plant.group.identity()))
    for k in range(4):
        angle = first + k * np.pi / 2
        place = 0.2 * np.array([np.cos(angle), np.sin(angle), 0])
        torque = hat(place) @ [0, 0, 1] + [0, 0, 0.016 * (-1) ** k]
        np.testing.assert_allclose(matrix[:, k], [*torque, 0, 0, 1], atol=1e-16)
    assert np.linalg.matrix_rank(matrix[[0, 1, 2, 5]]) == 4


def test_a_thrown_body_follows_its_parabola_exactly():
    body = S.FlyingBody(J, 2.0)
    R, w, v = turned(0.2, 0.4, -0.1), np.array([0.5, -0.3, 0.2]), np.array([1.0, 2.0, 6.0])
    final, _ = end(body, body.state((R, np.zeros(3)), velocity=[*w, *(R.T @ v)]), 0.005, 200)
    t = 1.0
    # Verlet is exact in a uniform field; turning and travelling couple through body axes only.
    fall = v * t + [0, 0, -9.81 * t**2 / 2]
    assert np.max(np.abs(np.asarray(final.g[1]) - fall)) < 1e-4  # measured 2e-5, of order 2


# The pendulum


@pytest.mark.parametrize("arm", [[0.0, 0.0, 1.0], [0.3, -0.2, 0.5], [0.0, 0.0, -1.0], [1, 0, 0]])
@pytest.mark.parametrize("kind", [S.Pendulum3D, S.HeavyTop])
def test_upright_is_the_highest_place_and_hanging_the_lowest(kind, arm):
    body = kind([2.0, 2.2, 1.9], 1.5, arm)
    size = 1.5 * 9.81 * np.linalg.norm(arm)
    for state, energy in ((body.upright(), size), (body.hanging(), -size)):
        assert body.potential_energy(state.g) == pytest.approx(energy, rel=1e-14)
        assert body.group.defect(state.g) < 1e-15
        force = body.vector_field(state.g, state.momentum, state.t).momentum_rate
        assert np.max(np.abs(force)) < 1e-14 * size


def test_the_upright_pendulum_takes_torques_about_body_axes():
    plant = S.upright_pendulum([2.0, 2.2, 1.9], 1.5, [0.0, 0.0, 0.5], torque=[1.0, 2.0, 3.0])
    np.testing.assert_array_equal(plant.actuators.matrix(jnp.eye(3)), np.eye(3))
    np.testing.assert_array_equal(plant.actuators.upper, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(plant.actuators.lower, [-1.0, -2.0, -3.0])


# What is refused


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: S.Wheels([1.0, 0.0, 0.0], 0.1), "a row for each direction"),
        (lambda: S.Wheels([[0.0, 0.0, 0.0]], 0.1), "no direction"),
        (lambda: S.Wheels([[1.0, 0.0, 0.0]], -0.1), "spin"),
        (lambda: S.Wheels([[1.0, 0.0, 0.0]], [0.1, 0.2]), "spin"),
        (lambda: S.WheeledBody(J, AXES, 6.0), "with the wheels locked"),
        (lambda: S.OrbitingBody(S.Pendulum3D.paper()[0], 1e-3), "FreeRigidBody"),
        (lambda: S.spacecraft(J, mass=3.0, rate=1e-3), "mass and rate"),
        (lambda: S.spacecraft(J, mass=3.0, wheels=S.Wheels(AXES, SPIN)), "mass and wheels"),
        (lambda: S.spacecraft(J, torque=1.0, wheels=S.Wheels(AXES, SPIN)), "limits of their own"),
        (lambda: S.spacecraft(J, wheels=AXES), "rx.systems.Wheels"),
        (lambda: S.spacecraft(J, torque=0.0), "torque"),
        (lambda: S.spacecraft(J, rate=-1e-3), "rate"),
        (lambda: S.quadrotor([1, 1, 1], 1.0, 0.2, 0.01, layout="H"), "layout"),
        (lambda: S.quadrotor([1, 1, 1], 1.0, 0.0, 0.01), "arm"),
        (lambda: S.Thrusters([[0, 0, 0]], [[1, 0, 0], [0, 1, 0]]), "positions"),
        (lambda: S.crane(S.Pendulum3D.paper()[0], 1.0), "StringPendulum"),
        (lambda: S.crane(S.StringPendulum.paper(elements=2)[0], 0.0), "trolley"),
    ],
)
def test_what_cannot_be_built_is_refused_in_a_sentence(make, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        make()


def test_a_string_with_drag_is_refused_on_a_crane():
    paper = S.StringPendulum.paper(elements=2)[0]
    damped = S.StringPendulum(
        1.0, 0.025, 40.0, 2, 0.1, paper.arm[0], paper.inertia[0], damping=S.StringDamping(0.1)
    )
    with pytest.raises(rx.BadInput, match="damping of its own"):
        S.Crane(damped, 1.0)

"""Ready plants with inputs: balances that hold exactly, and motions known in closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import retrax as rx
from retrax.systems.catalogue import CASES

# Laws ask for more than motors give.
pytestmark = pytest.mark.filterwarnings("ignore:the actuators saturate")

S = rx.systems
J = np.array([[5.0, 0.3, -0.4], [0.3, 7.0, 0.6], [-0.4, 0.6, 9.0]])
AXES = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 1.0] / np.sqrt(3)])
SPIN = np.array([0.05, 0.07, 0.04])


def steady(u):
    return rx.Signal([0.0], [u])


def table(rng, h, steps, count, size):
    """Inputs that change at random from step to step."""
    u = size * rng.normal(size=(steps, count))
    return rx.Signal(h * np.arange(steps), u), u


def hat(a):
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def test_wheels_turn_the_craft_and_the_total_momentum_stays():
    plant = S.spacecraft(J, wheels=S.Wheels(AXES, SPIN))
    start = plant.state((np.eye(3), np.zeros(3)), velocity=[0.1, -0.2, 0.15, 30.0, -20.0, 10.0])
    h, steps = 0.02, 2000
    signal, u = table(np.random.default_rng(1), h, steps, 3, 0.4)
    run = rx.simulate(plant, rx.LieVerlet(), start, h=h, steps=steps, control=signal)
    total = np.einsum("tij,tj->ti", np.asarray(run.g[0]), np.asarray(run.momentum)[:, :3])
    size = np.linalg.norm(total[0])
    assert np.max(np.abs(total - total[0])) < 1e-13 * size  # measured 1.3e-14 of it
    assert np.max(np.abs(np.asarray(run.g[0])[-1] - np.eye(3))) > 0.1
    # Each wheel takes up what its motor gives.
    given = h * np.sum(u, axis=0)
    gained = np.asarray(run.momentum)[-1, 3:] - np.asarray(run.momentum)[0, 3:]
    np.testing.assert_allclose(gained, given, rtol=0, atol=1e-12)


def test_motors_move_a_craft_as_the_equations_of_a_gyrostat_say():
    plant = S.spacecraft(J, wheels=S.Wheels(AXES, SPIN))
    u = np.array([0.3, -0.2, 0.25])
    bare = J - (AXES.T * SPIN) @ AXES

    def rate(t, y):
        R, w, s = y[:9].reshape(3, 3), y[9:12], y[12:]
        stored = AXES.T @ (SPIN * (s + AXES @ w))
        turning = np.linalg.solve(bare, -np.cross(w, bare @ w + stored) - AXES.T @ u)
        return np.concatenate([(R @ hat(w)).ravel(), turning, u / SPIN - AXES @ turning])

    w, s = np.array([0.1, -0.2, 0.15]), np.array([3.0, -2.0, 1.0])
    start = plant.state((np.eye(3), np.zeros(3)), velocity=[*w, *s])
    exact = solve_ivp(
        rate, (0, 4), np.concatenate([np.eye(3).ravel(), w, s]), rtol=1e-12, atol=1e-12
    ).y[:, -1]

    def error(fineness):
        run = rx.simulate(
            plant, rx.LieVerlet(), start, h=0.04 / fineness, steps=100 * fineness, control=steady(u)
        )
        return np.max(np.abs(np.ravel(run.final.g[0]) - exact[:9]))

    coarse, fine = error(4), error(8)
    assert fine < 1e-5 and 3.6 < coarse / fine < 4.4  # measured 3e-6 and 4.0


def test_a_quadrotor_hovers_on_a_quarter_of_its_weight_for_each_rotor():
    plant = S.quadrotor([0.01, 0.012, 0.02], 1.1, arm=0.2, drag=0.016, thrust=6.0)
    R = np.asarray(rx.SO3().exp(jnp.array([0.0, 0.0, 0.4])))
    start = plant.state((R, [1.0, 2.0, 3.0]), velocity=np.zeros(6))
    u = np.full(4, 1.1 * 9.81 / 4)
    run = rx.simulate(plant, rx.LieVerlet(), start, h=0.01, steps=1000, control=steady(u))
    # Nothing rights it: a tilt by rounding grows. Measured 3e-11 m after 10 s.
    np.testing.assert_allclose(run.final.g[1], [1.0, 2.0, 3.0], rtol=0, atol=2e-10)
    np.testing.assert_allclose(run.final.momentum, 0, atol=1e-10)


def test_rotors_do_not_pull():
    plant = S.quadrotor([0.01, 0.012, 0.02], 1.1, arm=0.2, drag=0.016)
    start = plant.state((np.eye(3), np.zeros(3)), velocity=np.zeros(6))
    kwargs = {"h": 0.01, "steps": 20}
    pulled = rx.simulate(plant, rx.LieVerlet(), start, control=steady([-1.0] * 4), **kwargs)
    falling = rx.simulate(plant, rx.LieVerlet(), start, **kwargs)
    np.testing.assert_array_equal(pulled.final.g[1], falling.final.g[1])


def test_more_drag_on_one_pair_of_rotors_turns_the_body_about_the_vertical():
    plant = S.quadrotor([0.01, 0.012, 0.02], 1.1, arm=0.2, drag=0.016, layout="x")
    start = plant.state((np.eye(3), np.zeros(3)), velocity=np.zeros(6))
    u = 1.1 * 9.81 / 4 + np.array([0.1, -0.1, 0.1, -0.1])
    run = rx.simulate(plant, rx.LieVerlet(), start, h=0.005, steps=200, control=steady(u))
    angle = np.arctan2(run.final.g[0][1, 0], run.final.g[0][0, 0])
    assert angle == pytest.approx(0.4 * 0.016 / 0.02 / 2, rel=1e-5)  # tau t^2 / (2 J), t = 1


def crane(elements=3, trolley=0.3):
    return S.crane(S.StringPendulum.paper(elements=elements)[0], trolley)


def test_every_balance_of_the_crane_holds_in_every_step():
    """Horizontal momentum, angular momentum about the vertical, and vertical momentum."""
    plant = crane()
    system, string = plant.system, plant.string
    rng = np.random.default_rng(3)
    start = plant.state(plant.hanging([0.4, -0.3]).g, velocity=rng.normal(size=plant.group.dim))
    h, steps = 1e-3, 400
    signal, u = table(rng, h, steps, 2, 3.0)
    run = rx.simulate(plant, rx.LieVerlet(), start, h=h, steps=steps, control=signal)
    mu, X, q = np.asarray(run.momentum), np.asarray(run.g[-1]), np.asarray(run.g[0])
    np.testing.assert_allclose(np.diff(mu[:, -2:], axis=0), h * u, rtol=0, atol=1e-15)
    about = np.asarray(run.along(system.angular_momentum))
    mean = (X[1:] + X[:-1]) / 2
    impulse = h * (mean[:, 0] * u[:, 1] - mean[:, 1] * u[:, 0])
    np.testing.assert_allclose(np.diff(about), impulse, rtol=0, atol=1e-15)
    # Down: the weight of all that hangs, less what the first element pulls on the trolley.
    p = mu[:, : 3 * string.elements].reshape(len(mu), -1, 3)
    span = np.linalg.norm(q[:, 0], axis=1)
    u0, kappa = float(string.spacing), float(string.stiffness / string.spacing)
    pull = kappa * (1 - u0 / span) * q[:, 0, 2]
    m = float(string.density) * u0
    weight = 9.81 * (m * (string.elements - 0.5) + float(string.mass[0]))
    rate = weight - (pull[1:] + pull[:-1]) / 2
    np.testing.assert_allclose(np.diff(p[:, :, 2].sum(axis=1)), h * rate, rtol=0, atol=1e-14)


def test_the_same_driven_crane_natively_and_on_xla():
    plant = crane(2)
    signal, _ = table(np.random.default_rng(4), 2e-3, 50, 2, 1.0)
    native, xla = (
        rx.simulate(
            plant,
            rx.LieVerlet(),
            plant.hanging(),
            h=2e-3,
            steps=50,
            control=signal,
            backend=backend,
        ).final
        for backend in ("native", "xla")
    )
    for a, b in zip(jax.tree.leaves(native), jax.tree.leaves(xla), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-14)


def test_a_pendulum_is_held_upright_by_a_law_on_the_group():
    plant = S.upright_pendulum([2.0, 2.2, 1.9], 1.5, [0.3, -0.2, 0.5], torque=60.0)
    target = plant.upright().g
    G = rx.SO3()

    def law(g, xi, t):
        return -60.0 * G.log(target.T @ g) - 30.0 * xi

    start = plant.state(target @ G.exp(jnp.array([0.8, -0.6, 0.4])), velocity=[0.5, 0.2, -0.3])
    run = rx.simulate(plant, rx.LieVerlet(), start, h=0.01, steps=4000, control=rx.Feedback(law))
    assert np.max(np.abs(np.asarray(run.final.g) - np.asarray(target))) < 1e-9
    free = rx.simulate(plant, rx.LieVerlet(), start, h=0.01, steps=4000)
    assert np.max(np.abs(np.asarray(free.final.g) - np.asarray(target))) > 0.1


def test_a_steered_sleigh_speeds_up_and_turns_as_its_inputs_say():
    """A knife edge: J w' = torque, m v' = thrust, whatever the track."""
    plant = S.steered_sleigh(2.0, 0.5)
    start = plant.state((np.eye(2), np.zeros(2)), velocity=[0.3, 1.0, 0.0])
    run = rx.simulate(
        plant, rx.LagrangeDAlembert(), start, h=0.01, steps=300, control=steady([0.2, -0.4])
    )
    t = 3.0
    omega, v, sideways = np.asarray(run.velocity)[-1]
    assert omega == pytest.approx(0.3 + 0.2 / 0.5 * t, rel=1e-12)
    assert v == pytest.approx(1.0 - 0.4 / 2.0 * t, rel=1e-12)
    assert abs(sideways) < 1e-14
    angle = np.arctan2(run.final.g[0][1, 0], run.final.g[0][0, 0])
    turned = 0.3 * t + 0.2 / 0.5 * t**2 / 2
    assert np.mod(angle - turned + np.pi, 2 * np.pi) - np.pi == pytest.approx(0, abs=1e-4)


def test_a_craft_with_thrusters_is_pushed_along_and_turned():
    """A pair of opposite thrusters far from the centre: a pure torque, no force."""
    pair = S.Thrusters([[0, 0.5, 0], [0, -0.5, 0]], [[1, 0, 0], [-1, 0, 0]], thrust=2.0)
    plant = S.spacecraft([3.0, 4.0, 5.0], thrusters=pair, mass=20.0)
    start = plant.state((np.eye(3), np.zeros(3)), velocity=np.zeros(6))
    run = rx.simulate(plant, rx.LieVerlet(), start, h=0.01, steps=100, control=steady([1.5, 1.5]))
    np.testing.assert_allclose(run.final.g[1], 0, atol=1e-15)
    np.testing.assert_allclose(run.final.momentum, [0, 0, -1.5, 0, 0, 0], atol=1e-13)
    one = rx.simulate(plant, rx.LieVerlet(), start, h=0.01, steps=1, control=steady([9.0, 0.0]))
    np.testing.assert_allclose(  # held at the bound of 2 N
        one.final.momentum, [0, 0, -0.01, 0.02, 0, 0], rtol=0, atol=1e-5
    )


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("spacecraft", lambda x: x.g[0]),
        ("quadrotor", lambda x: x.g[1]),
        ("crane", lambda x: x.g[-1]),
        ("upright-pendulum", lambda x: x.g),
    ],
)
def test_the_case_brings_its_plant_where_its_law_says(name, places):
    plant, control, state, h, steps = CASES[name].driven()
    assert (h, steps) == CASES[name].length
    run = rx.simulate(plant, CASES[name].integrator, state, h=h, steps=steps, control=control)
    law = control.law
    goal = getattr(law, "target", None) if hasattr(law, "target") else law.place
    assert np.max(np.abs(places(run.final) - goal)) < 1e-2
    assert np.max(np.abs(places(state) - goal)) > 0.3
    slow = 0.05 if name == "crane" else 1e-3  # the load still swings a little
    assert np.max(np.abs(np.asarray(run.velocity)[-1][:3])) < slow

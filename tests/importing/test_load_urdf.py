"""Mechanisms from URDF: the same accelerations, energies and motion as other ways to get them."""

import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from joint_accelerations import joints_at, state_at
from scipy.integrate import solve_ivp
from urdf_lagrangian import Lagrangian

import retrax as rx

MODELS = Path(__file__).parent / "models"


def load(name, **options):
    """Load a model whose limits are warned of."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*do not act or are not read.*", UserWarning)
        return rx.load_urdf(MODELS / name, **options)


def frames_of(reference, q, v):
    """Return where the links are and how fast, for `state_at`."""
    poses, rates = jax.jit(lambda q, v: jax.jvp(reference.poses, (q,), (v,)))(q, v)
    found = {}
    for name, (R, x) in poses.items():
        dR, dx = rates[name]
        spin = R.T @ dR
        found[name] = R, x, jnp.array([spin[2, 1], spin[0, 2], spin[1, 0]]), dx
    return found


@pytest.mark.parametrize("model", ["arm.urdf", "gripper.urdf"])
def test_joints_accelerate_as_lagrange_says(model):
    """Joints of all kinds, a wrist without mass inside, welded links, mimics with offsets."""
    reference, mechanism = Lagrangian(MODELS / model), load(model)
    system = mechanism.system()
    rng = np.random.default_rng(1)
    q, v = (jnp.asarray(rng.normal(size=len(reference.names)) * s) for s in (0.4, 1.0))
    state = state_at(mechanism, system, frames_of(reference, q, v))
    found, expected = joints_at(system, state), jax.jit(reference.accelerations)(q, v)
    size = float(jnp.max(jnp.abs(expected)))
    for name, value, rate, acceleration in zip(reference.names, q, v, expected, strict=True):
        assert abs(found[name].value - value) < 1e-13
        assert abs(found[name].rate - rate) < 1e-13
        assert abs(found[name].acceleration - acceleration) < 1e-11 * size
    lagrangian = jax.jit(reference.lagrangian)
    energy = float(lagrangian(q, v) - lagrangian(q, 0 * v))
    assert abs(float(system.kinetic_energy(state)) - energy) < 1e-14 * (1 + energy) * 10


def test_an_arm_moves_as_lagrange_says():
    """Over half a second, with an error of second order: 6.5e-5 rad at h = 1e-3."""
    reference, mechanism = Lagrangian(MODELS / "arm.urdf"), load("arm.urdf")
    system = mechanism.system()
    q, v = jnp.array([0.3, -0.2, 0.05, 0.4, -0.3]), jnp.array([1.0, 0.5, -0.2, 0.8, -1.0])
    start = state_at(mechanism, system, frames_of(reference, q, v))
    accelerations = jax.jit(reference.accelerations)
    exact = solve_ivp(
        lambda t, y: np.concatenate([y[5:], accelerations(jnp.asarray(y[:5]), jnp.asarray(y[5:]))]),
        (0, 0.5),
        np.concatenate([q, v]),
        method="DOP853",
        rtol=1e-10,
        atol=1e-12,
    ).y[:5, -1]

    def error(steps):
        run = rx.simulate(system, rx.LieVerlet(), start, h=0.5 / steps, steps=steps, save_every=25)
        pan, lift, wrist = (run.joints[n].angle[-1] for n in ("pan", "lift", "bend and swing"))
        reached = [pan, lift, run.joints["reach"].position[-1], *wrist]
        return np.max(np.abs(np.array(reached) - exact))

    coarse, fine = error(500), error(1000)
    assert coarse < 1e-4
    assert 3.9 < coarse / fine < 4.1


def test_welded_links_are_one_body_and_keep_their_names():
    mechanism = load("arm.urdf")
    assert mechanism.system().names == ("turret", "boom", "slider", "hand")
    assert mechanism.frames["tip"].body == "hand" and mechanism.frames["base"].body == "ground"
    mechanism.join(rx.Spherical("tip", "ground", at=[0.5, 0.0, 0.5]))
    assert mechanism.system().constraint.connections[-1].bodies == (3, -1)


def test_limits_are_kept_and_named_and_transmissions_are_motors():
    told = r"the limits of lift, reach, bend, swing, which act with system\(limits=True\)"
    with pytest.warns(UserWarning, match=told):
        mechanism = rx.load_urdf(MODELS / "arm.urdf")
    assert mechanism.limits["lift"] == (-1.5, 1.2, 60.0, 3.0)
    plant = mechanism.plant()
    assert plant.actuators.count == 2
    assert np.array_equal(plant.actuators.upper, [np.inf, 60.0])
    assert load("arm.urdf", motors=["reach"]).plant().actuators.count == 1


def test_a_floating_base_falls():
    system = load("gripper.urdf", floating=True, gravity=[0.0, 0.0, -2.0]).system()
    assert system.names[0] == "palm"
    state = system.assemble()
    assert system.freedoms(state) == 6 + 2


@pytest.mark.parametrize(
    "loop",
    [
        ("coupler", "rocker", "revolute", [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]),
        ("rocker", "coupler", "revolute", [[0, 0, 1], [1, 0, 0]], [[0, 1, 0], [0, 1, 0]]),
        ("coupler", "rocker", "spherical", [1.0, 0.0, 1.0]),
    ],
)
def test_loops_close_a_four_bar(loop):
    """Its closed form is a pendulum, a phi'' = -b cos phi: at a right angle it begins with 0."""
    system = load("four_bar.urdf", loops=[loop]).system()
    state = system.assemble(joint_rates={"left": 1.0})
    assert system.freedoms(state) == 1
    inertia = 2 * (0.0834 + 0.25) + 1
    assert abs(float(system.kinetic_energy(state)) - inertia / 2) < 1e-12


def test_a_loop_that_is_drawn_open_is_closed_by_assembly(tmp_path):
    text = (MODELS / "four_bar.urdf").read_text()
    path = tmp_path / "open.urdf"
    closed = '<child link="coupler"/><origin xyz="0 0 1"'
    assert closed in text
    path.write_text(text.replace(closed, f'{closed} rpy="0 0.3 0"'))
    points, axes = [[1, 0, 0], [0, 0, 1]], [[0, 1, 0], [0, 1, 0]]
    system = rx.load_urdf(path, loops=[("coupler", "rocker", "revolute", points, axes)]).system()
    state = system.assemble()
    R, x = system.pose(state, "coupler")
    S, y = system.pose(state, "rocker")
    assert np.allclose(x + R @ np.array([0.5, 0, 0]), y + S @ np.array([0, 0, 0.5]), atol=1e-10)


def test_a_joint_of_the_file_may_close_the_loop(tmp_path):
    closing = """<joint name="last" type="continuous"><parent link="coupler"/><child link="rocker"/>
        <origin xyz="1 0 -1"/><axis xyz="0 1 0"/></joint></robot>"""
    path = tmp_path / "closed.urdf"
    path.write_text((MODELS / "four_bar.urdf").read_text().replace("</robot>", closing))
    with pytest.raises(rx.BadInput, match="has a loop: the link 'rocker' hangs on 'coupler'"):
        rx.load_urdf(path)
    other = rx.load_urdf(path, loops=["last"]).system()
    assert other.constraint.connections[-1].name == "last"
    assert other.freedoms(other.assemble()) == 1


def test_shapes_are_drawn_where_they_are():
    mechanism = load("arm.urdf")
    shapes = dict(zip(mechanism.system().names, mechanism.system().shapes, strict=True))
    (box,) = shapes["turret"]
    assert box.kind == "box" and box.colour == "#ff8000"
    # The origin of the link is at -centre, and the box 0.1 above it.
    assert np.allclose(box.place, [-0.01, 0.02, 0.0], atol=1e-15)
    (ball,) = shapes["hand"]
    assert ball.kind == "ball"

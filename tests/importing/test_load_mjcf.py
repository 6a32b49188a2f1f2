"""Mechanisms from MJCF: the accelerations of MuJoCo itself."""

import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import mujoco
import numpy as np
import pytest
from joint_accelerations import body_rates, joints_at, state_at

import retrax as rx
from retrax.importing.build import build
from retrax.importing.rotors import level

MODELS = Path(__file__).parent / "models"
GYMNASIUM = find_spec("gymnasium")
assert GYMNASIUM is not None and GYMNASIUM.origin is not None
ASSETS = Path(GYMNASIUM.origin).parent / "envs/mujoco/assets"
OFF = mujoco.mjtDisableBit
IGNORED = OFF.mjDSBL_CONTACT | OFF.mjDSBL_LIMIT | OFF.mjDSBL_FRICTIONLOSS


def load(path):
    """Load a model whose contacts and limits are warned of."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*do not act or are not read.*", UserWarning)
        return rx.load_mjcf(path)


def random_data(path, seed):
    """Return MuJoCo's model, and its data at a random state, without contacts, limits and fluid."""
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= int(IGNORED)
    model.opt.density = model.opt.viscosity = 0
    data, rng = mujoco.MjData(model), np.random.default_rng(seed)
    mujoco.mj_integratePos(model, data.qpos, 0.4 * rng.normal(size=model.nv), 1.0)
    data.qvel[:] = rng.normal(size=model.nv)
    mujoco.mj_forward(model, data)
    mujoco.mj_energyVel(model, data)
    return model, data


def state_of(mechanism, system, model, data):
    """Return MuJoCo's state as one of the mechanism."""
    frames = {}
    for i in range(1, model.nbody):
        R, velocity = data.xmat[i].reshape(3, 3), np.zeros(6)
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, i, velocity, 1)
        frames[model.body(i).name or f"body {i}"] = R, data.xpos[i], velocity[:3], R @ velocity[3:]
    for name, (value, rate) in moving(model, data).items():
        c, s, way = np.cos(value), np.sin(value), level(mechanism.gravity)
        turned = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
        slides = int(model.joint(name).type[0]) == int(mujoco.mjtJoint.mjJNT_SLIDE)
        frames[f"rotor of {name}"] = (
            (np.eye(3), value * way, np.zeros(3), rate * way)
            if slides
            else (turned, np.zeros(3), np.array([0, 0, rate]), np.zeros(3))
        )
    return state_at(mechanism, system, frames)


def moving(model, data):
    """Return value, counted from qpos0, and rate of every hinge and slide."""
    found = {}
    for j in range(model.njnt):
        if int(model.jnt_type[j]) >= int(mujoco.mjtJoint.mjJNT_SLIDE):
            q, v = model.jnt_qposadr[j], model.jnt_dofadr[j]
            found[model.joint(j).name] = data.qpos[q] - model.qpos0[q], data.qvel[v]
    return found


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        (MODELS / "walker.xml", 1e-11),
        (ASSETS / "inverted_double_pendulum.xml", 1e-12),
        (ASSETS / "hopper.xml", 1e-12),
        pytest.param(ASSETS / "half_cheetah.xml", 1e-11, marks=pytest.mark.campaign),
        pytest.param(ASSETS / "ant.xml", 1e-11, marks=pytest.mark.campaign),
        pytest.param(ASSETS / "humanoid.xml", 1e-11, marks=pytest.mark.campaign),
    ],
    ids=lambda value: value.stem if isinstance(value, Path) else None,
)
def test_joints_accelerate_as_in_mujoco(path, allowed):
    """Hinges in a row, slides, balls, free bodies, springs, dampers, rotors and servos."""
    mechanism, (model, data) = load(path), random_data(path, 3)
    system = mechanism.system()
    state = state_of(mechanism, system, model, data)
    found, size = joints_at(system, state), float(np.max(np.abs(data.qacc)))
    for name, (value, rate) in moving(model, data).items():
        assert abs(found[name].value - value) < 1e-14 * 10
        assert abs(found[name].rate - rate) < 1e-13
        acceleration = data.qacc[model.jnt_dofadr[model.joint(name).id]]
        assert abs(found[name].acceleration - acceleration) < allowed * size
    assert abs(float(system.kinetic_energy(state)) - data.energy[1]) < 1e-13 * (1 + data.energy[1])


LOOP = """
<mujoco>
  <option gravity="0 0 -9.81"/>
  <worldbody>
    <body name="crank"><joint name="left" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 1" size="0.02"/>
      <body name="coupler" pos="0 0 1"><joint name="top" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 1 0 0" size="0.02"/></body></body>
    <body name="rocker" pos="1 0 0"><joint name="right" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 1" size="0.02"/></body>
    <body name="wheel" pos="3 0 0"><joint name="wheel" axis="0 1 0"/><geom size="0.1"/></body>
    <body name="cart" pos="4 0 0"><joint name="cart" type="slide" axis="1 0 0"/>
      <geom size="0.1"/></body>
    <body name="rider" pos="4 0 0.3" euler="0 40 0"><freejoint/>
      <geom type="box" size="0.1 0.05 0.1"/></body>
  </worldbody>
  <equality>
    <connect body1="coupler" body2="rocker" anchor="1 0 0"/>
    <joint joint1="wheel" joint2="left" polycoef="0 2 0 0 0"/>
    <joint joint1="cart" joint2="left" polycoef="0 0.5 0.3 0 0"/>
    <weld body1="rider" body2="cart"/>
  </equality>
  <tendon><fixed name="cable"><joint joint="left" coef="1"/></fixed></tendon>
  <sensor><jointpos joint="left"/></sensor>
</mujoco>
"""


def test_equalities_close_loops_and_couple_joints(tmp_path):
    """A wheel at twice the angle, a cart on a parabola of it, a rider welded to the cart."""
    path = tmp_path / "loop.xml"
    path.write_text(LOOP)
    with pytest.warns(UserWarning, match=r"tendons \(1\)"):
        mechanism = rx.load_mjcf(path)
    system = mechanism.system()
    state = system.assemble(joints={"left": 0.4}, joint_rates={"left": 1.5})
    assert system.freedoms(state) == 1
    at = {joint.name: [float(q.value) for q in joint.measure(state.g)]
          for joint in system.constraint.connections}  # fmt: skip
    assert abs(at["wheel"][0] - 0.8) < 1e-9
    assert abs(at["cart"][0] - (0.2 + 0.3 * 0.16)) < 1e-9
    assert abs(at["right"][0] - 0.4) < 1e-9
    R, x = system.pose(state, "rider")
    assert np.allclose(x, [4 + at["cart"][0], 0, 0.3], atol=1e-9)
    assert abs(R[0, 0] - np.cos(np.radians(40))) < 1e-9
    each, _ = body_rates(system, state)
    assert abs(each[system.names.index("cart"), 3] - 1.5 * (0.5 + 0.6 * 0.4)) < 1e-9


def test_motors_are_bounded_by_control_times_gear():
    plant = load(MODELS / "walker.xml").plant()
    assert np.array_equal(plant.actuators.lower, [-40, -np.inf])
    assert np.array_equal(plant.actuators.upper, [40, np.inf])


def test_what_is_not_understood_is_named(tmp_path):
    path = tmp_path / "odd.xml"
    path.write_text("""<mujoco><option density="1.2" viscosity="0.1"/><worldbody>
      <body><joint type="ball" damping="0.3" stiffness="2"/><geom size="0.1" pos="0.3 0 0"/>
        <body pos="0.5 0 0" gravcomp="1"><joint name="rough" frictionloss="0.1"/>
          <geom size="0.1"/></body>
      </body></worldbody></mujoco>""")
    with pytest.warns(UserWarning) as caught:
        rx.load_mjcf(path)
    (warning,) = caught
    for words in (
        "contacts of geoms (2)",
        "gravity is compensated (1)",
        "dry friction of rough",
        "the fluid around the bodies",
        "damping 0.3 and stiffness 2 of the joint",
    ):
        assert words in str(warning.message)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("<mujoco><worldbody>", "MuJoCo rejects"),
        ("<mujoco><worldbody><body><joint/></body></worldbody></mujoco>", "MuJoCo rejects"),
        (
            '<mujoco><worldbody><body><joint axis="1 0 0"/><joint axis="1 1 0"/>'
            '<geom size="1"/></body></worldbody></mujoco>',
            "together they are no joint that retrax has",
        ),
    ],
)
def test_files_that_describe_no_mechanism_are_told(tmp_path, text, sentence):
    path = tmp_path / "bad.xml"
    path.write_text(text)
    with pytest.raises(rx.BadInput, match=sentence):
        load(path)
    with pytest.raises(rx.BadInput, match="is not a file"):
        rx.load_mjcf(tmp_path / "missing.xml")


SWITCHES = """
<mujoco>
  <option density="1.2" {option}><flag {flag}/></option>
  <worldbody>
    <body gravcomp="0.5"><joint name="j" axis="0 1 0" damping="1" stiffness="3" springref="20"
      frictionloss="0.1" limited="true" range="-90 90"/><geom size="0.1" pos="0.3 0 0"/></body>
    <body pos="2 0 0"><joint name="k" axis="0 1 0" armature="0.1"/>
      <geom size="0.1" pos="0.2 0 0.1"/></body>
  </worldbody>
  <equality><joint joint1="k" joint2="j" polycoef="0 -1.5 0 0 0"/></equality>
  <actuator><position joint="k" kp="7" kv="0.3" group="2"/>
    <motor joint="j" gear="3" ctrllimited="true" ctrlrange="-2 1"/></actuator>
</mujoco>
"""


def switched(folder, flag="", option=""):
    """Write the model with flags off; return its path and MuJoCo's data at a state."""
    path = folder / "switches.xml"
    flags = " ".join(f'{name}="disable"' for name in flag.split())
    path.write_text(SWITCHES.format(flag=flags, option=option))
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= int(IGNORED)
    model.opt.density, model.body_gravcomp[:] = 0, 0
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = [0.4, -0.6], [0.8, -1.2]
    mujoco.mj_forward(model, data)
    return path, model, data


@pytest.mark.parametrize(
    ("flag", "option", "unsaid"),
    [
        ("", "", ()),
        ("gravity", "", ("gravity is compensated",)),
        ("spring", "", ()),
        ("damper", "", ()),
        ("spring damper", "", ("gravity is compensated", "the fluid")),
        ("actuation", "", ()),
        ("", 'actuatorgroupdisable="2"', ()),
        ("clampctrl", "", ()),
        ("equality", "", ()),
        ("contact limit", "", ("contacts of geoms", "the limits of")),
        ("constraint", "", ("contacts of geoms", "the limits of", "dry friction")),
    ],
)
def test_flags_disable_what_they_disable_in_mujoco(tmp_path, monkeypatch, flag, option, unsaid):
    path, _, data = switched(tmp_path, flag, option)
    robots = []

    def build_and_keep(robot, gravity, floating):
        robots.append(robot)
        return build(robot, gravity, floating)

    monkeypatch.setattr(import_module("retrax.importing.load_mjcf"), "build", build_and_keep)
    with pytest.warns(UserWarning) as caught:
        mechanism = rx.load_mjcf(path)
    every = ("contacts of geoms", "gravity is compensated", "the fluid", "dry friction")
    for words in (*every, "the limits of"):
        assert (words in str(caught[0].message)) == (words not in unsaid)

    (robot,) = robots
    weightless = np.linalg.norm(data.qfrc_bias) < 1e-15
    assert np.array_equal(mechanism.gravity, [0, 0, 0 if weightless else -9.81])
    torques = data.qfrc_passive + data.qfrc_actuator
    for edge, q, rate, torque in zip(robot.edges, data.qpos, data.qvel, torques, strict=True):
        (f,) = edge.freedoms
        assert abs(-f.stiffness * (q - f.rest) - f.damping * rate - torque) < 1e-13
    assert len(robot.couplings) == data.nefc
    unclamped, clamped = ("motor 1", "k", None), ("motor 2", "j", (-6.0, 3.0))
    drives = {
        "actuation": [],
        "clampctrl": [unclamped, ("motor 2", "j", None)],
    }.get(flag, [clamped] if option else [unclamped, clamped])
    assert robot.drives == drives


@pytest.mark.campaign
@pytest.mark.parametrize("flag", ["gravity equality", "spring equality", "actuation equality"])
def test_joints_accelerate_as_in_mujoco_with_flags(tmp_path, flag):
    path, model, data = switched(tmp_path, flag)
    mechanism = load(path)
    system = mechanism.system()
    found = joints_at(system, state_of(mechanism, system, model, data))
    for name, value in zip("jk", data.qacc, strict=True):
        assert abs(found[name].acceleration - value) < 1e-12 * (1 + abs(value))

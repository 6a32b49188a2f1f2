"""MuJoCo: trees of joints, loops closed by `connect`, all steps in one call.

Equalities give way like springs; they are as stiff as MuJoCo takes them, with a time constant of
two steps. Contacts are off.
"""

import mujoco
import numpy as np

import retrax as rx
from benchmarks.methods import Call

VERSION = mujoco.__version__
INTEGRATORS = ("implicitfast", "RK4")


def four_bar(N: int, h: float, steps: int, integrator: str, violation: bool = False) -> Call:
    """Return a call that runs `N` four-bars and gives B0, or what is kept on the way."""
    bar = '<inertial pos="{}" mass="1" diaginertia="{m} {m} {m}"/>'
    up, along = bar.format("0 0 0.5", m=repr(1 / 12)), bar.format("0.5 0 0", m=repr(1 / 12))
    bodies, loops = "", ""
    for i in range(N + 1):
        coupler = (
            f'<body name="c{i}" pos="0 0 1"><joint axis="0 1 0"/>{along}</body>' if i < N else ""
        )
        bodies += f'<body name="u{i}" pos="{i} 0 0"><joint axis="0 1 0"/>{up}{coupler}</body>'
        if i < N:
            loops += f'<connect body1="c{i}" body2="u{i + 1}" anchor="1 0 0" {_stiff(h)}/>'
    model, data = _model(bodies, loops, h, integrator, "0 0 -9.81")

    def call() -> np.ndarray:
        mujoco.mj_resetData(model, data)
        for i in range(N + 1):
            data.qvel[model.joint(model.body(f"u{i}").jntadr[0]).dofadr[0]] = 1.0
            if i < N:
                data.qvel[model.joint(model.body(f"c{i}").jntadr[0]).dofadr[0]] = -1.0
        mujoco.mj_step(model, data, steps)
        mujoco.mj_kinematics(model, data)

        def at(name: str, place: tuple[float, float, float]) -> np.ndarray:
            body = data.body(name)
            return (body.xpos + body.xmat.reshape(3, 3) @ place)[[0, 2]]

        if not violation:
            return at("u0", (0, 0, 1))
        gaps = [at(f"c{i}", (1, 0, 0)) - at(f"u{i + 1}", (0, 0, 1)) for i in range(N)]
        mujoco.mj_energyPos(model, data)
        mujoco.mj_energyVel(model, data)
        return np.array([np.max(np.abs(gaps)), float(np.sum(data.energy))])

    return call


def chain(n: int, h: float, steps: int, integrator: str) -> Call:
    """Return a call that swings a chain of `n` bars and gives where its last bar is."""
    system = rx.systems.chain(1)  # all bars are equal
    a, b, _ = (float(moment) for moment in np.diag(np.asarray(system.inertia[0])))
    solid = f'<inertial pos="0 0 -0.5" mass="1" diaginertia="{b!r} {b!r} {a!r}"/>'
    inside = ""
    for k in reversed(range(n)):
        place = "0 0 0" if k == 0 else "0 0 -1"
        inside = f'<body name="b{k}" pos="{place}"><joint type="ball"/>{solid}{inside}</body>'
    model, data = _model(inside, "", h, integrator, "0 0 -9.81")

    def call() -> np.ndarray:
        mujoco.mj_resetData(model, data)
        data.qvel[:3] = 0.5, 1.0, 0.3
        mujoco.mj_step(model, data, steps)
        mujoco.mj_kinematics(model, data)
        return np.array(data.body(f"b{n - 1}").xipos)

    return call


def bricard(h: float, steps: int, integrator: str) -> Call:
    """Return a call that runs Bricard's linkage and gives the place of its third bar."""
    linkage = rx.systems.bricard()
    R, x = (np.asarray(part) for part in linkage.reference)
    inside = ""
    joints = linkage.constraint.connections
    frames = [np.zeros(3), *x]
    for i in reversed(range(len(x))):
        joint = joints[i]
        at = x[i] + R[i] @ np.asarray(joint.at)
        axis = R[i] @ np.asarray(joint.law.laws[1].f)
        J = R[i] @ np.asarray(linkage.inertia[i]) @ R[i].T
        moments = [J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2]]
        inside = (
            f'<body name="b{i}" pos="{_text(x[i] - frames[i])}">'
            f'<joint pos="{_text(at - x[i])}" axis="{_text(axis)}"/>'
            f'<inertial pos="0 0 0" mass="1" fullinertia="{_text(moments)}"/>{inside}</body>'
        )
    last = joints[-1]
    a = last.bodies[0]
    pin, along = np.asarray(last.law.laws[0].a), np.asarray(last.law.laws[1].e)
    axis = R[a] @ np.cross(along[0], along[1])
    loops = "".join(
        f'<connect body1="b{a}" anchor="{_text(R[a] @ pin + s * axis)}" {_stiff(h)}/>'
        for s in (-0.5, 0.5)
    )
    model, data = _model(inside, loops, h, integrator, "0 -9.81 0")

    def call() -> np.ndarray:
        mujoco.mj_resetData(model, data)
        mujoco.mj_step(model, data, steps)
        mujoco.mj_kinematics(model, data)
        return np.array(data.body("b2").xipos)

    return call


def _model(bodies: str, loops: str, h: float, integrator: str, gravity: str):
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{h!r}" gravity="{gravity}" integrator="{integrator}">'
        '<flag contact="disable"/></option>'
        f"<worldbody>{bodies}</worldbody><equality>{loops}</equality></mujoco>"
    )
    return model, mujoco.MjData(model)


def _stiff(h: float) -> str:
    return f'solref="{2 * h!r} 1" solimp="0.9999 0.9999 0.001"'


def _text(numbers) -> str:
    return " ".join(repr(float(number)) for number in numbers)

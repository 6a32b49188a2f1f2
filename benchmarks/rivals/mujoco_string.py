"""MuJoCo: point masses on three sliders each, tendons as springs, a body on a ball joint."""

from collections.abc import Callable

import mujoco
import numpy as np

from retrax.mechanics.solids import about_centre
from retrax.systems.strings.starts import VELOCITY
from retrax.systems.strings.string_pendulum import StringPendulum

INTEGRATORS = ("Euler", "implicitfast", "RK4")


def runs(system: StringPendulum, h: float, steps: int) -> dict[str, Callable[[], object]]:
    """One call for each integrator: `steps` steps from the paper's start."""
    return {f"MuJoCo, {name}": _run(system, h, steps, name) for name in INTEGRATORS}


def _run(system: StringPendulum, h: float, steps: int, name: str) -> Callable[[], object]:
    model = mujoco.MjModel.from_xml_string(_xml(system, h, name))
    data = mujoco.MjData(model)
    last = 3 * (system.elements - 1)

    def call():
        mujoco.mj_resetData(model, data)
        data.qvel[last : last + 3] = VELOCITY
        mujoco.mj_step(model, data, steps)
        return data.qpos.copy()

    return call


def _xml(system: StringPendulum, h: float, integrator: str) -> str:
    n, u = system.elements, float(system.spacing)
    m, kappa = float(system.density) * u, float(system.stiffness) / u
    mass, arm = float(system.mass[0]), np.asarray(system.arm[0])
    J = about_centre(np.asarray(system.inertia[0]), mass, arm)
    axes = ("1 0 0", "0 1 0", "0 0 1")
    sliders = "".join(f'<joint type="slide" axis="{axis}"/>' for axis in axes)
    point = f'<inertial pos="0 0 0" mass="{m!r}" diaginertia="1e-12 1e-12 1e-12"/>'
    moments = [J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2]]
    solid = f'<inertial pos="{_text(arm)}" mass="{mass!r}" fullinertia="{_text(moments)}"/>'
    bodies = "".join(
        f'<body pos="{k * u!r} 0 0">{sliders}{point}<site name="s{k}"/></body>' for k in range(1, n)
    )
    last = f'{sliders}<joint type="ball"/>{solid}<site name="s{n}"/>'
    bodies += f'<body pos="{n * u!r} 0 0">{last}</body>'
    springs = "".join(
        f'<spatial stiffness="{kappa!r}" springlength="{u!r}"><site site="s{k}"/>'
        f'<site site="s{k + 1}"/></spatial>'
        for k in range(n)
    )
    return (
        f'<mujoco><option timestep="{h!r}" gravity="0 0 {float(system.gravity)!r}" '
        f'integrator="{integrator}"><flag contact="disable" constraint="disable"/></option>'
        f'<worldbody><site name="s0"/>{bodies}</worldbody><tendon>{springs}</tendon></mujoco>'
    )


def _text(numbers) -> str:
    return " ".join(repr(float(x)) for x in numbers)

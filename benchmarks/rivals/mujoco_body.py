"""MuJoCo: a body on a ball joint at the pivot, all steps in one call; `rollout` for ensembles.

MuJoCo wants moments about the centre of mass that a body can have, and those of the pendulum about
its centre are not: so the mass is a tenth and gravity ten times as large, which changes neither
the moments about the pivot nor the torque.
"""

import mujoco
import mujoco.rollout
import numpy as np

from benchmarks.methods import Call, Method, step_counts
from benchmarks.rivals.quaternion import attitude
from retrax_papers.bench.problems import TimedProblem

INTEGRATORS = ("RK4", "Euler", "implicitfast")
_MASS = 0.1

# An unstable run shows in its error; by default MuJoCo also writes a log file.
mujoco.set_mju_user_warning(lambda message: None)


def methods(problem: TimedProblem) -> list[Method]:
    counts = step_counts(int(problem.end), int(problem.end * 1e3))
    return [_method(problem, name, counts) for name in INTEGRATORS]


def _method(problem: TimedProblem, name: str, counts: tuple[int, ...]) -> Method:
    def prepare(steps: float) -> Call:
        body = model(problem, name, problem.end / steps)
        data = mujoco.MjData(body)

        def call():
            mujoco.mj_resetData(body, data)
            data.qvel[:] = problem.velocity
            mujoco.mj_step(body, data, int(steps))
            return attitude(data.qpos)

        return call

    return Method("MuJoCo", name, "steps", counts, prepare)


def model(problem: TimedProblem, integrator: str, h: float) -> mujoco.MjModel:
    """The body, pivoted at the origin, with e3 pointing down."""
    weight = np.zeros(3) if problem.weight is None else np.array(problem.weight)
    size = float(np.linalg.norm(weight))
    arm = weight / size if size else weight
    moments = np.array(problem.inertia) - _MASS * (arm @ arm - arm * arm)
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><option timestep="{h!r}" gravity="0 0 {size / _MASS}" integrator="{integrator}">
        <flag contact="disable" constraint="disable"/></option><worldbody><body>
        <joint type="ball"/><inertial pos="{_text(arm)}" mass="{_MASS}"
        diaginertia="{_text(moments)}"/></body></worldbody></mujoco>"""
    )


def ensemble_methods(problem: TimedProblem, starts: np.ndarray, end: float) -> list[Method]:
    """The bodies of `starts` (7, members) by RK4 on two threads."""
    members = starts.shape[1]
    initial = np.concatenate([np.zeros((1, members)), starts]).T.copy()

    def prepare(steps: float) -> Call:
        body = model(problem, "RK4", end / steps)
        data = [mujoco.MjData(body) for _ in range(2)]

        def call():
            states, _ = mujoco.rollout.rollout(body, data, initial, nstep=int(steps))
            return attitude(states[:, -1, 1:8].T)

        return call

    counts = step_counts(int(end), int(end * 100))
    return [Method("MuJoCo", "rollout, RK4", "steps", counts, prepare)]


def _text(numbers) -> str:
    return " ".join(repr(float(x)) for x in numbers)

"""The actuators of a MuJoCo model: motors, and servos as a motor with a spring and a damper."""

import numpy as np

from retrax.importing.compiled import Model, Names
from retrax.importing.flags import Off
from retrax.importing.robot import Drive, Edge, Freedom

# By the numbers of mjtTrn, mjtDyn, mjtGain, mjtBias.
_AT_JOINT, _NO_DYNAMICS, _FIXED, _NO_BIAS, _AFFINE = 0, 0, 0, 0, 1
_ONE_COORDINATE = ("hinge", "slide")


def actuators(
    model: Model, names: Names, edges: list[Edge], off: Off, unread: list[str]
) -> tuple[list[Drive], list[Edge]]:
    r"""Return the motors, and the edges with the springs and dampers of servos.

    An actuator makes $\tau = \gamma(k u + b_0 + b_1\gamma q + b_2\gamma\dot q)$ at its joint, with
    its gear $\gamma$. The input of a motor is $\gamma ku$.
    """
    freedoms = {f.name: f for edge in edges for f in edge.freedoms}
    drives = []
    for k in range(model.nu):
        if off.actuator(int(model.actuator_group[k])):
            continue
        name, joint = names.actuator(k), int(model.actuator_trnid[k][0])
        plain = (
            int(model.actuator_trntype[k]) == _AT_JOINT
            and int(model.actuator_dyntype[k]) == _NO_DYNAMICS
            and int(model.actuator_gaintype[k]) == _FIXED
            and int(model.actuator_biastype[k]) in (_NO_BIAS, _AFFINE)
            and freedoms[names.joint(joint)].kind in _ONE_COORDINATE
        )
        if not plain:
            unread.append(f"the actuator {name!r}, which is not a motor or servo at a joint")
            continue
        target = freedoms[names.joint(joint)]
        gear, gain = float(model.actuator_gear[k][0]), float(model.actuator_gainprm[k][0])
        if int(model.actuator_biastype[k]) == _AFFINE:
            zero = float(model.qpos0[model.jnt_qposadr[joint]])
            bias = np.array(model.actuator_biasprm[k][:3], dtype=float)
            freedoms[target.name] = _with_servo(target, bias, gear, zero, name, unread)
        bounds = _bounds(model, k, gear, gain, name, off, unread)
        drives.append(Drive(name, target.name, bounds))
    changed = [
        edge._replace(freedoms=tuple(freedoms[f.name] for f in edge.freedoms)) for edge in edges
    ]
    return drives, changed


def _with_servo(
    freedom: Freedom, bias: np.ndarray, gear: float, zero: float, name: str, unread: list[str]
) -> Freedom:
    """Return a freedom with the spring and damper that a servo is at an input of zero."""
    b0, b1, b2 = (float(b) for b in bias)
    stiffness, damping = -b1 * gear**2, -b2 * gear**2
    if stiffness < 0 or damping < 0 or (b0 and not stiffness):
        unread.append(f"the bias of the actuator {name!r}, which is not that of a servo")
        return freedom
    total = freedom.stiffness + stiffness
    pull = freedom.stiffness * freedom.rest
    if stiffness:
        pull += stiffness * (-b0 / (b1 * gear) - zero)
    return freedom._replace(
        stiffness=total,
        rest=pull / total if total else freedom.rest,
        damping=freedom.damping + damping,
    )


def _bounds(
    model: Model, k: int, gear: float, gain: float, name: str, off: Off, unread: list[str]
) -> tuple[float, float] | None:
    """Return between which torques or forces at the joint an input stays."""
    low, high = -np.inf, np.inf
    if model.actuator_ctrllimited[k] and not off.clampctrl:
        low, high = sorted(float(x) * gear * gain for x in model.actuator_ctrlrange[k])
    if model.actuator_forcelimited[k]:
        if int(model.actuator_biastype[k]) == _AFFINE:
            unread.append(f"the greatest force of the servo {name!r}")
        else:
            least, most = sorted(float(x) * gear for x in model.actuator_forcerange[k])
            low, high = max(low, least), min(high, most)
    return None if np.isinf(low) and np.isinf(high) else (low, high)

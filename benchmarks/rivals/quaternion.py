"""The equations of a rigid body as a general solver gets them: a unit quaternion and a velocity.

    q' = q (0, omega) / 2,   I omega' = I omega x omega + weight x R^T e3,

with q = (w, x, y, z) and R the rotation of q. Written for numbers, symbols and arrays alike.
"""

from typing import Any

import numpy as np

from retrax_papers.bench.problems import TimedProblem


def field(problem: TimedProblem, y: Any) -> list:
    """The derivatives of (w, x, y, z, omega_1, omega_2, omega_3)."""
    w, x, y, z, a, b, c = y
    i, j, k = problem.inertia
    torque = [(j - k) * b * c, (k - i) * c * a, (i - j) * a * b]
    if problem.weight is not None:
        u, v, t = problem.weight
        down = (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y))
        torque[0] += v * down[2] - t * down[1]
        torque[1] += t * down[0] - u * down[2]
        torque[2] += u * down[1] - v * down[0]
    return [
        -0.5 * (x * a + y * b + z * c),
        0.5 * (w * a + y * c - z * b),
        0.5 * (w * b + z * a - x * c),
        0.5 * (w * c + x * b - y * a),
        torque[0] / i,
        torque[1] / j,
        torque[2] / k,
    ]


def initial(problem: TimedProblem) -> np.ndarray:
    return np.array([1.0, 0.0, 0.0, 0.0, *problem.velocity])


def attitude(y: Any) -> np.ndarray:
    """R of the quaternion in the first four rows, brought to length one."""
    q = np.asarray(y)[:4]
    w, x, y, z = q / np.linalg.norm(q, axis=0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def ensemble_initial(problem: TimedProblem, packed: np.ndarray) -> np.ndarray:
    """The starts (7, members) of bodies at R = 1 that are packed for C."""
    omega = packed[9:] / np.array(problem.inertia)[:, None]
    q = np.zeros((4, omega.shape[1]))
    q[0] = 1.0
    return np.concatenate([q, omega])

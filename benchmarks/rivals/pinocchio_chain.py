"""Pinocchio: one call of its articulated-body algorithm a step, the least that a tree can take."""

import numpy as np
import pinocchio

import retrax as rx
from benchmarks.methods import Call

VERSION = pinocchio.__version__


def chain(n: int, h: float, steps: int) -> Call:
    """Return a call that swings a chain of `n` bars with Euler's symplectic method."""
    system = rx.systems.chain(1)  # all bars are equal
    a, b, _ = np.diag(np.asarray(system.inertia[0]))
    solid = pinocchio.Inertia(1.0, np.array([0.0, 0.0, -0.5]), np.diag([b, b, a]))
    model, parent = pinocchio.Model(), 0
    for k in range(n):
        place = pinocchio.SE3(np.eye(3), np.array([0.0, 0.0, 0.0 if k == 0 else -1.0]))
        parent = model.addJoint(parent, pinocchio.JointModelSpherical(), place, f"j{k}")
        model.appendBodyToJoint(parent, solid, pinocchio.SE3.Identity())
    data, torque = model.createData(), np.zeros(model.nv)

    def call() -> np.ndarray:
        q, v = pinocchio.neutral(model), np.zeros(model.nv)
        v[:3] = 0.5, 1.0, 0.3
        for _ in range(steps):
            v = v + h * pinocchio.aba(model, data, q, v, torque)
            q = pinocchio.integrate(model, q, h * v)
        return q

    return call

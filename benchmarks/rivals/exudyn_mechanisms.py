"""Exudyn: the mechanisms as bodies with joints, generalised alpha, nothing written on the way.

Linkages in the plane are made of its plane bodies. Of the six hinges of Bricard's linkage the last
has one equation less, since Exudyn solves with a matrix that must not be singular.
"""

import exudyn
import numpy as np
from exudyn.utilities import (
    GenericJoint,
    LoadMassProportional,
    MarkerBodyMass,
    MarkerBodyPosition,
    MarkerBodyRigid,
    NodeRigidBody2D,
    NodeRigidBodyEP,
    ObjectGround,
    ObjectJointRevolute2D,
    ObjectRigidBody,
    ObjectRigidBody2D,
    RotationMatrix2EulerParameters,
    SphericalJoint,
)

import retrax as rx
from benchmarks.methods import Call
from retrax.mechanisms.pose import across
from retrax.mechanisms.system import MechanismSystem

VERSION = exudyn.__version__
NAME = "Exudyn, generalised alpha"
# Of 0.5, 0.6, 0.8, 0.9, 0.95 and 1 the most exact on the double four-bar; 1 fails there.
RADIUS = 0.95
# From so many bodies on a sparse solver is faster. Full Newton is faster on few plane bodies only.
_SPARSE = 8


def four_bar(N: int, h: float, steps: int, violation: bool = False) -> Call:
    """Return a call that runs `N` four-bars and gives B0, or what is kept on the way."""
    system = exudyn.SystemContainer().AddSystem()
    ground = system.AddObject(ObjectGround())

    def bar(x: float, y: float, angle: float, velocity: list[float]) -> int:
        node = system.AddNode(
            NodeRigidBody2D(referenceCoordinates=[x, y, angle], initialVelocities=velocity)
        )
        body = system.AddObject(
            ObjectRigidBody2D(physicsMass=1.0, physicsInertia=1 / 12, nodeNumber=node)
        )
        _weight(system, body, [0.0, -9.81, 0.0])
        return body

    def pin(a: int, at: list[float], b: int, there: list[float]) -> None:
        ends = [
            system.AddMarker(MarkerBodyPosition(bodyNumber=body, localPosition=place))
            for body, place in ((a, at), (b, there))
        ]
        system.AddObject(ObjectJointRevolute2D(markerNumbers=ends))

    cranks = [bar(i, 0.5, np.pi / 2, [0.5, 0.0, -1.0]) for i in range(N + 1)]
    couplers = [bar(i + 0.5, 1.0, 0.0, [1.0, 0.0, 0.0]) for i in range(N)]
    for i, crank in enumerate(cranks):
        pin(ground, [i, 0.0, 0.0], crank, [-0.5, 0.0, 0.0])
    for i, coupler in enumerate(couplers):
        pin(cranks[i], [0.5, 0.0, 0.0], coupler, [-0.5, 0.0, 0.0])
        pin(coupler, [0.5, 0.0, 0.0], cranks[i + 1], [0.5, 0.0, 0.0])
    system.Assemble()
    settings = _settings(h, steps, 2 * N + 1, plane=True)

    def at(body: int, place: list[float]) -> np.ndarray:
        kind = exudyn.OutputVariableType.Position
        return np.array(system.GetObjectOutputBody(body, kind, localPosition=place))[:2]

    def call() -> np.ndarray:
        _solve(system, settings)
        if not violation:
            return at(cranks[0], [0.5, 0.0, 0.0])
        gaps = [at(c, [-0.5, 0.0, 0.0]) - [i, 0.0] for i, c in enumerate(cranks)]
        for i, coupler in enumerate(couplers):
            gaps.append(at(coupler, [-0.5, 0.0, 0.0]) - at(cranks[i], [0.5, 0.0, 0.0]))
            gaps.append(at(coupler, [0.5, 0.0, 0.0]) - at(cranks[i + 1], [0.5, 0.0, 0.0]))
        energy = 0.0
        for body in (*cranks, *couplers):
            speed = system.GetObjectOutputBody(body, exudyn.OutputVariableType.Velocity)
            spin = system.GetObjectOutputBody(body, exudyn.OutputVariableType.AngularVelocity)
            energy += np.dot(speed, speed) / 2 + np.ravel(spin)[-1] ** 2 / 24
            energy += 9.81 * at(body, [0.0, 0.0, 0.0])[1]
        return np.array([np.max(np.abs(gaps)), energy])

    return call


def chain(n: int, h: float, steps: int) -> Call:
    """Return a call that swings a chain of `n` bars and gives where its last bar is."""
    system, bodies = _bodies(rx.systems.chain(n), spin=(0.5, 1.0, 0.3))
    ground = system.AddObject(ObjectGround())
    for k, body in enumerate(bodies):
        above = (ground, [0.0, 0.0, 0.0]) if k == 0 else (bodies[k - 1], [0.5, 0.0, 0.0])
        ends = [
            system.AddMarker(MarkerBodyPosition(bodyNumber=b, localPosition=place))
            for b, place in (above, (body, [-0.5, 0.0, 0.0]))
        ]
        system.AddObject(SphericalJoint(markerNumbers=ends))
    system.Assemble()
    settings = _settings(h, steps, n)

    def call() -> np.ndarray:
        _solve(system, settings)
        return np.array(system.GetObjectOutputBody(bodies[-1], exudyn.OutputVariableType.Position))

    return call


def bricard(h: float, steps: int) -> Call:
    """Return a call that runs Bricard's linkage and gives the place of its third bar."""
    linkage = rx.systems.bricard()
    system, bodies = _bodies(linkage)
    ground = system.AddObject(ObjectGround())
    R, x = (np.asarray(part) for part in linkage.reference)
    joints = linkage.constraint.connections
    for k, joint in enumerate(joints):
        a, b = joint.bodies
        at = x[b] + R[b] @ np.asarray(joint.at) if b >= 0 else np.asarray(joint.at)
        frame = _hinge_frame(joint, R, b)
        ends, turned = [], []
        for body in (a, b):
            place = at if body < 0 else R[body].T @ (at - x[body])
            number = ground if body < 0 else bodies[body]
            ends.append(
                system.AddMarker(MarkerBodyRigid(bodyNumber=number, localPosition=list(place)))
            )
            turned.append(frame if body < 0 else R[body].T @ frame)
        last = k == len(joints) - 1
        system.AddObject(
            GenericJoint(
                markerNumbers=ends,
                constrainedAxes=[1, 1, 1, 1, 0 if last else 1, 0],
                rotationMarker0=turned[0],
                rotationMarker1=turned[1],
            )
        )
    system.Assemble()
    settings = _settings(h, steps, len(bodies))

    def call() -> np.ndarray:
        _solve(system, settings)
        return np.array(system.GetObjectOutputBody(bodies[2], exudyn.OutputVariableType.Position))

    return call


def _hinge_frame(joint, R: np.ndarray, b: int) -> np.ndarray:
    """Return axes of space whose third is that of a hinge."""
    aligned = joint.law.laws[1]
    axis = np.asarray(aligned.f) if b < 0 else R[b] @ np.asarray(aligned.f)
    return np.stack([*across(axis), axis], axis=1)


def _bodies(mechanism: MechanismSystem, spin=(0.0, 0.0, 0.0)):
    """Return a system with the bodies of a mechanism in space, turning as one about the origin."""
    system, bodies = exudyn.SystemContainer().AddSystem(), []
    R, x = (np.asarray(part) for part in mechanism.reference)
    for i in range(len(mechanism.names)):
        J = np.asarray(mechanism.inertia[i])
        euler = np.array(RotationMatrix2EulerParameters(R[i]))
        rates = _euler_rates(euler, R[i].T @ np.array(spin))
        node = system.AddNode(
            NodeRigidBodyEP(
                referenceCoordinates=[*x[i], *euler],
                initialVelocities=[*np.cross(spin, x[i]), *rates],
            )
        )
        inertia = [J[0, 0], J[1, 1], J[2, 2], J[1, 2], J[0, 2], J[0, 1]]
        body = system.AddObject(
            ObjectRigidBody(
                physicsMass=float(mechanism.mass[i]), physicsInertia=inertia, nodeNumber=node
            )
        )
        _weight(system, body, np.asarray(mechanism.gravity).tolist())
        bodies.append(body)
    return system, bodies


def _euler_rates(p: np.ndarray, omega: np.ndarray) -> np.ndarray:
    w, x, y, z = p
    G = np.array([[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]])
    return G @ omega / 2


def _weight(system, body: int, gravity: list[float]) -> None:
    marker = system.AddMarker(MarkerBodyMass(bodyNumber=body))
    system.AddLoad(LoadMassProportional(markerNumber=marker, loadVector=gravity))


def _settings(h: float, steps: int, bodies: int, plane: bool = False):
    settings = exudyn.SimulationSettings()
    settings.timeIntegration.numberOfSteps = steps
    settings.timeIntegration.endTime = h * steps
    settings.timeIntegration.verboseMode = 0
    settings.timeIntegration.newton.useModifiedNewton = not plane or bodies >= _SPARSE
    settings.timeIntegration.generalizedAlpha.spectralRadius = RADIUS
    settings.solution.file.write = False
    settings.solution.sensors.writePeriod = h * steps
    kind = exudyn.LinearSolverType
    settings.linearSolver.solverType = kind.EigenDense if bodies < _SPARSE else kind.EigenSparse
    return settings


def _solve(system, settings) -> None:
    kind = exudyn.DynamicSolverType.GeneralizedAlpha
    system.SolveDynamic(settings, solverType=kind, updateInitialValues=False)

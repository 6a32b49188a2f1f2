"""Exudyn: a rigid body with a Lie-group node, explicit and implicit, nothing written on the way.

The pendulum is a free body on which the weight pulls at the end of the arm: it floats away, but
turns as the pendulum does.
"""

import exudyn
import numpy as np
from exudyn.utilities import (
    LoadForceVector,
    MarkerBodyPosition,
    NodeRigidBodyRotVecLG,
    ObjectRigidBody,
)

from benchmarks.methods import Call, Method, step_counts
from retrax_papers.bench.problems import TimedProblem

SOLVERS = {
    "Lie-group midpoint": exudyn.DynamicSolverType.ExplicitMidpoint,
    "Lie-group RK44": exudyn.DynamicSolverType.RK44,
    "generalised alpha": exudyn.DynamicSolverType.GeneralizedAlpha,
}


def methods(problem: TimedProblem) -> list[Method]:
    counts = step_counts(int(problem.end), int(problem.end * 1e4))
    return [_method(problem, name, counts) for name in SOLVERS]


def _method(problem: TimedProblem, name: str, counts: tuple[int, ...]) -> Method:
    def prepare(steps: float) -> Call:
        body, node = _body(problem)
        settings = exudyn.SimulationSettings()
        settings.timeIntegration.numberOfSteps = int(steps)
        settings.timeIntegration.endTime = problem.end
        settings.timeIntegration.verboseMode = 0
        settings.timeIntegration.explicit.computeEndOfStepAccelerations = False
        settings.timeIntegration.newton.useModifiedNewton = True
        settings.solution.file.write = False
        settings.solution.sensors.writePeriod = problem.end

        def call():
            body.SolveDynamic(settings, solverType=SOLVERS[name], updateInitialValues=False)
            rotation = body.GetNodeOutput(node, exudyn.OutputVariableType.RotationMatrix)
            return np.reshape(rotation, (3, 3))

        return call

    return Method("Exudyn", name, "steps", counts, prepare)


def _body(problem: TimedProblem):
    """A system with one body, and the number of its node."""
    system = exudyn.SystemContainer().AddSystem()
    node = system.AddNode(
        NodeRigidBodyRotVecLG(
            referenceCoordinates=[0.0] * 6, initialVelocities=[0.0, 0.0, 0.0, *problem.velocity]
        )
    )
    body = system.AddObject(
        ObjectRigidBody(
            physicsMass=1.0, physicsInertia=[*problem.inertia, 0.0, 0.0, 0.0], nodeNumber=node
        )
    )
    if problem.weight is not None:
        size = float(np.linalg.norm(problem.weight))
        arm = [component / size for component in problem.weight]
        tip = system.AddMarker(MarkerBodyPosition(bodyNumber=body, localPosition=arm))
        system.AddLoad(LoadForceVector(markerNumber=tip, loadVector=[0.0, 0.0, size]))
    system.Assemble()
    return system, node

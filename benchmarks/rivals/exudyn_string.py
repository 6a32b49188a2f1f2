"""Exudyn: mass points, springs between them, and a rigid body on the last spring."""

from collections.abc import Callable

import exudyn
import numpy as np
from exudyn.utilities import (
    LoadForceVector,
    MarkerBodyPosition,
    MarkerNodePosition,
    NodePoint,
    NodePointGround,
    NodeRigidBodyRotVecLG,
    ObjectConnectorSpringDamper,
    ObjectMassPoint,
    ObjectRigidBody,
)

from retrax.mechanics.solids import about_centre
from retrax.systems.strings.starts import VELOCITY
from retrax.systems.strings.string_pendulum import StringPendulum

SOLVERS = {
    "velocity Verlet": exudyn.DynamicSolverType.VelocityVerlet,
    "explicit midpoint": exudyn.DynamicSolverType.ExplicitMidpoint,
    "RK44": exudyn.DynamicSolverType.RK44,
    "generalised alpha": exudyn.DynamicSolverType.GeneralizedAlpha,
}


def runs(system: StringPendulum, h: float, steps: int) -> dict[str, Callable[[], object]]:
    """One call for each solver: `steps` steps from the paper's start."""
    return {f"Exudyn, {name}": _run(system, h, steps, name) for name in SOLVERS}


def _run(system: StringPendulum, h: float, steps: int, name: str) -> Callable[[], object]:
    chain = _chain(system)
    settings = exudyn.SimulationSettings()
    settings.timeIntegration.numberOfSteps = steps
    settings.timeIntegration.endTime = steps * h
    settings.timeIntegration.verboseMode = 0
    settings.timeIntegration.explicit.computeEndOfStepAccelerations = False
    settings.timeIntegration.newton.useModifiedNewton = True
    settings.solution.file.write = False
    settings.solution.sensors.writePeriod = steps * h
    return lambda: chain.SolveDynamic(settings, solverType=SOLVERS[name], updateInitialValues=False)


def _chain(system: StringPendulum):
    n, u = system.elements, float(system.spacing)
    m, g = float(system.density) * u, float(system.gravity)
    mass, arm = float(system.mass[0]), np.asarray(system.arm[0])
    world = exudyn.SystemContainer().AddSystem()
    ground = world.AddNode(NodePointGround(referenceCoordinates=[0.0, 0.0, 0.0]))
    markers = [world.AddMarker(MarkerNodePosition(nodeNumber=ground))]
    for k in range(1, n):
        node = world.AddNode(NodePoint(referenceCoordinates=[k * u, 0.0, 0.0]))
        world.AddObject(ObjectMassPoint(physicsMass=m, nodeNumber=node))
        marker = world.AddMarker(MarkerNodePosition(nodeNumber=node))
        world.AddLoad(LoadForceVector(markerNumber=marker, loadVector=[0.0, 0.0, m * g]))
        markers.append(marker)
    J = about_centre(np.asarray(system.inertia[0]), mass, arm)
    node = world.AddNode(
        NodeRigidBodyRotVecLG(
            referenceCoordinates=[n * u + arm[0], arm[1], arm[2], 0.0, 0.0, 0.0],
            initialVelocities=[*VELOCITY, 0.0, 0.0, 0.0],
        )
    )
    body = world.AddObject(
        ObjectRigidBody(
            physicsMass=mass,
            physicsInertia=[J[0, 0], J[1, 1], J[2, 2], J[1, 2], J[0, 2], J[0, 1]],
            nodeNumber=node,
        )
    )
    end = world.AddMarker(MarkerBodyPosition(bodyNumber=body, localPosition=list(-arm)))
    centre = world.AddMarker(MarkerBodyPosition(bodyNumber=body, localPosition=[0.0, 0.0, 0.0]))
    world.AddLoad(LoadForceVector(markerNumber=centre, loadVector=[0.0, 0.0, mass * g]))
    for pair in zip(markers, [*markers[1:], end], strict=True):
        world.AddObject(
            ObjectConnectorSpringDamper(
                markerNumbers=list(pair),
                referenceLength=u,
                stiffness=float(system.stiffness) / u,
                damping=0.0,
            )
        )
    world.Assemble()
    return world

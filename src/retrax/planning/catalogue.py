"""The problems that `retrax optimise` solves: a plant, where it starts and ends, and what it costs.

The functions make them; the table `PROBLEMS` at the end names and describes them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.groups.retractions import Cayley
from retrax.groups.so3 import SO3
from retrax.integrators.lagrange_d_alembert import LagrangeDAlembert
from retrax.integrators.lie_verlet import LieVerlet
from retrax.numerics.evaluate import evaluate_in_jax
from retrax.planning.costs import MinimumEffort, MinimumTime
from retrax.planning.duration import Free
from retrax.planning.ends import Reach
from retrax.planning.problem import ControlProblem
from retrax.systems.driven_examples import (
    Parked,
    balanced_pendulum,
    light_sleigh,
    paper_crane,
    small_quadrotor,
)
from retrax.systems.plants import spacecraft

# The moments of a large spacecraft (kg m^2) and the torques of its thrusters (N m).
_MOMENTS, _TORQUE = (5621.0, 4547.0, 2364.0), 50.0


def slew(duration: float, steps: int) -> ControlProblem:
    """Return a rest-to-rest slew by 150 degrees about a skew axis, at the least effort."""
    craft = spacecraft(_MOMENTS, torque=_TORQUE)
    return ControlProblem(
        craft,
        LieVerlet(),
        start=craft.state(np.eye(3), velocity=np.zeros(3)),
        end=Reach(_turn([0.6, -0.48, 0.64], 150.0), velocity=np.zeros(3)),
        duration=duration,
        steps=steps,
        cost=MinimumEffort(),
    )


def fastest_slew(duration: float, steps: int) -> ControlProblem:
    """Return a rest-to-rest slew by 150 degrees about the first axis, in the least time."""
    craft = spacecraft(_MOMENTS, torque=_TORQUE)
    return ControlProblem(
        craft,
        LieVerlet(),
        start=craft.state(np.eye(3), velocity=np.zeros(3)),
        end=Reach(_turn([1.0, 0.0, 0.0], 150.0), velocity=np.zeros(3)),
        duration=Free(duration),
        steps=steps,
        cost=MinimumTime(),
    )


def swing_up(duration: float, steps: int) -> ControlProblem:
    """Return a 3D pendulum from hanging to upright, at the least effort."""
    plant = balanced_pendulum()
    return ControlProblem(
        plant,
        LieVerlet(),
        start=plant.hanging(),
        end=Reach(plant.upright().g, velocity=np.zeros(3)),
        duration=duration,
        steps=steps,
        cost=MinimumEffort(),
    )


def flight(duration: float, steps: int) -> ControlProblem:
    """Return a quadrotor from hovering here to hovering there."""
    plant = small_quadrotor()
    there = (np.eye(3), np.array([2.0, 1.0, 0.5]))
    return ControlProblem(
        plant,
        LieVerlet(),
        start=plant.state((np.eye(3), np.zeros(3)), velocity=np.zeros(6)),
        end=Reach(there, velocity=np.zeros(6)),
        duration=duration,
        steps=steps,
        cost=MinimumEffort(),
    )


def parking(duration: float, steps: int) -> ControlProblem:
    """Return the problem to park a sleigh a metre ahead, half a metre left, heading as before."""
    plant = light_sleigh()
    return ControlProblem(
        plant,
        LagrangeDAlembert(Cayley()),
        start=plant.state((np.eye(2), np.zeros(2)), velocity=np.zeros(3)),
        end=Parked((jnp.eye(2), jnp.array([1.0, 0.5]))),
        duration=duration,
        steps=steps,
        cost=MinimumEffort(),
    )


def crane_move(duration: float, steps: int) -> ControlProblem:
    """Return the problem to move a crane's load by a metre, to hang without swing or turn."""
    plant = paper_crane(elements=1)
    there = plant.hanging([1.0, 0.3])
    return ControlProblem(
        plant,
        LieVerlet(),
        start=plant.hanging(),
        end=Reach(there.g, velocity=np.zeros(plant.group.dim)),
        duration=duration,
        steps=steps,
        cost=MinimumEffort(),
    )


def _turn(axis: list[float], degrees: float) -> Float[Array, "3 3"]:
    return evaluate_in_jax(SO3.exp, SO3(), np.deg2rad(degrees) * np.array(axis))


@dataclass(frozen=True)
class ReadyProblem:
    """A problem worth looking at.

    **Attributes:** `name`, `description`: for the command line; `make`: makes it from a duration in
    seconds, a guess where it is free, and a number of steps; `duration`, `steps`: the usual ones;
    `free`: whether the duration is found with the plan.
    """

    name: str
    description: str
    make: Callable[[float, int], ControlProblem]
    duration: float
    steps: int
    free: bool = False


PROBLEMS: dict[str, ReadyProblem] = {
    problem.name: problem
    for problem in (
        ReadyProblem("slew", "a slew by 150 degrees at the least effort", slew, 60.0, 100),
        ReadyProblem(
            "fastest-slew", "a slew by 150 degrees in the least time", fastest_slew, 30.0, 100, True
        ),
        ReadyProblem("swing-up", "a 3D pendulum from hanging to upright", swing_up, 2.0, 100),
        ReadyProblem("flight", "a quadrotor from here to there", flight, 2.0, 60),
        ReadyProblem("parking", "a sleigh parked ahead and to its side", parking, 6.0, 60),
        ReadyProblem("crane", "a crane that leaves no swing", crane_move, 2.0, 200),
    )
}

"""What is timed: W1 one free rigid body, W2 one 3D pendulum, W3 many free bodies.

Of a run either the whole call of `simulate` is timed, or the compiled loop inside it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.engine.backends import make_loop
from retrax.engine.progress import start
from retrax.groups.so3 import SO3
from retrax.integrators.base import AbstractIntegrator
from retrax.integrators.composition import Composition
from retrax.integrators.lie_verlet import LieVerlet
from retrax.mechanics.mechanical import MechanicalSystem
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.run.simulate import simulate
from retrax.systems.rigid_body import FreeRigidBody
from retrax.trajectory.trajectory import Trajectory

GRAVITY = 9.81

# The attitude of W2 at its end, by Taylor series of order 40 with 66 digits, in two formulations.
PENDULUM_AT_30 = np.array(
    [
        [0.815117439570648590, 0.572913778267893119, 0.085751748545422918],
        [-0.550067862067051474, 0.811890125649262284, -0.195601050595870610],
        [-0.181683534831236915, 0.112268546548142764, 0.976927257592495586],
    ]
)
ORDERS = (2, 4, 6, 8)


def pendulum_potential(R: Float[Array, "3 3"]) -> Float[Array, ""]:
    """The potential of the 3D pendulum, mass 1 kg and arm e3, as a user writes it."""
    return -GRAVITY * R[2, 2]


@dataclass(frozen=True)
class TimedProblem:
    """One rigid body, its start, and the time at which it is looked at.

    **Attributes:**

    - `inertia`: principal moments.
    - `weight`: weight times arm in body axes; the torque is `weight` x R^T e3. None: a free body.
    - `velocity`: body angular velocity at the start, where R = 1.
    - `end`: the final time.
    """

    name: str
    inertia: tuple[float, float, float]
    weight: tuple[float, float, float] | None
    velocity: tuple[float, float, float]
    end: float

    def system(self) -> AbstractGroupSystem:
        """The body as a retrax system; the pendulum from its inertia and potential."""
        if self.weight is None:
            return FreeRigidBody(self.inertia)
        return MechanicalSystem(SO3(), self.inertia, pendulum_potential)

    def start(self) -> State:
        return self.system().state(jnp.eye(3), velocity=self.velocity)

    def packed(self) -> np.ndarray:
        """The start as the C kernels take it: the rows of R, then the momentum."""
        return np.concatenate([np.eye(3).ravel(), np.multiply(self.inertia, self.velocity)])


W1 = TimedProblem("free rigid body", (3.0, 2.0, 1.0), None, (1 / 3, 1 / 2, 1.0), 1000.0)
W2 = TimedProblem("3D pendulum", (1.0, 2.8, 2.0), (0.0, 0.0, GRAVITY), (0.5, -0.5, 0.4), 30.0)


@lru_cache
def reference(problem: TimedProblem) -> np.ndarray:
    """R at the end: tabulated for W2, otherwise by order 8 at steps of 0.02 s."""
    if problem is W2:
        return PENDULUM_AT_30
    steps = round(problem.end / 0.02)
    run = simulate(
        problem.system(), Composition(LieVerlet(), order=8), problem.start(),
        h=problem.end / steps, steps=steps, save_every=steps, progress=False,
    )  # fmt: skip
    return np.asarray(run.states.g[-1])


def attitude_error(R: np.ndarray, exact: np.ndarray) -> np.ndarray | np.floating:
    """The angle in radians of the rotation between two attitudes, for single ones or stacks."""
    chord = np.linalg.norm(R - exact, axis=(-2, -1)) / (2 * np.sqrt(2))
    return 2 * np.arcsin(np.minimum(chord, 1.0))


def free_bodies(members: int) -> tuple[AbstractGroupSystem, State, np.ndarray]:
    """W3: a free body, `members` random starts of it at R = 1, and these starts packed for C."""
    velocity = np.random.default_rng(1).normal(size=(members, 3))
    g, momentum = np.tile(np.eye(3), (members, 1, 1)), velocity * W1.inertia
    states = State(jnp.asarray(g), jnp.asarray(momentum), jnp.zeros(members))
    packed = np.ascontiguousarray(np.concatenate([g.reshape(members, 9), momentum], axis=1).T)
    return W1.system(), states, packed


def verlet(order: int) -> AbstractIntegrator:
    """`LieVerlet`, or its composition of order 4, 6 or 8."""
    return LieVerlet() if order == 2 else Composition(LieVerlet(), order=order)


def whole_call(
    problem: TimedProblem,
    integrator: AbstractIntegrator,
    h: float,
    steps: int,
    save_every: int | None = None,
) -> Callable[[], Trajectory]:
    """All of `simulate`: the checks of its arguments, the loop, the trajectory."""
    system, state, every = problem.system(), problem.start(), save_every or steps
    return lambda: simulate(
        system, integrator, state, h=h, steps=steps, save_every=every, progress=False
    )


def loop_alone(
    problem: TimedProblem,
    integrator: AbstractIntegrator,
    h: float,
    steps: int,
    save_every: int | None = None,
) -> Callable[[], object]:
    """The compiled loop inside `simulate`; `steps` is a multiple of `save_every`."""
    state, every = problem.start(), save_every or steps
    native = make_loop("native", problem.system(), integrator, state, h)
    at, records = start(state), steps // every
    return lambda: native.run(at, records, every, records)

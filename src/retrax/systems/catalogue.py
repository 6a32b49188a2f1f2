"""The one list of cases: what `retrax run` runs and the examples show."""

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp

from retrax.groups.so3 import SO3
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.systems.heavy_body import HeavyTop, Pendulum3D
from retrax.systems.rigid_body import FreeRigidBody

Setting = tuple[AbstractGroupSystem, State, float, int]


@dataclass(frozen=True)
class Case:
    """A system with a start, a step and a length worth looking at.

    **Attributes:**

    - `name`: what it is called on the command line.
    - `description`: one line about it.
    - `make`: a function that returns (system, state, h, steps).
    - `integrator`: the name of the integrator that is used unless another one is asked for.
    """

    name: str
    description: str
    make: Callable[[], Setting]
    integrator: str = "lie-verlet"


def free_rigid_body() -> Setting:
    """Euler's top with moments 1, 2, 3 near its axis of largest moment; the polhode closes."""
    body = FreeRigidBody(inertia=[1.0, 2.0, 3.0])
    return body, body.state(jnp.eye(3), velocity=[0.3, 0.0, 0.9]), 0.05, 20_000


def heavy_top() -> Setting:
    """An asymmetric top that spins fast enough to stay up, and nutates while it precesses."""
    top = HeavyTop(
        inertia=jnp.array([1.2, 1.6, 0.8]),
        mass=jnp.array(1.0),
        arm=jnp.array([0.0, 0.0, 0.6]),
        gravity=jnp.array(9.81),
    )
    tilted = SO3().exp(jnp.array([1.0, 0.0, 0.0]))
    return top, top.state(tilted, velocity=[0.6, 0.2, 8.0]), 0.005, 20_000


CASES: dict[str, Case] = {
    case.name: case
    for case in (
        Case("free-rigid-body", "a free rigid body with moments 1, 2, 3", free_rigid_body),
        Case("heavy-top", "an asymmetric heavy top, spinning, precessing, nutating", heavy_top),
        Case("pendulum3d", "the 3D pendulum of the pseudospectral paper", Pendulum3D.paper),
    )
}

"""Plants and problems that several tests plan for."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

import retrax as rx

SO3 = rx.SO3()
INERTIA = (1.4, 2.2, 3.1)
MIXED = jnp.array([[1.0, 0.2, 0.0], [0.0, 1.0, 0.3], [0.1, 0.0, 1.0]])


def spacecraft(inertia: tuple[float, ...] = INERTIA) -> rx.Actuated:
    return rx.Actuated(rx.systems.FreeRigidBody(list(inertia)), inputs=jnp.eye(3))


def turned(*rotation: float) -> Any:
    return SO3.exp(jnp.array(rotation, float))


def rest_to_rest(
    plant: rx.Actuated, rotation: tuple[float, ...], **changed: Any
) -> rx.ControlProblem:
    """A slew from rest to rest by a rotation vector."""
    options: dict[str, Any] = {
        "start": plant.state(jnp.eye(3), velocity=jnp.zeros(3)),
        "end": rx.Reach(turned(*rotation), velocity=jnp.zeros(3)),
        "duration": 1.5,
        "steps": 40,
        "cost": rx.MinimumEffort(),
    } | changed
    return rx.ControlProblem(plant, rx.LieVerlet(), **options)


Cost = Callable[..., Any]

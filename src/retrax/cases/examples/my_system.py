"""A system of one's own: `retrax run my_system.py:make` simulates what `make` returns."""

import jax.numpy as jnp

import retrax as rx


def make():
    """Return a body that hangs by a point and is tied to a spring: (system, state, h, steps)."""
    weight, stiffness = 9.81, 3.0
    arm, hook = jnp.array([0.0, 0.0, 1.0]), jnp.array([0.4, -0.3, 0.2])
    anchor = jnp.array([1.0, 0.5, 0.0])

    def potential(R):  # the third axis of space points down
        stretched = R @ hook - anchor
        return -weight * (R @ arm)[2] + stiffness / 2 * stretched @ stretched

    body = rx.MechanicalSystem(rx.SO3(), inertia=[1.0, 2.8, 2.0], potential=potential)
    return body, body.state(jnp.eye(3), velocity=[0.5, -0.5, 0.4]), 0.01, 10_000

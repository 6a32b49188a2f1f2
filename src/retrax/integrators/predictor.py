"""A first guess for the velocity of a step, and how to weigh it against momenta."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates


def midpoint_velocity(
    system: AbstractGroupSystem, state: State, h: Float[Array, ""]
) -> Coordinates:
    r"""The mean velocity of the step to $O(h^2)$: $\partial_\mu H(g, \mu + \tfrac h2\dot\mu)$."""
    now = system.vector_field(state.g, state.momentum, state.t)
    return system.velocity(state.g, state.momentum + h / 2 * now.momentum_rate)


def as_momentum(state: State, xi: Coordinates) -> Float[Array, ""]:
    """What makes velocities of the size of momenta, so that both may stand in one equation."""
    pace, size = jnp.max(jnp.abs(xi)), jnp.max(jnp.abs(state.momentum))
    return jnp.where(pace > 0, size / jnp.where(pace > 0, pace, 1), 1)

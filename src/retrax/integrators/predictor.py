"""A first guess for the velocity of a step."""

from jaxtyping import Array, Float

from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates


def midpoint_velocity(
    system: AbstractGroupSystem, state: State, h: Float[Array, ""]
) -> Coordinates:
    r"""The mean velocity of the step to $O(h^2)$: $\partial_\mu H(g, \mu + \tfrac h2\dot\mu)$."""
    now = system.vector_field(state.g, state.momentum, state.t)
    return system.velocity(state.g, state.momentum + h / 2 * now.momentum_rate)

"""Vectors of nodes and of bodies as one vector of coordinates."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def joined(nodes: Float[Array, "n 3"], bodies: Float[Array, "b 3"]) -> Float[Array, " dim"]:
    """First those of the nodes, node by node, then those of the bodies."""
    return jnp.concatenate([nodes.reshape(-1), bodies.reshape(-1)])

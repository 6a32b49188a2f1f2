"""How far apart two states are."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.base import AbstractLieGroup
from retrax.mechanics.state import State


def distance(group: AbstractLieGroup, a: State, b: State) -> Float[Array, ""]:
    r"""$\max(|\log(g_a^{-1}g_b)|_\infty,\ |\mu_a - \mu_b|_\infty)$, for $g$ on the group."""
    between = group.log(group.compose(group.inverse(a.g), b.g))
    return jnp.maximum(jnp.max(jnp.abs(between)), jnp.max(jnp.abs(a.momentum - b.momentum)))


def entry_distance(a: State, b: State) -> Float[Array, ""]:
    r"""The largest difference of an entry of $(g, \mu)$: also for states that are off the group."""
    gaps = jax.tree.map(lambda x, y: jnp.max(jnp.abs(x - y)), (a.g, a.momentum), (b.g, b.momentum))
    return jnp.max(jnp.stack(jax.tree.leaves(gaps)))

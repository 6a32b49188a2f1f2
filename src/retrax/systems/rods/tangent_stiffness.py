r"""How the forces on a rod change when its nodes move: a block tridiagonal matrix.

A node feels its neighbours only. So all nodes $k \equiv j$ modulo 3 may be moved at once: three
times six directional derivatives give every block.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.numerics.jax_hints import compiled_once


class Stiffness(NamedTuple):
    """Loads on the nodes and their derivatives by the moves of the node before, here and after.

    Rows and columns are six a node: rotation in the body first, then translation in space.
    """

    loads: Float[np.ndarray, "nodes 6"]
    lower: Float[np.ndarray, "nodes 6 6"]
    diagonal: Float[np.ndarray, "nodes 6 6"]
    upper: Float[np.ndarray, "nodes 6 6"]


def tangent_stiffness(rod: Any, g: Any) -> Stiffness:
    """Loads and their derivatives at the placement `g`, at rest; held parts get the identity."""
    loads, moved = _derivatives(rod, g)
    moved = np.asarray(moved).reshape(3, 6, rod.nodes, 6)
    nodes = np.arange(rod.nodes)
    # Column c of the block of the neighbour k + shift: what its colour did to node k.
    before, here, after = (
        moved[(nodes + shift) % 3, :, nodes].transpose(0, 2, 1) for shift in (-1, 0, 1)
    )
    held = (np.asarray(rod.mobility) == 0).reshape(-1, 6)
    for block in (before, here, after):
        block[held] = 0.0
    before[0], after[-1] = 0.0, 0.0
    node, part = np.nonzero(held)
    here[node, part, part] = -1.0
    return Stiffness(np.asarray(loads).reshape(-1, 6), before, here, after)


@compiled_once
def _derivatives(rod: Any, g: Any) -> tuple[Float[Array, " dim"], Float[Array, "18 dim"]]:
    group, rest = rod.group, jnp.zeros(rod.group.dim)

    def force(x):
        return rod.total_force(x, rest, rest, jnp.zeros(()))

    def moved(colour, part):
        chosen = (jnp.arange(rod.nodes) % 3 == colour).astype(float)
        xi = jnp.outer(chosen, (jnp.arange(6) == part).astype(float)).reshape(-1)
        return jax.jvp(force, (g,), (group.tangent(g, xi),))[1]

    colours, parts = np.divmod(np.arange(18), 6)
    return force(g), jax.lax.map(lambda x: moved(*x), (colours, parts))

"""Checks of rods, of their loads and of where they lie; and the masses of the nodes."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.mechanics.system import AbstractGroupSystem, Element, element


def require_free_end(end: str, force: object, torque: object) -> None:
    """Reject loads on the last node that its support would take up."""
    if force is not None and end != "free":
        raise BadInput(
            f"end_force acts on the last node, but ends says that it is {end}: the support would "
            'take up the force; leave end_force out, or make that end "free".'
        )
    if torque is not None and end == "clamped":
        raise BadInput(
            "end_torque acts on the last node, but ends says that it is clamped: the clamp would "
            'take up the torque; leave end_torque out, or make that end "pinned" or "free".'
        )


def masses(
    elements: int, ends: tuple[str, str], mass: Float[Array, ""], moments: Float[Array, "3"]
) -> tuple[Float[Array, " dim"], Float[Array, " dim"]]:
    """Moments and masses of all nodes, half at the ends; and their inverses, 0 at held nodes."""
    share = np.ones(elements + 1)
    share[[0, -1]] = 0.5
    turns, moves = np.ones(elements + 1), np.ones(elements + 1)
    for place, end in zip((0, -1), ends, strict=True):
        turns[place] = end != "clamped"
        moves[place] = end == "free"
    one = jnp.concatenate([moments, jnp.stack([mass] * 3)])
    inertia = jnp.outer(jnp.asarray(share), one).reshape(-1)
    mask = np.stack([turns] * 3 + [moves] * 3, axis=1)
    return inertia, jnp.asarray(mask.ravel()) / inertia


def placed(g: object, system: AbstractGroupSystem) -> Element:
    """`g` as a placement of one rod or of a pair; anything else is rejected."""
    where = system.configuration_space
    placement = element("g", g, where.layout())
    where.check("g", placement)
    return placement

"""What the makers of rods are given, checked; and the masses of the nodes."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import MOST_NODES, finite64, require_above_zero, require_whole, shown

ENDS = ("free", "pinned", "clamped")


def count(name: str, value: Any) -> int:
    return require_whole(name, value, 2, MOST_NODES)


def choice(name: str, value: Any, words: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in words:
        raise BadInput(f"{name} has {shown(value)}, but must be one of {', '.join(words)}.")
    return value


def vector(name: str, value: ArrayLike) -> Float[Array, "3"]:
    return finite64(name, value, (3,))


def positive(name: str, value: ArrayLike, shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
    array = finite64(name, value, shape)
    require_above_zero(name, array)
    return array


def require_free_end(end: str, force: Any, torque: Any) -> None:
    """Refuse loads on the last node that what holds it would take up."""
    if force is not None and end != "free":
        raise BadInput(
            f"end_force acts on the last node, but ends has it {end}: what holds it would take up "
            'the force, and nothing would move; leave end_force out, or make that end "free".'
        )
    if torque is not None and end == "clamped":
        raise BadInput(
            "end_torque acts on the last node, but ends has it clamped: the clamp would take up "
            'the torque, and nothing would turn; leave it out, or make that end "pinned" or "free".'
        )


def masses(
    elements: int, ends: tuple[str, str], mass: Float[Array, ""], moments: Float[Array, "3"]
) -> tuple[Float[Array, " dim"], Float[Array, " dim"]]:
    """Moments and masses of all nodes, half at the ends; and their inverses, 0 where held."""
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

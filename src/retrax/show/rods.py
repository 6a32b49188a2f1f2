"""Rods in a picture: their centrelines, where they touch, and the force there."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from retrax.numerics.bspline import weights
from retrax.show.bodies import Body
from retrax.trajectory.trajectory import Trajectory


def rod_bodies(run: Trajectory, told: dict[str, Any]) -> list[Body]:
    """The point to follow: the contact with the force on the first rod, or the end of one rod."""
    lines = centrelines(run, told)
    if len(lines) == 1:
        return [Body("end of the rod", None, lines[0][:, -1], None)]
    s = np.asarray(run.g[2])
    points = [
        _points(places, s[:, k], rod["spacing"], told["width"])
        for k, (places, rod) in enumerate(zip(lines, told["rods"], strict=True))
    ]
    return [
        Body(
            "contact, and the force on the first rod",
            None,
            (points[0] + points[1]) / 2,
            None,
            arrow=np.asarray(run.multipliers),
        )
    ]


def middle_velocity(run: Trajectory, velocity: np.ndarray) -> Float[np.ndarray, "time 6"]:
    """Angular velocity in the body and velocity in space, half-way along the first rod."""
    frames = np.asarray(jax.tree.leaves(run.g)[0])
    node = frames.shape[1] // 2
    return velocity[:, 6 * node : 6 * node + 6]


def contact_force(run: Trajectory) -> dict[str, np.ndarray]:
    """The components of the contact force in space, where there is a contact."""
    force = np.asarray(run.multipliers)
    return {axis: force[:, k] for k, axis in enumerate("xyz")} if force.shape[1] == 3 else {}


def centrelines(run: Trajectory, told: dict[str, Any]) -> list[Float[np.ndarray, "time n 3"]]:
    if len(told["rods"]) == 1:
        return [np.asarray(run.g[1])]
    return [np.asarray(run.g[k][1]) for k in range(2)]


def _points(
    places: Float[np.ndarray, "time n 3"], s: np.ndarray, spacing: float, width: float
) -> Float[np.ndarray, "time 3"]:
    """The points of the centreline at s, as the contact weighs the nodes."""
    arc = spacing * jnp.arange(places.shape[1], dtype=float)
    h, W = jnp.asarray(spacing), jnp.asarray(width)
    w = jax.jit(jax.vmap(lambda at: weights(arc, at, h, W)))(jnp.asarray(s))
    return np.einsum("tk,tki->ti", np.asarray(w), places)

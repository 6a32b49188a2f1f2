"""How contacts of rods slip at the start of a step, and which of them go on slipping."""

import jax.numpy as jnp
from jaxtyping import Array, Bool

from retrax.contact.capsules import Numbers, Points, dot
from retrax.contact.spots import Places, Rows
from retrax.systems.rods.elastic import AbstractRod

# What slips this many times faster than the friction of a stage can stop it goes on slipping.
_FAST = 8.0


def moved(rows: Rows, v: Places) -> Points:
    """Return the velocities of the points of spots against each other, in space."""
    parts = (rows.weights[:, k, None] * v[rows.nodes[:, k]] for k in range(1, 4))
    return sum(parts, rows.weights[:, 0, None] * v[rows.nodes[:, 0]])


def spun(rows: Rows, spin: Places) -> Points:
    """Return the spins that move the surfaces at spots against each other, times their arms."""
    return moved(rows._replace(weights=rows.arms), spin)


def goes_on(system: AbstractRod, slip: Points, push: Numbers) -> Bool[Array, " m"]:
    """Return which contacts slip too fast for friction to stop them in this step.

    **Arguments:** `slip`: at its start; `push`: how hard they pushed in the last one.
    """
    turns, moves = system.parts(system.mobility)
    gives = 2 * (jnp.max(moves) + system.contact.radius**2 * jnp.max(turns))  # at most
    stops = _FAST * system.contact.friction * gives * push
    return (push > 0) & (dot(slip, slip) > stops**2)

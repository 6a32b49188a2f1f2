"""What contacts of balls did in a step."""

import jax.numpy as jnp
from jaxtyping import Array, Bool

from retrax.contact.ball_contact import BallSpots
from retrax.contact.capsules import Points
from retrax.contact.rows import FAR
from retrax.integrators.contact.rod_record import Ended, RodContactRecord
from retrax.systems.rods.nodes import Placement

# Friction within this part of its limit slips.
_LIMIT = 1e-9


def recorded_balls(
    spots: BallSpots,
    g1: Placement,
    ends: Ended,
    z: Points,
    end: Points,
    before: Points,
    after: Points,
    closed: Bool[Array, " m"],
) -> RodContactRecord:
    """Book the impulses of a step with the mean of the velocities before and after it.

    `first` and `second` are the numbers of two balls, or of a ball and, below zero, of what stands
    in space.
    """
    total = z + end
    work = total * (before + after) / 2
    across = jnp.sqrt(jnp.sum(end[:, 1:] ** 2, axis=1))
    slipping = across >= spots.contact.friction * end[:, 0] * (1 - _LIMIT)
    mode = jnp.where(closed & (end[:, 0] > 0), jnp.where(slipping, 2, 1), 0)
    n = len(g1[1])
    return RodContactRecord(
        jnp.where(ends.gap < FAR, ends.gap, jnp.inf),
        mode,
        total[:, 0],
        total[:, 1:],
        before[:, 0],
        after[:, 1:],
        work[:, 1] + work[:, 2],
        work[:, 0],
        spots.first,
        jnp.where(spots.pairs, spots.second, n - 1 - spots.second),
        g1[1][spots.first] + ends.arms[:, 0, None] * ends.frame[:, 0],
    )

"""What contacts of rods did in a step."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from retrax.contact.capsules import Numbers, Points
from retrax.contact.self_contact import SelfContact, segment_name
from retrax.contact.spots import FAR, KINDS, Spots, nodes_of
from retrax.mechanics.system import Coordinates
from retrax.systems.rods.nodes import Flight, Placement

Scalar = Float[Array, ""]
# Friction within this part of its limit slips.
_LIMIT = 1e-9


class RodContactRecord(NamedTuple):
    """What contacts did in one step, an entry for each spot where rods may touch.

    **Attributes:** `gap`: at its end, infinite where there is no contact; `mode`: 0 open, 1 sticks,
    2 slips; `normal`, `tangential`: impulses of both stages; `approach`: the normal velocity
    before; `slip`: velocity at the end; `friction_work`, `impact_work`: what friction and the
    normal impulses did; `first`, `second`: the nodes at which the two segments begin, or -1, -2 for
    the first and second of the bodies `against`; `place`: where it is in space.
    """

    gap: Numbers
    mode: Int[Array, " m"]
    normal: Numbers
    tangential: Float[Array, "m 2"]
    approach: Numbers
    slip: Float[Array, "m 2"]
    friction_work: Numbers
    impact_work: Numbers
    first: Int[Array, " m"]
    second: Int[Array, " m"]
    place: Points


class Ended(NamedTuple):
    """Where the first stage ends: the flight, and the contacts there."""

    flown: Flight
    push: Coordinates
    gap: Numbers
    weights: Float[Array, "m 4"]
    arms: Float[Array, "m 4"]
    frame: Float[Array, "m 3 3"]


def recorded(
    spots: Spots,
    g1: Placement,
    ends: Ended,
    z: Points,
    end: Points,
    before: Points,
    after: Points,
    closed: Bool[Array, " m"],
    friction: Scalar,
) -> RodContactRecord:
    """Book the impulses of a step with the mean of the velocities before and after it."""
    total = z + end
    work = total * (before + after) / 2
    across = jnp.sqrt(jnp.sum(end[:, 1:] ** 2, axis=1))
    slipping = across >= friction * end[:, 0] * (1 - _LIMIT)
    mode = jnp.where(closed & (end[:, 0] > 0), jnp.where(slipping, 2, 1), 0)
    nodes, count = nodes_of(spots), KINDS * len(spots.first)
    bodies = np.repeat(-1 - np.arange(len(spots.contact.against)), len(g1[1]))
    second = jnp.concatenate([nodes[:count, 2], jnp.asarray(bodies, nodes.dtype)])
    point = sum((ends.weights[:, k, None] * g1[1][nodes[:, k]] for k in (0, 1)), jnp.zeros_like(z))
    arm = ends.arms[:, 0] + ends.arms[:, 1]
    return RodContactRecord(
        jnp.where(ends.gap < FAR, ends.gap, jnp.inf),
        mode,
        total[:, 0],
        total[:, 1:],
        before[:, 0],
        after[:, 1:],
        work[:, 1] + work[:, 2],
        work[:, 0],
        nodes[:, 0],
        second,
        point + arm[:, None] * ends.frame[:, 0],
    )


def told(
    contact: SelfContact, arcs: Float[np.ndarray, " nodes"], record: RodContactRecord, spot: int
) -> str:
    """Return the name of a contact: its segments, and where they are along the rods."""

    def named(node: int) -> str:
        return f"{segment_name(contact.strands, node)} (arc length {arcs[node]:.3g} m)"

    first, second = int(record.first[spot]), int(record.second[spot])
    other = named(second) if second >= 0 else f"the {contact.against[-1 - second].name}"
    return f"The contact of {named(first)} and {other}"

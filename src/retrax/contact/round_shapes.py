"""What touches balls and capsules."""

import jax.numpy as jnp

from retrax.contact.bodies import Placed
from retrax.contact.boxes import core_box, edges_of
from retrax.contact.meeting import (
    Meeting,
    centre_of,
    core_of,
    ends_of,
    join_candidates,
    round_meets_round,
    round_meets_solid,
)
from retrax.contact.nearest import (
    Segment,
    between_segments,
    from_box,
    from_cylinder,
    on_segment,
)
from retrax.contact.shapes import Ball, Box, Capsule, Cylinder


def ball_on_ball(a: Ball, b: Ball, at: Placed, on: Placed) -> Meeting:
    """Return where two balls meet."""
    return round_meets_round(centre_of(a, at), a.radius, centre_of(b, on), b.radius)


def ball_on_capsule(a: Ball, b: Capsule, at: Placed, on: Placed) -> Meeting:
    """Return where a ball meets a capsule."""
    centre = centre_of(a, at)
    return round_meets_round(centre, a.radius, on_segment(centre, core_of(b, on)), b.radius)


def ball_on_box(a: Ball, b: Box, at: Placed, on: Placed) -> Meeting:
    """Return where a ball meets a box."""
    centre = centre_of(a, at)
    return round_meets_solid(centre, a.radius, from_box(centre, *core_box(b, on)), b.radius)


def ball_on_cylinder(a: Ball, b: Cylinder, at: Placed, on: Placed) -> Meeting:
    """Return where a ball meets a cylinder."""
    centre = centre_of(a, at)
    axis, half = on.R @ b.axis, b.length / 2
    solid = from_cylinder(centre, on.point(b.at), axis, half, b.radius)
    return round_meets_solid(centre, a.radius, solid, jnp.zeros(()))


def capsule_on_capsule(a: Capsule, b: Capsule, at: Placed, on: Placed) -> Meeting:
    """Return where two capsules meet: each end with the other, and both where they cross.

    Parallel capsules touch along a line, which two ends carry.
    """
    one, two = core_of(a, at), core_of(b, on)
    starts, stops = ends_of(one), ends_of(two)
    p, q = between_segments(one, two)
    first = jnp.concatenate([starts, on_segment(stops, _twice(one)), p])
    second = jnp.concatenate([on_segment(starts, _twice(two)), stops, q])
    return round_meets_round(first, a.radius, second, b.radius)


def capsule_on_box(a: Capsule, b: Box, at: Placed, on: Placed) -> Meeting:
    """Return where a capsule meets a box: its ends with the box, and itself with twelve edges."""
    core, box = core_of(a, at), core_box(b, on)
    ends, edges = ends_of(core), edges_of(box)
    p, q = between_segments(_several(core, len(edges.half)), edges)
    return join_candidates(
        round_meets_solid(ends, a.radius, from_box(ends, *box), b.radius),
        round_meets_round(p, a.radius, q, b.radius),
    )


def _twice(core: Segment) -> Segment:
    return _several(core, 2)


def _several(core: Segment, k: int) -> Segment:
    return Segment(*(jnp.broadcast_to(part, (k, *part.shape[1:])) for part in core))

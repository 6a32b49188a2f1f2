r"""What contacts of rods did in a step: impulses, slip, and where the energy went.

The impulses of a step act at its two ends, where $J$ and $J'$ are their sums over all contacts. At
one place a kinetic energy changes by the impulse times the mean of the velocities before and after
it, so that contact $i$ with the impulses $P_i$ and $P_i'$ on its surfaces does the work

$$ P_i\cdot\tfrac12A_i\bigl(\xi(\mu_k) + \xi(\mu_k + J)\bigr)
    + P_i'\cdot\tfrac12A_i'\bigl(\xi(\mu_{k+1} - J') + \xi(\mu_{k+1})\bigr), \tag{1} $$

with $A\xi$ the velocity of one surface against the other. Its parts along the normal are of
impacts, those across of friction. Nothing is solved again: the step hands on its impulses, and the
points at which they act.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from retrax.contact.capsules import Nearest, Numbers, Points, distance
from retrax.contact.self_contact import SelfContact, segment_name
from retrax.contact.spots import (
    FAR,
    KINDS,
    Places,
    Rows,
    Spots,
    crossed,
    dot,
    frames,
    met,
    nearest,
    nodes_of,
    speeds,
)
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates
from retrax.numerics.complementarity import OPEN, SLIPS, STICKS
from retrax.systems.rods.elastic import AbstractRod
from retrax.systems.rods.nodes import Flight

Scalar = Float[Array, ""]
# A slip below this, relative to the speeds of the rods, is none: rounding errors are a millionth
# of that.
_SMALL = 1e-9
# Closest points that move by less, in segments, are the same.
_NEAR = 0.25


class RodContactRecord(NamedTuple):
    """What contacts did in one step, an entry for each spot where rods may touch.

    **Attributes:** `gap`: at its end, infinite where nothing pushes; `mode`: 0 open, 1 sticks,
    2 slips; `normal`: impulses of both stages; `tangential`: those of friction, in space;
    `approach`: the normal velocity before; `slip`: velocity at the end, in space; `friction_work`,
    `impact_work`: what friction and the normal impulses did; `first`, `second`: the nodes at which
    the two segments begin, or -1, -2 for the first and second of the bodies `against`; `place`:
    where it is in space.
    """

    gap: Numbers
    mode: Int[Array, " m"]
    normal: Numbers
    tangential: Points
    approach: Numbers
    slip: Points
    friction_work: Numbers
    impact_work: Numbers
    first: Int[Array, " m"]
    second: Int[Array, " m"]
    place: Points


class Closest(NamedTuple):
    """How far apart what is near is, pair by pair, and each segment and each of the bodies.

    **Attributes:** `gap`, infinite where there is none; `first`, `second`: as in a record.
    """

    gap: Numbers
    first: Int[Array, " m"]
    second: Int[Array, " m"]


class Ended(NamedTuple):
    """Where the first stage ends: the flight, and the contacts there."""

    flown: Flight
    push: Coordinates
    gap: Numbers
    weights: Float[Array, "m 4"]
    arms: Float[Array, "m 4"]
    frame: Float[Array, "m 3 3"]


class _End(NamedTuple):
    """One end of a step: rows of the spots, impulses along and across their normals, speeds.

    **Attributes:** `u`, `other`: the speeds of the state there, and on the other side of the
    impulses.
    """

    rows: Rows
    gap: Numbers
    push: Numbers
    rubs: Points
    u: Points
    other: Points

    @property
    def work(self) -> tuple[Numbers, Numbers]:
        """What impulses do across the normals, and along them: (1)."""
        mean = (self.u + self.other) / 2
        across = mean[:, 1, None] * self.rows.frame[:, 1] + mean[:, 2, None] * self.rows.frame[:, 2]
        return dot(self.rubs, across), self.push * mean[:, 0]


def recorded(
    system: AbstractRod,
    spots: Spots,
    before: State,
    after: State,
    impulses: tuple[Points, Points],
    where: Float[Array, "m 2"],
) -> RodContactRecord:
    """Return what contacts did in a step between two states.

    **Arguments:** `impulses`: of both stages, in space; `where`: the points on the segments at
    which they act.
    """
    first, last = impulses
    pushes = jnp.any(first != 0, axis=1) | jnp.any(last != 0, axis=1)
    points = Nearest(where[:, 0], where[:, 1], pushes, jnp.zeros(len(where)))
    begun = started(nearest(spots, before.g[1]), points)
    start = _end(system, spots, before, begun, first, 1.0)
    end = _end(system, spots, after, points, last, -1.0)
    rubbed, struck = (one + two for one, two in zip(start.work, end.work, strict=True))
    slip = end.u[:, 1, None] * end.rows.frame[:, 1] + end.u[:, 2, None] * end.rows.frame[:, 2]
    size = jnp.max(jnp.abs(jnp.stack([start.u, start.other, end.u, end.other])), axis=(0, 2))
    fast = _fastest(system, before) + _fastest(system, after)
    friction = spots.contact.friction
    moves = (jnp.sqrt(dot(slip, slip)) > _SMALL * (size + fast)) | (friction == 0)
    one, other = sides(spots)
    rows, places = end.rows, after.g[1]
    point = sum(
        (rows.weights[:, k, None] * places[rows.nodes[:, k]] for k in (0, 1)), jnp.zeros_like(slip)
    )
    arm = rows.arms[:, 0] + rows.arms[:, 1]
    return RodContactRecord(
        jnp.where(pushes, end.gap, jnp.inf),
        jnp.where(pushes, jnp.where(moves, SLIPS, STICKS), OPEN),
        start.push + end.push,
        start.rubs + end.rubs,
        start.u[:, 0],
        slip,
        rubbed,
        struck,
        one,
        other,
        point + arm[:, None] * rows.frame[:, 0],
    )


def _end(
    system: AbstractRod, spots: Spots, state: State, points: Nearest, P: Points, sign: float
) -> _End:
    """Look at one end of a step; the impulses follow its state, or lead to it if `sign` is -1."""
    now = system.at_time(state.t)
    turned, places = state.g
    gap, normals, weights, arms = met(spots, places, points)
    rows = Rows(nodes_of(spots), weights, arms, frames(normals), points)
    given = sign * _given(system, turned, rows, P)
    u = _speeds(system, now, state, rows, state.momentum)
    other = _speeds(system, now, state, rows, state.momentum + given)
    push = dot(P, normals)
    return _End(rows, gap, push, P - push[:, None] * normals, u, other)


def _speeds(
    system: AbstractRod, now: AbstractGroupSystem, state: State, rows: Rows, mu: Coordinates
) -> Points:
    w, v = system.parts(now.velocity(state.g, mu))
    return speeds(rows, v, jnp.einsum("kij,kj->ki", state.g[0], w))


def _given(
    system: AbstractRod, turned: Float[Array, "nodes 3 3"], rows: Rows, P: Points
) -> Coordinates:
    """Return the momenta that impulses in space give to nodes that are not held."""
    turn = crossed(rows.frame[:, 0], P)
    none = jnp.zeros((system.nodes, 3))
    moved = none.at[rows.nodes].add(rows.weights[:, :, None] * P[:, None])
    spin = none.at[rows.nodes].add(rows.arms[:, :, None] * turn[:, None])
    spin = jnp.einsum("kji,kj->ki", turned, spin)
    return system.held(jnp.concatenate([spin, moved], axis=1).reshape(-1))


def _fastest(system: AbstractRod, state: State) -> Scalar:
    w, v = system.parts(system.at_time(state.t).velocity(state.g, state.momentum))
    return jnp.max(jnp.abs(v)) + jnp.max(jnp.abs(w)) * system.contact.radius


def started(here: Nearest, near: Nearest) -> Nearest:
    """Return where impulses act at the start of a step: at the points that are closest there.

    Where these are far from those at its end, as of segments that are nearly parallel, it is these.
    """
    apart = jnp.maximum(jnp.abs(here.sigma - near.sigma), jnp.abs(here.tau - near.tau))
    same = apart < _NEAR
    sigma, tau = jnp.where(same, here.sigma, near.sigma), jnp.where(same, here.tau, near.tau)
    return near._replace(sigma=sigma, tau=tau)


def closest(spots: Spots, places: Places) -> Closest:
    """Return how far apart near segments are at these places, and segments and bodies."""
    after = jnp.asarray(spots.chains.following, jnp.int32)
    i, j = spots.first, spots.second
    along = places[after] - places
    apart = distance(places[i] - places[j], along[i], along[j]) - 2 * spots.contact.radius
    none = jnp.zeros(0, jnp.int32)
    alone = spots._replace(first=none, second=none, used=jnp.zeros(0, bool))
    first, second = sides(alone)
    gap = met(alone, places, nearest(alone, places))[0]
    gap = jnp.concatenate([jnp.where(spots.used, apart, jnp.inf), gap])
    return Closest(
        jnp.where(gap < FAR, gap, jnp.inf),
        jnp.concatenate([i, first.astype(i.dtype)]),
        jnp.concatenate([j, second.astype(j.dtype)]),
    )


def sides(spots: Spots) -> tuple[Int[Array, " m"], Int[Array, " m"]]:
    """Return who touches at each spot: nodes at which segments begin, or -1, -2, ... for bodies."""
    nodes, count = nodes_of(spots), KINDS * len(spots.first)
    bodies = np.repeat(-1 - np.arange(len(spots.contact.against)), len(spots.chains.rod))
    return nodes[:, 0], jnp.concatenate([nodes[:count, 2], jnp.asarray(bodies, nodes.dtype)])


def told(contact: SelfContact, arcs: Float[np.ndarray, " nodes"], first: int, second: int) -> str:
    """Return the name of a contact: its segments, and where they are along the rods."""

    def named(node: int) -> str:
        return f"{segment_name(contact.strands, node)} (arc length {arcs[node]:.3g} m)"

    other = named(second) if second >= 0 else f"the {contact.against[-1 - second].name}"
    return f"The contact of {named(first)} and {other}"

r"""What contacts of nodes did in a step: impulses, slip, and where the energy went.

The impulses of a step act at its two ends, where $J$ and $J'$ are their sums over all contacts. At
one place a kinetic energy changes by the impulse times the mean of the velocities before and after
it, so that contact $i$ with the impulses $P_i$ and $P_i'$ on its surfaces does the work

$$ P_i\cdot\tfrac12A_i\bigl(\xi(\mu_k) + \xi(\mu_k + J)\bigr)
    + P_i'\cdot\tfrac12A_i'\bigl(\xi(\mu_{k+1} - J') + \xi(\mu_{k+1})\bigr), \tag{1} $$

with $A\xi$ the velocity of one surface against the other. Its parts along the normal are of
impacts, those across of friction. Nothing is solved again: the step hands on its impulses, and the
points at which they act. This is exact where other forces are constant. Where they are not, as in a
rod that bends, it is as uncertain as it differs from

$$ (P_i + P_i')\cdot\tfrac12\bigl(A_i\xi(\mu_k) + A_i'\xi(\mu_{k+1})\bigr). \tag{2} $$

What neither slips nor lands does no work.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from retrax.contact.capsules import Numbers, Points, cross_rows, dot
from retrax.contact.node_contact import AbstractSpots
from retrax.contact.rows import Places, Rows, frames, speeds
from retrax.contact.solver.complementarity import OPEN, SLIPS, STICKS
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates
from retrax.nodal.nodes import AbstractNodes, Flight

Scalar = Float[Array, ""]
# Contacts that slip slower than this, relative to the speeds of the nodes, stick: rounding errors
# are a million times smaller.
_SMALL = 1e-9


class NodeRecord(NamedTuple):
    """What contacts did in one step, an entry for each spot where nodes may touch.

    **Attributes:** `gap`: at its end, infinite where nothing pushes; `mode`: 0 open, 1 sticks,
    2 slips; `normal`: impulses of both stages; `tangential`: those of friction, in space;
    `approach`: the normal velocity before; `slip`: velocity at the end, in space; `friction_work`,
    `impact_work`: what friction and the normal impulses did; `friction_doubt`, `impact_doubt`: how
    far (1) is from (2); `first`, `second`: who touches: the
    numbers of nodes, or -1, -2 for the first and second of the bodies `against`; `place`: where it
    is in space.
    """

    gap: Numbers
    mode: Int[Array, " m"]
    normal: Numbers
    tangential: Points
    approach: Numbers
    slip: Points
    friction_work: Numbers
    friction_doubt: Numbers
    impact_work: Numbers
    impact_doubt: Numbers
    first: Int[Array, " m"]
    second: Int[Array, " m"]
    place: Points


class Ended(NamedTuple):
    """Where the first stage ends: the flight, and the contacts there.

    **Attributes:** `turns`: whose slip has turned round although they were to slip on.
    """

    flown: Flight
    push: Coordinates
    gap: Numbers
    weights: Float[Array, "m 4"]
    arms: Float[Array, "m 4"]
    frame: Float[Array, "m 3 3"]
    turns: Bool[Array, " m"]


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
        return dot(self.rubs, _across(self.rows, mean)), self.push * mean[:, 0]

    def half(self, total: Points) -> tuple[Numbers, Numbers]:
        """Return half of what all impulses of the step would do at the speeds of the state: (2)."""
        push = dot(total, self.rows.frame[:, 0])
        return dot(total, _across(self.rows, self.u)) / 2, push * self.u[:, 0] / 2


def record(
    system: AbstractNodes,
    spots: AbstractSpots,
    before: State,
    after: State,
    impulses: tuple[Points, Points],
    where: Float[Array, "m 2"],
) -> NodeRecord:
    """Return what contacts did in a step between two states.

    **Arguments:** `impulses`: of both stages, in space; `where`: the points on the segments at
    which they act.
    """
    first, last = impulses
    pushes = jnp.any(first != 0, axis=1) | jnp.any(last != 0, axis=1)
    points = spots.points(where, pushes)
    begun = spots.start_points(spots.nearest(before.g[1]), points)
    start = _end(system, spots, before, begun, first, 1.0)
    end = _end(system, spots, after, points, last, -1.0)
    rubbed, struck = (one + two for one, two in zip(start.work, end.work, strict=True))
    total = first + last
    mean = [one + two for one, two in zip(start.half(total), end.half(total), strict=True)]
    slip = _across(end.rows, end.u)
    size = jnp.max(jnp.abs(jnp.stack([start.u, start.other, end.u, end.other])), axis=(0, 2))
    fast = _fastest(system, before) + _fastest(system, after)
    friction = system.contact.friction
    least = _SMALL * (size + fast)
    moves = (jnp.sqrt(dot(slip, slip)) > least) | (friction == 0)
    # Others may have brought two together within the step, and thrown them apart.
    extent = jnp.max(jnp.abs(before.g[1])) + system.contact.extent
    lands = (start.u[:, 0] < -least) | (end.u[:, 0] > least) | (start.gap > _SMALL * extent)
    rubs = moves | lands | (jnp.hypot(start.u[:, 1], start.u[:, 2]) > least)
    one, other = spots.sides
    return NodeRecord(
        jnp.where(pushes, end.gap, jnp.inf),
        jnp.where(pushes, jnp.where(moves, SLIPS, STICKS), OPEN),
        start.push + end.push,
        start.rubs + end.rubs,
        start.u[:, 0],
        slip,
        jnp.where(rubs, rubbed, 0.0),
        jnp.where(rubs, rubbed - mean[0], 0.0),
        jnp.where(rubs, struck, 0.0),
        jnp.where(rubs, struck - mean[1], 0.0),
        one,
        other,
        _place(end.rows, after.g[1]),
    )


def _end(
    system: AbstractNodes,
    spots: AbstractSpots,
    state: State,
    points: PyTree,
    P: Points,
    sign: float,
) -> _End:
    """Look at one end of a step; the impulses follow its state, or lead to it if `sign` is -1."""
    now = system.at_time(state.t)
    turned, places = state.g
    gap, normals, weights, arms = spots.measure_gaps(places, points)
    rows = Rows(spots.nodes, weights, arms, frames(normals), points)
    given = sign * _give_momenta(system, turned, rows, P)
    u = _speeds(system, now, state, rows, state.momentum)
    other = _speeds(system, now, state, rows, state.momentum + given)
    push = dot(P, normals)
    return _End(rows, gap, push, P - push[:, None] * normals, u, other)


def _across(rows: Rows, u: Points) -> Points:
    """Return the parts of speeds across the normals, in space."""
    return u[:, 1, None] * rows.frame[:, 1] + u[:, 2, None] * rows.frame[:, 2]


def _place(rows: Rows, places: Places) -> Points:
    """Return where the surfaces of the first of each two meet."""
    first = rows.weights > 0
    weights, arms = (jnp.where(first, x, 0.0) for x in (rows.weights, rows.arms))
    point = jnp.einsum("mk,mkd->md", weights, places[rows.nodes])
    return point + jnp.sum(arms, axis=1)[:, None] * rows.frame[:, 0]


def _speeds(
    system: AbstractNodes, now: AbstractGroupSystem, state: State, rows: Rows, mu: Coordinates
) -> Points:
    w, v = system.parts(now.velocity(state.g, mu))
    return speeds(rows, v, jnp.einsum("kij,kj->ki", state.g[0], w))


def _give_momenta(
    system: AbstractNodes, turned: Float[Array, "nodes 3 3"], rows: Rows, P: Points
) -> Coordinates:
    """Return the momenta that impulses in space give to nodes that are not held."""
    turn = cross_rows(rows.frame[:, 0], P)
    none = jnp.zeros((system.nodes, 3))
    moved = none.at[rows.nodes].add(rows.weights[:, :, None] * P[:, None])
    spin = none.at[rows.nodes].add(rows.arms[:, :, None] * turn[:, None])
    spin = jnp.einsum("kji,kj->ki", turned, spin)
    return system.without_held(jnp.concatenate([spin, moved], axis=1).reshape(-1))


def _fastest(system: AbstractNodes, state: State) -> Scalar:
    w, v = system.parts(system.at_time(state.t).velocity(state.g, state.momentum))
    return jnp.max(jnp.abs(v)) + jnp.max(jnp.abs(w)) * system.contact.extent

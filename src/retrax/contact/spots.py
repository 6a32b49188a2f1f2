"""All places where rods may touch, as arrays: pairs of segments first, then what stands in space.

A spot joins the four nodes of two segments.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from retrax.contact.capsules import (
    Nearest,
    Numbers,
    Points,
    along_axis,
    distance,
    dot,
    foot,
    within,
)
from retrax.contact.node_contact import AbstractSpots, Closest, Met
from retrax.contact.rows import FAR, Places
from retrax.contact.shapes import AbstractSurface, Ball, Capsule, Plane

if TYPE_CHECKING:
    from retrax.contact.self_contact import SelfContact

Whole = Int[Array, " m"]

# Spots of a pair of segments: closest points within, and the start of each on the other.
KINDS = 3
# Spots nearer than this on both rods, in segments, are beside each other.
_BESIDE = 0.6
# Closest points that move by less in a step, in segments, are the same.
_NEAR = 0.25


class Chains(NamedTuple):
    """How nodes hang together: the nodes after and before each, itself at ends; rod; arc length."""

    following: np.ndarray
    preceding: np.ndarray
    rod: np.ndarray
    arc: Float[Array, " nodes"]


@dataclass(frozen=True)
class Spots(AbstractSpots):
    """Pairs of segments by their first nodes, and how many of them count."""

    chains: Chains
    contact: "SelfContact"
    first: Whole
    second: Whole
    used: Bool[Array, " m"]
    lasting: ClassVar[bool] = False

    @property
    def nodes(self) -> Int[Array, "m 4"]:
        return nodes_of(self)

    def nearest(self, places: Places) -> Nearest:
        return nearest(self, places)

    def measure_gaps(self, places: Places, near: Nearest) -> Met:
        return measure_gaps(self, places, near)

    def start_points(self, here: Nearest, near: Nearest) -> Nearest:
        """Return the points that are closest at the start.

        Where these are far from those at the end, as of segments that are nearly parallel, it is
        these.
        """
        apart = jnp.maximum(jnp.abs(here.sigma - near.sigma), jnp.abs(here.tau - near.tau))
        same = apart < _NEAR
        sigma, tau = jnp.where(same, here.sigma, near.sigma), jnp.where(same, here.tau, near.tau)
        return near._replace(sigma=sigma, tau=tau)

    def where(self, near: Nearest) -> Float[Array, "m 2"]:
        return jnp.stack([near.sigma, near.tau], axis=1)

    def points(self, where: Float[Array, "m 2"], touch: Bool[Array, " m"]) -> Nearest:
        return Nearest(where[:, 0], where[:, 1], touch, jnp.zeros(len(where)))

    @property
    def sides(self) -> tuple[Whole, Whole]:
        nodes, count = self.nodes, KINDS * len(self.first)
        bodies = np.repeat(-1 - np.arange(len(self.contact.against)), len(self.chains.rod))
        return nodes[:, 0], jnp.concatenate([nodes[:count, 2], jnp.asarray(bodies, nodes.dtype)])

    def closest(self, places: Places) -> Closest:
        after = jnp.asarray(self.chains.following, jnp.int32)
        i, j = self.first, self.second
        along = places[after] - places
        apart = distance(places[i] - places[j], along[i], along[j]) - 2 * self.contact.radius
        none = jnp.zeros(0, jnp.int32)
        alone = replace(self, first=none, second=none, used=jnp.zeros(0, bool))
        first, second = alone.sides
        gap = alone.measure_gaps(places, alone.nearest(places)).gap
        gap = jnp.concatenate([jnp.where(self.used, apart, jnp.inf), gap])
        return Closest(
            jnp.where(gap < FAR, gap, jnp.inf),
            jnp.concatenate([i, first.astype(i.dtype)]),
            jnp.concatenate([j, second.astype(j.dtype)]),
        )

    def renew(
        self,
        places: Places,
        near: Nearest,
        push: Numbers,
        deep: Float[Array, ""],
        early: Bool[Array, ""],
    ) -> tuple[Bool[Array, ""], Nearest]:
        return renew(self, places, near, push, deep, early)


def chains_of(contact: "SelfContact") -> Chains:
    """Return how the nodes of the rods of a contact hang together."""
    assert contact.arcs is not None
    lengths = np.asarray(contact.strands)
    ends = np.cumsum(lengths)
    following, preceding = np.arange(1, ends[-1] + 1), np.arange(-1, ends[-1] - 1)
    following[ends - 1] = ends - 1
    preceding[ends - lengths] += 1
    return Chains(following, preceding, np.repeat(np.arange(len(lengths)), lengths), contact.arcs)


def nodes_of(spots: Spots) -> Int[Array, "m 4"]:
    """Return the nodes of the two segments of every spot; those of space have one segment."""
    after = jnp.asarray(spots.chains.following, jnp.int32)
    pair = jnp.stack([spots.first, after[spots.first], spots.second, after[spots.second]], axis=1)
    every = jnp.arange(len(after), dtype=jnp.int32)
    alone = jnp.stack([every, after, every, after], axis=1)
    return jnp.concatenate([pair] * KINDS + [alone] * len(spots.contact.against))


def nearest(spots: Spots, places: Places) -> Nearest:
    """Return where on its segments every spot lies, and whether the distance is least there."""
    after = jnp.asarray(spots.chains.following, jnp.int32)
    before = jnp.asarray(spots.chains.preceding, jnp.int32)
    on, back = places[after] - places, places - places[before]
    parts = []
    if spots.contact.itself:
        first, second, used = spots.first, spots.second, spots.used
        da, db = on[first], on[second]
        r = places[first] - places[second]
        inside = within(r, da, db)
        on_b, beyond_b = foot(r, db)
        on_a, beyond_a = foot(-r, da)
        none = jnp.zeros_like(on_a)
        from_b, from_a = r - on_b[:, None] * db, -r - on_a[:, None] * da
        end_a = _leads_away(from_b, da, back[first])
        end_b = _leads_away(from_a, db, back[second])
        both = end_a & _leads_away(-r, db, back[second])
        starts = jnp.where(beyond_b > 0, end_a & (beyond_b < 1), both)
        parts = [
            inside._replace(valid=inside.valid & used),
            Nearest(none, on_b, used & starts, none),
            Nearest(on_a, none, used & (beyond_a > 0) & (beyond_a < 1) & end_b, none),
        ]
    for shape in spots.contact.against:
        none = jnp.zeros(len(after))
        if isinstance(shape, Plane):
            parts.append(Nearest(none, none, jnp.ones(len(after), bool), none))
            continue
        if isinstance(shape, Capsule):
            r = (shape.at - shape.length / 2 * shape.axis)[None] - places
            along = jnp.broadcast_to((shape.length * shape.axis)[None], r.shape)
            there, begins, ends = along_axis(r, on, along)
            first = jnp.asarray(spots.chains.preceding == np.arange(len(after)))
            valid = jnp.where(begins, first | ends[before], ~ends)
        else:
            r = shape.at[None] - places
            there, beyond = foot(r, on)
            valid = jnp.where(beyond > 0, beyond < 1, _leads_away(-r, on, back))
        parts.append(Nearest(there, none, valid, none))
    return Nearest(*(jnp.concatenate(column) for column in zip(*parts, strict=True)))


def _from_core(shape: AbstractSurface, points: Points) -> Points:
    """Return points from where the centre of a ball, or the axis of a capsule, is nearest."""
    apart = points - shape.at[None]
    if isinstance(shape, Ball):
        return apart
    assert isinstance(shape, Capsule)
    along = dot(apart, jnp.broadcast_to(shape.axis[None], apart.shape))
    along = jnp.minimum(jnp.maximum(along, -shape.length / 2), shape.length / 2)
    return apart - along[:, None] * shape.axis[None]


def _leads_away(apart: Points, on: Points, back: Points) -> Bool[Array, " m"]:
    """Return whether chains lead away on both sides of nodes that are `apart` from something."""
    return (dot(apart, on) >= 0) & (dot(apart, back) <= 0)


def renew(
    spots: Spots,
    places: Places,
    near: Nearest,
    push: Numbers,
    deep: Float[Array, ""],
    early: Bool[Array, ""],
) -> tuple[Bool[Array, ""], Nearest]:
    """Return whether points other than those of `near` overlap by more than `deep`, and others.

    At an `early` time the points that are closest now replace all others. Later, points that push
    stay where they are and lift by what overlaps around them: segments nearly parallel would hand
    their contact to and fro for ever. What overlaps elsewhere joins them.
    """
    now = nearest(spots, places)
    gap = measure_gaps(spots, places, now).gap
    overlap = jnp.maximum(-gap, 0.0)
    pushes = near.valid & (push > 0)
    lift, joins = lax.cond(
        early,
        lambda: (jnp.zeros_like(gap), jnp.zeros_like(gap)),
        lambda: _share_lift(spots, near, now, overlap, jnp.where(pushes, 1.0, 0.0), deep),
    )
    takes = early | (joins > 0)
    chosen = Nearest(
        jnp.where(takes, now.sigma, near.sigma),
        jnp.where(takes, now.tau, near.tau),
        jnp.where(takes, now.valid, near.valid),
        jnp.where(early, 0.0, near.lift + lift),
    )
    return jnp.any(overlap > deep), chosen


def _share_lift(
    spots: Spots,
    near: Nearest,
    now: Nearest,
    overlap: Numbers,
    pushes: Numbers,
    deep: Float[Array, ""],
) -> tuple[Numbers, Numbers]:
    """Return by how much spots lift for what overlaps around them, and which join, as 0 or 1."""
    here, there = _along(spots, near), _along(spots, now)

    def one(i: Int[Array, ""], at: tuple[Numbers, Numbers]) -> tuple[Numbers, Numbers]:
        def place(at: tuple[Numbers, Numbers]) -> tuple[Numbers, Numbers]:
            def beside(j: Int[Array, ""], at: tuple[Numbers, Array]) -> tuple[Numbers, Array]:
                apart = jnp.maximum(
                    jnp.abs(here[0][j] - there[0][i]), jnp.abs(here[1][j] - there[1][i])
                )
                hit = (pushes[j] > 0) & (apart < _BESIDE)

                def lift(at: tuple[Numbers, Array]) -> tuple[Numbers, Array]:
                    lift, found = at
                    more = jnp.maximum(lift[j], overlap[i])
                    return lift.at[j].set(more), found + 1.0

                return lax.cond(hit, lift, lambda at: at, at)

            lift, joins = at
            lift, found = lax.fori_loop(zero, last, beside, (lift, jnp.zeros(())))
            return lift, joins.at[i].set(jnp.where(found > 0, 0.0, 1.0))

        return lax.cond(overlap[i] > deep, place, lambda at: at, at)

    none = jnp.zeros_like(overlap)
    zero, last = jnp.asarray(0, jnp.int32), jnp.asarray(len(overlap), jnp.int32)
    return lax.fori_loop(zero, last, one, (none, none))


def _along(spots: Spots, near: Nearest) -> tuple[Numbers, Numbers]:
    """Return where spots are along the rods, counted in nodes; bodies in space are far from all."""
    nodes, pairs = nodes_of(spots), KINDS * len(spots.first)
    bodies = np.repeat(np.arange(len(spots.contact.against)), len(spots.chains.rod))
    second = nodes[:, 2].astype(float) + near.tau
    if len(bodies):
        second = _join([second[:pairs]] if pairs else [], jnp.asarray(-10.0 * (1 + bodies)))
    return nodes[:, 0].astype(float) + near.sigma, second


def _join(parts: list[Array], rest: Array) -> Array:
    return jnp.concatenate([*parts, rest])


def measure_gaps(spots: Spots, places: Places, near: Nearest) -> Met:
    """Return the gaps, normals, weights and arms of spots with their points on their segments."""
    contact = spots.contact
    after = jnp.asarray(spots.chains.following, jnp.int32)
    count = len(spots.first)
    radius, gaps, normals, arms = contact.radius, [], [], []
    if contact.itself:
        a, b = places[spots.first], places[spots.second]
        da, db = places[after[spots.first]] - a, places[after[spots.second]] - b
        for k in range(KINDS):
            part = slice(k * count, (k + 1) * count)
            sigma, tau = near.sigma[part, None], near.tau[part, None]
            apart = (a - b) + (sigma * da - tau * db)
            far = jnp.sqrt(dot(apart, apart))
            gaps.append(far - 2 * radius)
            normals.append(apart / jnp.where(far > 0, far, 1.0)[:, None])
            arms.append(far / 2)
    d, n = places[after] - places, len(after)
    for k, shape in enumerate(contact.against):
        part = slice(KINDS * count + k * n, KINDS * count + (k + 1) * n)
        point = places + near.sigma[part, None] * d
        if isinstance(shape, Plane):
            normal = jnp.broadcast_to(shape.normal, (n, 3))
            gaps.append(dot(point - shape.at[None], normal) - radius)
        else:
            assert isinstance(shape, Ball | Capsule)
            point = _from_core(shape, point)
            far = jnp.sqrt(dot(point, point))
            normal = point / jnp.where(far > 0, far, 1.0)[:, None]
            gaps.append(far - shape.radius - radius)
        normals.append(normal)
        arms.append(jnp.broadcast_to(radius, (n,)))
    gap, arm = jnp.concatenate(gaps), jnp.concatenate(arms)
    pairs = jnp.arange(len(gap)) < KINDS * count
    second = jnp.where(pairs, 1.0, 0.0)
    weights = jnp.stack(
        [1 - near.sigma, near.sigma, -second * (1 - near.tau), -second * near.tau], axis=1
    )
    sides = jnp.stack([-arm, -arm, arm, arm], axis=1)
    return Met(
        jnp.where(near.valid, gap - near.lift, FAR),
        jnp.concatenate(normals),
        weights,
        weights * sides,
    )

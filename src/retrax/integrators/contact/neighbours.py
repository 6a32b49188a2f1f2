"""Lists of segments that are near each other: made anew when a node has moved by half the skin."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from retrax.contact.capsules import Nearest, Numbers, dot, foot, within
from retrax.contact.self_contact import SelfContact
from retrax.contact.spots import Chains, Places, Spots

Scalar = Float[Array, ""]

# Points of a rod nearer than so many radii along it do not touch: half the tightest circle.
_BEND = 3.141592653589793


class Neighbours(NamedTuple):
    """Pairs of near segments by their first nodes, all numbers floats.

    **Attributes:** `first`, `second`: the pairs in order, as far as there are; `number`: how many
    were found, more than there is room for where the lists overflow; `places`: of the nodes when
    they were found.
    """

    first: Float[Array, " pairs"]
    second: Float[Array, " pairs"]
    number: Scalar
    places: Places


def nobody(contact: SelfContact, places: Places) -> Neighbours:
    """Return lists that are to be made in the first step."""
    none = jnp.zeros(contact.room(len(places)))
    return Neighbours(none, none, jnp.zeros(()), jnp.full_like(places, jnp.inf))


def far_gone(near: Neighbours, places: Places) -> Scalar:
    """Return how far the node that has moved farthest is from where the lists were made."""
    return jnp.sqrt(jnp.max(jnp.sum((places - near.places) ** 2, axis=1)))


def found(chains: Chains, contact: SelfContact, places: Places) -> Neighbours:
    """Return all pairs of segments whose surfaces are nearer than the skin."""
    n, room = len(places), contact.room(len(places))
    after = jnp.asarray(chains.following)
    rod, every = jnp.asarray(chains.rod), jnp.arange(n)
    along = places[after] - places
    within_reach = 2 * contact.radius + contact.skin
    bend = _BEND * contact.radius

    def one(i: Int[Array, ""], lists: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        first, second, number = lists
        apart = jnp.broadcast_to(places[i], (n, 3)) - places
        own = jnp.broadcast_to(along[i], (n, 3))
        close = distance(apart, own, along) <= within_reach
        arc = chains.arc - chains.arc[after[i]]
        alone = (rod == rod[i]) & ((arc < bend) | (every <= after[i]))
        chosen = close & (every > i) & ~alone
        counted = jnp.cumsum(jnp.where(chosen, 1, 0))
        where = jnp.where(chosen, number + counted - 1, room)
        first = first.at[where].set(jnp.full(n, i, float), mode="drop")
        second = second.at[where].set(every.astype(float), mode="drop")
        return first, second, number + counted[-1]

    none = jnp.zeros(room)
    first, second, number = lax.fori_loop(0, n, one, (none, none, jnp.asarray(0)))
    return Neighbours(first, second, number.astype(float), places)


def distance(r: Places, da: Places, db: Places) -> Numbers:
    """Return how far apart segments are whose starts are `r` apart."""

    def far(near: Nearest) -> Numbers:
        apart = r + (near.sigma[:, None] * da - near.tau[:, None] * db)
        return jnp.where(near.valid, dot(apart, apart), jnp.inf)

    zero, one, yes = jnp.zeros(len(r)), jnp.ones(len(r)), jnp.ones(len(r), bool)
    candidates = [
        within(r, da, db),
        Nearest(zero, foot(r, db)[0], yes),
        Nearest(one, foot(r + da, db)[0], yes),
        Nearest(foot(-r, da)[0], zero, yes),
        Nearest(foot(db - r, da)[0], one, yes),
    ]
    least = far(candidates[0])
    for near in candidates[1:]:
        least = jnp.minimum(least, far(near))
    return jnp.sqrt(least)


def spots_of(chains: Chains, contact: SelfContact, near: Neighbours) -> Spots:
    """Return the spots of the lists."""
    first, second = near.first.astype(int), near.second.astype(int)
    used: Bool[Array, " pairs"] = jnp.arange(len(first)) < near.number
    return Spots(chains, contact, first, second, used)


def carried(
    nodes: int, old: Neighbours, new: Neighbours, values: tuple[Float[Array, "m 3"], ...]
) -> tuple[Float[Array, "m 3"], ...]:
    """Return values of the spots of old lists, such as impulses, in the order of new ones."""
    room = len(old.first)
    if room == 0:
        return values

    def keys(near: Neighbours) -> Array:
        used = jnp.arange(room) < near.number
        return jnp.where(used, near.first * nodes + near.second, float(nodes * nodes))

    before, now = keys(old), keys(new)
    where = jnp.minimum(jnp.searchsorted(before, now), room - 1)
    same = (before[where] == now) & (now < nodes * nodes)

    def moved(x: Float[Array, "m 3"]) -> Float[Array, "m 3"]:
        parts = [
            jnp.where(same[:, None], x[k * room : (k + 1) * room][where], 0.0) for k in range(3)
        ]
        return jnp.concatenate([*parts, x[3 * room :]])

    return jax.tree.map(moved, values)

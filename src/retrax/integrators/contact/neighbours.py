"""Lists of segments that are near each other: made anew when a node has moved by half the skin."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from retrax.contact.capsules import distance, dot
from retrax.contact.self_contact import SelfContact
from retrax.contact.spots import KINDS, Places, Spots, chains_of

Scalar = Float[Array, ""]
Whole = Int[Array, ""]


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


class _Lists(NamedTuple):
    first: Float[Array, " pairs"]
    second: Float[Array, " pairs"]
    source: Float[Array, " pairs"]
    number: Whole
    passed: Whole


def nobody(contact: SelfContact, places: Places) -> Neighbours:
    """Return lists that are to be made in the first step."""
    none = jnp.zeros(contact.room(len(places)))
    return Neighbours(none, none, jnp.zeros(()), jnp.full_like(places, jnp.inf))


def far_gone(near: Neighbours, places: Places) -> Scalar:
    """Return how far the node that has moved farthest is from where the lists were made."""
    return jnp.sqrt(jnp.max(jnp.sum((places - near.places) ** 2, axis=1)))


def found(
    contact: SelfContact, places: Places, old: Neighbours
) -> tuple[Neighbours, Float[Array, " pairs"]]:
    """Return all pairs of segments whose surfaces are nearer than the skin.

    Beside them: where each was in the old lists, or -1.
    """
    n, room, chains = len(places), contact.room(len(places)), chains_of(contact)
    after = jnp.asarray(chains.following, jnp.int32)
    rod = jnp.asarray(chains.rod, jnp.int32)
    along = places[after] - places
    reach = 2 * contact.radius + contact.skin
    lengths = jnp.sqrt(dot(along, along))

    firsts, seconds = old.first.astype(jnp.int32), old.second.astype(jnp.int32)
    known = jnp.minimum(old.number, float(room)).astype(jnp.int32)

    def pair(j: Whole, at: _Lists, i: Whole) -> _Lists:
        r = places[i] - places[j]
        middle = r + (along[i] - along[j]) / 2
        around = reach + (lengths[i] + lengths[j]) / 2
        alone = (rod[i] == rod[j]) & contact.beside(chains.arc, after, i, j)
        near = (middle @ middle <= around * around) & ~alone

        def looked(at: _Lists) -> _Lists:
            hit = distance(r[None], along[i][None], along[j][None])[0] <= reach
            return lax.cond(hit, added, lambda at: at, at)

        def added(at: _Lists) -> _Lists:
            key = i * n + j

            def before(k: Whole) -> Bool[Array, ""]:
                there = jnp.minimum(k, room - 1)
                return (k < known) & (firsts[there] * n + seconds[there] < key)

            k = lax.while_loop(before, lambda k: k + 1, at.passed)
            there = jnp.minimum(k, room - 1)
            same = (k < known) & (firsts[there] == i) & (seconds[there] == j)
            return _Lists(
                at.first.at[at.number].set(i.astype(float), mode="drop"),
                at.second.at[at.number].set(j.astype(float), mode="drop"),
                at.source.at[at.number].set(jnp.where(same, k.astype(float), -1.0), mode="drop"),
                at.number + 1,
                k,
            )

        return lax.cond(near, looked, lambda at: at, at)

    def one(i: Whole, at: _Lists) -> _Lists:
        return lax.fori_loop(i + 1, jnp.asarray(n, jnp.int32), lambda j, at: pair(j, at, i), at)

    none, zero = jnp.zeros(room), jnp.asarray(0, jnp.int32)
    start = _Lists(none, none, none, zero, zero)
    end = lax.fori_loop(zero, jnp.asarray(n, jnp.int32), one, start)
    return Neighbours(end.first, end.second, end.number.astype(float), places), end.source


def spots_of(contact: SelfContact, near: Neighbours) -> Spots:
    """Return the spots of the lists."""
    first, second = near.first.astype(jnp.int32), near.second.astype(jnp.int32)
    used: Bool[Array, " pairs"] = jnp.arange(len(first), dtype=float) < near.number
    return Spots(chains_of(contact), contact, first, second, used)


def carried(x: Float[Array, "m 3"], source: Float[Array, " pairs"]) -> Float[Array, "m 3"]:
    """Return numbers of the spots of old lists, such as impulses, in the order of new ones."""
    room = len(source)
    known = jnp.broadcast_to((source >= 0)[:, None], (room, 3))
    where = jnp.maximum(source, 0.0).astype(jnp.int32)
    parts = [jnp.where(known, x[k * room : (k + 1) * room][where], 0.0) for k in range(KINDS)]
    rest = [x[KINDS * room :]] if len(x) > KINDS * room else []
    return jnp.concatenate(parts + rest)

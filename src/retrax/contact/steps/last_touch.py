"""What a step with contacts of nodes hands on to the next: who is near whom, and impulses."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from retrax.contact.capsules import Points
from retrax.contact.rows import Places
from retrax.contact.steps.neighbours import Neighbours, carry, farthest_move, find_pairs, nobody
from retrax.mechanics.state import State
from retrax.mechanics.system import Coordinates
from retrax.nodal.nodes import AbstractNodes

Scalar = Float[Array, ""]
# Lists are made for this many times the way that the fastest node is about to go: it may be hit.
_AHEAD = 2.0


class LastTouch(NamedTuple):
    """The force at the end of a step, who is near whom, and impulses of both stages per time.

    `where` is where these act, as `AbstractSpots.points` reads it.
    """

    force: Coordinates
    near: Neighbours
    first: Points
    last: Points
    where: Float[Array, "m 2"]


def initial_memory(system: AbstractNodes, state: State) -> LastTouch:
    """Return what there is before the first step."""
    contact, places = system.contact, state.g[1]
    none = jnp.zeros((contact.slots(system.nodes), 3))
    force = system.kick(state.g, state.t)
    return LastTouch(force, nobody(contact, places), none, none, none[:, :2])


def refresh_neighbours(
    system: AbstractNodes, state: State, h: Scalar, memory: LastTouch
) -> LastTouch:
    """Return lists for this step, which are made anew where nodes have moved."""
    contact, places = system.contact, state.g[1]
    if not contact.listed:
        return memory
    _, v = system.parts(system.at_time(state.t).velocity(state.g, state.momentum))
    ahead = _AHEAD * jnp.abs(h) * fastest(v)

    def fresh(memory: LastTouch) -> LastTouch:
        skin = jnp.maximum(contact.skin, 2 * ahead)
        near, source = find_pairs(contact, places, skin, memory.near)
        first, last = (carry(x, source, contact.kinds) for x in (memory.first, memory.last))
        return memory._replace(near=near, first=first, last=last)

    stale = ~(farthest_move(memory.near, places) + ahead < memory.near.skin / 2)
    return lax.cond(stale, fresh, lambda memory: memory, memory)


def cut(memory: LastTouch, few: int, kinds: int) -> LastTouch:
    """Return lists with room for a few pairs, which are all that there are."""
    near, room = memory.near, len(memory.near.first)

    def short(x: Float[Array, "m k"]) -> Float[Array, "cut k"]:
        parts = [x[k * room : k * room + few] for k in range(kinds)]
        return jnp.concatenate([*parts, x[kinds * room :]])

    fewer = near._replace(first=near.first[:few], second=near.second[:few])
    return LastTouch(memory.force, fewer, *(short(x) for x in memory[2:]))


def pad(last: LastTouch, memory: LastTouch, kinds: int) -> LastTouch:
    """Return what a step with a few pairs found, with the room of `memory`."""
    few, room = len(last.near.first), len(memory.near.first)

    def full(x: Float[Array, "m k"]) -> Float[Array, "filled k"]:
        none = jnp.zeros((room - few, x.shape[1]))
        parts = [part for k in range(kinds) for part in (x[k * few : (k + 1) * few], none)]
        return jnp.concatenate([*parts, x[kinds * few :]])

    return LastTouch(last.force, memory.near, *(full(x) for x in last[2:]))


def fastest(v: Places) -> Scalar:
    """Return the largest size of some velocities."""
    return jnp.sqrt(jnp.max(jnp.sum(v * v, axis=1)))

"""What a step of balls hands on to the next: who is near whom, and impulses."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from retrax.contact.capsules import Points
from retrax.contact.rows import Places
from retrax.integrators.contact.neighbours import Neighbours, carried, far_gone, found, nobody
from retrax.mechanics.state import State
from retrax.mechanics.system import Coordinates
from retrax.systems.balls import Balls

Scalar = Float[Array, ""]
# Lists are made for this many times the way that the fastest node is about to go: it may be hit.
_AHEAD = 2.0


class BallTouch(NamedTuple):
    """The force at the end of a step, who is near whom, and impulses of both stages per time."""

    force: Coordinates
    near: Neighbours
    first: Points
    last: Points


def untouched(system: Balls, state: State) -> BallTouch:
    """Return what there is before the first step."""
    contact, places = system.contact, state.g[1]
    none = jnp.zeros((contact.slots(system.nodes), 3))
    return BallTouch(system.kick(state.g, state.t), nobody(contact, places), none, none)


def relisted(system: Balls, state: State, h: Scalar, memory: BallTouch) -> BallTouch:
    """Return lists for this step, which are made anew where nodes have moved."""
    contact, places = system.contact, state.g[1]
    _, v = system.parts(system.at_time(state.t).velocity(state.g, state.momentum))
    ahead = _AHEAD * jnp.abs(h) * fastest(v)

    def fresh(memory: BallTouch) -> BallTouch:
        skin = jnp.maximum(contact.skin, 2 * ahead)
        near, source = found(contact, places, memory.near, skin)
        first, last = (carried(x, source, contact.kinds) for x in (memory.first, memory.last))
        return BallTouch(memory.force, near, first, last)

    stale = ~(far_gone(memory.near, places) + ahead < memory.near.skin / 2)
    return lax.cond(stale, fresh, lambda memory: memory, memory)


def cut(memory: BallTouch, few: int) -> BallTouch:
    """Return lists with room for a few pairs, which are all that there are."""
    near = memory.near
    fewer = near._replace(first=near.first[:few], second=near.second[:few])
    return BallTouch(memory.force, fewer, memory.first[:few], memory.last[:few])


def filled(last: BallTouch, memory: BallTouch) -> BallTouch:
    """Return what a step with a few pairs found, with the room of `memory`."""
    none = jnp.zeros((len(memory.near.first) - len(last.near.first), 3))
    first, end = (jnp.concatenate([x, none]) for x in (last.first, last.last))
    return BallTouch(last.force, memory.near, first, end)


def fastest(v: Places) -> Scalar:
    """Return the largest size of some velocities."""
    return jnp.sqrt(jnp.max(jnp.sum(v * v, axis=1)))

"""Loads on the nodes of rods, in space and in the body."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.numerics.frozen import Frozen
from retrax.systems.rods.along import Profile, at_time

Rows = Float[Array, "nodes 3"]


class NodeLoads(Frozen):
    """Forces and torques on all nodes, in space and in the body; at least one of the four."""

    force: Profile | None  # in space
    follower_force: Profile | None  # in the body
    torque: Profile | None  # in the body
    dead_torque: Profile | None  # in space

    @property
    def kinds(self) -> tuple[Profile | None, ...]:
        return self.force, self.follower_force, self.torque, self.dead_torque

    def at(self, t: Float[Array, ""]) -> "NodeLoads":
        """Return the loads at one time."""
        return NodeLoads(*(at_time(kind, t) for kind in self.kinds))

    @property
    def is_driven(self) -> bool:
        """Whether a load depends on time."""
        return any(kind is not None and kind.is_driven for kind in self.kinds)

    @property
    def works(self) -> bool:
        """Whether a load has no potential: all but a constant force in space."""
        return self.is_driven or any(kind is not None for kind in self.kinds[1:])

    @property
    def dead(self) -> Rows | None:
        """The forces that have a potential: those in space that are constant."""
        return None if self.force is None else self.force.constant

    def on(self, frames: Float[Array, "nodes 3 3"]) -> Float[Array, "nodes 6"]:
        """Return all loads as torques in the body and forces in space, one row a node."""
        force, follower, torque, dead = (None if x is None else x.rows() for x in self.kinds)
        if follower is not None:
            push = jax.vmap(lambda R, f: R @ f)(frames, follower)
            force = push if force is None else force + push
        if dead is not None:
            turn = jax.vmap(lambda R, m: R.T @ m)(frames, dead)
            torque = turn if torque is None else torque + turn
        return beside(torque, force)


def beside(torque: Rows | None, force: Rows | None) -> Float[Array, "nodes 6"]:
    """Torques and forces side by side; one of them may be missing, and is zero."""
    given = force if torque is None else torque
    assert given is not None
    none = jnp.zeros_like(given)
    parts = [none if part is None else part for part in (torque, force)]
    return jnp.concatenate(parts, axis=1)


class Drag(Frozen):
    r"""The drag of a fluid at rest: a node loses the part $1 - e^{-\gamma t}$ of its momenta.

    **Attributes:** `rates`: $\gamma$ in 1/s of the momenta along the axes of the section, or one
    number where all are alike; `spin_rates`: those of the angular momenta. In rows where nodes
    differ, `None` where nothing is lost.
    """

    rates: Float[Array, "..."] | None
    spin_rates: Float[Array, "..."] | None

    def lost(
        self, frames: Float[Array, "nodes 3 3"], spun: Rows, pushed: Rows, h: Float[Array, ""]
    ) -> Float[Array, "nodes 6"]:
        """Return the change of the momenta in a time `h`, exactly, in frames that stand still."""

        def part(rates: Float[Array, "..."]) -> Float[Array, "..."]:
            return jnp.expm1(-h * rates)

        return self._changed(frames, spun, pushed, part)

    def force(
        self, frames: Float[Array, "nodes 3 3"], spun: Rows, pushed: Rows
    ) -> Float[Array, "nodes 6"]:
        """Return the forces on nodes with these momenta."""
        return self._changed(frames, spun, pushed, lambda rates: -rates)

    def _changed(self, frames, spun, pushed, part) -> Float[Array, "nodes 6"]:
        turn = None
        if self.spin_rates is not None:
            turn = spun * jnp.broadcast_to(part(self.spin_rates), spun.shape)
        push = None
        if self.rates is not None:
            share = part(self.rates)
            if share.ndim == 0:
                push = share * pushed
            else:
                rows = jnp.broadcast_to(share, pushed.shape)
                push = jax.vmap(lambda R, c, p: R @ (c * (R.T @ p)))(frames, rows, pushed)
        return beside(turn, push)

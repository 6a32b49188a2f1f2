"""Loads on the nodes of rods, in space and in the body."""

import jax
from jaxtyping import Array, Float

from retrax.nodal.drag import Rows, beside
from retrax.numerics.frozen import Frozen
from retrax.systems.rods.along import Profile, at_time


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

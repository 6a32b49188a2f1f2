"""Supports that move: a node whose pose is a function of time."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.groups.so3 import SO3
from retrax.mechanics.functions import Function
from retrax.nodal.flight import Rows
from retrax.numerics.frozen import Frozen

Rotation = Float[Array, "3 3"]
Vector = Float[Array, "3"]
Frames = Float[Array, "nodes 3 3"]


class Pose(Frozen):
    """Where a support is at one time, and how it moves: in space and, turning, in the body."""

    node: int = eqx.field(static=True)
    frame: Rotation | None  # of a clamp
    place: Vector
    spin: Vector | None
    velocity: Vector


class Base(Frozen):
    """A support that moves: `function(t)` is its place or, of a clamp, its frame and its place."""

    node: int = eqx.field(static=True)
    clamped: bool = eqx.field(static=True)
    function: Function

    def at(self, t: Float[Array, ""]) -> Pose:
        """Return the pose at one time."""
        (frame, place), (turning, velocity) = jax.jvp(self._pose, (t,), (jnp.ones_like(t),))
        if not self.clamped:
            return Pose(self.node, None, place, None, velocity)
        return Pose(self.node, frame, place, SO3().vee(frame.T @ turning), velocity)

    def _pose(self, t: Float[Array, ""]) -> tuple[Rotation, Vector]:
        if not self.clamped:
            return jnp.eye(3), jnp.asarray(self.function(t))
        frame, place = self.function(t)
        return jnp.asarray(frame), jnp.asarray(place)

    def shift(self, by: int) -> "Base":
        """Return the same for nodes that are counted from elsewhere."""
        return Base(self.node + by, self.clamped, self.function)


def put(pose: Pose, frames: Frames, places: Rows) -> tuple[Frames, Rows]:
    """Put the node of a support where it is."""
    here = np.arange(len(places)) == pose.node
    places = jax.vmap(lambda own, x: jnp.where(own, pose.place, x))(here, places)
    frame = pose.frame
    if frame is None:
        return frames, places
    return jax.vmap(lambda own, R: jnp.where(own, frame, R))(here, frames), places


def rates(pose: Pose, nodes: int) -> Float[Array, " dim"]:
    """Return the velocity of a support among those of all nodes."""
    spin = jnp.zeros(3) if pose.spin is None else pose.spin
    return _among(pose.node, nodes, spin, pose.velocity)


def mean_rates(
    pose: Pose, frames: Frames, places: Rows, h: Float[Array, ""]
) -> Float[Array, " dim"]:
    """Return the mean velocity with which a support gets to its pose in a time `h`."""
    spin = jnp.zeros(3)
    if pose.frame is not None:
        spin = SO3().cay_inv(frames[pose.node].T @ pose.frame) / h
    return _among(pose.node, len(places), spin, (pose.place - places[pose.node]) / h)


def _among(node: int, nodes: int, spin: Vector, velocity: Vector) -> Float[Array, " dim"]:
    """Return the velocity of one node among those of all."""
    row = jnp.concatenate([spin, velocity])
    return jax.vmap(lambda own: own * row)((np.arange(nodes) == node).astype(float)).reshape(-1)

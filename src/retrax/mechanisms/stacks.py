"""Joints of one kind, side by side: their laws stacked, so that many take no more code than one."""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.mechanisms.laws import AbstractLaw, Blocks
from retrax.mechanisms.pose import Pose
from retrax.numerics.checks import is_traced
from retrax.numerics.frozen import Frozen


class Placed(NamedTuple):
    """A joint in its place: its law and which bodies it binds."""

    law: AbstractLaw
    bodies: tuple[int, ...]


class Stack(Frozen):
    """Laws of the same form, one for each of several joints.

    **Attributes:** `law`: one law with a leading axis on each of its arrays; `bodies`: those of
    each joint; `places`: the numbers of the joints among all of the mechanism; `count`: how many
    equations each of them has.
    """

    law: AbstractLaw
    bodies: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    places: tuple[int, ...] = eqx.field(static=True)
    count: int = eqx.field(static=True)

    def one(self, k: int) -> AbstractLaw:
        """Return one of the laws."""
        return jax.tree.map(lambda leaf: _row(leaf, k), self.law)

    def residual(self, *poses: Pose) -> Float[Array, "joints k"]:
        """Return what all of them ask, their poses stacked too."""
        return jax.vmap(lambda law, *poses: law.residual(*poses))(self.law, *poses)

    def rows(self, *poses: Pose) -> Blocks:
        """Return the rows of all of them."""
        return jax.vmap(lambda law, *poses: law.rows(*poses))(self.law, *poses)

    def taken(self, places: np.ndarray) -> "Stack":
        """Return the laws at these places of the stack."""
        law = jax.tree.map(lambda leaf: leaf[places], self.law)
        bodies = tuple(self.bodies[k] for k in places)
        return Stack(law, bodies, tuple(self.places[k] for k in places), self.count)


def stacked(joints: Sequence[Placed]) -> tuple[Stack, ...]:
    """Put joints with laws of the same form together."""
    kinds: dict[object, list[int]] = {}
    for k, joint in enumerate(joints):
        leaves, form = jax.tree.flatten(joint.law)
        shapes = tuple(np.shape(leaf) for leaf in leaves)
        kinds.setdefault((form, shapes, len(joint.bodies)), []).append(k)
    return tuple(
        Stack(
            jax.tree.map(_stacked, *(joints[k].law for k in places)),
            tuple(joints[k].bodies for k in places),
            tuple(places),
            joints[places[0]].law.count,
        )
        for places in kinds.values()
    )


def _stacked(*leaves: Array) -> Array:
    if any(is_traced(leaf) for leaf in leaves):
        return jnp.stack(leaves)
    return jnp.asarray(np.stack([np.asarray(leaf) for leaf in leaves]))


def _row(leaf: Array, k: int) -> Array:
    return leaf[k] if is_traced(leaf) else jnp.asarray(np.asarray(leaf)[k])

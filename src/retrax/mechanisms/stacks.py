"""Joints of one kind, side by side: their laws stacked, so that many take no more code than one."""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.mechanisms.laws import (
    AbstractLaw,
    Apart,
    Blocks,
    Coincidence,
    InPlanes,
    Several,
)
from retrax.mechanisms.measures import Coordinate
from retrax.mechanisms.pose import Pose, Vector
from retrax.numerics.checks import is_traced
from retrax.numerics.evaluate import as_jax
from retrax.numerics.frozen import Frozen
from retrax.numerics.jax_hints import keep_axis

# So few joints are put in order one by one.
_FEW = 15


class Joined(NamedTuple):
    """What a joint is made of: its law, the coordinates it leaves free, and where forces act."""

    law: AbstractLaw
    coordinates: tuple[Coordinate, ...]
    at: Vector


class Stack(Frozen):
    """Joints of the same kind.

    **Attributes:** `parts`: those of one joint, with a leading axis on each of their arrays;
    `bodies`: of each joint; `places`: the numbers of the joints among all of the mechanism;
    `count`: how many equations each of them has; `kind`: the name of their class.
    """

    parts: Joined
    bodies: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    places: tuple[int, ...] = eqx.field(static=True)
    count: int = eqx.field(static=True)
    kind: str = eqx.field(static=True)

    def __check_init__(self) -> None:
        """Reject parts that contradict each other, as those of a file may."""
        if is_traced(self.parts):
            return
        law, _, at = self.one(0)
        laws = law.laws if isinstance(law, Several) else (law,)
        ends = [law.b for law in laws if isinstance(law, Coincidence | InPlanes | Apart)]
        if self.kind.startswith("Rolling"):  # the height of a wheel is told at the centre of mass
            ends = [np.zeros_like(at)]
        if law.count != self.count or any(not np.allclose(at, end, 1e-9, 1e-9) for end in ends):
            raise BadInput(f"the parts of a {self.kind} joint contradict each other.")

    @property
    def sides(self) -> np.ndarray:
        """The first bodies of all joints, the second, and so on."""
        return np.array(self.bodies).T

    def one(self, k: int) -> Joined:
        """Return one of the joints."""
        return jax.tree.map(lambda leaf: _row(leaf, k), self.parts)

    def residual(self, *poses: Pose) -> Float[Array, "joints k"]:
        """Return by how much all laws are broken, with the poses of all joints stacked too."""
        law, poses = keep_axis((self.parts.law, poses))
        return jax.vmap(lambda law, *poses: law.residual(*poses))(law, *poses)

    def rows(self, *poses: Pose) -> Blocks:
        """Return the rows of all laws."""
        law, poses = keep_axis((self.parts.law, poses))
        return jax.vmap(lambda law, *poses: law.rows(*poses))(law, *poses)

    def side(self, *poses: Pose) -> Float[Array, "joints sides"]:
        """Return the numbers that are positive where joints are put together as drawn."""
        return jax.vmap(lambda law, *poses: law.side(*poses))(self.parts.law, *poses)

    def take(self, places: np.ndarray) -> "Stack":
        """Return the joints at these places of the stack."""
        parts = jax.tree.map(lambda leaf: leaf[places], self.parts)
        bodies, numbers = zip(*((self.bodies[k], self.places[k]) for k in places), strict=True)
        return Stack(parts, bodies, numbers, self.count, self.kind)


def stack_joints(joints: Sequence[tuple[Joined, tuple[int, ...], str]]) -> tuple[Stack, ...]:
    """Put joints of one kind together, given with their bodies and the names of their kinds."""
    kinds: dict[object, list[int]] = {}
    for k, (parts, bodies, kind) in enumerate(joints):
        leaves, form = jax.tree.flatten(parts)
        shapes = tuple(np.shape(leaf) for leaf in leaves)
        kinds.setdefault((form, shapes, len(bodies), kind), []).append(k)
    return tuple(
        Stack(
            jax.tree.map(in_rows, *(joints[k][0] for k in places)),
            tuple(joints[k][1] for k in places),
            tuple(places),
            joints[places[0]][0].law.count,
            joints[places[0]][2],
        )
        for places in kinds.values()
    )


def in_order(
    stacks: Sequence[Stack], parts: Sequence[Float[Array, "joints k"]]
) -> Float[Array, " all"]:
    """Put what stacks have found for each joint one after the other, as joints were written."""
    if len(parts) == 1:
        return parts[0].reshape(-1)
    found = {
        place: (which, k)
        for which, stack in enumerate(stacks)
        for k, place in enumerate(stack.places)
    }
    each = [found[place] for place in range(len(found))]
    if len(each) <= _FEW:
        return jnp.concatenate([jnp.zeros(0), *(parts[which][k] for which, k in each)])
    first = np.cumsum([0, *(part.size for part in parts)])
    widths = [part.shape[1] for part in parts]
    places = [first[which] + k * widths[which] + np.arange(widths[which]) for which, k in each]
    return jnp.concatenate([part.reshape(-1) for part in parts])[np.concatenate(places)]


def in_rows(*leaves: Array) -> Array:
    """Stack arrays; nothing is compiled for those whose numbers are known."""
    if any(is_traced(leaf) for leaf in leaves):
        return jnp.stack(leaves)
    return as_jax(np.stack([np.asarray(leaf) for leaf in leaves]))


def _row(leaf: Array, k: int) -> Array:
    return leaf[k] if is_traced(leaf) else as_jax(np.asarray(leaf)[k])

r"""The joints of a mechanism as one constraint on its group."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.groups.base import AbstractLieGroup, Element
from retrax.mechanics.constraints import AbstractConstraint, Rows, Time
from retrax.mechanics.holonomic import AbstractHolonomic
from retrax.mechanisms.laws import AbstractLaw
from retrax.mechanisms.pose import Pose, ground
from retrax.mechanisms.stacks import Placed, Stack, stacked
from retrax.numerics.frozen import Frozen

GROUND = -1


class Connection(Frozen):
    """A law, and which bodies of a mechanism it binds.

    **Attributes:** `law`; `bodies`: their indices, `GROUND` for what does not move; `name`.
    """

    law: AbstractLaw
    bodies: tuple[int, ...] = eqx.field(static=True)
    name: str = eqx.field(static=True)

    def poses(self, g: Element) -> tuple[Pose, ...]:
        """Return where its bodies are."""
        return tuple(pose_of(g, i) for i in self.bodies)


def pose_of(g: Element, body: int) -> Pose:
    """Return where one body is."""
    R, x = g
    return ground(x.shape[1]) if body == GROUND else Pose(R[body], x[body])


class Joints(AbstractHolonomic):
    """The joints of a mechanism, and its wheels.

    **Attributes:** `stacks`: the joints, those of one kind side by side; `names`: of the joints;
    `rolling`: what rolls, or `None`; `n`: how many bodies; `d`: 3, or 2 in the plane.
    """

    stacks: tuple[Stack, ...]
    names: tuple[str, ...] = eqx.field(static=True)
    rolling: AbstractConstraint | None
    n: int = eqx.field(static=True)
    d: int = eqx.field(static=True)

    def __init__(
        self,
        connections: tuple[Connection, ...],
        rolling: AbstractConstraint | None,
        n: int,
        d: int,
    ):
        self.stacks = stacked([Placed(c.law, c.bodies) for c in connections])
        self.names = tuple(c.name for c in connections)
        self.rolling, self.n, self.d = rolling, n, d

    @property
    def connections(self) -> tuple[Connection, ...]:
        """The joints one by one, in the order in which they were written."""
        found = {
            place: Connection(stack.one(k), bodies, self.names[place])
            for stack in self.stacks
            for k, (place, bodies) in enumerate(zip(stack.places, stack.bodies, strict=True))
        }
        return tuple(found[k] for k in range(len(found)))

    @property
    def bodies(self) -> tuple[tuple[int, ...], ...]:
        """Which bodies each joint binds."""
        found = {k: b for s in self.stacks for k, b in zip(s.places, s.bodies, strict=True)}
        return tuple(found[k] for k in range(len(found)))

    @property
    def counts(self) -> tuple[int, ...]:
        """How many equations each joint has."""
        found = {place: stack.count for stack in self.stacks for place in stack.places}
        return tuple(found[k] for k in range(len(found)))

    @property
    def moving(self) -> bool:
        return False

    def positions(self, g: Element, t: Time) -> Float[Array, " k"]:
        parts = [stack.residual(*self._poses(stack, g)).reshape(-1) for stack in self.stacks]
        return jnp.concatenate(parts)[self._in_order()]

    def position_rows(self, g: Element, t: Time) -> Rows:
        width = self.d * (self.d + 1) // 2
        whole = []
        for stack in self.stacks:
            rows = jnp.zeros((len(stack.places), stack.count, self.n + 1, width))
            each = np.arange(len(stack.places))
            for side, block in enumerate(stack.rows(*self._poses(stack, g))):
                rows = rows.at[each, :, _side(stack, side)].add(block)
            whole.append(rows[:, :, : self.n].reshape(-1, self.n * width))
        return jnp.concatenate(whole)[self._in_order()]

    def position_rates(self, g: Element, t: Time) -> Float[Array, " k"]:
        return jnp.zeros(sum(self.counts))

    def check(self, group: AbstractLieGroup) -> None:
        pass

    def _poses(self, stack: Stack, g: Element) -> tuple[Pose, ...]:
        """Return where the bodies of a stack of joints are; the ground is the last of all."""
        R, x = g
        still = ground(self.d)
        R, x = jnp.concatenate([R, still.R[None]]), jnp.concatenate([x, still.x[None]])
        sides = [_side(stack, s) for s in range(len(stack.bodies[0]))]
        return tuple(Pose(R[side], x[side]) for side in sides)

    def _in_order(self) -> np.ndarray:
        """Return where the rows of the joints stand among those of the stacks."""
        first, count = {}, 0
        for stack in self.stacks:
            for place in stack.places:
                first[place], count = count, count + stack.count
        return np.concatenate([first[k] + np.arange(c) for k, c in enumerate(self.counts)])


def _side(stack: Stack, s: int) -> np.ndarray:
    """Return which bodies are number `s` of the joints of a stack; -1 is the ground."""
    return np.array([bodies[s] for bodies in stack.bodies])

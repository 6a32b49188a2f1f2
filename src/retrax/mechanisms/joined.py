r"""The joints of a mechanism as one constraint on its group."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.base import AbstractLieGroup, Element
from retrax.mechanics.constraints import AbstractConstraint, Rows, Time
from retrax.mechanics.holonomic import AbstractHolonomic
from retrax.mechanisms.laws import AbstractLaw
from retrax.mechanisms.pose import Pose, ground
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

    **Attributes:** `connections`: one for each joint; `rolling`: what rolls, or `None`; `n`: how
    many bodies; `d`: 3, or 2 in the plane.
    """

    connections: tuple[Connection, ...]
    rolling: AbstractConstraint | None
    n: int = eqx.field(static=True)
    d: int = eqx.field(static=True)

    @property
    def moving(self) -> bool:
        return False

    def positions(self, g: Element, t: Time) -> Float[Array, " k"]:
        return jnp.concatenate([c.law.residual(*c.poses(g)) for c in self.connections])

    def position_rows(self, g: Element, t: Time) -> Rows:
        width = self.d * (self.d + 1) // 2
        whole = []
        for c in self.connections:
            rows = jnp.zeros((c.law.count, self.n, width))
            for body, block in zip(c.bodies, c.law.rows(*c.poses(g)), strict=True):
                if body != GROUND:
                    rows = rows.at[:, body].add(block)
            whole.append(rows.reshape(c.law.count, self.n * width))
        return jnp.concatenate(whole)

    def position_rates(self, g: Element, t: Time) -> Float[Array, " k"]:
        return jnp.zeros(sum(c.law.count for c in self.connections))

    def check(self, group: AbstractLieGroup) -> None:
        pass

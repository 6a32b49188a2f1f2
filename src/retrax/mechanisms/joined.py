r"""The joints of a mechanism as one constraint on its group."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.base import AbstractLieGroup, Coordinates, Element
from retrax.mechanics.constraints import Rows, Time
from retrax.mechanics.holonomic import AbstractHolonomic
from retrax.mechanisms.body import GROUND
from retrax.mechanisms.laws import AbstractLaw, Residual, Side
from retrax.mechanisms.measures import Coordinate, Measured
from retrax.mechanisms.pose import Pose, Vector, ground
from retrax.mechanisms.rolling import Rolling
from retrax.numerics.frozen import Frozen


class Connection(Frozen):
    """A law, and which bodies of a mechanism it binds.

    **Attributes:**

    - `law`: what is asked.
    - `coordinates`: the angles and travels that it leaves free, between its first two bodies.
    - `at`: the point of the second body at which forces and torques are told, in body axes.
    - `bodies`: the indices of its bodies, `GROUND` for what does not move. Of a gear or a rack they
        are those of both joints, so that one may come twice.
    - `name`; `kind`: the name of its class as users write it.
    """

    law: AbstractLaw
    coordinates: tuple[Coordinate, ...]
    at: Vector
    bodies: tuple[int, ...] = eqx.field(static=True)
    name: str = eqx.field(static=True)
    kind: str = eqx.field(static=True)

    @property
    def words(self) -> tuple[str, ...]:
        """What each coordinate is called: "angle", or "angle 2" where there are several."""
        kinds = ["angle" if c.is_angle else "position" for c in self.coordinates]
        return tuple(
            kind if kinds.count(kind) == 1 else f"{kind} {kinds[: k + 1].count(kind)}"
            for k, kind in enumerate(kinds)
        )

    def poses(self, g: Element) -> tuple[Pose, ...]:
        """Return where its bodies are."""
        return tuple(pose_of(g, i) for i in self.bodies)

    def residual(self, g: Element) -> Residual:
        """Return by how much its law is broken."""
        return self.law.residual(*self.poses(g))

    def side(self, g: Element) -> Side:
        """Return the numbers that are positive where it is put together as drawn."""
        return self.law.side(*self.poses(g))

    def speeds(self, g: Element, each: Float[Array, "n dim"]) -> Residual:
        """Return how fast its law would be broken at the velocities of all bodies, a row each."""
        blocks = self.law.rows(*self.poses(g))
        moving = zip(self.bodies, blocks, strict=True)
        parts = [block @ each[body] for body, block in moving if body != GROUND]
        return sum(parts, jnp.zeros(self.law.count))

    def measured(self, g: Element) -> tuple[Measured, ...]:
        """Return its coordinates."""
        poses = self.poses(g)[:2]
        return tuple(coordinate.of(*poses) for coordinate in self.coordinates)


def pose_of(g: Element, body: int) -> Pose:
    """Return where one body is."""
    R, x = g
    return ground(x.shape[1]) if body == GROUND else Pose(R[body], x[body])


def spread(blocks: dict[int, Float[Array, "k dim"]], n: int) -> Float[Array, "k whole"]:
    """Return rows over all bodies from the blocks of some."""
    some = next(iter(blocks.values()))
    still = jnp.zeros_like(some)
    return jnp.concatenate([blocks.get(i, still) for i in range(n)], axis=1)


def gathered(
    bodies: tuple[int, ...], blocks: tuple[Float[Array, "k dim"], ...]
) -> dict[int, Float[Array, "k dim"]]:
    """Add up the blocks of each body that moves."""
    found: dict[int, Float[Array, "k dim"]] = {}
    for body, block in zip(bodies, blocks, strict=True):
        if body != GROUND:
            found[body] = found[body] + block if body in found else block
    return found


class Joints(AbstractHolonomic):
    """The joints of a mechanism, and its wheels.

    **Attributes:** `connections`: one for each joint, and one for the height of each wheel;
    `rolling`: what rolls, or `None`; `n`: how many bodies; `d`: 3, or 2 in the plane.
    """

    connections: tuple[Connection, ...]
    rolling: Rolling | None
    n: int = eqx.field(static=True)
    d: int = eqx.field(static=True)

    @property
    def moving(self) -> bool:
        return False

    @property
    def position_count(self) -> int:
        """How many equations positions obey."""
        return sum(c.law.count for c in self.connections)

    def positions(self, g: Element, t: Time) -> Float[Array, " k"]:
        return jnp.concatenate([jnp.zeros(0), *(c.residual(g) for c in self.connections)])

    def position_rows(self, g: Element, t: Time) -> Rows:
        whole = [jnp.zeros((0, self.n * self.d * (self.d + 1) // 2))]
        for c in self.connections:
            whole.append(spread(gathered(c.bodies, c.law.rows(*c.poses(g))), self.n))
        return jnp.concatenate(whole)

    def position_rates(self, g: Element, t: Time) -> Float[Array, " k"]:
        return jnp.zeros(self.position_count)

    def sides(self, g: Element) -> Float[Array, " sides"]:
        """Return the numbers that are positive where all joints are put together as drawn."""
        return jnp.concatenate([jnp.zeros(0), *(c.side(g) for c in self.connections)])

    def violation(self, g: Element, xi: Coordinates, t: Time) -> Float[Array, " k"]:
        each = xi.reshape(self.n, -1)
        parts = [jnp.zeros(0), *(c.speeds(g, each) for c in self.connections)]
        if self.rolling is not None:
            parts.append(self.rolling.violation(g, xi, t))
        return jnp.concatenate(parts)

    def gap(self, g: Element, t: Time) -> Float[Array, ""]:
        return jnp.max(jnp.abs(self.positions(g, t)), initial=0.0)

    def check(self, group: AbstractLieGroup) -> None:
        """Do nothing: `Mechanism.system` makes the group and its joints together."""

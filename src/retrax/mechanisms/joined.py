r"""The joints of a mechanism as one constraint on its group."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.base import AbstractLieGroup, Coordinates, Element
from retrax.mechanics.constraints import Rows, Time
from retrax.mechanics.holonomic import AbstractHolonomic
from retrax.mechanisms.body import GROUND
from retrax.mechanisms.laws import AbstractLaw, Residual, Screwed, Several, Side
from retrax.mechanisms.measures import Coordinate, Measured
from retrax.mechanisms.pose import Pose, Vector, ground
from retrax.mechanisms.rolling import Rolling
from retrax.mechanisms.stacks import Joined, Stack, in_order, stack_joints
from retrax.numerics.frozen import Frozen


class Connection(Frozen):
    """A law, and which bodies of a mechanism it binds.

    **Attributes:**

    - `law`: what is asked.
    - `coordinates`: the angles and travels that it leaves free, between its first two bodies.
    - `at`: the point of the last body at which forces and torques are told, in body axes.
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

    @property
    def lead(self) -> Float[Array, ""] | None:
        """The travel per radian of a Screw, whose travel tells its turns apart; else `None`."""
        parts = self.law.laws if isinstance(self.law, Several) else ()
        found = [law.thread.lead for law in parts if isinstance(law, Screwed)]
        return found[0] if found else None

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

    def measure(self, g: Element) -> tuple[Measured, ...]:
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


def add_blocks(
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

    **Attributes:** `stacks`: the joints, and the heights of the wheels, those of one kind side by
    side; `names`: of all of these; `rolling`: what rolls, or `None`; `n`: how many bodies; `d`: 3,
    or 2 in the plane.
    """

    stacks: tuple[Stack, ...]
    names: tuple[str, ...] = eqx.field(static=True)
    rolling: Rolling | None
    n: int = eqx.field(static=True)
    d: int = eqx.field(static=True)

    def __init__(
        self, connections: tuple[Connection, ...], rolling: Rolling | None, n: int, d: int
    ):
        self.stacks = stack_joints(
            [(Joined(c.law, c.coordinates, c.at), c.bodies, c.kind) for c in connections]
        )
        self.names = tuple(c.name for c in connections)
        self.rolling, self.n, self.d = rolling, n, d

    @property
    def connections(self) -> tuple[Connection, ...]:
        """One for each joint, and one for the height of each wheel, as they were written."""
        found = {
            place: Connection(*stack.one(k), stack.bodies[k], self.names[place], stack.kind)
            for stack in self.stacks
            for k, place in enumerate(stack.places)
        }
        return tuple(found[k] for k in range(len(found)))

    @property
    def bodies(self) -> tuple[tuple[int, ...], ...]:
        """Which bodies each of them binds."""
        found = {k: b for s in self.stacks for k, b in zip(s.places, s.bodies, strict=True)}
        return tuple(found[k] for k in range(len(found)))

    @property
    def counts(self) -> tuple[int, ...]:
        """How many equations each of them has."""
        found = {place: stack.count for stack in self.stacks for place in stack.places}
        return tuple(found[k] for k in range(len(found)))

    @property
    def moving(self) -> bool:
        return False

    @property
    def position_count(self) -> int:
        """How many equations positions obey."""
        return sum(stack.count * len(stack.places) for stack in self.stacks)

    def positions(self, g: Element, t: Time) -> Float[Array, " k"]:
        return in_order(self.stacks, [s.residual(*self.poses(s, g)) for s in self.stacks])

    def position_rows(self, g: Element, t: Time) -> Rows:
        whole = [jnp.zeros((0, self.n * self.d * (self.d + 1) // 2))]
        for c in self.connections:
            whole.append(spread(add_blocks(c.bodies, c.law.rows(*c.poses(g))), self.n))
        return jnp.concatenate(whole)

    def position_rates(self, g: Element, t: Time) -> Float[Array, " k"]:
        return jnp.zeros(self.position_count)

    def sides(self, g: Element) -> Float[Array, " sides"]:
        """Return the numbers that are positive where all joints are put together as drawn."""
        return in_order(self.stacks, [s.side(*self.poses(s, g)) for s in self.stacks])

    def violation(self, g: Element, xi: Coordinates, t: Time) -> Float[Array, " k"]:
        parts = [self._speeds(stack, g, xi, jnp.asarray) for stack in self.stacks]
        above = in_order(self.stacks, parts)
        if self.rolling is None:
            return above
        return jnp.concatenate([above, self.rolling.violation(g, xi, t)])

    def reach(self, g: Element, xi: Coordinates, t: Time) -> Float[Array, " k"]:
        parts = [self._speeds(stack, g, xi, jnp.abs) for stack in self.stacks]
        above = in_order(self.stacks, parts)
        if self.rolling is None:
            return above
        return jnp.concatenate([above, self.rolling.reach(g, xi, t)])

    def steepness(
        self, g: Element, moved: Element, t: Time
    ) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
        steep, turns = [], []
        for stack in self.stacks:
            rows, turning = jax.jvp(lambda k, s=stack: s.rows(*self.poses(s, k)), (g,), (moved,))
            steep.append(sum(jnp.sum(jnp.abs(block), axis=-1) for block in rows))
            turns.append(jnp.max(jnp.abs(jnp.concatenate(turning, axis=-1)), axis=-1))
        return in_order(self.stacks, steep), in_order(self.stacks, turns)

    def gap(self, g: Element, t: Time) -> Float[Array, ""]:
        return jnp.max(jnp.abs(self.positions(g, t)), initial=0.0)

    def equation(self, i: int) -> str:
        owners = [
            name for name, count in zip(self.names, self.counts, strict=True) for _ in range(count)
        ]
        if self.rolling is not None:
            owners += [one.name for one in self.rolling.contacts for _ in range(one.contact.count)]
        first = owners.index(owners[i])
        return f"equation {i - first + 1} of {owners[i]!r}"

    def check(self, group: AbstractLieGroup) -> None:
        """Do nothing: `Mechanism.system` makes the group and its joints together."""

    def poses(self, stack: Stack, g: Element) -> tuple[Pose, ...]:
        """Return the poses of the bodies of a stack of joints; the ground comes last."""
        still, (R, x) = ground(self.d), g
        R, x = jnp.concatenate([R, still.R[None]]), jnp.concatenate([x, still.x[None]])
        return tuple(Pose(R[side], x[side]) for side in stack.sides % (self.n + 1))

    def _speeds(
        self, stack: Stack, g: Element, xi: Coordinates, size: Callable[[Array], Array]
    ) -> Float[Array, "joints k"]:
        """Return how fast the laws of a stack would be broken; `size`: of the factors."""
        each = xi.reshape(self.n, -1)
        each = size(jnp.concatenate([each, jnp.zeros_like(each[:1])]))
        blocks = zip(stack.sides % (self.n + 1), stack.rows(*self.poses(stack, g)), strict=True)
        parts = [jnp.einsum("nki,ni->nk", size(rows), each[side]) for side, rows in blocks]
        return sum(parts[1:], parts[0])

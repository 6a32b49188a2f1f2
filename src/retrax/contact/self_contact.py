"""Contact of rods with themselves, with each other, and with what stands in space."""

import math
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from retrax.contact.capsules import Numbers, Points, distance, dot, foot
from retrax.contact.shapes import AbstractSurface, Ball, Capsule, Plane
from retrax.errors import BadInput
from retrax.mechanics.contact import AbstractTouching
from retrax.numerics.checks import (
    ArrayLike,
    finite64,
    positive64,
    require_instance,
    require_whole,
    shown,
)

# Pairs of segments that may be near each other, for each node, unless the user says how many.
_NEIGHBOURS = 4
# Pairs of segments whose distances are found at once.
_AT_ONCE = 1 << 16


class SelfContact(AbstractTouching):
    r"""What a rod, or several, may touch: itself, the others, and what stands in space.

    A rod is a chain of capsules of radius $a$: segments with round ends. Points of one rod that are
    nearer than $\pi a$ along it, half the circle of its tightest bend, are left out, and so are
    segments that have a node in common.

    **Arguments:**

    - `radius`: $a$ in m, of the surface that touches.
    - `friction`: Coulomb's coefficient.
    - `restitution`: which part of the approach comes back at an impact, from 0 to 1.
    - `against`: planes, balls and posts with round ends that stand in space: `rx.Plane`, `rx.Ball`
        and `rx.Capsule` without a body.
    - `itself`: whether rods touch themselves and each other, or only what stands in space.
    - `closed`: whether each rod is a ring, whose last node lies on its first: points near each
        other across that place do not touch either.
    - `skin`: in m. Pairs of segments whose surfaces are nearer than this are looked at in every
        step, and found anew when a node has moved by half of it. It is the radius by default.
    - `capacity`: the number of such pairs that there is room for; four for each node by default.
    """

    radius: Float[Array, ""]
    friction: Float[Array, ""]
    restitution: Float[Array, ""]
    skin: Float[Array, ""]
    against: tuple[AbstractSurface, ...]
    itself: bool = eqx.field(static=True)
    closed: bool = eqx.field(static=True)
    capacity: int | None = eqx.field(static=True)
    strands: tuple[int, ...] = eqx.field(static=True)
    arcs: Float[Array, " nodes"] | None

    def __init__(
        self,
        radius: ArrayLike,
        friction: ArrayLike = 0.0,
        restitution: ArrayLike = 0.0,
        *,
        against: Sequence[AbstractSurface] = (),
        itself: bool = True,
        closed: bool = False,
        skin: ArrayLike | None = None,
        capacity: int | None = None,
    ):
        self.radius = positive64("radius", radius)
        self.friction = _between("friction", friction, 0.0, math.inf)
        self.restitution = _between("restitution", restitution, 0.0, 1.0)
        self.skin = self.radius if skin is None else positive64("skin", skin)
        shapes = [against] if isinstance(against, AbstractSurface) else against
        self.against = tuple(_standing(shape) for shape in shapes)
        self.itself, self.closed = bool(itself), bool(closed)
        self.capacity = None if capacity is None else require_whole("capacity", capacity, 1, 10**7)

        self.strands, self.arcs = (), None

    def on(self, strands: tuple[int, ...], arcs: Float[Array, " nodes"]) -> "SelfContact":
        """Return the same contact, which knows the nodes of each rod and their arc lengths."""
        other = object.__new__(SelfContact)
        for name, value in (vars(self) | {"strands": strands, "arcs": arcs}).items():
            object.__setattr__(other, name, value)
        return other

    @property
    def bend(self) -> Float[Array, ""]:
        """Points of a rod nearer than this along it do not touch."""
        return math.pi * self.radius

    def beside(
        self,
        arcs: Float[Array, " nodes"],
        after: Int[Array, " nodes"],
        i: Int[Array, ""],
        j: Int[Array, "..."],
    ) -> Bool[Array, "..."]:
        """Return whether segments `j` that follow `i` on its rod are too near along it to touch."""
        near = (arcs[j] - arcs[after[i]] < self.bend) | (j <= after[i])
        if not self.closed:
            return near
        last = jnp.asarray(np.repeat(np.cumsum(self.strands) - 1, self.strands), jnp.int32)
        return near | (arcs[last[i]] - arcs[after[j]] + arcs[i] < self.bend)

    def gaps(self, g: tuple[Array, Points]) -> Numbers:
        """Return how far every segment is from the others, then from what stands in space."""
        assert self.arcs is not None
        _, places = g
        n, arcs = len(places), self.arcs
        last, rod = (
            np.cumsum(self.strands) - 1,
            np.repeat(np.arange(len(self.strands)), self.strands),
        )
        after = np.arange(1, n + 1)
        after[last] = last
        along, every = places[after] - places, np.arange(n)

        def others(i: Int[Array, ""]) -> Float[Array, ""]:
            r, own = places[i][None] - places, jnp.broadcast_to(along[i], (n, 3))
            apart = distance(r, own, along) - 2 * self.radius
            near = (rod == rod[i]) & self.beside(arcs, jnp.asarray(after), i, jnp.asarray(every))
            return jnp.min(jnp.where(near | (every <= i), jnp.inf, apart))

        rod, after = jnp.asarray(rod), jnp.asarray(after)
        many = max(1, min(n, _AT_ONCE // n))
        parts = [lax.map(others, jnp.arange(n), batch_size=many)] if self.itself else []
        for shape in self.against:
            if isinstance(shape, Plane):
                apart = (places - shape.at[None]) @ shape.normal - self.radius
            elif isinstance(shape, Capsule):
                core = jnp.broadcast_to((shape.length * shape.axis)[None], along.shape)
                start = (shape.at - shape.length / 2 * shape.axis)[None]
                apart = distance(places - start, along, core) - shape.radius - self.radius
            else:
                assert isinstance(shape, Ball)
                on, _ = foot(shape.at[None] - places, along)
                point = places + on[:, None] * along - shape.at[None]
                apart = jnp.sqrt(dot(point, point)) - shape.radius - self.radius
            parts.append(apart)
        return jnp.concatenate(parts) if parts else jnp.zeros(0)

    def overlap(self, candidate: int, depth: float) -> str:
        """Return a sentence about a start at which segments overlap."""
        kind, node = divmod(candidate, sum(self.strands))
        kind = kind if self.itself else kind + 1
        other = "another segment" if kind == 0 else f"the {self.against[kind - 1].name}"
        return (
            f"{segment_name(self.strands, node)} and {other} overlap by {depth:.3g} m in this "
            "state. Move them apart by as much, or take a smaller radius of contact."
        )

    def room(self, nodes: int) -> int:
        """Return how many pairs of segments there is room for in a system of so many nodes."""
        if not self.itself:
            return 0
        most = nodes * (nodes - 1) // 2
        return min(most, _NEIGHBOURS * nodes if self.capacity is None else self.capacity)

    def slots(self, nodes: int) -> int:
        """Return how many contacts there may be at most."""
        return 3 * self.room(nodes) + nodes * len(self.against)


def touching(
    contact: object, strands: tuple[int, ...], arcs: Float[Array, " nodes"]
) -> SelfContact | None:
    """Return the contact that rods with so many nodes were given, if it is one."""
    if contact is None:
        return None
    what = "what rods may touch: an rx.SelfContact"
    return require_instance("contact", contact, SelfContact, what).on(strands, arcs)


def segment_name(strands: tuple[int, ...], node: int) -> str:
    """Return what sentences call the segment that begins at a node."""
    ends = np.cumsum(strands)
    rod = int(np.searchsorted(ends, node, side="right"))
    own = node - int(ends[rod]) + strands[rod]
    return f"segment {own}" if len(strands) == 1 else f"segment {own} of rod {rod}"


def _standing(shape: AbstractSurface) -> AbstractSurface:
    if not isinstance(shape, Plane | Ball | Capsule):
        raise BadInput(
            f"against has {shown(shape)}, but rods touch planes, balls and capsules: rx.Plane, "
            "rx.Ball, rx.Capsule."
        )
    if shape.body is not None:
        raise BadInput(
            f"against has the {shape.name} on the body {shape.body!r}, but what a rod touches "
            "stands in space: leave body out."
        )
    return shape


def _between(name: str, given: ArrayLike, low: float, high: float) -> Float[Array, ""]:
    value = finite64(name, given)
    if not np.all((np.asarray(value) >= low) & (np.asarray(value) <= high)):
        top = "" if high == math.inf else f" and at most {high:g}"
        raise BadInput(f"{name} = {shown(given)} must be at least {low:g}{top}.")
    return jnp.asarray(value)

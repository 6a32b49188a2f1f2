"""Contact of rods with themselves, with each other, and with what stands in space."""

import math
from collections.abc import Callable, Sequence
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from retrax.contact.capsules import Numbers, Points, distance, dot, foot
from retrax.contact.node_contact import AbstractNodeContact, Looking, Pairs, between, standing
from retrax.contact.rows import Places
from retrax.contact.shapes import AbstractSurface, Ball, Capsule, Plane
from retrax.contact.spots import KINDS, Spots, chains_of
from retrax.numerics.checks import (
    ArrayLike,
    positive64,
    require_flag,
    require_instance,
    require_whole,
)

# Pairs of segments that may be near each other, for each node, unless the user says how many.
_NEIGHBOURS = 4
# Pairs of segments whose distances are found at once.
_AT_ONCE = 1 << 16
# The shortest list of pairs: of shorter ones every entry is written out, which compiles slowly.
_SHORTEST = 17


class SelfContact(AbstractNodeContact):
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
    kinds: ClassVar[int] = KINDS
    spread: ClassVar[int] = 2

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
        self.friction = between("friction", friction, 0.0, math.inf)
        self.restitution = between("restitution", restitution, 0.0, 1.0)
        self.skin = self.radius if skin is None else positive64("skin", skin)
        self.against = standing(against, "rods")
        self.itself = require_flag("itself", itself)
        self.closed = require_flag("closed", closed)
        self.capacity = None if capacity is None else require_whole("capacity", capacity, 1, 10**7)

        self.strands, self.arcs = (), None

    def on(self, strands: tuple[int, ...], arcs: Float[Array, " nodes"]) -> "SelfContact":
        """Return the same contact, which knows the nodes of each rod and their arc lengths."""
        other = object.__new__(SelfContact)
        for name, value in (vars(self) | {"strands": strands, "arcs": arcs}).items():
            object.__setattr__(other, name, value)
        return other

    @property
    def extent(self) -> Float[Array, ""]:
        return self.radius

    @property
    def listed(self) -> bool:
        return self.itself

    @property
    def listed_things(self) -> tuple[str, str]:
        return "pairs of segments", "SelfContact"

    @property
    def things(self) -> tuple[str, ...]:
        count = len(self.strands)
        return ("rod",) if count == 1 else tuple(f"rod {k}" for k in range(count))

    def part(self, node: int) -> str:
        return segment_name(self.strands, node)

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
        places = jnp.asarray(g[1])
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
        if not self.itself:
            return 0
        most = nodes * (nodes - 1) // 2
        return min(most, _NEIGHBOURS * nodes if self.capacity is None else self.capacity)

    def length(self, nodes: int) -> int:
        return max(self.room(nodes), _SHORTEST) if self.itself else 0

    def slots(self, nodes: int) -> int:
        return KINDS * self.length(nodes) + nodes * len(self.against)

    def looking(self, places: Places, skin: Float[Array, ""]) -> Looking:
        chains = chains_of(self)
        after = jnp.asarray(chains.following, jnp.int32)
        rod = jnp.asarray(chains.rod, jnp.int32)
        along = places[after] - places
        lengths = jnp.sqrt(dot(along, along))
        reach = 2 * self.radius + skin

        def near(i: Int[Array, ""], j: Int[Array, ""]) -> Bool[Array, ""]:
            r = places[i] - places[j]
            middle = r + (along[i] - along[j]) / 2
            around = reach + (lengths[i] + lengths[j]) / 2
            alone = (rod[i] == rod[j]) & self.beside(chains.arc, after, i, j)

            def look() -> Bool[Array, ""]:
                return distance(r[None], along[i][None], along[j][None])[0] <= reach

            close = (middle @ middle <= around * around) & ~alone
            return lax.cond(close, look, lambda: jnp.asarray(False))

        return Looking(places + along / 2, reach + jnp.max(lengths), near)

    def spots(self, first: Pairs, second: Pairs, used: Bool[Array, " pairs"]) -> Spots:
        return Spots(chains_of(self), self, first, second, used)

    def contact_name(self, first: int, second: int) -> str:
        assert self.arcs is not None
        arcs = np.asarray(self.arcs)

        def name_node(node: int) -> str:
            return f"{segment_name(self.strands, node)} (arc length {arcs[node]:.3g} m)"

        other = name_node(second) if second >= 0 else f"the {self.against[-1 - second].name}"
        return f"The contact of {name_node(first)} and {other}"


def touching(
    contact: object, strands: tuple[int, ...], arcs: Callable[[], Float[Array, " nodes"]]
) -> SelfContact | None:
    """Return the contact given to rods with this number of nodes, if it is one."""
    if contact is None:
        return None
    what = "what rods may touch: an rx.SelfContact"
    return require_instance("contact", contact, SelfContact, what).on(strands, arcs())


def segment_name(strands: tuple[int, ...], node: int) -> str:
    """Return what sentences call the segment that begins at a node."""
    ends = np.cumsum(strands)
    rod = int(np.searchsorted(ends, node, side="right"))
    own = node - int(ends[rod]) + strands[rod]
    return f"segment {own}" if len(strands) == 1 else f"segment {own} of rod {rod}"

"""Several rods in one system."""

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from retrax.contact.self_contact import SelfContact, touching
from retrax.errors import BadInput
from retrax.groups.arguments import element
from retrax.mechanics.remembered import Drawing
from retrax.mechanics.split import Drift
from retrax.mechanics.system import Coordinates, refuse_overrides
from retrax.mechanisms.body import GROUND
from retrax.mechanisms.joints import AbstractJoint
from retrax.nodal.drag import Drag
from retrax.nodal.nodes import Placement
from retrax.nodal.supports import Base
from retrax.numerics.checks import is_traced, quote, require_instance
from retrax.numerics.evaluate import evaluate_in_jax
from retrax.systems.rods.acting import NodeLoads
from retrax.systems.rods.along import Profile, stack
from retrax.systems.rods.elastic import AbstractRod
from retrax.systems.rods.joints import EndJoints, end_joints, worst
from retrax.systems.rods.picture import around, picture_size
from retrax.systems.rods.rod import FIXED, Rod

_E3 = (0.0, 0.0, 1.0)


class Rods(AbstractRod):
    r"""Several rods in one system: their nodes stand in one row, those of the first rod first.

    An element is (frames, places) of all nodes, as that of one rod, and coordinates go node by
    node. Between the last node of a rod and the first of the next there is no segment. A step is
    one loop along all nodes, however many rods there are.

    **Arguments:**

    - `rods`: `Rod`s with any numbers of elements and options, but the same `strain`.
    - `joints`: `Spherical`, `Fixed`, `Revolute` and other joints of mechanisms, whose bodies are
        ends of rods, `"rod 0 first"` or `"rod 1 last"`, and the `"ground"`. They hold to round-off.
    - `drawn`: the placement of all nodes as the joints are written, with points and axes in space.
    - `contact`: what the rods may touch, each other and themselves included: `rx.SelfContact`.
        Their step is that of `NonsmoothRattle`.

    **Invariants:** as of a `Rod`: energy; momenta where no support and no load acts.

    A subclass adds further loads by a method `force(self, g, xi, t)`.

    References: [SimoMarsdenKrishnaprasad1988].
    """

    sizes: tuple[int, ...] = eqx.field(static=True)  # nodes of each rod
    strain: str = eqx.field(static=True)
    supported: bool = eqx.field(static=True)
    spacing: Float[Array, " segments"]
    stretching: Float[Array, "segments 3"]
    bending: Float[Array, "segments 3"]
    inertia: Float[Array, " dim"]
    mobility: Float[Array, " dim"]
    gravity: Float[Array, "nodes 3"] | None
    damping: Float[Array, " segments"] | None
    constraint: EndJoints | None
    contact: SelfContact | None

    end_force: ClassVar[None] = None  # those of the rods are among the loads
    end_torque: ClassVar[None] = None

    def __init__(
        self,
        rods: Sequence[Rod],
        *,
        joints: Sequence[AbstractJoint] = (),
        drawn: object = None,
        contact: SelfContact | None = None,
    ):
        if not isinstance(rods, list | tuple) or not rods:
            raise BadInput(f"rods = {quote(rods)} must be a list of Rods.")
        for k, rod in enumerate(rods):
            require_instance(f"rods[{k}]", rod, Rod, "a Rod")
            if rod.contact is not None:
                raise BadInput(
                    f"rods[{k}] has a contact of its own, which knows the nodes of that rod only; "
                    "give Rods the contact of all of them."
                )
            if rod.force is not None:
                raise BadInput(
                    f"rods[{k}] has a force of its own, which knows the nodes of that rod only; "
                    "write a subclass of Rods with a method force(self, g, xi, t) for all nodes."
                )
        if len({rod.strain for rod in rods}) > 1:
            raise BadInput(
                f"the rods have strain = {', '.join(rod.strain for rod in rods)}, but all rods of "
                "one system must have the same."
            )
        self.sizes = tuple(rod.nodes for rod in rods)
        self.strain, self.supported = rods[0].strain, any(rod.holds for rod in rods)
        for name, value in evaluate_in_jax(_stack, tuple(rods))._asdict().items():
            setattr(self, name, value)
        self.bases = tuple(
            base.shift(k)
            for rod, k in zip(rods, self.starts, strict=True)
            for base in rod.bases
            if isinstance(base, Base)
        )
        self.constraint = self._join(joints, drawn)
        self.contact = touching(contact, self.strands, lambda: self.arcs)

    def _join(self, joints: Sequence[AbstractJoint], drawn: object) -> EndJoints | None:
        known = None if is_traced(self.mobility) else np.asarray(self.mobility)
        if drawn is not None:
            if not joints:
                raise BadInput("drawn says where joints are, but there are none; leave it out.")
            drawn = element("drawn", drawn, self.group.layout())
            self.group.check("drawn", drawn)
        placed = None if drawn is None else jax.tree.map(np.asarray, drawn)
        carried = tuple(base.node for base in self.bases)
        return end_joints(joints, placed, self.sizes, known, carried)

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        refuse_overrides(cls, FIXED, "add loads by a method force(self, g, xi, t)")

    @property
    def nodes(self) -> int:
        return sum(self.sizes)

    @property
    def starts(self) -> tuple[int, ...]:
        """The number of the first node of each rod."""
        return tuple(int(k) for k in np.cumsum((0, *self.sizes[:-1])))

    @property
    def strands(self) -> tuple[int, ...]:
        return self.sizes

    @property
    def between(self) -> Bool[np.ndarray, " segments"]:
        joins = np.ones(self.nodes - 1, bool)
        joins[np.array(self.starts[1:], int) - 1] = False
        return joins

    @property
    def name(self) -> str:
        each = ", ".join(str(size - 1) for size in self.sizes[:-1])
        last = self.sizes[-1] - 1
        return f"rods of {each} and {last} elements" if each else f"rod of {last} elements"

    @property
    def holds(self) -> bool:
        return self.supported

    def without_supports(self, g: Placement, flat: Coordinates) -> Coordinates:
        flat = self.without_held(flat)
        if self.constraint is None:
            return flat
        return flat - self.constraint.take_up(g, self.mobility, flat)

    def drift(self, g: Placement, mu: Coordinates, h: Float[Array, ""]) -> Drift:
        if self.constraint is None:
            return super().drift(g, mu, h)
        carried = self.support_velocities(g, h)
        first = self.loss(g, mu, h / 2, carried, dragged_first=True)
        change = jnp.zeros_like(mu) if first is None else first
        push, met = self.constraint.impulses(g, self.inertia, self.mobility, mu + change, h)
        change = change + push
        flown = self.flight(g, mu + change, h)
        turned = jnp.concatenate([flown.change, jnp.zeros_like(flown.v)], axis=1).reshape(-1)
        change = change + turned
        change = change - self.constraint.take_up(flown.g, self.mobility, mu + change)
        last = self.loss(flown.g, mu + change, h / 2, carried, dragged_first=False)
        if last is not None:
            change = change + last
        move = jnp.max(jnp.abs(h * flown.w), axis=1)
        status = worst([flown.status, *met])
        return Drift(flown.g, change, move, status, self.is_unfolded(flown.g))

    @property
    def isolated(self) -> bool:
        joints = () if self.constraint is None else self.constraint.ends
        return super().isolated and not any(GROUND in ends for ends in joints)

    def split(self, x: PyTree) -> tuple[PyTree, ...]:
        """Cut a placement, rows of nodes, or coordinates into those of each rod."""
        return tuple(
            jax.tree.map(partial(self._cut, start, size), x)
            for start, size in zip(self.starts, self.sizes, strict=True)
        )

    def _cut(self, start: int, size: int, x: Array | np.ndarray) -> Array | np.ndarray:
        each = x.shape[0] // self.nodes
        return x[each * start : each * (start + size)]

    def together(self, parts: Sequence[PyTree]) -> PyTree:
        """Put placements, rows of nodes, or coordinates of all rods one after the other."""
        if not isinstance(parts, list | tuple) or len(parts) != len(self.sizes):
            raise BadInput(
                f"parts = {quote(parts)} must be a list of {len(self.sizes)}, one for each rod."
            )
        return evaluate_in_jax(_join, tuple(parts))

    @property
    def drawing(self) -> Drawing | None:
        """What a picture needs: of each rod its nodes, its spacing and a radius."""
        if is_traced(self) or self.inertia.ndim != 1:
            return None
        segments = self.split(jnp.pad(self.spacing, (0, 1)))
        each = zip(segments, self.split(self.inertia), strict=True)
        rods = [picture_size(h[0], inertia) for h, inertia in each]
        return {"rods": rods, "nodes": list(self.sizes)} | around(self.contact)


class _Stacked(NamedTuple):
    """What the rods have, one after the other."""

    spacing: Float[Array, " segments"]
    stretching: Float[Array, "segments 3"]
    bending: Float[Array, "segments 3"]
    inertia: Float[Array, " dim"]
    mobility: Float[Array, " dim"]
    gravity: Float[Array, "nodes 3"] | None
    damping: Float[Array, " segments"] | None
    rest_stretch: Profile | None
    rest_curvature: Profile | None
    muscle: Profile | None
    loads: NodeLoads | None
    drag: Drag | None


def _stack(rods: tuple[Rod, ...]) -> _Stacked:
    nodes, segments = [rod.nodes for rod in rods], [rod.elements for rod in rods]

    def all_segments(values: list[Array | None], width: tuple[int, ...], gap: float = 0.0) -> Array:
        """Return rows of all segments, and one of `gap` from each rod to the next."""
        rows = []
        for value, n in zip(values, segments, strict=True):
            own = jnp.zeros(()) if value is None else value
            rows += [jnp.broadcast_to(own, (n, *width)), jnp.full((1, *width), gap)]
        return jnp.concatenate(rows[:-1])

    def all_nodes(values: list[Array | None]) -> Array | None:
        """Return rows of all nodes; `None` if no rod has them."""
        if all(value is None for value in values):
            return None
        pairs = zip(values, nodes, strict=True)
        zero = jnp.zeros(())
        return jnp.concatenate(
            [jnp.broadcast_to(zero if x is None else x, (n, 3)) for x, n in pairs]
        )

    profiles = partial(stack, sizes=segments, gap=1)
    loads = [stack(kind, nodes) for kind in zip(*map(_loads, rods), strict=True)]
    drags = [Drag(None, None) if rod.drag is None else rod.drag for rod in rods]
    dampings = [rod.damping for rod in rods]
    return _Stacked(
        spacing=all_segments([rod.spacing for rod in rods], (), 1.0),
        stretching=all_segments([rod.stretching for rod in rods], (3,)),
        bending=all_segments([rod.bending for rod in rods], (3,)),
        inertia=jnp.concatenate([rod.inertia for rod in rods]),
        mobility=jnp.concatenate([rod.mobility for rod in rods]),
        gravity=all_nodes([rod.gravity for rod in rods]),
        damping=None if all(x is None for x in dampings) else all_segments(dampings, ()),
        rest_stretch=profiles([rod.rest_stretch for rod in rods], missing=_E3),
        rest_curvature=profiles([rod.rest_curvature for rod in rods]),
        muscle=profiles([rod.muscle for rod in rods]),
        loads=None if all(kind is None for kind in loads) else NodeLoads(*loads),
        drag=None
        if all(rod.drag is None for rod in rods)
        else Drag(all_nodes([x.rates for x in drags]), all_nodes([x.spin_rates for x in drags])),
    )


def _loads(rod: Rod) -> list[Profile | None]:
    """Return the loads on the nodes of a rod, those at its end among them."""
    none: tuple[Profile | None, ...] = (None,) * 4
    kinds = list(none if rod.loads is None else rod.loads.kinds)
    for k, load in ((0, rod.end_force), (2, rod.end_torque)):
        if load is None:
            continue
        rows = jnp.pad(load[None], ((rod.nodes - 1, 0), (0, 0)))
        there = kinds[k]
        if there is None:
            kinds[k] = Profile(rows)
        else:
            more = rows if there.constant is None else rows + there.constant
            kinds[k] = Profile(more, there.driven)
    return kinds


def _join(parts: tuple[PyTree, ...]) -> PyTree:
    return jax.tree.map(lambda *x: jnp.concatenate(x), *parts)

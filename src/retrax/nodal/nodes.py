"""Nodes of rods, each with a frame and a place: inertia, supports, free flight and momenta."""

import abc
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from retrax.errors import BadInput
from retrax.groups.power import Power
from retrax.groups.product import Product
from retrax.groups.so3 import SO3
from retrax.groups.translation import Translation
from retrax.mechanics.functions import Function
from retrax.mechanics.mechanical import AbstractMechanicalSystem
from retrax.mechanics.split import AbstractSplitSystem, Drift
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import Symmetries
from retrax.mechanics.system import ArrayLike, Coordinates
from retrax.nodal.drag import Drag
from retrax.nodal.flight import Rows, spin, turn_back
from retrax.nodal.supports import Base, Pose, put, rates
from retrax.numerics.checks import finite64
from retrax.numerics.evaluate import Evaluated, evaluate_in_jax
from retrax.numerics.known import require_each
from retrax.numerics.newton import NewtonStatus

Placement = tuple[Float[Array, "_nodes 3 3"], Float[Array, "_nodes 3"]]
# How far from its base, in m or rad, a node may start.
_OFF_BASE = 1e-9
HostPlacement = tuple[Float[np.ndarray, "_nodes 3 3"], Float[np.ndarray, "_nodes 3"]]


class Flight(NamedTuple):
    """The end of a free flight: placement, change of the angular momenta, velocities."""

    g: Placement
    change: Rows
    w: Rows
    v: Rows
    status: NewtonStatus


class AbstractNodes(AbstractSplitSystem, AbstractMechanicalSystem):
    """Many nodes, each a small rigid body; some of them are held.

    Coordinates go node by node: three of the rotation in the body, three of the place in space.
    """

    inertia: eqx.AbstractVar[Float[Array, " dim"]]
    mobility: eqx.AbstractVar[Float[Array, " dim"]]  # 1 / inertia, and 0 where a node is held

    bases: tuple[Base | Pose, ...] = eqx.field(default=(), kw_only=True)  # supports that move
    force: Function | None = eqx.field(default=None, kw_only=True)  # or a method of a subclass
    drag: Drag | None = eqx.field(default=None, kw_only=True)
    symmetry: ClassVar[tuple[tuple[float, ...], ...] | None] = None

    @property
    @abc.abstractmethod
    def nodes(self) -> int:
        """How many there are."""

    @property
    @abc.abstractmethod
    def holds(self) -> bool:
        """Whether a node is held."""

    @property
    @abc.abstractmethod
    def isolated(self) -> bool:
        """Whether no support and no load acts from outside."""

    @property
    def round(self) -> bool:
        """Whether the inertia of every node is alike about all axes."""
        return False

    @property
    def group(self) -> Power:
        return Power(Product(SO3(), Translation(3)), self.nodes)

    @property
    def invariant_inertia(self) -> bool:
        return True

    @property
    def free(self) -> bool:
        return False

    def inertia_at(self, g: Placement) -> Coordinates:
        return self.inertia

    def velocity(self, g: Placement, mu: Coordinates) -> Coordinates:
        xi = self.mobility * mu
        for pose in self.poses():
            xi = xi + rates(pose, self.nodes)
        return xi

    def poses(self) -> tuple[Pose, ...]:
        """Return where supports that move are; the time must have been set."""
        out = []
        for base in self.bases:
            if isinstance(base, Base):
                raise BadInput(
                    "base depends on time, so ask rod.at_time(t) for velocities at the time t."
                )
            out.append(base)
        return tuple(out)

    def parts(self, xi: Coordinates) -> tuple[Rows, Rows]:
        """Return rotational and translational parts of a velocity or momentum, a row per node."""
        rows = xi.reshape(self.nodes, 6)
        return rows[:, :3], rows[:, 3:]

    def velocity_of(
        self, omega: ArrayLike | None = None, v: ArrayLike | None = None
    ) -> Coordinates:
        """Return coordinates from angular velocities in the body and velocities in space, by rows.

        Held nodes stay at rest: their rows are ignored.
        """
        given, shape = {"omega": omega, "v": v}, (self.nodes, 3)
        rows = [
            np.zeros(shape) if part is None else finite64(name, part, shape)
            for name, part in given.items()
        ]
        return evaluate_in_jax(_velocity_of, self.mobility, rows)

    @property
    def feedback(self) -> bool:
        return self.force is not None

    def load(self, g: Placement, xi: Coordinates, t: Float[Array, ""]) -> Coordinates:
        """Return the external force, without what supports take up."""
        assert self.force is not None
        return self.without_supports(g, jnp.asarray(self.force(g, xi, t)))

    def without_supports(self, g: Placement, flat: Coordinates) -> Coordinates:
        """Return what supports leave of loads, or of momenta."""
        return self.without_held(flat)

    def without_held(self, flat: Coordinates) -> Coordinates:
        """Return loads without those on held nodes, which the supports take up."""
        return jnp.where(self.mobility > 0, flat, 0.0) if self.holds else flat

    def flight(self, g: Placement, mu: Coordinates, h: Float[Array, ""]) -> Flight:
        """Free motion of all nodes: straight ahead, turning by (1) of `flight.py`."""
        frames, places = g
        spun, pushed = self.parts(mu)
        moments, _ = self.parts(self.inertia)
        w, status = spin(moments, spun, h)
        v = self.parts(self.mobility)[1] * pushed
        change = jax.vmap(turn_back)(h * w, spun)
        frames = jax.vmap(SO3().advance)(frames, jax.vmap(SO3().caym1)(h * w))
        places = places + h * v
        for pose in self.poses():
            frames, places = put(pose, frames, places)
        return Flight((frames, places), change, w, v, status)

    def drift(self, g: Placement, mu: Coordinates, h: Float[Array, ""]) -> Drift:
        """Take the free flight; drag and damping act before and after it, for half a step each."""
        carried = self.support_velocities(g, h)
        first = self.loss(g, mu, h / 2, carried, dragged_first=True)
        flown = self.flight(g, mu if first is None else mu + first, h)
        change = jnp.concatenate([flown.change, jnp.zeros_like(flown.v)], axis=1).reshape(-1)
        if first is not None:
            change = change + first
            last = self.loss(flown.g, mu + change, h / 2, carried, dragged_first=False)
            assert last is not None
            change = change + last
        move = jnp.max(jnp.abs(h * flown.w), axis=1)
        return Drift(flown.g, change, move, flown.status, self.is_unfolded(flown.g))

    def support_velocities(self, g: Placement, h: Float[Array, ""]) -> Coordinates | None:
        """Return the mean velocities of moving supports in a step from `g` if damping sees them."""
        return None

    def loss(
        self,
        g: Placement,
        mu: Coordinates,
        h: Float[Array, ""],
        carried: Coordinates | None,
        dragged_first: bool,
    ) -> Coordinates | None:
        """Return the change of momentum by drag and damping in a time `h`, with `g` constant."""
        return None if self.drag is None else self.drag_change(g, mu, h)

    def drag_change(self, g: Placement, mu: Coordinates, h: Float[Array, ""]) -> Coordinates:
        """Return the change of the momentum by drag in a time `h`."""
        assert self.drag is not None
        return self.without_supports(g, self.drag.loss(g[0], *self.parts(mu), h).reshape(-1))

    def is_unfolded(self, g: Placement) -> Bool[Array, ""]:
        """Return whether forces between nodes are defined at a place."""
        return jnp.asarray(True)

    def check_state(self, state: State) -> None:
        super().check_state(state)
        require_each(self._require_held, state.momentum, self.mobility, fine=_is_held)
        if self.bases:
            require_each(self._require_on_base, state.t, state.g, _put(self, state.g, state.t))

    def _require_held(self, momentum: np.ndarray, mobility: np.ndarray) -> None:
        if np.any(momentum[mobility == 0]):
            raise BadInput(
                f"velocity moves a held node of the {self.name}: the entries of held nodes must be "
                "0, as velocity_of(...) makes them."
            )

    def _require_on_base(self, t: np.ndarray, g: HostPlacement, put: HostPlacement) -> None:
        for k in [base.node for base in self.bases]:
            (frame, place), (base_frame, base_place) = ((R[k], x[k]) for R, x in (g, put))
            off = max(np.abs(frame - base_frame).max(), np.abs(place - base_place).max())
            if not off <= _OFF_BASE * max(1.0, np.abs(base_place).max()):
                raise BadInput(
                    f"g has node {k} of the {self.name} at {place.tolist()} with the frame "
                    f"{frame.tolist()}, but at t = {float(t):g} s its base is at "
                    f"{base_place.tolist()} with the frame {base_frame.tolist()}."
                )

    def symmetries(self) -> Symmetries:
        """Return no symmetry: rigid motions turn all nodes and are no translations of the group."""
        none = np.zeros((0, self.group.dim))
        return Symmetries(none, none)

    def total_momentum(self, state: State) -> Float[Array, "3"]:
        """Return the sum of the momenta of all nodes, in space."""
        _, p = self.parts(jnp.asarray(state.momentum))
        return jnp.sum(p, axis=0)

    def total_angular_momentum(self, state: State) -> Float[Array, "3"]:
        """Return the angular momentum about the origin, in space."""
        spun, p = self.parts(jnp.asarray(state.momentum))
        frames, places = state.g
        return jnp.sum(jnp.cross(places, p) + jnp.einsum("kij,kj->ki", frames, spun), axis=0)

    def further_invariants(self, state: State) -> dict[str, Float[Array, ""]]:
        if not self.isolated:
            return {}
        return name_components("momentum", self.total_momentum(state)) | name_components(
            "angular momentum", self.total_angular_momentum(state)
        )


def name_components(what: str, vector: Float[Array, "3"]) -> dict[str, Float[Array, ""]]:
    """Return the components of a vector, by the name `what` and the axis."""
    return {f"{what} {axis}": vector[k] for k, axis in enumerate("xyz")}


@Evaluated
def _put(system: AbstractNodes, g: Placement, t: Float[Array, ""]) -> Placement:
    """Return a placement with the supports that move where they are."""
    for pose in system.at_time(t).poses():
        g = put(pose, *g)
    return g


def _velocity_of(mobility: Coordinates, rows: list[Float[Array, "nodes 3"]]) -> Coordinates:
    return jnp.where(mobility > 0, jnp.concatenate(rows, axis=1).reshape(-1), 0.0)


def _is_held(momentum: np.ndarray, mobility: np.ndarray) -> np.ndarray:
    """Return whether held nodes of members are at rest."""
    return ~np.any((momentum != 0) & (mobility == 0), axis=-1)

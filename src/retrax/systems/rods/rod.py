"""A geometrically exact elastic rod: stretch, shear, bending and twist of any size."""

from functools import partial
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.contact.self_contact import SelfContact
from retrax.errors import BadInput
from retrax.mechanics.remembered import Drawing
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import Symmetries
from retrax.mechanics.system import ArrayLike, Coordinates, refuse_overrides
from retrax.numerics.checks import (
    MOST_NODES,
    finite64,
    finite_rows,
    is_traced,
    positive64,
    require_choice,
    require_instance,
    require_number,
    require_whole,
    shown,
)
from retrax.numerics.evaluate import evaluate, evaluated
from retrax.numerics.known import require_each
from retrax.systems.rods.elastic import AbstractRod, Placement
from retrax.systems.rods.section import Number, circular
from retrax.systems.rods.strain import STRAINS

ENDS = ("free", "pinned", "clamped")
# A subclass must not redefine these: the forces follow from the strains, not from them.
_FIXED = (
    "constraint", "differential", "drift", "flight", "group", "hamiltonian_energy", "held",
    "inertia_at", "kick", "kinetic_energy", "load", "momentum", "potential_energy", "resultants",
    "segments", "strains", "symmetry", "total_force", "vector_field", "velocity",
)  # fmt: skip


class Rod(AbstractRod):
    r"""The rod of Simo, Marsden and Krishnaprasad, cut into `elements` segments of length $h$.

    Node $k$ has the frame $\Lambda_k$ of its cross-section (the third axis along the rod) and the
    place $r_k$; velocities are $\omega_k$ in the body and $v_k = \dot r_k$ in space. With the
    strains $\Gamma$, $\Omega$ of `strain.py`,

    $$
    \begin{aligned}
    V &= h\sum\left[\tfrac12(\Gamma - e_3)\cdot C_1(\Gamma - e_3)
        + \tfrac12\Omega\cdot C_2\Omega\right]
        - \sum m_k\,a\cdot r_k - F\cdot r_n                                      &&\text{(1)}\\
    T &= \sum\left[\tfrac12 m_k|v_k|^2 + \tfrac12\omega_k\cdot J_k\omega_k\right],
      \qquad m_k = \rho A h, \quad J_k = h J                                      &&\text{(2)}
    \end{aligned}
    $$

    and half of these at the end nodes. Damping adds $\beta C_1\dot\Gamma$ and
    $\beta C_2\dot\Omega$ to the stresses: it resists deformation only, so it keeps both momenta.

    **Arguments:**

    - `elements`: the number $n$ of segments; there are $n + 1$ nodes.
    - `length`: of the unstretched rod, in m.
    - `stretching`: $C_1 = (GA, GA, EA)$ in N.
    - `bending`: $C_2 = (EI, EI, GJ)$ in N m^2.
    - `mass`: $\rho A$ in kg/m.
    - `inertia`: $J = (\rho I, \rho I, 2\rho I)$ in kg m.
    - `ends`: each `"free"`, `"pinned"` (its place is held) or `"clamped"` (its frame too).
    - `strain`: `"mid"`, or `"cay"` and `"left"` for comparison.
    - `gravity`: the acceleration $a$ in space, in any direction: with $(0, 0, -9.81)$ the axis
        $e_3$ points up. Without it there is no gravity.
    - `end_force`: a dead load $F$ on the last node, in space (N).
    - `end_torque`: on the last node, in the body: it turns with the cross-section (N m).
    - `damping`: the time $\beta$ in s.
    - `contact`: what the rod may touch, itself included: `rx.SelfContact`. Its step is that of
        `NonsmoothRattle`.

    **Invariants:** energy, unless there is damping or a torque; with free ends and no load also the
    momentum $\sum m_kv_k$ and the angular momentum
    $\sum(r_k\times m_kv_k + \Lambda_kJ_k\omega_k)$.

    A subclass adds further loads by a method `force(self, g, xi, t)`, in the coordinates of the
    momenta; they may depend on the velocities.

    References: [SimoMarsdenKrishnaprasad1988].
    """

    elements: int = eqx.field(static=True)
    ends: tuple[str, str] = eqx.field(static=True)
    strain: str = eqx.field(static=True)
    spacing: Float[Array, ""]
    stretching: Float[Array, "3"]
    bending: Float[Array, "3"]
    inertia: Float[Array, " dim"]
    mobility: Float[Array, " dim"]  # 1 / inertia, and 0 where a node is held
    gravity: Float[Array, "3"] | None
    end_force: Float[Array, "3"] | None
    end_torque: Float[Array, "3"] | None
    damping: Float[Array, ""] | None
    contact: SelfContact | None

    def __init__(
        self,
        elements: int,
        length: ArrayLike,
        *,
        stretching: ArrayLike,
        bending: ArrayLike,
        mass: ArrayLike,
        inertia: ArrayLike,
        ends: tuple[str, str] = ("free", "free"),
        strain: str = "mid",
        gravity: ArrayLike | None = None,
        end_force: ArrayLike | None = None,
        end_torque: ArrayLike | None = None,
        damping: ArrayLike | None = None,
        contact: SelfContact | None = None,
    ):
        self.elements = require_whole("elements", elements, 2, MOST_NODES)
        if not isinstance(ends, list | tuple) or len(ends) != 2:
            raise BadInput(f"ends = {shown(ends)} must be two words, one for each end of the rod.")
        first, last = ends
        self.ends = (require_choice("ends", first, ENDS), require_choice("ends", last, ENDS))
        self.strain = require_choice("strain", strain, STRAINS)
        self.spacing = evaluated(lambda x: x / elements, positive64("length", length))
        self.stretching = positive64("stretching", stretching, (3,))
        self.bending = positive64("bending", bending, (3,))
        self.inertia, self.mobility = evaluated(
            partial(_masses, self.elements, self.ends),
            self.spacing,
            positive64("mass", mass),
            positive64("inertia", inertia, (3,)),
        )
        self.gravity = None if gravity is None else finite64("gravity", gravity, (3,))
        self.end_force = None if end_force is None else finite64("end_force", end_force, (3,))
        self.end_torque = None if end_torque is None else finite64("end_torque", end_torque, (3,))
        _require_free_end(self.ends[1], end_force, end_torque)
        self.damping = None if damping is None else positive64("damping", damping)
        if contact is not None:
            what = "what the rod may touch: an rx.SelfContact"
            require_instance("contact", contact, SelfContact, what)
        self.contact = contact

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        refuse_overrides(cls, _FIXED, "add loads by a method force(self, g, xi, t)")

    @classmethod
    def from_material(
        cls,
        elements: int,
        length: ArrayLike,
        *,
        young: ArrayLike,
        poisson: ArrayLike,
        density: ArrayLike,
        radius: ArrayLike,
        ends: tuple[str, str] = ("free", "free"),
        strain: str = "mid",
        gravity: ArrayLike | None = None,
        end_force: ArrayLike | None = None,
        end_torque: ArrayLike | None = None,
        damping: ArrayLike | None = None,
        contact: SelfContact | None = None,
    ) -> "Rod":
        r"""A round rod of $E$ (Pa), $\nu$, $\rho$ (kg/m^3) and its radius (m).

        $G = E/2(1 + \nu)$, $A = \pi a^2$, $I = Aa^2/4$, and the polar moment is $2I$.
        """
        return cls(
            elements,
            length,
            **circular(young, poisson, density, radius),
            ends=ends,
            strain=strain,
            gravity=gravity,
            end_force=end_force,
            end_torque=end_torque,
            damping=damping,
            contact=contact,
        )

    def straight(
        self,
        direction: ArrayLike = (0.0, 0.0, 1.0),
        *,
        normal: ArrayLike | None = None,
        start: ArrayLike = (0.0, 0.0, 0.0),
        stretch: float = 1.0,
    ) -> Placement:
        """The straight rod from `start` along `direction`, its frames' first axis near `normal`.

        Without `normal` that is x, or y for a rod along x.
        """
        along = finite64("direction", direction, (3,))
        across = None if normal is None else finite64("normal", normal, (3,))
        frame = evaluate(_frame, along, across)

        def check(frame: np.ndarray) -> None:
            if not np.isfinite(frame).all():
                raise BadInput(
                    f"direction = {shown(direction)} and normal = {shown(normal)} must not be "
                    "parallel, and neither may be zero or too long to be squared."
                )

        require_each(check, frame, fine=finite_rows)
        if not is_traced(stretch):
            stretch = require_number("stretch", stretch, "> 0")
        begin = finite64("start", start, (3,))
        return evaluated(partial(_laid_out, self.nodes), frame, begin, stretch, self.spacing)

    def velocity_of(
        self, omega: ArrayLike | None = None, v: ArrayLike | None = None
    ) -> Coordinates:
        """Coordinates from angular velocities in the body and velocities in space, row by row.

        Held nodes stay at rest: their rows are ignored.
        """
        given, shape = {"omega": omega, "v": v}, (self.nodes, 3)
        rows = [
            np.zeros(shape) if part is None else finite64(name, part, shape)
            for name, part in given.items()
        ]
        return evaluated(_velocity_of, self.mobility, rows)

    def check_state(self, state: State) -> None:
        super().check_state(state)
        require_each(self._require_held, state.momentum, self.mobility, fine=_held)
        self.require_bent(state.g)

    def _require_held(self, momentum: np.ndarray, mobility: np.ndarray) -> None:
        if np.any(momentum[mobility == 0]):
            raise BadInput(
                f"velocity moves a held node: with ends = {self.ends} the entries of held nodes "
                "must be 0, as velocity_of(...) makes them."
            )

    def require_bent(self, g: Placement) -> None:
        """Reject a placement in which the ends of a segment are half a turn apart."""
        require_each(_require_bent, g[0], fine=lambda frames: _traces(frames).min(axis=1) > _UNBENT)

    @property
    def drawing(self) -> Drawing | None:
        """What a picture needs: the spacing, and the radius of a round section of this inertia."""
        many = is_traced(self) or self.spacing.ndim != 0 or self.inertia.ndim != 1
        return None if many else {"rods": [drawn(self)]}

    def symmetries(self) -> Symmetries:
        """None: rigid motions turn all nodes together and are not translations of the group."""
        none = np.zeros((0, self.group.dim))
        return Symmetries(none, none)

    def total_momentum(self, state: State) -> Float[Array, "3"]:
        """The sum of the momenta of all nodes, in space."""
        _, p = self.parts(state.momentum)
        return jnp.sum(p, axis=0)

    def total_angular_momentum(self, state: State) -> Float[Array, "3"]:
        """The angular momentum about the origin, in space."""
        spin, p = self.parts(state.momentum)
        frames, places = state.g
        return jnp.sum(jnp.cross(places, p) + jnp.einsum("kij,kj->ki", frames, spin), axis=0)

    @property
    def isolated(self) -> bool:
        """Whether no support and no load acts on the rod."""
        loads = (self.gravity, self.end_force, self.end_torque)
        return not self.holds and not self.feedback and all(load is None for load in loads)

    @property
    def conservative(self) -> bool:
        working = self.damping is not None or self.end_torque is not None
        return super().conservative and not working

    def further_invariants(self, state: State) -> dict[str, Float[Array, ""]]:
        if not self.isolated:
            return {}
        return named("momentum", self.total_momentum(state)) | named(
            "angular momentum", self.total_angular_momentum(state)
        )


def _frame(t: Float[Array, "3"], across: Float[Array, "3"] | None) -> Float[Array, "3 3"]:
    """The frame with its third axis along `t` and its first one near `across`."""
    t = t / jnp.sqrt(t @ t)
    near = jnp.where(jnp.abs(t[0]) < 0.9, jnp.eye(3)[0], jnp.eye(3)[1])
    a = near if across is None else across
    a = a - (a @ t) * t
    a = a / jnp.sqrt(a @ a)
    return jnp.stack([a, jnp.cross(t, a), t], axis=1)


def _laid_out(
    nodes: int,
    frame: Float[Array, "3 3"],
    start: Float[Array, "3"],
    stretch: Number,
    spacing: Float[Array, ""],
) -> Placement:
    """All nodes with one frame, in a row along its third axis."""
    along = stretch * spacing * jnp.arange(nodes, dtype=float)
    places = start[None] + jnp.outer(along, frame[:, 2])
    return jnp.broadcast_to(frame, (nodes, 3, 3)), places


def _velocity_of(mobility: Coordinates, rows: list[Float[Array, "nodes 3"]]) -> Coordinates:
    return jnp.where(mobility > 0, jnp.concatenate(rows, axis=1).reshape(-1), 0.0)


def _require_free_end(end: str, force: object, torque: object) -> None:
    """Reject loads on the last node that its support would take up."""
    if force is not None and end != "free":
        raise BadInput(
            f"end_force acts on the last node, but ends says that it is {end}: the support would "
            'take up the force; leave end_force out, or make that end "free".'
        )
    if torque is not None and end == "clamped":
        raise BadInput(
            "end_torque acts on the last node, but ends says that it is clamped: the clamp would "
            'take up the torque; leave end_torque out, or make that end "pinned" or "free".'
        )


def _masses(
    elements: int,
    ends: tuple[str, str],
    spacing: Float[Array, ""],
    mass: Float[Array, ""],
    moments: Float[Array, "3"],
) -> tuple[Float[Array, " dim"], Float[Array, " dim"]]:
    """Moments and masses of all nodes, half at the ends; and their inverses, 0 at held nodes."""
    mass, moments = spacing * mass, spacing * moments
    share = np.ones(elements + 1)
    share[[0, -1]] = 0.5
    turns, moves = np.ones(elements + 1), np.ones(elements + 1)
    for place, end in zip((0, -1), ends, strict=True):
        turns[place] = end != "clamped"
        moves[place] = end == "free"
    one = jnp.concatenate([moments, jnp.stack([mass] * 3)])
    inertia = jnp.outer(jnp.asarray(share), one).reshape(-1)
    mask = np.stack([turns] * 3 + [moves] * 3, axis=1)
    return inertia, jnp.asarray(mask.ravel()) / inertia


def _held(momentum: np.ndarray, mobility: np.ndarray) -> np.ndarray:
    """Whether held nodes of members are at rest."""
    return ~np.any((momentum != 0) & (mobility == 0), axis=-1)


def _traces(frames: np.ndarray) -> np.ndarray:
    """The traces of the relative rotations of neighbours."""
    return np.sum(frames[..., :-1, :, :] * frames[..., 1:, :, :], axis=(-2, -1))


# A relative rotation by half a turn has this trace.
_UNBENT = -1 + 1e-8


def _require_bent(frames: np.ndarray) -> None:
    traces = _traces(frames)
    worst = int(np.argmin(traces))
    if not traces[worst] > _UNBENT:
        raise BadInput(
            f"the frames of nodes {worst} and {worst + 1} of the rod are half a turn apart, where "
            "the curvature of a segment is not defined; use more elements."
        )


def drawn(rod: Rod) -> dict[str, float]:
    """Spacing and radius of one rod of a picture."""
    turn, _, _, mass, _, _ = np.asarray(rod.inertia)[:6]
    return {"spacing": float(rod.spacing), "radius": 2 * float(np.sqrt(turn / mass))}


def named(what: str, vector: Float[Array, "3"]) -> dict[str, Float[Array, ""]]:
    """The components of a vector, by the name `what` and the axis."""
    return {f"{what} {axis}": vector[k] for k, axis in enumerate("xyz")}

"""A geometrically exact elastic rod: stretch, shear, bending and twist of any size."""

from functools import partial
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.mechanics.remembered import Drawing
from retrax.mechanics.system import ArrayLike, refuse_overrides
from retrax.numerics.checks import (
    MOST_NODES,
    finite64,
    finite_rows,
    is_traced,
    positive64,
    require_choice,
    require_number,
    require_whole,
    shown,
)
from retrax.numerics.evaluate import evaluate, evaluated
from retrax.numerics.known import require_each
from retrax.systems.rods.elastic import AbstractRod
from retrax.systems.rods.nodes import Placement
from retrax.systems.rods.section import Number, circular
from retrax.systems.rods.strain import STRAINS

ENDS = ("free", "pinned", "clamped")
# A subclass must not redefine these: the forces follow from the strains, not from them.
FIXED = (
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

    @property
    def nodes(self) -> int:
        return self.elements + 1

    @property
    def name(self) -> str:
        return f"rod of {self.elements} elements"

    @property
    def length(self) -> Float[Array, ""]:
        return self.spacing * self.elements

    @property
    def holds(self) -> bool:
        return self.ends != ("free", "free")

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        refuse_overrides(cls, FIXED, "add loads by a method force(self, g, xi, t)")

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

    @property
    def drawing(self) -> Drawing | None:
        """What a picture needs: the spacing, and the radius of a round section of this inertia."""
        many = is_traced(self) or self.spacing.ndim != 0 or self.inertia.ndim != 1
        return None if many else {"rods": [drawn(self.spacing, self.inertia)]}


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


def drawn(spacing: Float[Array, ""], inertia: Float[Array, " dim"]) -> dict[str, float]:
    """Spacing and radius of one rod of a picture."""
    turn, _, _, mass, _, _ = np.asarray(inertia)[:6]
    return {"spacing": float(spacing), "radius": 2 * float(np.sqrt(turn / mass))}

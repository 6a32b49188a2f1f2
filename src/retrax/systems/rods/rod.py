"""A geometrically exact elastic rod: stretch, shear, bending and twist of any size."""

from functools import partial
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.contact.self_contact import SelfContact, touching
from retrax.errors import BadInput
from retrax.mechanics.remembered import Drawing
from retrax.mechanics.system import ArrayLike, refuse_overrides
from retrax.nodal.nodes import Placement
from retrax.numerics.checks import (
    MOST_NODES,
    finite64,
    is_traced,
    positive64,
    quote,
    require_choice,
    require_whole,
)
from retrax.numerics.evaluate import evaluate_in_jax
from retrax.systems.rods.elastic import AbstractRod, PerSegment
from retrax.systems.rods.layout import first_frame, relax, straight
from retrax.systems.rods.options import (
    AlongRod,
    EndLoad,
    MovingBase,
    drag_rates,
    moving_base,
    node_loads,
    per_segment,
    profile,
    segment_arcs,
)
from retrax.systems.rods.picture import around, picture_size
from retrax.systems.rods.section import AbstractSection, Size, material
from retrax.systems.rods.strain import STRAINS

ENDS = ("free", "pinned", "clamped")
# A subclass must not redefine these: the forces follow from the strains, not from them.
FIXED = (
    "constraint", "differential", "drift", "flight", "group", "hamiltonian_energy", "inertia_at",
    "kick", "kinetic_energy", "load", "momentum", "potential_energy", "resultants",
    "segments", "strains", "symmetry", "total_force", "vector_field", "velocity", "without_held",
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
    - `stretching`: $C_1 = (GA, GA, EA)$ in N; this and the next three may also have a row for each
        segment.
    - `bending`: $C_2 = (EI_1, EI_2, GJ)$ in N m^2, about the axes of the frame.
    - `mass`: $\rho A$ in kg/m.
    - `inertia`: $J = (\rho I_1, \rho I_2, \rho(I_1 + I_2))$ in kg m.
    - `ends`: each `"free"`, `"pinned"` (its place is held) or `"clamped"` (its frame too).
    - `strain`: `"mid"`, or `"cay"` and `"left"` for comparison.
    - `gravity`: the acceleration $a$ in space, in any direction: with $(0, 0, -9.81)$ the axis
        $e_3$ points up. Without it there is no gravity.
    - `end_force`: a dead load $F$ on the last node, in space (N).
    - `end_torque`: on the last node, in the body: it turns with the cross-section (N m).
    - `damping`: the time $\beta$ in s.
    - `follower_end_force`: on the last node, in the body (N).
    - `dead_end_torque`: on the last node, in space (N m). It has no potential either.
    - `line_force`, `line_torque`, `follower_line_force`, `dead_line_torque`: the same per length.
    - `muscle`: the active moment $m_a$ in the body (N m): $m = C_2(\Omega - \Omega_0) - m_a$, so
        that alone it bends the rod by $C_2^{-1}m_a$.
    - `rest_curvature`, `rest_stretch`: $\Omega_0$ (1/m) and $\Gamma_0$ where no stress acts, if
        they are not $0$ and $e_3$.
    - `drag`, `spin_drag`: $c$ (N s/m^2) and $c_r$ (N s) of a fluid at rest, one number or three
        along the axes of the section: $-c v$ and $-c_r\omega$ per length.
    - `base`: where the first node is held, as a function of time: `base(t) -> (frame, place)` of a
        clamp, `base(t) -> place` of a pin.
    - `contact`: what the rod may touch, itself included: `rx.SelfContact`. Its step is that of
        `NonsmoothRattle`.

    Loads at the end are vectors or functions of `t`. Loads per length are vectors, a row for each
    node, or functions of the arc length `s` or of `s` and `t`; so are `muscle`, `rest_curvature`
    and `rest_stretch`, with a row for each segment.

    **Invariants:** energy, unless there is damping, drag, a muscle, a base that moves, a load or a
    rest shape that depends on time, a torque or a follower force; with free ends and no load and
    drag also the momentum $\sum m_kv_k$ and the angular momentum
    $\sum(r_k\times m_kv_k + \Lambda_kJ_k\omega_k)$.

    A subclass adds further loads by a method `force(self, g, xi, t)`, in the coordinates of the
    momenta; they may depend on the velocities.

    References: [SimoMarsdenKrishnaprasad1988].
    """

    elements: int = eqx.field(static=True)
    ends: tuple[str, str] = eqx.field(static=True)
    strain: str = eqx.field(static=True)
    spacing: Float[Array, ""]
    stretching: PerSegment
    bending: PerSegment
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
        end_force: EndLoad | None = None,
        end_torque: EndLoad | None = None,
        damping: ArrayLike | None = None,
        follower_end_force: EndLoad | None = None,
        dead_end_torque: EndLoad | None = None,
        line_force: AlongRod | None = None,
        line_torque: AlongRod | None = None,
        follower_line_force: AlongRod | None = None,
        dead_line_torque: AlongRod | None = None,
        muscle: AlongRod | None = None,
        rest_curvature: AlongRod | None = None,
        rest_stretch: AlongRod | None = None,
        drag: ArrayLike | None = None,
        spin_drag: ArrayLike | None = None,
        base: MovingBase | None = None,
        contact: SelfContact | None = None,
    ):
        self.elements = require_whole("elements", elements, 2, MOST_NODES)
        if not isinstance(ends, list | tuple) or len(ends) != 2:
            raise BadInput(f"ends = {quote(ends)} must be two words, one for each end of the rod.")
        first, last = ends
        self.ends = (require_choice("ends", first, ENDS), require_choice("ends", last, ENDS))
        self.strain = require_choice("strain", strain, STRAINS)
        self.spacing = evaluate_in_jax(lambda x: x / elements, positive64("length", length))
        self.stretching = per_segment("stretching", stretching, self.elements, (3,))
        self.bending = per_segment("bending", bending, self.elements, (3,))
        per_length = (
            per_segment("mass", mass, self.elements, ()),
            per_segment("inertia", inertia, self.elements, (3,)),
        )
        self.inertia, self.mobility = evaluate_in_jax(
            partial(_masses, self.elements, self.ends), self.spacing, *per_length
        )
        self.gravity = None if gravity is None else finite64("gravity", gravity, (3,))
        _require_free_end(
            self.ends[1],
            {"end_force": end_force, "follower_end_force": follower_end_force},
            {"end_torque": end_torque, "dead_end_torque": dead_end_torque},
        )
        self.end_force = None if callable(end_force) else _vector("end_force", end_force)
        self.end_torque = None if callable(end_torque) else _vector("end_torque", end_torque)
        self.damping = None if damping is None else positive64("damping", damping)
        self.loads = node_loads(
            self.elements,
            self.spacing,
            {
                "end_force": end_force if callable(end_force) else None,
                "follower_end_force": follower_end_force,
                "end_torque": end_torque if callable(end_torque) else None,
                "dead_end_torque": dead_end_torque,
            },
            {
                "line_force": line_force,
                "follower_line_force": follower_line_force,
                "line_torque": line_torque,
                "dead_line_torque": dead_line_torque,
            },
        )
        arcs = segment_arcs(self.elements, self.spacing)
        self.muscle = profile("muscle", muscle, arcs, "segments")
        self.rest_curvature = profile("rest_curvature", rest_curvature, arcs, "segments")
        self.rest_stretch = profile("rest_stretch", rest_stretch, arcs, "segments")
        self.drag = drag_rates(drag, spin_drag, *per_length, self.inertia, self.spacing)
        self.bases = moving_base(base, self.ends[0])
        self.contact = touching(contact, self.strands, lambda: self.arcs)

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
        radius: Size | None = None,
        section: AbstractSection | None = None,
        shear_correction: ArrayLike | None = None,
        ends: tuple[str, str] = ("free", "free"),
        strain: str = "mid",
        gravity: ArrayLike | None = None,
        end_force: EndLoad | None = None,
        end_torque: EndLoad | None = None,
        damping: ArrayLike | None = None,
        follower_end_force: EndLoad | None = None,
        dead_end_torque: EndLoad | None = None,
        line_force: AlongRod | None = None,
        line_torque: AlongRod | None = None,
        follower_line_force: AlongRod | None = None,
        dead_line_torque: AlongRod | None = None,
        muscle: AlongRod | None = None,
        rest_curvature: AlongRod | None = None,
        rest_stretch: AlongRod | None = None,
        drag: ArrayLike | None = None,
        spin_drag: ArrayLike | None = None,
        base: MovingBase | None = None,
        contact: SelfContact | None = None,
    ) -> "Rod":
        r"""Return a rod of $E$ (Pa), $\nu$, $\rho$ (kg/m^3) and its radius (m) or its section.

        $G = E/2(1 + \nu)$, and for a round one $A = \pi a^2$, $I = Aa^2/4$, and the polar moment is
        $2I$.

        - `radius`: a number, one for each segment, or a function of the arc length.
        - `section`: instead of `radius`, an `Ellipse`, a `Rectangle` or a `Tube`.
        - `shear_correction`: $k$ in the stiffness $kGA$ against shear, 1 if not given.
        """
        made = material(
            elements, length, young, poisson, density, radius, section, shear_correction
        )
        return cls(
            elements,
            length,
            **made,
            ends=ends,
            strain=strain,
            gravity=gravity,
            end_force=end_force,
            end_torque=end_torque,
            damping=damping,
            follower_end_force=follower_end_force,
            dead_end_torque=dead_end_torque,
            line_force=line_force,
            line_torque=line_torque,
            follower_line_force=follower_line_force,
            dead_line_torque=dead_line_torque,
            muscle=muscle,
            rest_curvature=rest_curvature,
            rest_stretch=rest_stretch,
            drag=drag,
            spin_drag=spin_drag,
            base=base,
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
        """Return the straight rod from `start` along `direction`, first axes near `normal`.

        Without `normal` that is x, or y for a rod along x.
        """
        return straight(self.nodes, self.spacing, direction, normal, start, stretch)

    def relaxed(
        self,
        direction: ArrayLike = (0.0, 0.0, 1.0),
        *,
        normal: ArrayLike | None = None,
        start: ArrayLike = (0.0, 0.0, 0.0),
        t: ArrayLike = 0.0,
    ) -> Placement:
        """Return the rod in its rest shape at the time `t`, without stress, from `start` on.

        Its first frame is that of `straight`.
        """
        frame, begin = first_frame(direction, normal), finite64("start", start, (3,))
        return evaluate_in_jax(_relax, self, frame, begin, finite64("t", t))

    @property
    def drawing(self) -> Drawing | None:
        """What a picture needs: spacing, radius of a round section of this inertia, what stands."""
        many = is_traced(self) or self.spacing.ndim != 0 or self.inertia.ndim != 1
        if many:
            return None
        return {"rods": [picture_size(self.spacing, self.inertia)]} | around(self.contact)


def _relax(
    rod: Rod, frame: Float[Array, "3 3"], start: Float[Array, "3"], t: Float[Array, ""]
) -> Placement:
    now, shape = rod.at_time(t), (rod.elements, 3)
    rest, bent = now.rest_stretch, now.rest_curvature
    gamma = jnp.broadcast_to(np.array([0.0, 0.0, 1.0]), shape) if rest is None else rest.rows()
    omega = jnp.zeros(shape) if bent is None else bent.rows()
    return relax(rod.strain, rod.spacing, gamma, omega, frame, start)


def _vector(name: str, value: ArrayLike | None) -> Float[Array, "3"] | None:
    return None if value is None else finite64(name, value, (3,))


def _require_free_end(
    end: str, forces: dict[str, EndLoad | None], torques: dict[str, EndLoad | None]
) -> None:
    """Reject loads on the last node that its support would take up."""
    for name, force in forces.items():
        if force is not None and end != "free":
            raise BadInput(
                f"{name} acts on the last node, but ends says that it is {end}: the support would "
                f'take up the force; leave {name} out, or make that end "free".'
            )
    for name, torque in torques.items():
        if torque is not None and end == "clamped":
            raise BadInput(
                f"{name} acts on the last node, but ends says that it is clamped: the clamp would "
                f'take up the torque; leave {name} out, or make that end "pinned" or "free".'
            )


def _masses(
    elements: int,
    ends: tuple[str, str],
    spacing: Float[Array, ""],
    mass: Float[Array, "..."],
    moments: Float[Array, "..."],
) -> tuple[Float[Array, " dim"], Float[Array, " dim"]]:
    """Return moments and masses of nodes, half at the ends; and inverses, 0 at held nodes.

    A node has half the inertia of each of its segments.
    """
    mass, moments = spacing * mass, spacing * moments
    turns, moves = np.ones(elements + 1), np.ones(elements + 1)
    for place, end in zip((0, -1), ends, strict=True):
        turns[place] = end != "clamped"
        moves[place] = end == "free"
    one = jnp.concatenate(
        [jnp.broadcast_to(moments, (*mass.shape, 3)), jnp.stack([mass] * 3, axis=-1)], axis=-1
    )
    if one.ndim == 1:
        share = np.ones(elements + 1)
        share[[0, -1]] = 0.5
        inertia = jnp.outer(jnp.asarray(share), one).reshape(-1)
    else:
        half = one / 2
        inner = half[:-1] + half[1:]
        inertia = jnp.concatenate([half[:1], inner, half[-1:]]).reshape(-1)
    mask = np.stack([turns] * 3 + [moves] * 3, axis=1)
    return inertia, jnp.asarray(mask.ravel()) / inertia

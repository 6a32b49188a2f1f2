"""Two elastic rods that roll on each other, or also slip, part and meet again."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from retrax.errors import BadInput
from retrax.mechanics.contact import require_apart
from retrax.mechanics.remembered import Drawing
from retrax.mechanics.state import Ending, State
from retrax.mechanics.symmetry import Symmetries
from retrax.mechanics.system import (
    ALLOWED_VIOLATION,
    ArrayLike,
    Coordinates,
    Derivative,
    refuse_overrides,
)
from retrax.nodal.nodes import name_components
from retrax.numerics.checks import (
    finite64,
    is_traced,
    positive64,
    require_flag,
    require_instance,
    require_number,
)
from retrax.numerics.evaluate import Evaluated, evaluate, evaluate_in_jax
from retrax.numerics.known import require_each
from retrax.numerics.meant import explain_keywords
from retrax.numerics.small_matrices import solve
from retrax.systems.rods.contact import (
    AbstractRollingPair,
    NoSlip,
    Pair,
    Part,
)
from retrax.systems.rods.events import ending, find_overlooked, margins
from retrax.systems.rods.picture import picture_size
from retrax.systems.rods.rod import Rod
from retrax.systems.rods.starts import (
    require_law,
    require_multiple,
    require_rolling,
    require_touching,
    require_within,
)
from retrax.systems.rods.unilateral import RodContact, limited_force, violation

# A subclass must not redefine these: the integrators of the contact take them from the rods.
_FIXED = (
    "constraint", "contact", "differential", "force", "group", "hamiltonian_energy", "momentum",
    "multipliers", "reaction", "reactions", "slip", "symmetry", "tangency", "total_force", "travel",
    "vector_field", "velocity",
)  # fmt: skip

# Of these, the equations of the contact: integrators that rely on them refuse other ones.
_CONTACT = ("reactions", "slip", "tangency")


class RodsInContact(AbstractRollingPair):
    r"""Two round rods of the same radius in contact: rolling, or under Coulomb's law.

    The element is $(g_1, g_2, s)$: both rods, and the arc lengths $s = (s_1, s_2)$ at which they
    touch. These are functions of $g_1$ and $g_2$, the points of the centrelines closest to each
    other, and carry no momentum; the state keeps them because the next ones are found from them.
    With $C$ of `rods/contact.py` and $\lambda$ the force on rod 1, in space,

    $$
    \begin{aligned}
    m_k\dot v_k &= F_k + (\alpha_k - \beta_k)\lambda                                &&\text{(1)}\\
    J_k\dot\omega_k + \omega_k\times J_k\omega_k &= T_k
       + \tfrac12(\alpha_k + \beta_k)\,\Lambda_k^T(d\times\lambda), \qquad C = 0.    &&\text{(2)}
    \end{aligned}
    $$

    The reaction does no work; the gap $|d|$ is constant, and with free ends so are both momenta. A
    run ends where the contact does. With `unilateral` it goes on: $C = 0$ gives way to the law of
    `rods/unilateral.py`, the rods stick, slip, part and meet again, and $s$ are the closest points
    also of rods that are apart.

    **Arguments:**

    - `first`, `second`: two `Rod`s.
    - `radius`: of both, in m: the centrelines stay two radii apart.
    - `width`: $W$ of the bump in m, a whole multiple of the spacing of either rod; about a radius
        or a diameter, whatever the number of elements.
    - `friction`: the coefficient above which the contact slips; without it friction is unlimited.
    - `unilateral`: whether a run goes on where the contact slips or opens, by `RollingVerlet`.
    - `restitution`: $e$ of impacts, between 0 and 1; needs `unilateral`.

    **Invariants:** energy, unless friction or impacts may take some of it; with free ends momentum
    and angular momentum.

    References: [GayBalmazPutkaradze2012].
    """

    first: Rod
    second: Rod
    radius: Float[Array, ""]
    width: Float[Array, ""]
    friction: Float[Array, ""] | None
    restitution: Float[Array, ""]
    arcs: tuple[Part, Part]
    unilateral: bool = eqx.field(static=True)

    force: ClassVar[None] = None
    symmetry: ClassVar[None] = None
    quadratic: ClassVar[bool] = True
    # Whether the equations keep the gap; a subclass with others says `keeps_gap=False`.
    keeps_gap: ClassVar[bool] = True
    regular: ClassVar[bool] = False  # the points of contact follow the rods, without inertia

    def __init__(
        self,
        first: Rod,
        second: Rod,
        *,
        radius: ArrayLike,
        width: ArrayLike,
        friction: ArrayLike | None = None,
        unilateral: bool = False,
        restitution: ArrayLike = 0.0,
    ):
        self.first = require_instance("first", first, Rod, "a Rod")
        self.second = require_instance("second", second, Rod, "a Rod")
        self.radius, self.width = positive64("radius", radius), positive64("width", width)
        self.unilateral = require_flag("unilateral", unilateral)
        # A contact that must roll has to be rough; one that may slip can be smooth.
        rough = finite64 if self.unilateral else positive64
        self.friction = None if friction is None else rough("friction", friction)
        self.restitution = finite64("restitution", restitution)
        require_each(partial(require_within, "restitution", 1.0), self.restitution)
        if self.friction is not None:
            require_each(partial(require_within, "friction", np.inf), self.friction)
        require_each(partial(require_law, self.keeps_gap, self.unilateral), self.restitution)
        one, two = (
            evaluate_in_jax(partial(_arcs, rod.nodes), rod.spacing) for rod in (first, second)
        )
        self.arcs = one, two
        for rod in (first, second):
            require_each(partial(require_multiple, rod.name), self.width, rod.spacing)
            if rod.moving or rod.drag is not None:
                raise BadInput(
                    f"the {rod.name} has a base or a rest shape that moves, or drag: rods that "
                    "roll on each other have neither."
                )

    def __init_subclass__(cls, keeps_gap: bool = True, **options: Any):
        super().__init_subclass__(**options)
        cls.keeps_gap = keeps_gap
        fixed = _FIXED if keeps_gap else tuple(sorted({*_FIXED} - {*_CONTACT}))
        refuse_overrides(cls, fixed, "give the rods loads: gravity, or a force of a Rod's subclass")

    @property
    def name(self) -> str:
        return f"pair of rods of {self.first.elements} and {self.second.elements} elements"

    @property
    def constraint(self) -> NoSlip | None:
        return None if self.unilateral else NoSlip(self)

    @property
    def contact(self) -> RodContact | None:
        return RodContact(self) if self.unilateral else None

    @property
    def drawing(self) -> Drawing | None:
        """What a picture needs: spacings and radii, and the width of the bump."""
        fields = (self.radius, self.width, self.first.spacing, self.second.spacing)
        if is_traced(self) or any(x.ndim for x in fields) or self.first.inertia.ndim != 1:
            return None
        radius = {"radius": float(self.radius)}
        rods = [picture_size(rod.spacing, rod.inertia) | radius for rod in self.rods]
        return {"rods": rods, "width": float(self.width)}

    def momentum(self, g: Pair, xi: Coordinates) -> Coordinates:
        one, two = self.split(xi)
        return self.join(self.first.inertia * one, self.second.inertia * two)

    def velocity(self, g: Pair, mu: Coordinates) -> Coordinates:
        one, two = self.split(self.mobile(mu))
        return self.join(one, two, self.travel(g, one, two))

    def vector_field(self, g: Pair, mu: Coordinates, t: Float[Array, ""]) -> Derivative:
        xi, rate, rows, lam = self._push(g, mu, t)
        return Derivative(xi, rate + lam[0] * rows[0] + lam[1] * rows[1] + lam[2] * rows[2])

    def multipliers(self, state: State) -> Float[Array, "3"]:
        """Return the force on rod 1 at a state, in space."""
        return self._push(state.g, state.momentum, state.t)[3]

    def reaction(self, state: State) -> Coordinates:
        _, _, rows, lam = self._push(state.g, state.momentum, state.t)
        return lam[0] * rows[0] + lam[1] * rows[1] + lam[2] * rows[2]

    def constraint_violation(self, state: State) -> Float[Array, ""]:
        """Return the violation; of rods that may part, how fast closed surfaces approach."""
        if not self.unilateral:
            return super().constraint_violation(state)
        return violation(self, state.g, self.mobile(state.momentum))

    def _push(
        self, g: Pair, mu: Coordinates, t: Float[Array, ""]
    ) -> tuple[Coordinates, Coordinates, tuple[Coordinates, ...], Float[Array, "3"]]:
        r"""Return velocity, rate of the momentum without contact, rows $A$ and the multipliers.

        $AM^{-1}A^T\lambda = -AM^{-1}\dot\mu_{\text{free}} - \dot A\,M^{-1}\mu$: the points of
        contact have no inertia, so their accelerations do not enter.
        """
        nodes = self.mobile(mu)
        xi = self.join(*self.split(nodes), self.travel(g, *self.split(nodes)))
        rate = self.group.coad(nodes, mu) + self.total_force(g, nodes, mu, t)
        way = self.group.tangent(g, xi)
        _, turning = jax.jvp(lambda k: self.slip(k, nodes), (g,), (way,))
        rows = self.reactions(g)
        free, S = turning + self.slip(g, self.mobile(rate)), self.yielding(rows)
        if not self.unilateral:
            return xi, rate, rows, -solve(S, free)
        _, swept = jax.jvp(self.gap_vector, (g,), (way,))
        return xi, rate, rows, limited_force(self, g, nodes, swept, S, free)

    def lasts(self, state: State) -> Bool[Array, ""]:
        return jnp.min(margins(self, state)) > 0

    def ending(self, step: Callable[[float], State], h: float) -> Ending | None:
        return ending(self, step, h)

    def find_overlooked(self, states: State) -> str | None:
        return find_overlooked(self, states)

    def differential(self, g: Pair, xi: Coordinates, mu: Coordinates) -> Coordinates:
        (xi1, xi2), (mu1, mu2) = self.split(xi), self.split(mu)
        one = self.first.differential(g[0], xi1, mu1)
        return self.join(one, self.second.differential(g[1], xi2, mu2))

    def total_force(
        self, g: Pair, xi: Coordinates, mu: Coordinates, t: Float[Array, ""]
    ) -> Coordinates:
        (xi1, xi2), (mu1, mu2) = self.split(xi), self.split(mu)
        one = self.first.total_force(g[0], xi1, mu1, t)
        return self.join(one, self.second.total_force(g[1], xi2, mu2, t))

    def hamiltonian_energy(self, g: Pair, mu: Coordinates) -> Float[Array, ""]:
        pairs = zip(self.rods, g[:2], self.split(mu), strict=True)
        one, two = (rod.hamiltonian_energy(at, p) for rod, at, p in pairs)
        return one + two

    def symmetries(self) -> Symmetries:
        """Return no symmetry: rigid motions turn all nodes and are no translations of the group."""
        none = np.zeros((0, self.group.dim))
        return Symmetries(none, none)

    @property
    def conservative(self) -> bool:
        rods = self.first.conservative and self.second.conservative
        return super().conservative and rods and not self.unilateral

    def power(self, state: State) -> Float[Array, ""]:
        """Return the power; what a contact takes that may slip and open, steps record."""
        if not self.unilateral:
            return super().power(state)
        g, mu, t, xi = state.g, state.momentum, state.t, self.mobile(state.momentum)
        return (self.total_force(g, xi, mu, t) - self.differential(g, xi, mu)) @ xi

    def further_invariants(self, state: State) -> dict[str, Float[Array, ""]]:
        if not (self.first.isolated and self.second.isolated):
            return {}
        one, two = self.split(state.momentum)
        first, second = State(state.g[0], one, state.t), State(state.g[1], two, state.t)
        p = self.first.total_momentum(first) + self.second.total_momentum(second)
        turn = self.first.total_angular_momentum(first)
        turn = turn + self.second.total_angular_momentum(second)
        return name_components("momentum", p) | name_components("angular momentum", turn)

    def crossed(self, angle: float = 90.0, meet: ArrayLike | None = None, gap: float = 0.0) -> Pair:
        """Return straight rods, rod 1 along x and below, `angle` degrees between them.

        `meet` are the arc lengths at which they cross, by default the middles of the rods; `gap`
        is between their surfaces, so that they just touch by default.
        """
        lengths = [float(rod.length) for rod in self.rods]
        places = finite64("meet", [x / 2 for x in lengths] if meet is None else meet, (2,))
        turn = np.radians(require_number("angle", angle))
        lift = float(self.radius) + require_number("gap", gap, ">= 0") / 2
        up, laid = np.array([0.0, 0.0, 1.0]), []
        for rod, way, s, side in zip(self.rods, (0.0, turn), places, (-1.0, 1.0), strict=True):
            t = np.array([np.cos(way), np.sin(way), 0.0])
            start = side * lift * up - float(s) * t
            laid.append(rod.straight(t, normal=up, start=start))
        return laid[0], laid[1], places

    @explain_keywords
    def state(
        self,
        g: ArrayLike,
        *,
        velocity: ArrayLike | None = None,
        momentum: ArrayLike | None = None,
        t: ArrayLike = 0.0,
        project: bool = False,
    ) -> State:
        """Return a state; the rods must touch in `g`, two radii apart, at its arc lengths.

        With `unilateral` they may be further apart, and may have any velocities; `project` takes
        the nearest ones that let rods which touch roll.

        **Raises:** `ContactDegenerate` or `ContactLeftRod` if the model has no contact like that.
        """
        state = super().state(g, velocity=velocity, momentum=momentum, t=t, project=project)
        lengths = tuple(evaluate(lambda rod: rod.length, rod) for rod in self.rods)
        sizes = (self.radius, self.width, lengths)
        gap, skew, H = _misfit(self, state.g)
        touching = partial(require_touching, self.unilateral and not project)
        require_each(touching, sizes, state.t, state.g[2], gap, skew, H)
        if self.unilateral and project:
            return State(state.g, _project(self, state.g, state.momentum), state.t)
        return state

    def check_state(self, state: State) -> None:
        for rod, at in zip(self.rods, state.g[:2], strict=True):
            rod.require_bent(at)
        if self.contact is not None:
            require_apart(self.contact, state.g)

    def project_momentum(self, g: Pair, mu: Coordinates, t: Float[Array, ""]) -> Coordinates:
        return _project(self, g, mu)

    def require_admissible(self, state: State, allowed: float = ALLOWED_VIOLATION) -> None:
        if self.unilateral:
            return
        slipping = _slipping(self, state.g, state.momentum)
        require_each(partial(require_rolling, allowed), slipping, fine=lambda x: x <= allowed)


def _arcs(nodes: int, spacing: Float[Array, ""]) -> Float[Array, " nodes"]:
    """Return the arc lengths of the nodes."""
    return spacing * jnp.arange(nodes, dtype=float)


@Evaluated
def _misfit(
    pair: RodsInContact, g: Pair
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, "2 2"]]:
    """Return the gap, the largest entry of the tangency, and the Hessian."""
    return pair.gap(g), jnp.max(jnp.abs(pair.tangency(g))), pair.curvature_of_gap(g)


@Evaluated
def _project(pair: RodsInContact, g: Pair, mu: Coordinates) -> Coordinates:
    """Return the nearest momentum that rolls, in the metric of the kinetic energy."""
    rows = jnp.stack(pair.reactions(g))
    moved = jnp.stack([pair.mobile(row) for row in rows])
    return mu - solve(rows @ moved.T, pair.slip(g, pair.mobile(mu))) @ rows


@Evaluated
def _slipping(pair: RodsInContact, g: Pair, mu: Coordinates) -> Float[Array, ""]:
    """Return the largest entry of the slip velocity."""
    return jnp.max(jnp.abs(pair.slip(g, pair.mobile(mu))))

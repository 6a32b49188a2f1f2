"""Two elastic rods that roll on each other without slipping."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from retrax.errors import BadInput, ContactDegenerate, ContactLeftRod
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
from retrax.numerics.bspline import SUPPORT
from retrax.numerics.checks import (
    finite64,
    is_traced,
    positive64,
    require_choice,
    require_instance,
    require_number,
)
from retrax.numerics.evaluate import Evaluated, evaluate, evaluated
from retrax.numerics.known import require_each
from retrax.numerics.small_matrices import solve
from retrax.systems.rods.contact import (
    AbstractRollingPair,
    NoSlip,
    Pair,
    Part,
    beyond,
    degenerate,
    too_flat,
)
from retrax.systems.rods.events import ending, margins, overlooked
from retrax.systems.rods.nodes import named
from retrax.systems.rods.rod import Rod, drawn

VARIANTS = ("rolling", "printed 8", "printed 10")
# By how much a start may miss the gap and the tangency, relative to the gap.
_ALLOWED = 1e-9
# A subclass must not redefine these: the integrators of the contact take them from the rods.
_FIXED = (
    "constraint", "differential", "force", "group", "hamiltonian_energy", "momentum",
    "multipliers", "reactions", "slip", "symmetry", "tangency", "total_force", "travel",
    "vector_field", "velocity",
)  # fmt: skip


class RodsInContact(AbstractRollingPair):
    r"""Two round rods of the same radius in perfect rolling contact.

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

    The reaction does no work; the gap $|d|$ is constant, and with free ends so are both momenta.

    **Arguments:**

    - `first`, `second`: two `Rod`s.
    - `radius`: of both, in m: the centrelines stay two radii apart.
    - `width`: $W$ of the bump in m, a whole multiple of the spacing of either rod; about a radius
        or a diameter, whatever the number of elements.
    - `friction`: the coefficient above which the contact slips; without it friction is unlimited.
    - `variant`: `"rolling"`, or `"printed 8"` and `"printed 10"`: the equations of the paper with
        these numbers, for comparison.

    **Invariants:** energy; with free ends momentum and angular momentum.

    References: [GayBalmazPutkaradze2012].
    """

    first: Rod
    second: Rod
    radius: Float[Array, ""]
    width: Float[Array, ""]
    friction: Float[Array, ""] | None
    arcs: tuple[Part, Part]
    variant: str = eqx.field(static=True)

    force: ClassVar[None] = None
    symmetry: ClassVar[None] = None
    quadratic: ClassVar[bool] = True
    regular: ClassVar[bool] = False  # the points of contact follow the rods, without inertia

    def __init__(
        self,
        first: Rod,
        second: Rod,
        *,
        radius: ArrayLike,
        width: ArrayLike,
        friction: ArrayLike | None = None,
        variant: str = "rolling",
    ):
        self.first = require_instance("first", first, Rod, "a Rod")
        self.second = require_instance("second", second, Rod, "a Rod")
        self.radius, self.width = positive64("radius", radius), positive64("width", width)
        self.friction = None if friction is None else positive64("friction", friction)
        self.variant = require_choice("variant", variant, VARIANTS)
        one, two = (evaluated(partial(_arcs, rod.nodes), rod.spacing) for rod in (first, second))
        self.arcs = one, two
        for rod in (first, second):
            require_each(partial(_require_multiple, rod.name), self.width, rod.spacing)

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        refuse_overrides(
            cls, _FIXED, "give the rods loads: gravity, or a force of a Rod's subclass"
        )

    @property
    def name(self) -> str:
        return f"pair of rods of {self.first.elements} and {self.second.elements} elements"

    @property
    def constraint(self) -> NoSlip:
        return NoSlip(self)

    @property
    def drawing(self) -> Drawing | None:
        """What a picture needs: spacings and radii, and the width of the bump."""
        fields = (self.radius, self.width, self.first.spacing, self.second.spacing)
        if is_traced(self) or any(x.ndim for x in fields) or self.first.inertia.ndim != 1:
            return None
        radius = {"radius": float(self.radius)}
        rods = [drawn(rod.spacing, rod.inertia) | radius for rod in self.rods]
        return {"rods": rods, "width": float(self.width)}

    def momentum(self, g: Pair, xi: Coordinates) -> Coordinates:
        one, two = self.split(xi)
        return self.joined(self.first.inertia * one, self.second.inertia * two)

    def velocity(self, g: Pair, mu: Coordinates) -> Coordinates:
        one, two = self.split(self.mobile(mu))
        return self.joined(one, two, self.travel(g, one, two))

    def vector_field(self, g: Pair, mu: Coordinates, t: Float[Array, ""]) -> Derivative:
        xi, rate, rows, lam = self._pushed(g, mu, t)
        return Derivative(xi, rate + lam[0] * rows[0] + lam[1] * rows[1] + lam[2] * rows[2])

    def multipliers(self, state: State) -> Float[Array, "3"]:
        """The force on rod 1 at a state, in space."""
        return self._pushed(state.g, state.momentum, state.t)[3]

    def _pushed(
        self, g: Pair, mu: Coordinates, t: Float[Array, ""]
    ) -> tuple[Coordinates, Coordinates, tuple[Coordinates, ...], Float[Array, "3"]]:
        r"""Velocity, rate of the momentum without contact, rows $A$ and the multipliers.

        $AM^{-1}A^T\lambda = -AM^{-1}\dot\mu_{\text{free}} - \dot A\,M^{-1}\mu$: the points of
        contact have no inertia, so their accelerations do not enter.
        """
        nodes = self.mobile(mu)
        xi = self.joined(*self.split(nodes), self.travel(g, *self.split(nodes)))
        rate = self.group.coad(nodes, mu) + self.total_force(g, nodes, mu, t)
        _, turning = jax.jvp(lambda k: self.slip(k, nodes), (g,), (self.group.tangent(g, xi),))
        rows = self.reactions(g)
        lam = -solve(self.yielding(rows), turning + self.slip(g, self.mobile(rate)))
        return xi, rate, rows, lam

    def lasts(self, state: State) -> Bool[Array, ""]:
        return jnp.min(margins(self, state)) > 0

    def ending(self, step: Callable[[float], State], h: float) -> Ending | None:
        return ending(self, step, h)

    def overlooked(self, states: State) -> str | None:
        return overlooked(self, states)

    def differential(self, g: Pair, xi: Coordinates, mu: Coordinates) -> Coordinates:
        (xi1, xi2), (mu1, mu2) = self.split(xi), self.split(mu)
        one = self.first.differential(g[0], xi1, mu1)
        return self.joined(one, self.second.differential(g[1], xi2, mu2))

    def total_force(
        self, g: Pair, xi: Coordinates, mu: Coordinates, t: Float[Array, ""]
    ) -> Coordinates:
        (xi1, xi2), (mu1, mu2) = self.split(xi), self.split(mu)
        one = self.first.total_force(g[0], xi1, mu1, t)
        return self.joined(one, self.second.total_force(g[1], xi2, mu2, t))

    def hamiltonian_energy(self, g: Pair, mu: Coordinates) -> Float[Array, ""]:
        pairs = zip(self.rods, g[:2], self.split(mu), strict=True)
        one, two = (rod.hamiltonian_energy(at, p) for rod, at, p in pairs)
        return one + two

    def symmetries(self) -> Symmetries:
        """None: rigid motions turn all nodes together and are not translations of the group."""
        none = np.zeros((0, self.group.dim))
        return Symmetries(none, none)

    @property
    def conservative(self) -> bool:
        return super().conservative and self.first.conservative and self.second.conservative

    def further_invariants(self, state: State) -> dict[str, Float[Array, ""]]:
        if not (self.first.isolated and self.second.isolated):
            return {}
        one, two = self.split(state.momentum)
        first, second = State(state.g[0], one, state.t), State(state.g[1], two, state.t)
        p = self.first.total_momentum(first) + self.second.total_momentum(second)
        turn = self.first.total_angular_momentum(first)
        turn = turn + self.second.total_angular_momentum(second)
        return named("momentum", p) | named("angular momentum", turn)

    def crossed(self, angle: float = 90.0, meet: ArrayLike | None = None) -> Pair:
        """Straight rods that just touch, rod 1 along x and below, `angle` degrees between them.

        `meet` are the arc lengths at which they cross, by default the middles of the rods.
        """
        lengths = [float(rod.length) for rod in self.rods]
        places = finite64("meet", [x / 2 for x in lengths] if meet is None else meet, (2,))
        turn = np.radians(require_number("angle", angle))
        up, laid = np.array([0.0, 0.0, 1.0]), []
        for rod, way, s, side in zip(self.rods, (0.0, turn), places, (-1.0, 1.0), strict=True):
            t = np.array([np.cos(way), np.sin(way), 0.0])
            start = side * float(self.radius) * up - float(s) * t
            laid.append(rod.straight(t, normal=up, start=start))
        return laid[0], laid[1], places

    def state(
        self,
        g: ArrayLike,
        *,
        velocity: ArrayLike | None = None,
        momentum: ArrayLike | None = None,
        t: ArrayLike = 0.0,
        project: bool = False,
    ) -> State:
        """As for any system; the rods must touch in `g`, two radii apart, at its arc lengths.

        **Raises:** `ContactDegenerate` or `ContactLeftRod` if the model has no contact like that.
        """
        state = super().state(g, velocity=velocity, momentum=momentum, t=t, project=project)
        lengths = tuple(evaluate(lambda rod: rod.length, rod) for rod in self.rods)
        sizes = (self.radius, self.width, lengths)
        require_each(_require_touching, sizes, state.t, state.g[2], *_misfit(self, state.g))
        return state

    def check_state(self, state: State) -> None:
        for rod, at in zip(self.rods, state.g[:2], strict=True):
            rod.require_bent(at)

    def projected(self, g: Pair, mu: Coordinates, t: Float[Array, ""]) -> Coordinates:
        return _projected(self, g, mu)

    def require_admissible(self, state: State, allowed: float = ALLOWED_VIOLATION) -> None:
        slipping = _slipping(self, state.g, state.momentum)
        require_each(partial(_require_rolling, allowed), slipping, fine=lambda x: x <= allowed)


def _arcs(nodes: int, spacing: Float[Array, ""]) -> Float[Array, " nodes"]:
    """The arc lengths of the nodes."""
    return spacing * jnp.arange(nodes, dtype=float)


def _require_touching(
    sizes: tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]],
    t: np.ndarray,
    s: np.ndarray,
    gap: np.ndarray,
    skew: np.ndarray,
    H: np.ndarray,
) -> None:
    """Reject rods that do not touch at the arc lengths `s`.

    `sizes` are the radius, the width of the bump and the lengths of both rods.
    """
    radius, width, lengths = sizes
    _require_contact(s, float(t), H, SUPPORT * float(width), np.array(lengths))
    expected = 2 * float(radius)
    if not abs(gap - expected) <= _ALLOWED * expected:
        raise BadInput(
            f"g has the centrelines {float(gap):.9g} apart at the contact, but they must be "
            f"two radii, {expected:.9g}, apart."
        )
    if not skew <= _ALLOWED * expected:
        raise BadInput(
            f"s = {[float(x) for x in s]} are not the points of the centrelines that "
            f"are closest to each other: the line between them misses the right angle by "
            f"{float(skew):.3g}; find them by pair.touching(...)."
        )


def _require_contact(
    s: np.ndarray, t: float, H: Float[np.ndarray, "2 2"], reach: float, lengths: np.ndarray
) -> None:
    """Reject parallel rods, and a bump that reaches beyond an end."""
    if np.any(s < reach) or np.any(s > lengths - reach):
        raise ContactLeftRod(beyond(s, t, reach))
    if too_flat(H):
        raise ContactDegenerate(degenerate(s, t, H))


def _require_multiple(name: str, width: np.ndarray, spacing: np.ndarray) -> None:
    ratio = float(width / spacing)
    if not (0.5 < ratio < 1e9 and abs(ratio - round(ratio)) < 1e-9 * ratio):
        raise BadInput(
            f"width = {float(width):g} is {ratio:.6g} spacings of the {name}, but must be a whole "
            "multiple of them: otherwise the weights of the contact do not add up to one."
        )


def _require_rolling(allowed: float, broken: np.ndarray) -> None:
    if not float(broken) <= allowed:
        raise BadInput(
            f"velocity lets the surfaces of the rods slip at {float(broken):.3g} m/s, but they "
            "must roll; project=True takes the nearest velocity that rolls."
        )


@Evaluated
def _misfit(
    pair: RodsInContact, g: Pair
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, "2 2"]]:
    """The gap, the largest entry of the tangency, and the Hessian."""
    return pair.gap(g), jnp.max(jnp.abs(pair.tangency(g))), pair.curvature_of_gap(g)


@Evaluated
def _projected(pair: RodsInContact, g: Pair, mu: Coordinates) -> Coordinates:
    """The nearest momentum that rolls, in the metric of the kinetic energy."""
    rows = jnp.stack(pair.reactions(g))
    moved = jnp.stack([pair.mobile(row) for row in rows])
    return mu - solve(rows @ moved.T, pair.slip(g, pair.mobile(mu))) @ rows


@Evaluated
def _slipping(pair: RodsInContact, g: Pair, mu: Coordinates) -> Float[Array, ""]:
    """The largest entry of the slip velocity."""
    return jnp.max(jnp.abs(pair.slip(g, pair.mobile(mu))))

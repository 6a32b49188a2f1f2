r"""The mechanics of an elastic rod: forces of its segments, and free flight of its nodes.

In flight a node with the angular momentum $\Pi$ and principal moments $J$ turns by a Cayley step
$\Lambda_1 = \Lambda_0\,\mathrm{cay}(hw)$, whose velocity $w$ solves

$$ Jw + \tfrac h2\,w\times Jw + \tfrac{h^2}4(w\cdot Jw)\,w = \Pi. \tag{1} $$

The momentum becomes $\mathrm{cay}(hw)^T\Pi$, so that $\Lambda\Pi$ stays constant. The iteration for
all nodes at once starts from $w^0 = J^{-1}(\Pi - \tfrac h2 u\times Ju)$, $u = J^{-1}\Pi$, with an
error of $O(h^2)$. It always takes two steps with $J$ for the derivative, each of which gains a
factor $O(h)$, and then steps of Newton's method while some node needs them.
"""

from typing import Any, ClassVar, NamedTuple

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
from retrax.mechanics.system import Coordinates
from retrax.numerics.newton import SMALLEST, NewtonStatus, Sizes, to_stagnation
from retrax.numerics.small_matrices import cross, solve
from retrax.systems.rods.dispersion import fastest, fastest_of_each, longest_step
from retrax.systems.rods.strain import Loads, Segment, Strain, loads, segment

Placement = tuple[Float[Array, "_nodes 3 3"], Float[Array, "_nodes 3"]]
HostPlacement = tuple[Float[np.ndarray, "_nodes 3 3"], Float[np.ndarray, "_nodes 3"]]
Rows = Float[Array, "nodes 3"]
Vector = Float[Array, "3"]

_E3 = np.array([0.0, 0.0, 1.0])
# The trace of the turn from node to node at nearly half a turn.
_FOLDED = -0.95
# Residuals of (1), relative to the momenta: where the iteration stops, and what it may leave.
_EPS = float(jnp.finfo(jnp.float64).eps)
_AIM, _ACCEPT = 4 * _EPS, 128 * _EPS
_MOST = 25  # iterations


class Flight(NamedTuple):
    """The end of a free flight: placement, change of the angular momenta, velocities."""

    g: Placement
    change: Rows
    w: Rows
    v: Rows
    status: NewtonStatus


class AbstractRod(AbstractSplitSystem, AbstractMechanicalSystem):
    """Energies, loads and free flight of a rod; `Rod` holds the numbers.

    Coordinates go node by node: three of the rotation in the body, three of the place in space.
    """

    elements: eqx.AbstractVar[int]
    ends: eqx.AbstractVar[tuple[str, str]]
    strain: eqx.AbstractVar[str]
    spacing: eqx.AbstractVar[Float[Array, ""]]
    stretching: eqx.AbstractVar[Float[Array, "3"]]
    bending: eqx.AbstractVar[Float[Array, "3"]]
    inertia: eqx.AbstractVar[Float[Array, " dim"]]
    mobility: eqx.AbstractVar[Float[Array, " dim"]]
    gravity: eqx.AbstractVar[Float[Array, "3"] | None]
    end_force: eqx.AbstractVar[Float[Array, "3"] | None]
    end_torque: eqx.AbstractVar[Float[Array, "3"] | None]
    damping: eqx.AbstractVar[Float[Array, ""] | None]

    force: Function | None = eqx.field(default=None, kw_only=True)  # or a method of a subclass
    symmetry: ClassVar[tuple[tuple[float, ...], ...] | None] = None

    @property
    def nodes(self) -> int:
        return self.elements + 1

    @property
    def strands(self) -> tuple[int, ...]:
        """How many nodes each rod has, one after the other."""
        return (self.nodes,)

    @property
    def arcs(self) -> Float[Array, " nodes"]:
        """The arc length of every node."""
        return self.spacing * jnp.arange(self.nodes, dtype=float)

    @property
    def group(self) -> Power:
        return Power(Product(SO3(), Translation(3)), self.nodes)

    @property
    def name(self) -> str:
        return f"rod of {self.elements} elements"

    @property
    def length(self) -> Float[Array, ""]:
        return self.spacing * self.elements

    @property
    def invariant_inertia(self) -> bool:
        return True

    @property
    def free(self) -> bool:
        return False

    def inertia_at(self, g: Placement) -> Coordinates:
        return self.inertia

    def velocity(self, g: Placement, mu: Coordinates) -> Coordinates:
        return self.mobility * mu

    def parts(self, xi: Coordinates) -> tuple[Rows, Rows]:
        """Rotational and translational parts of a velocity or a momentum, one row per node."""
        rows = xi.reshape(self.nodes, 6)
        return rows[:, :3], rows[:, 3:]

    def segments(self, g: Placement) -> Segment:
        """The strain of every segment, and what its loads are computed from."""
        frames, places = g

        def one(before, after, step):
            return segment(self.strain, before, after, step, self.spacing)

        return jax.vmap(one)(frames[:-1], frames[1:], places[1:] - places[:-1])

    def strains(self, g: Placement) -> Strain:
        return self.segments(g).strain

    def potential_energy(self, g: Placement) -> Float[Array, ""]:
        gamma, omega = self.strains(g)
        extra = gamma - jnp.broadcast_to(_E3, gamma.shape)
        energy = self.spacing / 2 * jnp.sum(extra * extra @ self.stretching)
        energy = energy + self.spacing / 2 * jnp.sum(omega * omega @ self.bending)
        places = g[1]
        if self.gravity is not None:
            _, mass = self.parts(self.inertia)
            energy = energy - jnp.sum((mass * places) @ self.gravity)
        if self.end_force is not None:
            energy = energy - places[-1] @ self.end_force
        return energy

    def resultants(self, strain: Strain) -> Strain:
        r"""The stress resultants $n = C_1(\Gamma - e_3)$ and $m = C_2\Omega$."""
        extra = strain.stretch - jnp.broadcast_to(_E3, strain.stretch.shape)
        return Strain(_scaled(extra, self.stretching), _scaled(strain.curvature, self.bending))

    def differential(self, g: Placement, xi: Coordinates, mu: Coordinates) -> Coordinates:
        seg = self.segments(g)
        inner = self._on_nodes(self._between(g, seg, self.resultants(seg.strain)))
        return self._outside(inner, torque=False)

    def kick(self, g: Placement, t: Float[Array, ""]) -> Coordinates:
        seg = self.segments(g)
        inner = self._on_nodes(self._between(g, seg, self.resultants(seg.strain)))
        return self._outside(inner, torque=True)

    def total_force(
        self, g: Placement, xi: Coordinates, mu: Coordinates, t: Float[Array, ""]
    ) -> Coordinates:
        acting = self.kick(g, t)
        if self.feedback:
            acting = acting + self.load(g, xi, t)
        return acting if self.damping is None else acting + self._friction(g, xi)

    @property
    def feedback(self) -> bool:
        return self.force is not None

    def load(self, g: Placement, xi: Coordinates, t: Float[Array, ""]) -> Coordinates:
        """The external force, without its parts on held nodes."""
        assert self.force is not None
        return self.held(jnp.asarray(self.force(g, xi, t)))

    def flight(self, g: Placement, mu: Coordinates, h: Float[Array, ""]) -> Flight:
        """Free motion of all nodes: straight ahead, turning by (1)."""
        frames, places = g
        spun, pushed = self.parts(mu)
        moments, _ = self.parts(self.inertia)
        w, status = spin(moments, spun, h)
        v = self.parts(self.mobility)[1] * pushed
        change = jax.vmap(turned_back)(h * w, spun)
        turned = jax.vmap(SO3().advance)(frames, jax.vmap(SO3().caym1)(h * w))
        return Flight((turned, places + h * v), change, w, v, status)

    def drift(self, g: Placement, mu: Coordinates, h: Float[Array, ""]) -> Drift:
        """The free flight; damping acts before and after it, for half a step each."""
        lost = None if self.damping is None else self.damped(g, mu, h / 2)
        flown = self.flight(g, mu if lost is None else mu + lost, h)
        change = jnp.concatenate([flown.change, jnp.zeros_like(flown.v)], axis=1).reshape(-1)
        if lost is not None:
            change = change + lost
            change = change + self.damped(flown.g, mu + change, h / 2)
        move = jnp.max(jnp.abs(h * flown.w), axis=1)
        return Drift(flown.g, change, move, flown.status, self.unfolded(flown.g))

    def _friction(self, g: Placement, xi: Coordinates) -> Coordinates:
        """The forces of damping, from stresses proportional to the rates of the strains."""
        seg, moved = jax.jvp(self.segments, (g,), (self.group.tangent(g, xi),))
        stress = Strain(
            _scaled(self.damping * moved.strain.stretch, self.stretching),
            _scaled(self.damping * moved.strain.curvature, self.bending),
        )
        return self.held(self._on_nodes(self._between(g, seg, stress)))

    def damped(self, g: Placement, mu: Coordinates, h: Float[Array, ""]) -> Coordinates:
        """The change of the momentum by damping in a time `h`, to order 2, with `g` constant."""
        half = h / 2 * self._friction(g, self.mobility * mu)
        return h * self._friction(g, self.mobility * (mu + half))

    def unfolded(self, g: Placement) -> Bool[Array, ""]:
        """Whether all segments are bent by clearly less than half a turn."""
        frames, _ = g
        traces = jnp.sum(frames[:-1] * frames[1:], axis=(1, 2))
        return jnp.min(traces) > _FOLDED

    def check_step(self, state: State, h: float) -> None:
        self.require_stable(state.g, h)

    def require_stable(self, g: Placement | HostPlacement, h: float, split: bool = True) -> None:
        """Reject a step with which the fastest wave on the lattice of the nodes would grow.

        `split`: with `LieVerlet`; otherwise with an integrator of two rods.
        """
        stretch = float(_longest(g[1])) / float(self.spacing)
        highest = fastest(self, stretch)
        damping = 0.0 if self.damping is None else float(self.damping)
        longest, because = longest_step(highest, damping, split)
        if not h < longest:
            raise BadInput(
                f"h = {h:g} s is unstable for the {self.name}: {because} at the frequency omega = "
                f"{highest:.4g} rad/s bounds it, so h must be below {longest:.4g} s."
            )

    def hardest(self, states: State) -> int:
        """The rod whose waves are the fastest."""
        stretch = _longest(states.g[1]) / float(self.spacing)
        stretches, which = np.unique(np.round(stretch, _DIGITS), return_inverse=True)
        return int(np.argmax(fastest_of_each(self, stretches)[which]))

    def why_not(self, state: State, h: float) -> str | None:
        return (
            "A segment of the rod is bent by nearly half a turn, where its curvature is not "
            "defined; with more elements each of them bends less."
        )

    def _between(self, g: Placement, seg: Segment, stress: Strain) -> Loads:
        def one(before, seg, n, m):
            return loads(self.strain, before, seg, n, m, self.spacing)

        return jax.vmap(one)(g[0][:-1], seg, *stress)

    def _on_nodes(self, load: Loads) -> Coordinates:
        """The loads of all segments, added up at the nodes."""
        before, after, pull = load
        first = jnp.concatenate([before[:1], pull[:1]], axis=1)
        inner = jnp.concatenate([before[1:] + after[:-1], pull[1:] - pull[:-1]], axis=1)
        last = jnp.concatenate([after[-1:], -pull[-1:]], axis=1)
        return jnp.concatenate([first, inner, last]).reshape(-1)

    def _outside(self, flat: Coordinates, torque: bool) -> Coordinates:
        """Add gravity and the end loads."""
        if self.gravity is not None:
            weight = jnp.concatenate([jnp.zeros(3), self.gravity])
            flat = flat + _scaled(self.inertia.reshape(self.nodes, 6), weight).reshape(-1)
        if self.end_force is not None:
            flat = flat.at[-3:].add(self.end_force)
        if torque and self.end_torque is not None:
            flat = flat.at[-6:-3].add(self.end_torque)
        return self.held(flat)

    def held(self, flat: Coordinates) -> Coordinates:
        """Loads without those on held nodes, which the supports take up."""
        return jnp.where(self.mobility > 0, flat, 0.0) if self.holds else flat

    @property
    def holds(self) -> bool:
        """Whether an end is held."""
        return self.ends != ("free", "free")


# Rods whose stretch is the same to so many digits have the same waves.
_DIGITS = 12


def _longest(places: object) -> np.ndarray:
    """The longest segment between nodes along the last axis but one."""
    steps = np.diff(np.asarray(places), axis=-2)
    return np.asarray(np.sqrt(np.sum(steps * steps, axis=-1)).max(axis=-1))


def _scaled(rows: Float[Array, "n m"], by: Float[Array, " m"]) -> Float[Array, "n m"]:
    """Multiply every row by the entries of `by`."""
    return rows * jnp.broadcast_to(by, rows.shape)


@jax.custom_jvp
def spin(moments: Rows, momenta: Rows, h: Float[Array, ""]) -> tuple[Rows, NewtonStatus]:
    """Solve (1) for the velocities $w$ of all nodes.

    Its derivative is that of the implicit function theorem, forward and in reverse.
    """
    scale = jnp.max(jnp.abs(momenta)) + SMALLEST

    def first(J: Vector, P: Vector) -> Vector:
        inverse = 1 / J
        w = (P - h / 2 * cross(P * inverse, P)) * inverse
        w = w - inverse * _mismatch(J, P, h, w)
        return w - inverse * _mismatch(J, P, h, w)

    def residual(w: Rows) -> Float[Array, ""]:
        return jnp.max(
            jnp.abs(jax.vmap(lambda J, P, w: _mismatch(J, P, h, w))(moments, momenta, w))
        )

    def improve(w: Rows) -> tuple[Rows, Sizes]:
        w = jax.vmap(lambda J, P, w: _improved(J, P, h, w))(moments, momenta, w)
        return w, (residual(w), scale)

    w = jax.vmap(first)(moments, momenta)
    return to_stagnation(
        improve, w, (residual(w), scale), aim=_AIM, accept=_ACCEPT, most=_MOST, iterations=2
    )


@spin.defjvp
def _spin_jvp(primals: tuple, tangents: tuple) -> tuple:
    w, status = spin(*primals)
    (moments, momenta, h), (*rows, dh) = primals, tangents

    def moved(J: Vector, P: Vector, w: Vector, dJ: Vector, dP: Vector) -> Vector:
        _, change = jax.jvp(lambda J, P, h: _mismatch(J, P, h, w), (J, P, h), (dJ, dP, dh))
        return -solve(_slope(J, h, w), change)

    dw = jax.vmap(moved)(moments, momenta, w, *rows)
    none: Any = np.zeros((), jax.dtypes.float0)
    return (w, status), (dw, NewtonStatus(none, jnp.zeros_like(status.residual), none))


def turned_back(x: Vector, P: Vector) -> Vector:
    r"""$\mathrm{cay}(x)^TP - P$, without cancellation."""
    across = cross(x, P)
    return 4 / (4 + x @ x) * (cross(x, across) / 2 - across)


def _mismatch(J: Vector, P: Vector, h: Array, w: Vector) -> Vector:
    """The left side of (1) less the right one."""
    spun = J * w
    return spun + h / 2 * cross(w, spun) + (h * h / 4 * (w @ spun)) * w - P  # (1)


def _improved(J: Vector, P: Vector, h: Array, w: Vector) -> Vector:
    """One step of Newton's method."""
    return w - solve(_slope(J, h, w), _mismatch(J, P, h, w))


def _slope(J: Vector, h: Array, w: Vector) -> Float[Array, "3 3"]:
    """The derivative of (1) by w, written out."""
    spun, half = J * w, h / 2
    a, b, c = half * w[0], half * w[1], half * w[2]
    p, q, r = half * spun[0], half * spun[1], half * spun[2]
    energy = half * (w[0] * p + w[1] * q + w[2] * r)
    # J + h/2 (hat(w) J - hat(J w)) + h^2/4 ((w.Jw) 1 + 2 w (Jw)^T)
    return jnp.stack(
        [
            J[0] + energy + 2 * a * p, r - c * J[1] + 2 * a * q, b * J[2] - q + 2 * a * r,
            c * J[0] - r + 2 * b * p, J[1] + energy + 2 * b * q, p - a * J[2] + 2 * b * r,
            q - b * J[0] + 2 * c * p, a * J[1] - p + 2 * c * q, J[2] + energy + 2 * c * r,
        ]
    ).reshape(3, 3)  # fmt: skip

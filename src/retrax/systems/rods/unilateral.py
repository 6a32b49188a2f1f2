r"""A contact of two rods that may slip and open: Coulomb's law in continuous time.

With $d$ from rod 1 to rod 2, $n = d/|d|$ and the slip $C$ of `contact.py`, the gap is
$\gamma = |d| - 2a$ and opens at the speed $u = \dot\gamma = -n\cdot C$, however the points of
contact move. The force on rod 1 is $\lambda = -Nn + \lambda_t$ with

$$
\begin{aligned}
0 &\le \gamma \perp N \ge 0, \qquad |\lambda_t| \le fN                       &&\text{(1)}\\
\lambda_t &= -fN\,C_t/|C_t| \quad\text{where it slips,}                        &&\text{(2)}
\end{aligned}
$$

and while the gap stays closed $0 = \ddot\gamma = -n\cdot\dot C - \dot n\cdot C$. A push along $n$
has no arm about the centrelines and all directions of space have the same masses, so that it
changes no slip, nor does $\lambda_t$ open the gap: with $S = AM^{-1}A^T$ and $\dot C_0$ the rate
of $C$ without a force,

$$ N = \frac{n\cdot\dot C_0 + \dot n\cdot C}{n\cdot Sn}. \tag{3} $$

The contact sticks as long as the force that lets nothing slip, $-S^{-1}\dot C_0$, lies within its
cone; where that is too much, the surfaces part with the tangential force nearest to it.
"""

from typing import TYPE_CHECKING, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from retrax.contact.solver.friction import Across, rubbing
from retrax.mechanics.contact import AbstractContacts, Gaps, Touch
from retrax.mechanics.system import AbstractGroupSystem, Coordinates
from retrax.numerics.small_matrices import cross, solve

if TYPE_CHECKING:
    from retrax.systems.rods.contact import AbstractRollingPair, Pair

Scalar = Float[Array, ""]
Vector = Float[Array, "3"]
Matrix = Float[Array, "3 3"]

# What counts as closed, relative to the lengths of the rods, and as at rest, relative to their
# speeds: some rounding errors.
_ROUNDING = 128 * float(jnp.finfo(jnp.float64).eps)


class Meeting(NamedTuple):
    """Two rods where they are closest.

    **Attributes:** `gap`: between the surfaces; `axes`: rows from rod 1 to rod 2, along rod 1, and
    across both.
    """

    gap: Scalar
    axes: Matrix

    def force(self, push: Scalar, across: Across) -> Vector:
        """Return the force on rod 1 in space, of a pressure and a force across the contact."""
        return jnp.concatenate([-push[None], across]) @ self.axes

    def parts(self, slip: Vector) -> tuple[Scalar, Across]:
        """Return the speed at which the gap opens, and the slip across the contact."""
        seen = self.axes @ slip
        return -seen[0], seen[1:]

    def turn_to(self, other: "Meeting", across: Across) -> Across:
        """Return the same force across another contact, turned as little as its normal needs."""
        n, m = self.axes[0], other.axes[0]
        force = across @ self.axes[1:]
        return other.axes[1:] @ (force - (force @ m) / (1 + n @ m) * (n + m))

    def give(self, S: Matrix) -> tuple[Scalar, Float[Array, "2 2"]]:
        """Return how much a push opens the gap, and a force across the contact lets it slip."""
        seen = self.axes @ S @ self.axes.T
        return seen[0, 0], seen[1:, 1:]


class RodContact(AbstractContacts):
    """The one contact of two rods."""

    own_step: ClassVar[str | None] = "RollingVerlet()"
    pair: "AbstractRollingPair"
    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, pair: "AbstractRollingPair"):
        self.pair, self.names = pair, ("the contact of the two rods",)

    @property
    def friction(self) -> Gaps:
        given = self.pair.friction
        return (jnp.asarray(jnp.inf) if given is None else given)[None]

    @property
    def restitution(self) -> Gaps:
        return self.pair.restitution[None]

    def on(self, system: AbstractGroupSystem) -> "RodContact":
        return self

    def gaps(self, g: "Pair") -> Gaps:
        return (self.pair.gap(g) - 2 * self.pair.radius)[None]

    def overlap(self, candidate: int, depth: float) -> str:
        return (
            f"the rods overlap by {depth:.3g} m where they are closest in g: their centrelines "
            "must be at least two radii apart."
        )

    def look(
        self, g: "Pair", along: Float[Array, "m 3 3"] | None = None, held: bool = False
    ) -> Touch:
        here = meeting(self.pair, g, None if along is None else along[0, 1])
        rows = here.axes @ jnp.stack(self.pair.reactions(g))
        rows = rows.at[0].multiply(-1.0)
        return Touch(here.gap[None], here.axes[None], rows[None])


def meeting(pair: "AbstractRollingPair", g: "Pair", along: Vector | None = None) -> Meeting:
    """Look at the rods where they are closest.

    The second of the axes is as near to `along` as it can be, by default to the first rod.
    """
    d = pair.gap_vector(g)
    along = pair.tangents(g)[0] if along is None else along
    far = jnp.sqrt(d @ d)
    n = d / far
    along = along - (along @ n) * n
    along = along / jnp.sqrt(along @ along)
    return Meeting(far - 2 * pair.radius, jnp.stack([n, along, cross(n, along)]))


def is_closed(pair: "AbstractRollingPair", gap: Scalar) -> Bool[Array, ""]:
    """Return whether nothing but rounding errors is between the surfaces."""
    return gap <= _ROUNDING * (pair.first.length + pair.second.length)


def friction_within(
    pair: "AbstractRollingPair", give: Float[Array, "2 2"], aim: Across, push: Scalar
) -> tuple[Across, Bool[Array, ""]]:
    """Return the friction nearest the aim that a push allows, and whether it falls short."""
    if pair.friction is None:
        return jnp.where(push > 0, aim, jnp.zeros(2)), jnp.asarray(False)
    return rubbing(give, aim, pair.friction * push)


def limited_force(
    pair: "AbstractRollingPair",
    g: "Pair",
    nodes: Coordinates,
    turning: Vector,
    S: Matrix,
    rate: Vector,
) -> Vector:
    r"""Return the force on rod 1 at a state.

    **Arguments:** `nodes`: velocities; `turning`: $\dot d$; `S`, `rate`: $\dot C_0$ of (3).
    """
    here = meeting(pair, g)
    n = here.axes[0]
    slip = pair.slip(g, nodes)
    opening, across = here.parts(slip)
    stiff, give = here.give(S)
    turn = (turning - (turning @ n) * n) / (here.gap + 2 * pair.radius)  # the rate of n
    still = _ROUNDING * _speed(pair, nodes)
    touches = is_closed(pair, here.gap) & (opening <= still)
    push = jnp.where(touches, jnp.maximum(n @ rate + turn @ slip, 0.0) / stiff, 0.0)  # (3)
    held, _ = friction_within(pair, give, -solve(give, here.axes[1:] @ rate), push)
    if pair.friction is None:
        return here.force(push, held)
    fast = jnp.sqrt(across @ across)
    against = -pair.friction * push * across / jnp.where(fast > still, fast, 1.0)  # (2)
    return here.force(push, jnp.where(fast > still, against, held))


def violation(pair: "AbstractRollingPair", g: "Pair", nodes: Coordinates) -> Scalar:
    """Return by how much a state breaks the law: an overlap, or surfaces in touch that approach."""
    here = meeting(pair, g)
    opening, _ = here.parts(pair.slip(g, nodes))
    approach = jnp.where(is_closed(pair, here.gap), jnp.maximum(-opening, 0.0), 0.0)
    return jnp.maximum(approach, jnp.maximum(-here.gap, 0.0))


def _speed(pair: "AbstractRollingPair", nodes: Coordinates) -> Scalar:
    """Return the largest speed of the surfaces."""
    speeds = []
    for rod, xi in zip(pair.rods, pair.split(nodes), strict=True):
        omega, v = rod.parts(xi)
        speeds.append(jnp.max(jnp.abs(v)) + pair.radius * jnp.max(jnp.abs(omega)))
    return jnp.maximum(*speeds)

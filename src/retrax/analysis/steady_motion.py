r"""Steady motions: those along which a symmetry carries the state.

A state moves steadily if a symmetry $Z$ of the motion $X$ moves it as the motion does:

$$ [Z, X] = 0, \qquad Z(g_0, \mu_0) = X(g_0, \mu_0). \tag{1} $$

Then the state is a fixed point of $X - Z$: what an observer sees who is carried along. A wheel that
rolls ahead is such a motion ($Z$ moves space ahead, and turns the wheel about its own axis), and so
is a top that precesses. Symmetries are looked for among the fields $v$ on the group that come from
left and from right translations, and from turning space as a whole; on momenta they act by

$$ \dot\mu = \mathrm{ad}^*_v\mu - (Dv)^T\mu. \tag{2} $$
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.analysis.linearisation import REDUNDANT, Linearised, linearise
from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup, Coordinates, Element
from retrax.groups.power import Power
from retrax.groups.product import Product
from retrax.groups.so2 import SO2
from retrax.groups.so3 import SO3
from retrax.groups.translation import Translation
from retrax.mechanics.holonomic import AbstractHolonomic
from retrax.mechanics.reactions import admissible
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.evaluate import Evaluated, as_jax
from retrax.numerics.small_matrices import cross

# Symmetries are told from other fields at so many states next to the given one.
_STATES = 3
_AWAY = 0.1
# Of a field that is a symmetry, the bracket with the motion is round-off.
_SYMMETRIC = 1e-9
# A place counts as on the constraint, and so many corrections may lead there.
_ON_CONSTRAINT = 1e-13
_NEWTON = 30


class SteadyMotion(NamedTuple):
    r"""What an observer sees who is carried along with a steady motion.

    **Attributes:** `derivative`: $D(X - Z)$ in $(\eta, \nu)$; `symmetric`: rows that span the
    directions in which symmetries move the state; `residual`: the size of $X - Z$, and `size` that
    of $X$.
    """

    derivative: Float[np.ndarray, "y y"]
    symmetric: Float[np.ndarray, "s y"]
    residual: float
    size: float


def steady_motion(system: AbstractGroupSystem, state: State, here: Linearised) -> SteadyMotion:
    """Find the symmetry that carries a state, as well as one does."""
    n, symmetries = system.group.dim, _symmetries(system, state)
    fields = here.scale @ _fields(system, state.g, state.momentum)
    moved = fields @ symmetries
    left, sizes, right = np.linalg.svd(moved)
    rank = int(np.sum(sizes > REDUNDANT * np.linalg.norm(fields)))
    parts = right[:rank].T @ ((left[:, :rank].T @ here.field) / sizes[:rank])
    # Several symmetries may agree at the state: take the one that turns space least.
    still = right[rank:].T
    turning = np.delete(symmetries, np.s_[n : 2 * n], axis=0)  # all but right translations
    parts = parts - still @ np.linalg.lstsq(turning @ still, turning @ parts, rcond=None)[0]
    slope = _slope(system, state.g, state.momentum, symmetries @ parts)
    return SteadyMotion(
        here.derivative - here.scale @ slope @ np.linalg.inv(here.scale),
        left[:, :rank].T,
        float(np.linalg.norm(here.field - moved @ parts)),
        float(np.linalg.norm(here.field)),
    )


def _symmetries(system: AbstractGroupSystem, state: State) -> Float[np.ndarray, "field s"]:
    """Return the combinations of fields that commute with the motion, next to a state."""
    rng, rows = np.random.default_rng(0), []
    for _ in range(_STATES):
        near = _neighbour(system, state, rng)
        there = linearise(system, near)
        y = np.linalg.solve(there.scale, there.field)
        fields, changes = _along(system, near.g, near.momentum, y)
        rows.append(there.derivative @ there.scale @ fields - there.scale @ changes)  # [Z, X]
        rows.append(there.across @ there.scale @ fields)  # symmetries keep to the constraint
    singular, right = np.linalg.svd(np.concatenate(rows))[1:]
    return right[np.sum(singular > _SYMMETRIC * singular[0]) :].T


def _neighbour(system: AbstractGroupSystem, state: State, rng: np.random.Generator) -> State:
    """Return an admissible state some way off, at a velocity that differs."""
    group, g, t = system.group, state.g, state.t
    eta = _AWAY * rng.normal(size=group.dim)
    xi = np.asarray(system.velocity_at(state))
    xi = xi + _AWAY * (1 + np.max(np.abs(xi))) * rng.normal(size=group.dim)
    if isinstance(system.constraint, AbstractHolonomic):
        rows = _place(system, g, t)[1]
        eta = eta - np.linalg.pinv(rows, rcond=REDUNDANT) @ (rows @ eta)
    g = _displace(group, g, eta)
    if isinstance(system.constraint, AbstractHolonomic):
        for _ in range(_NEWTON):
            gap, rows = _place(system, g, t)
            if np.max(np.abs(gap)) < _ON_CONSTRAINT:
                break
            g = _displace(group, g, -np.linalg.pinv(rows, rcond=REDUNDANT) @ gap)
        else:
            raise BadInput(
                f"the {system.name} cannot be moved by {_AWAY} from this state and put together "
                "again, so its symmetries there are not known: is it at a singular configuration?"
            )
    return State(g, as_jax(_momentum(system, g, xi, t)), t)


@Evaluated
def _displace(group: AbstractLieGroup, g: Element, eta: Coordinates) -> Element:
    return group.compose(g, group.exp(eta))


@Evaluated
def _place(system: AbstractGroupSystem, g: Element, t: Float[Array, ""]) -> tuple[Array, Array]:
    return system.constraint.positions(g, t), system.constraint.position_rows(g, t)


@Evaluated
def _momentum(
    system: AbstractGroupSystem, g: Element, xi: Coordinates, t: Float[Array, ""]
) -> Coordinates:
    now = system.at_time(t)
    mu = now.momentum(g, xi)
    return mu if system.constraint is None else admissible(now, system.constraint, g, mu, t)[0]


def _chart_fields(
    system: AbstractGroupSystem, g0: Element, y: Float[Array, " y"]
) -> Float[Array, "y field"]:
    """Return the fields that may be symmetries, a column each, at a point of the chart."""
    group, n = system.group, system.group.dim
    eta, mu = y[:n], y[n:]
    g = group.compose(g0, group.exp(eta))

    def velocities(small: Coordinates) -> Float[Array, "dim field"]:
        k = group.compose(g, group.exp(small))
        return jnp.concatenate([group.Ad(group.inverse(k)), jnp.eye(n), _turns(group, k)], axis=1)

    v = velocities(jnp.zeros(n))
    lifted = jax.jacfwd(lambda small: mu @ velocities(small))(jnp.zeros(n))
    rates = jax.vmap(lambda v: group.coad(v, mu), in_axes=1, out_axes=1)(v) - lifted.T  # (2)
    seen = jax.vmap(lambda v: group.dexp_inv(eta, v), in_axes=1, out_axes=1)(v)
    return jnp.concatenate([seen, rates])


def _turns(group: AbstractLieGroup, g: Element) -> Float[Array, "dim turns"]:
    """Return how the points of a group move when space turns about its axes; none for most."""
    if isinstance(group, Power) and _turns_space(group.group):
        return jax.vmap(lambda k: _turns(group.group, k))(g).reshape(group.dim, -1)
    if isinstance(group, Product) and _turns_space(group):
        parts = [_turns(factor, k) for factor, k in zip(group.groups, g, strict=True)]
        return jnp.concatenate(parts)
    if isinstance(group, SO3):
        return g.T
    if isinstance(group, SO2):
        return jnp.ones((1, 1))
    if isinstance(group, Translation) and group.n == 3:
        return jax.vmap(lambda e: cross(e, g), out_axes=1)(jnp.eye(3))
    if isinstance(group, Translation) and group.n == 2:
        return jnp.stack([-g[1], g[0]])[:, None]
    return jnp.zeros((group.dim, 0))


def _turns_space(group: AbstractLieGroup) -> bool:
    """Return whether a group holds the places of one body: a rotation and a centre of mass."""
    if not isinstance(group, Product) or len(group.groups) != 2:
        return False
    turn, travel = group.groups
    d = {SO2: 2, SO3: 3}.get(type(turn))
    return isinstance(travel, Translation) and travel.n == d


@Evaluated
def _fields(system: AbstractGroupSystem, g: Element, mu: Coordinates) -> Float[Array, "y field"]:
    return _chart_fields(system, g, jnp.concatenate([jnp.zeros_like(mu), mu]))


@Evaluated
def _along(
    system: AbstractGroupSystem, g: Element, mu: Coordinates, way: Float[Array, " y"]
) -> tuple[Array, Array]:
    """Return the fields, and their derivatives along a direction."""
    y = jnp.concatenate([jnp.zeros_like(mu), mu])
    return jax.jvp(lambda y: _chart_fields(system, g, y), (y,), (way,))


@Evaluated
def _slope(
    system: AbstractGroupSystem, g: Element, mu: Coordinates, parts: Float[Array, " field"]
) -> Float[Array, "y y"]:
    """Return the derivative of one combination of fields."""
    y = jnp.concatenate([jnp.zeros_like(mu), mu])
    return jax.jacfwd(lambda y: _chart_fields(system, g, y) @ parts)(y)

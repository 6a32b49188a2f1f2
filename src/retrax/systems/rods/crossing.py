"""Starts of two rods in contact: laid across each other, pressed together, pushed."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import NoEquilibrium
from retrax.mechanics.state import State
from retrax.systems.rods.material import section
from retrax.systems.rods.pair import RodsInContact
from retrax.systems.rods.rod import Rod
from retrax.systems.rods.rolling import Pair

_LENGTH, _RADIUS, _STRETCH, _ANGLE = 2.0, 0.05, 1.2, 70.0
_MEET = (0.9, 1.15)
_MOST = 60


def crossed_rods(
    elements: int = 20,
    *,
    pressed: float = 0.1,
    kick: float = 1.0,
    width: float = 0.1,
    ends: tuple[str, str] = ("clamped", "clamped"),
    friction: Any = None,
    variant: str = "rolling",
    **rod: Any,
) -> tuple[RodsInContact, State]:
    r"""Two stretched rods across each other at 70 degrees, clamped, pressed together and kicked.

    Length 2, radius 1/20, $EA = \rho A = 1$, $\nu = \tfrac12$, stretched by 1.2; they meet at
    $s = (0.9, 1.15)$, rod 1 below.

    **Arguments:**

    - `elements`: of each rod.
    - `pressed`: how far the clamps of each are moved towards the other rod (m); 0 leaves straight
        rods that just touch.
    - `kick`: the size of the initial velocities, which are projected on the constraint.
    - `width`: of the bump; `ends`, `friction`, `variant`: as for `Rod` and `RodsInContact`.
    """
    made = section(1.0, 0.5, 1.0, _RADIUS)
    rods = [Rod(elements, _LENGTH, **made, ends=ends, **rod) for _ in range(2)]
    pair = RodsInContact(*rods, radius=_RADIUS, width=width, friction=friction, variant=variant)
    g = _laid(pair, pressed)
    if pressed:
        g = press(pair, g)
    return pair, pair.state(g, velocity=_kicks(pair, kick), project=True)


def kicked(
    pair: RodsInContact, g: Pair, kick: float = 1.0, **others: Any
) -> tuple[RodsInContact, State]:
    """The same rods at `g`, with another kick, friction or variant: `g` need not be found again."""
    same = {"radius": pair.radius, "width": pair.width, "variant": pair.variant}
    other = RodsInContact(pair.first, pair.second, **(same | others))
    if other.variant == "printed 8":
        g = (g[0], g[1], _closest(other, *g))
    return other, other.state(g, velocity=_kicks(other, kick), project=True)


def _laid(pair: RodsInContact, pressed: float) -> Pair:
    """Straight rods; pressed ones are bowed away from each other so that they do not overlap."""
    angle = np.radians(_ANGLE)
    directions = np.array([[1.0, 0.0, 0.0], [np.cos(angle), np.sin(angle), 0.0]])
    crossing = _STRETCH * (_MEET[0] - _LENGTH / 2) * directions[0]
    starts = [
        -_STRETCH * _LENGTH / 2 * directions[0],
        crossing - _STRETCH * _MEET[1] * directions[1],
    ]
    out = []
    for rod, t, start, side in zip(pair.rods, directions, starts, (1.0, -1.0), strict=True):
        lift = side * (pressed - _RADIUS)
        start = start + np.array([0.0, 0.0, lift])
        frames, places = rod.straight(t, normal=[0.0, 0.0, 1.0], start=start, stretch=_STRETCH)
        arc = np.linspace(0.0, np.pi, rod.nodes)
        bow = np.outer(-side * pressed * np.sin(arc), [0.0, 0.0, 1.0])
        out.append((frames, places + jnp.asarray(bow)))
    s = _closest(pair, *out, jnp.array(_MEET))
    return out[0], out[1], s


def _kicks(pair: RodsInContact, size: float) -> Float[Array, " dim"]:
    def waves(rod):
        s = np.asarray(rod.spacing) * np.arange(rod.nodes)
        return [np.sin(j * np.pi * s / _LENGTH) for j in (1, 2)]

    def velocity(rod, vx, vy, vz, turn):
        zero = np.zeros(rod.nodes)
        rows = (np.stack([zero, zero, turn], 1), np.stack([vx, vy, vz], 1))
        return rod.velocity_of(*(size * x for x in rows))

    one, two = waves(pair.first)
    first = velocity(pair.first, 0.010 * two, 0.030 * one, -0.010 * one, 0.10 * one)
    one, two = waves(pair.second)
    second = velocity(pair.second, -0.020 * one, 0.015 * two, 0.005 * one, -0.05 * one)
    return pair.joined(first, second)


@jax.jit
def _closest(pair: RodsInContact, one: Any, two: Any, guess: Any) -> Float[Array, "2"]:
    return pair.touching(one, two, guess)[0]


def press(pair: RodsInContact, g: Pair, force: float = 0.0) -> Pair:
    r"""Two rods pressed against each other without friction, at rest, near `g`.

    Newton's method for the places of all nodes, the points of contact and the pressure $N$:

    $$ F + A^T(-N\hat d) = 0, \qquad d\perp R_i', \qquad |d| = 2a. \tag{1} $$

    The matrix is dense: some hundred elements take a second, a thousand too much memory.

    **Raises:** `NoEquilibrium` where the iteration does not settle.
    """
    group, size = pair.group, pair.group.dim
    mobile = pair.joined(pair.first.mobility, pair.second.mobility, jnp.ones(2))

    def residual(delta, g, pressure):
        at = group.compose(g, group.exp(delta[:-1]))
        rest = jnp.zeros(size)
        load = pair.total_force(at, rest, rest, jnp.zeros(()))
        d = pair.gap_vector(at)
        gap = jnp.sqrt(d @ d)
        push = -(pressure + delta[-1]) / gap * d
        rows = pair.reactions(at)
        load = load + push[0] * rows[0] + push[1] * rows[1] + push[2] * rows[2]
        closing = jnp.stack([gap - 2 * pair.radius])
        return jnp.concatenate([load[:-2], pair.tangency(at), closing])

    @jax.jit
    def linearised(g, pressure):
        none = jnp.zeros(size + 1)
        return residual(none, g, pressure), jax.jacfwd(residual)(none, g, pressure)

    moved, pressure, smallest = jax.jit(lambda g, x: group.compose(g, group.exp(x))), force, np.inf
    free = np.append(np.asarray(mobile) > 0, True)
    for _ in range(_MOST):
        r, jacobian = (np.asarray(x) for x in linearised(g, pressure))
        step = np.zeros(size + 1)
        step[free] = -np.linalg.solve(jacobian[np.ix_(free, free)], r[free])
        longest = np.abs(step[:-1]).max()
        step *= min(1.0, 0.2 / longest)
        g, pressure = moved(g, jnp.asarray(step[:-1])), pressure + step[-1]
        if longest < 1e-13 or (longest < 1e-9 and longest > 0.5 * smallest):
            return g[0], g[1], _closest(pair, *g)
        smallest = min(smallest, longest)
    raise NoEquilibrium(
        f"The {pair.name} found no pressed equilibrium near the placement given: after {_MOST} "
        f"Newton iterations the next would still move it by {longest:.2g}."
    )

"""Where two rods in contact can start: laid across each other, pressed together and kicked."""

from typing import Any

import numpy as np
from jaxtyping import Array, Float

from retrax.mechanics.state import State
from retrax.mechanics.system import ArrayLike
from retrax.numerics.checks import finite64, require_number
from retrax.numerics.evaluate import as_jax, evaluate_in_jax
from retrax.systems.rods.contact import Pair
from retrax.systems.rods.pair import RodsInContact
from retrax.systems.rods.pressing import closest, press
from retrax.systems.rods.rod import Rod
from retrax.systems.rods.section import section

_LENGTH, _RADIUS, _STRETCH = 2.0, 0.05, 1.2


def crossed_rods(
    elements: int = 20,
    *,
    pressed: float = 0.1,
    kick: float = 1.0,
    angle: float = 70.0,
    meet: tuple[float, float] = (0.9, 1.15),
    width: float = 0.1,
    ends: tuple[str, str] = ("clamped", "clamped"),
    friction: ArrayLike | None = None,
    unilateral: bool = False,
    restitution: ArrayLike = 0.0,
    **rod: Any,
) -> tuple[RodsInContact, State]:
    r"""Return two stretched rods across each other, clamped, pressed together and kicked.

    Both have the length 2, the radius 1/20, $EA = \rho A = 1$ and $\nu = \tfrac12$, and are
    stretched by 1.2; rod 1 lies below. There is no gravity unless `gravity` is given.

    **Arguments:**

    - `elements`: of each rod.
    - `pressed`: how far the clamps of each rod are moved towards the other one (m); with 0 straight
        rods just touch.
    - `kick`: the size of the initial velocities, which are projected on the constraint.
    - `angle`: between the rods, in degrees; `meet`: the arc lengths at which they cross (m).
    - `width`: of the bump; `ends`, `friction`, `unilateral`, `restitution`: as for `Rod` and
        `RodsInContact`.
    - Further arguments are those of `Rod`, the same for both.
    """
    pressed, kick = require_number("pressed", pressed, ">= 0"), require_number("kick", kick)
    angle = require_number("angle", angle)
    first, second = (float(s) for s in np.asarray(finite64("meet", meet, (2,))))
    meet = (first, second)
    made = section(1.0, 0.5, 1.0, _RADIUS)
    rods = [Rod(elements, _LENGTH, **made, ends=ends, **rod) for _ in range(2)]
    pair = RodsInContact(
        *rods,
        radius=_RADIUS,
        width=width,
        friction=friction,
        unilateral=unilateral,
        restitution=restitution,
    )
    g = _lay(pair, pressed, angle, meet)
    if pressed:
        g = press(pair, g)
    return pair, pair.state(g, velocity=_kicks(pair, kick), project=True)


def kick_rods(
    pair: RodsInContact,
    g: Pair,
    kick: float = 1.0,
    *,
    friction: ArrayLike | None = None,
    unilateral: bool = False,
    restitution: ArrayLike = 0.0,
) -> tuple[RodsInContact, State]:
    """Return the rods of `pair` placed at `g` with another kick or contact law."""
    other = type(pair)(
        pair.first,
        pair.second,
        radius=pair.radius,
        width=pair.width,
        friction=friction,
        unilateral=unilateral,
        restitution=restitution,
    )
    return other, other.state(g, velocity=_kicks(other, kick), project=True)


def _lay(pair: RodsInContact, pressed: float, degrees: float, meet: tuple[float, float]) -> Pair:
    """Lay straight rods; those to be pressed are bowed away from each other, not to overlap."""
    angle = np.radians(degrees)
    directions = np.array([[1.0, 0.0, 0.0], [np.cos(angle), np.sin(angle), 0.0]])
    crossing = _STRETCH * (meet[0] - _LENGTH / 2) * directions[0]
    starts = [
        -_STRETCH * _LENGTH / 2 * directions[0],
        crossing - _STRETCH * meet[1] * directions[1],
    ]
    out = []
    for rod, t, start, side in zip(pair.rods, directions, starts, (1.0, -1.0), strict=True):
        lift = side * (pressed - _RADIUS)
        start = start + np.array([0.0, 0.0, lift])
        frames, places = rod.straight(t, normal=[0.0, 0.0, 1.0], start=start, stretch=_STRETCH)
        arc = np.linspace(0.0, np.pi, rod.nodes)
        bow = np.outer(-side * pressed * np.sin(arc), [0.0, 0.0, 1.0])
        out.append((frames, as_jax(np.asarray(places) + bow)))
    return out[0], out[1], as_jax(closest(pair, out[0], out[1], meet))


def _kicks(pair: RodsInContact, size: float) -> Float[Array, " dim"]:
    """Return velocities of both rods: two sine waves along each, in all directions."""

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
    return evaluate_in_jax(RodsInContact.join, pair, first, second)

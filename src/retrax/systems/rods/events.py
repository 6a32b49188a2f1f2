r"""When a rolling contact ends, and when rods pass through each other elsewhere.

With $d$ from rod 1 to rod 2, $\hat d = d/|d|$ and the force $\lambda$ on rod 1,
$N = -\lambda\cdot\hat d$ and $\lambda_t = \lambda - (\lambda\cdot\hat d)\hat d$. The rods roll
while

$$ N > 0, \qquad |\lambda_t| \le \mu N, \qquad 3W \le s_i \le L_i - 3W, \qquad H > 0: \tag{1} $$

they press on each other, friction holds them, the bump lies within both rods, and the points of
contact are the closest ones; the last two also where rods may slip and part. The force is that of
continuous time at a state, so (1) does not depend on the integrator: it is tested at the end of
every step of every integrator.

The model has one contact, so rods can pass through each other elsewhere. Two segments of
centrelines, $p + \sigma u$ and $q + \tau w$ with $\sigma, \tau \in [0, 1]$, have the distance

$$ \min_{\sigma, \tau}\ |p + \sigma u - q - \tau w|: \tag{2} $$

the minimum over the whole lines if both points lie inside, else the least of the four distances
from an end. Two rods of radius $a$ overlap where it is below $2a$ away from the contact; a rod
overlaps itself where it is below $2a$ at arc lengths more than $2\pi a$ apart.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from retrax.errors import ContactDegenerate, ContactLeftRod, ContactLost, Separation, Slip
from retrax.mechanics.state import Ending, State, bracket
from retrax.numerics.bspline import SUPPORT
from retrax.numerics.evaluate import Evaluated
from retrax.systems.rods.contact import FLATTEST, beyond, degenerate, when_and_where

if TYPE_CHECKING:
    from retrax.systems.rods.pair import RodsInContact

_BEHIND = 1e-4  # of a step
# The least overlap, relative to two radii, that counts: a polygon is not a smooth curve.
_SHALLOW = 0.01
_AT_ONCE = 256  # states looked at together

Points = Float[np.ndarray, "times nodes 3"]
# Of the first state with an overlap: its row, the two segments and their distance.
Hit = tuple[int, int, int, float]


def kinds(system: "RodsInContact") -> tuple[type[ContactLost], ...]:
    """Return the errors that may end the contact, in the order of `margins`."""
    always = (ContactDegenerate, ContactLeftRod)
    if system.unilateral:
        return always
    return (*always, Separation) if system.friction is None else (*always, Separation, Slip)


def margins(system: "RodsInContact", state: State) -> Float[Array, " kinds"]:
    """Return how far each condition of (1) is from failing; positive while the contact lasts."""
    g = state.g
    s, reach = g[2], SUPPORT * system.width
    one, two = (
        jnp.minimum(s[k] - reach, rod.length - reach - s[k]) for k, rod in enumerate(system.rods)
    )
    out = [_steepness(system.curvature_of_gap(g)) - FLATTEST, jnp.minimum(one, two)]
    if system.unilateral:
        return jnp.stack(out)
    acting = system.contact_force(g, system.multipliers(state))
    out.append(acting["pressure"])
    if system.friction is not None:
        held = acting["tangential"]
        out.append(system.friction * acting["pressure"] - jnp.sqrt(held @ held))
    return jnp.stack(out)


def ending(system: "RodsInContact", step: Callable[[float], State], h: float) -> Ending | None:
    """Find the condition of (1) that fails first in a step of size `h`, by bisection.

    The state of the ending is the last one at which the contact lasts, up to round-off.
    """

    def keeps(size: float) -> np.ndarray:
        return np.asarray(_look(system, step(size)).margins) > 0

    if keeps(h).all():
        return None
    first, last = bracket(lambda size: bool(keeps(size).all()), h)
    # Look just behind the event: infinite friction fails a rounding error before the pressure does.
    failed = keeps(min(last + _BEHIND * h, h)) & keeps(last)
    kind, before = kinds(system)[int(np.argmin(failed))], step(first)
    what, why = _sentence(kind, system, _look(system, step(last)), float(before.t), h)
    return Ending(what, why, kind, before)


class _Seen(NamedTuple):
    """A state at which the contact may end: margins, force, arc lengths and Hessian."""

    margins: Float[Array, " kinds"]
    acting: dict[str, Float[Array, "..."]]
    s: Float[Array, "2"]
    H: Float[Array, "2 2"]


@Evaluated
def _look(system: "RodsInContact", state: State) -> _Seen:
    acting = system.contact_force(state.g, system.multipliers(state))
    return _Seen(margins(system, state), acting, state.g[2], system.curvature_of_gap(state.g))


def _sentence(
    kind: type[ContactLost], system: "RodsInContact", end: _Seen, t: float, h: float
) -> tuple[str, str]:
    place = when_and_where(end.s, t, h)
    if kind is Separation:
        return (
            "separates the rods",
            f"The pressure between them falls to zero {place}; after that the constraint would "
            "have to pull.",
        )
    if kind is Slip and system.friction is not None:
        tangential = float(np.linalg.norm(end.acting["tangential"]))
        return (
            "needs more friction than there is",
            f"The force leaves the friction cone {place}: its tangential part reaches "
            f"{tangential:.3g} N, {float(system.friction):g} times the pressure of "
            f"{float(end.acting['pressure']):.3g} N.",
        )
    if kind is ContactLeftRod:
        reach = SUPPORT * float(system.width)
        return "takes the contact off a rod", beyond(end.s, t, reach, h)
    return "finds no single point of contact", degenerate(end.s, t, end.H, h)


def _steepness(H: Float[Array, "2 2"]) -> Float[Array, ""]:
    """Return the smaller eigenvalue over the size of the mean of both."""
    mean, half = (H[0, 0] + H[1, 1]) / 2, (H[0, 0] - H[1, 1]) / 2
    return (mean - jnp.sqrt(half * half + H[0, 1] * H[1, 0])) / jnp.abs(mean)


class Overlap(NamedTuple):
    """The deepest overlap of the first state that has one."""

    t: float
    which: str
    arcs: tuple[float, float]
    distance: float


def find_overlooked(system: "RodsInContact", states: State) -> str | None:
    """Return a sentence about the first saved state with rods inside each other, if any."""
    found = first_overlap(system, states)
    if found is None:
        return None
    wide = 2 * float(system.radius)
    return (
        f"{found.which} at t = {found.t:.6g} s, away from the contact: at the arc lengths "
        f"{found.arcs[0]:.3g} and {found.arcs[1]:.3g} m the centrelines are {found.distance:.3g} m "
        f"apart, less than two radii, {wide:.3g} m. The model has one contact and lets them pass "
        f"through each other by {wide - found.distance:.2g} m; from there on the run does not "
        "describe solid rods."
    )


def first_overlap(system: "RodsInContact", states: State) -> Overlap | None:
    """Return the first saved state in which the rods overlap away from their contact."""
    (_, one), (_, two), s = (states.g[0], states.g[1], np.asarray(states.g[2]))
    one, two, times = np.asarray(one), np.asarray(two), np.asarray(states.t)
    h = [float(rod.spacing) for rod in system.rods]
    wide, reach = 2 * float(system.radius), SUPPORT * float(system.width)
    for k in range(0, len(times), _AT_ONCE):
        part = slice(k, k + _AT_ONCE)
        near = _near(s[part], (one.shape[1], two.shape[1]), h, reach)
        found = [
            ("The two rods meet", _deepest(one[part], two[part], near, wide), h),
            ("The first rod meets itself", _with_itself(one[part], h[0], wide), [h[0]] * 2),
            ("The second rod meets itself", _with_itself(two[part], h[1], wide), [h[1]] * 2),
        ]
        hits = [(hit[0], which, hit, d) for which, hit, d in found if hit is not None]
        if hits:
            row, which, (_, i, j, distance), d = min(hits)
            arcs = ((i + 0.5) * d[0], (j + 0.5) * d[1])
            return Overlap(float(times[k + row]), which, arcs, distance)
    return None


def _near(
    s: Float[np.ndarray, "t 2"], nodes: tuple[int, int], h: list[float], reach: float
) -> Bool[np.ndarray, "t n m"]:
    """Return whether both segments of a pair lie at the contact."""
    beside = [
        np.abs((np.arange(n - 1) + 0.5) * d - s[:, [k]]) <= reach + d
        for k, (n, d) in enumerate(zip(nodes, h, strict=True))
    ]
    return beside[0][:, :, None] & beside[1][:, None, :]


def _with_itself(places: Points, h: float, wide: float) -> Hit | None:
    """Return the deepest overlap of a rod with itself."""
    n = places.shape[1] - 1
    apart = h * np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    near = np.broadcast_to(apart <= np.pi * wide + 2 * h, (len(places), n, n))
    return _deepest(places, places, near, wide)


def _deepest(one: Points, two: Points, near: Bool[np.ndarray, "t n m"], wide: float) -> Hit | None:
    """Return the deepest overlap of two rods among pairs of segments that are not `near`."""
    limit = wide * (1 - _SHALLOW)
    u, w = np.diff(one, axis=1), np.diff(two, axis=1)
    middles = [x[:, :-1] + d / 2 for x, d in ((one, u), (two, w))]
    reach = [np.linalg.norm(d, axis=2) / 2 for d in (u, w)]
    between = np.linalg.norm(middles[0][:, :, None] - middles[1][:, None], axis=3)
    close = ~near & (between - reach[0][:, :, None] - reach[1][:, None] < limit)
    rows, i, j = np.nonzero(close)
    if not len(rows):
        return None
    distance = _segments(one[rows, i], u[rows, i], two[rows, j], w[rows, j])
    if not np.any(distance < limit):
        return None
    first = rows[distance < limit].min()
    here = np.flatnonzero(rows == first)
    worst = here[np.argmin(distance[here])]
    return int(first), int(i[worst]), int(j[worst]), float(distance[worst])


def _segments(
    p: Float[np.ndarray, "pairs 3"],
    u: Float[np.ndarray, "pairs 3"],
    q: Float[np.ndarray, "pairs 3"],
    w: Float[np.ndarray, "pairs 3"],
) -> Float[np.ndarray, " pairs"]:
    """Return the distances (2) of pairs of segments."""
    r = p - q
    a, b, c = (np.sum(x * y, axis=1) for x, y in ((u, u), (u, w), (w, w)))
    d, e = np.sum(u * r, axis=1), np.sum(w * r, axis=1)
    det = a * c - b * b
    flat = det <= 1e-12 * a * c
    safe = np.where(flat, 1.0, det)
    inner = np.where(flat, 0.0, (b * e - c * d) / safe), np.where(flat, 0.0, (a * e - b * d) / safe)
    tries = [tuple(np.clip(x, 0.0, 1.0) for x in inner)]
    for end in (0.0, 1.0):  # from each end of a segment to the nearest point of the other
        tries.append((np.full_like(a, end), np.clip((e + end * b) / c, 0.0, 1.0)))
        tries.append((np.clip((end * b - d) / a, 0.0, 1.0), np.full_like(a, end)))
    gaps = [np.linalg.norm(r + x[:, None] * u - y[:, None] * w, axis=1) for x, y in tries]
    # The minimum over the lines counts only where it lies inside both segments.
    inside = ~flat & (inner[0] >= 0) & (inner[0] <= 1) & (inner[1] >= 0) & (inner[1] <= 1)
    gaps[0] = np.where(inside, gaps[0], np.inf)
    return np.min(gaps, axis=0)

r"""Where rods in contact pass through each other: the model knows one contact, and no other.

Two segments of centrelines, $p + \sigma u$ and $q + \tau w$ with $\sigma, \tau \in [0, 1]$, are
closest where

$$ \min_{\sigma, \tau}\ |p + \sigma u - q - \tau w|^2: \tag{1} $$

at the minimum over the whole lines where both lie inside, else at the best of the four ends. Two
rods of radius $a$ overlap where this distance is below $2a$, away from the contact; a rod overlaps
itself where it is, at arc lengths more than $2\pi a$ apart.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from retrax.numerics.bspline import SUPPORT

if TYPE_CHECKING:
    from retrax.systems.rods.pair import RodsInContact

# What counts as an overlap, as a part of the distance of two radii: a polygon is no smooth curve.
_SHALLOW = 0.01
_AT_ONCE = 256  # states looked at together

Points = Float[np.ndarray, "times nodes 3"]


class Overlap(NamedTuple):
    """The deepest overlap of the first state that has one."""

    t: float
    which: str
    arcs: tuple[float, float]
    distance: float


def overlooked(system: "RodsInContact", states: Any) -> str | None:
    """A sentence about saved states in which the rods pass through each other, if there are any."""
    found = first_overlap(system, states)
    if found is None:
        return None
    wide = 2 * float(system.radius)
    return (
        f"{found.which} at t = {found.t:.6g} s, away from the contact: at the arc lengths "
        f"{found.arcs[0]:.3g} and {found.arcs[1]:.3g} m the centrelines are {found.distance:.3g} m "
        f"apart, less than two radii, {wide:.3g} m. The model knows one contact and lets them pass "
        f"through each other by {wide - found.distance:.2g} m; what follows is no motion of such "
        "rods."
    )


def first_overlap(system: "RodsInContact", states: Any) -> Overlap | None:
    """The first saved state in which the rods overlap away from their contact."""
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
    s: Any, nodes: tuple[int, int], h: list[float], reach: float
) -> Bool[np.ndarray, "t n m"]:
    """Pairs of segments that both lie at the contact."""
    beside = [
        np.abs((np.arange(n - 1) + 0.5) * d - s[:, [k]]) <= reach + d
        for k, (n, d) in enumerate(zip(nodes, h, strict=True))
    ]
    return beside[0][:, :, None] & beside[1][:, None, :]


def _with_itself(places: Points, h: float, wide: float) -> tuple[int, int, int, float] | None:
    n = places.shape[1] - 1
    apart = h * np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    near = np.broadcast_to(apart <= np.pi * wide + 2 * h, (len(places), n, n))
    return _deepest(places, places, near, wide)


def _deepest(
    one: Points, two: Points, near: Bool[np.ndarray, "t n m"], wide: float
) -> tuple[int, int, int, float] | None:
    """Of the first state with an overlap: its row, the segments and their distance."""
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


def _segments(p: Any, u: Any, q: Any, w: Any) -> Float[np.ndarray, " pairs"]:
    """(1), pair by pair."""
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

r"""Two rods pressed against each other without friction, at rest.

The pressure $N$ acts along $\hat d = d/|d|$, on rod $i$ with the sign $\sigma = (-1, 1)$. With
the weights $w$ of `numerics/bspline.py`, $R_i = \sum w_kr_k$ and the tangents
$T_i = \sum w_k'r_k$,

$$ F_k + \sigma_i N w_k\hat d = 0, \qquad \sigma_i\,d\cdot T_i = 0, \qquad |d| = 2a. \tag{1} $$

With $K_i$ the stiffness of rod $i$ and $y = (\delta s_1, \delta s_2, \delta N, \delta d)$,
Newton's method solves

$$
\begin{aligned}
K_i x_i + B_i y &= -f_i                                                       &&\text{(2)}\\
C_1x_1 + C_2x_2 + Dy &= -r, \qquad
  0 = \delta d - \sum\sigma_i(w\cdot\delta r_i + R_i'\,\delta s_i)\ \text{among them}:  &&\text{(3)}
\end{aligned}
$$

eliminating both rods from (3) leaves six equations, in a time proportional to the number of nodes.
"""

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from retrax.errors import ContactDegenerate, NoEquilibrium
from retrax.nodal.nodes import HostPlacement, Placement
from retrax.numerics.checks import require_instance, require_number
from retrax.numerics.evaluate import as_jax
from retrax.systems.rods.contact import Pair, degenerate, too_flat
from retrax.systems.rods.mixed import Mixed, linearise, stresses
from retrax.systems.rods.pair import RodsInContact
from retrax.systems.rods.rod import Rod
from retrax.systems.rods.statics import as_placement

AnyPlacement = Placement | HostPlacement
HostPair = tuple[HostPlacement, HostPlacement, Float[np.ndarray, "2"]]

_MOST = 60
# The most that a node turns or moves in one iteration.
_LONGEST = 0.2
_SIGNS = (-1.0, 1.0)


class _Side(NamedTuple):
    """One rod at the contact: weights and slopes, its point and tangent, and their derivatives."""

    w: Float[np.ndarray, " nodes"]
    slope: Float[np.ndarray, " nodes"]
    point: Float[np.ndarray, "3"]
    along: Float[np.ndarray, "3"]
    tangent: Float[np.ndarray, "3"]
    bend: Float[np.ndarray, "3"]
    by_moves: Float[np.ndarray, "nodes 3 6"]


def press(pair: RodsInContact, g: Pair, force: float = 0.0) -> Pair:
    r"""Return the placement near `g` of rods at rest, pressed against each other without friction:
    (1).

    `force` is a guess of the pressure $N$. Both rods must be held: free ones have no equilibrium.

    **Raises:** `NoEquilibrium` if the iteration does not settle.
    """
    pressure = require_number("force", force)
    require_instance("pair", pair, RodsInContact, "a RodsInContact")
    here, smallest, longest = _on_host(as_placement(g, pair)), np.inf, np.inf
    for _ in range(_MOST):
        moves, y = _newton_step(pair, here, pressure)
        longest = max(*(np.abs(x).max() for x in moves), np.abs(y[:2]).max())
        if not np.isfinite(longest):
            break
        part = min(1.0, _LONGEST / longest)
        one, two = (_move(at, part * x) for at, x in zip(here[:2], moves, strict=True))
        here, pressure = (one, two, here[2] + part * y[:2]), pressure + part * y[2]
        if longest < 1e-13 or (longest < 1e-9 and longest > 0.5 * smallest):
            return jax.tree.map(as_jax, (one, two, closest(pair, one, two, here[2])))
        smallest = min(smallest, longest)
    raise NoEquilibrium(
        f"The {pair.name} found no pressed equilibrium near the placement given: after {_MOST} "
        f"Newton iterations it would still move by {longest:.2g}."
    )


def closest(
    pair: RodsInContact,
    one: AnyPlacement,
    two: AnyPlacement,
    guess: tuple[float, float] | Float[np.ndarray, "2"],
) -> Float[np.ndarray, "2"]:
    """Return the arc lengths near `guess` where the centrelines are closest, on the host.

    **Raises:** `ContactDegenerate` if the rods have no single closest points.
    """
    s, smallest = np.array(guess, float), np.inf
    for _ in range(_MOST):
        (a, b), d = _sides(pair, (one, two, s))
        skew = np.array([-d @ a.tangent, d @ b.tangent])
        H = np.array(
            [
                [a.along @ a.tangent - d @ a.bend, -b.along @ a.tangent],
                [-a.along @ b.tangent, b.along @ b.tangent + d @ b.bend],
            ]
        )
        if too_flat(H):
            raise ContactDegenerate(degenerate(s, 0.0, H))
        step = -np.linalg.solve(H, skew)
        s, size = s + step, np.abs(step).max()
        if size < 1e-16 or (size < 1e-9 and size > 0.5 * smallest):
            break
        smallest = min(smallest, size)
    return s


def _newton_step(
    pair: RodsInContact, g: HostPair, pressure: float
) -> tuple[list[np.ndarray], np.ndarray]:
    """Solve (2) and (3) for the moves of all nodes, rod by rod, and $y$."""
    placements = (g[0], g[1])
    sides, d = _sides(pair, g)
    gap = float(np.sqrt(d @ d))
    n = d / gap
    D, r = np.eye(6), np.zeros(6)
    D[2] = [0.0, 0.0, 0.0, *n]
    r[2] = gap - 2 * float(pair.radius)
    solved = []
    for i, (rod, side, sign) in enumerate(zip(pair.rods, sides, _SIGNS, strict=True)):
        D[i] = 0.0
        D[i, i], D[i, 3:] = sign * d @ side.bend, sign * side.tangent
        D[3:, i] = -sign * side.along
        r[i] = sign * d @ side.tangent  # (1)
        solved.append(_solve(rod, placements[i], side, sign * pressure, sign, n, gap))
    for i, (rows, sign) in enumerate(zip(solved, _SIGNS, strict=True)):
        C = _border_rows(sides[i], sign, d, i)
        r = r + np.einsum("rki,ki->r", C, rows[..., 0])
        D = D + np.einsum("rki,kic->rc", C, rows[..., 1:])
    try:
        y = -np.linalg.solve(D, r)  # (3)
    except np.linalg.LinAlgError:
        y = np.full(6, np.nan)
    return [rows[..., 0] + rows[..., 1:] @ y for rows in solved], y


def _solve(
    rod: Rod,
    at: HostPlacement,
    side: _Side,
    push: float,
    sign: float,
    n: Float[np.ndarray, "3"],
    gap: float,
) -> Float[np.ndarray, "nodes 6 7"]:
    """Return $-K^{-1}f$ and, beside it, $-K^{-1}B$ of (2)."""
    here = linearise(rod, at, stresses(rod, at))
    right = np.zeros((rod.nodes, 6, 7))
    right[:, 3:, 0] = push * np.outer(side.w, n)
    right[:, 3:, 1 if sign < 0 else 2] = push * np.outer(side.slope, n)
    right[:, 3:, 3] = sign * np.outer(side.w, n)
    right[:, 3:, 4:] = push / gap * side.w[:, None, None] * (np.eye(3) - np.outer(n, n))
    right[..., 0] += here.loads
    return Mixed(rod, here).solve(right, np.zeros((rod.elements, 6, 7)))[0]


def _border_rows(
    side: _Side, sign: float, d: Float[np.ndarray, "3"], i: int
) -> Float[np.ndarray, "6 nodes 6"]:
    """Return $C_i$ of (3)."""
    C = np.zeros((6, len(side.w), 6))
    C[i] = sign * np.einsum("j,kji->ki", d, side.by_moves)
    for axis in range(3):
        C[3 + axis, :, 3 + axis] = -sign * side.w
    return C


def _sides(
    pair: RodsInContact, g: tuple[AnyPlacement, AnyPlacement, Float[np.ndarray, "2"]]
) -> tuple[list[_Side], Float[np.ndarray, "3"]]:
    """Return both rods at the contact, and $d$."""
    sides = []
    for rod, (frames, places), s in zip(pair.rods, g[:2], g[2], strict=True):
        w, slope, curve = _weights(rod, float(s), float(pair.width))
        frames, places = np.asarray(frames), np.asarray(places)
        along = pair.tangent((frames, places), (w, slope, curve))
        sides.append(_Side(w, slope, w @ places, slope @ places, *along))
    return sides, sides[1].point - sides[0].point


def _weights(rod: Rod, s: float, width: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the weights of the nodes at s and their two derivatives by s."""
    h = float(rod.spacing)
    x = (s - h * np.arange(rod.nodes)) / width
    a, b, c = (np.maximum(knot - np.abs(x), 0.0) for knot in (3.0, 2.0, 1.0))

    def spline(power, factor):
        return h / width * factor * (a**power - 6 * b**power + 15 * c**power)

    slope = -np.sign(x) * spline(4, 1 / 24) / width
    return spline(5, 1 / 120), slope, spline(3, 1 / 6) / width**2


def _on_host(g: Pair) -> HostPair:
    """Return the same placement as NumPy arrays."""
    (a, b), (c, d), s = g
    return (np.asarray(a), np.asarray(b)), (np.asarray(c), np.asarray(d)), np.asarray(s)


def _move(at: HostPlacement, x: Float[np.ndarray, "nodes 6"]) -> HostPlacement:
    """Turn every node by the Cayley map of the first three of `x`, and move it by the rest."""
    frames, places = at
    zero, (p, q, r) = np.zeros(len(x)), x[:, :3].T
    hat = np.array([[zero, -r, q], [r, zero, -p], [-q, p, zero]]).transpose(2, 0, 1)
    scale = 4 / (4 + np.sum(x[:, :3] ** 2, axis=1))
    turn = np.eye(3) + scale[:, None, None] * (hat + hat @ hat / 2)
    return frames @ turn, places + x[:, 3:]

r"""Moves and stresses of a rod solved for together.

The stiffness of a thin rod against bending is smaller than that against stretching by the square of
its slenderness, and is lost in their sum. So the stresses stay unknowns beside the moves: with the
strains $\epsilon(g)$, their derivative $B$ by moves, the loads $F(g, \sigma)$, and
$C = \mathrm{diag}(C_1, C_2)$,

$$
\begin{aligned}
hB^T\delta\sigma - (G + sM)\,\delta &= f,  \qquad G = \partial_gF                  &&\text{(1)}\\
B\,\delta - C^{-1}\delta\sigma &= -e,      \qquad e = \epsilon(g) - \epsilon_0 - C^{-1}\sigma
                                                                                   &&\text{(2)}
\end{aligned}
$$

which is $(K - sM)\delta = f$ where $e = 0$, for $K = hB^TCB - G$. In units of the length of the rod
and of its bending stiffness this is a differential equation of first order along the rod, cut into
segments: its condition does not depend on the slenderness. Node by node, segment by segment the
matrix is banded.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.nodal.nodes import HostPlacement, Placement
from retrax.numerics.evaluate import Evaluated
from retrax.numerics.pivoted_band import PivotedBand
from retrax.systems.rods.rod import Rod
from retrax.systems.rods.strain import Strain

Nodes = Float[np.ndarray, "nodes 6 *m"]
Segments = Float[np.ndarray, "segments 6 *m"]
# Of the sizes of what cancels in a sum, this part is round-off.
_ROUNDING = 2e-16
# A rigid motion meets no resistance if it changes loads by less than this part of the largest
# change, or of what bends the rod by a radian.
_UNRESISTED = 1e-11


class Here(NamedTuple):
    """What (1) and (2) are made of; `before`, `here`, `after`: $G$ by the moves of neighbours.

    Each node has six rows: torques in the body and forces in space, or turns and moves; each
    segment: stretch and shear, curvature and twist. `loads` on held nodes are zero.
    """

    loads: Float[np.ndarray, "nodes 6"]
    misfit: Float[np.ndarray, "segments 6"]
    strains: Float[np.ndarray, "segments 6 12"]
    before: Float[np.ndarray, "nodes 6 6"]
    here: Float[np.ndarray, "nodes 6 6"]
    after: Float[np.ndarray, "nodes 6 6"]


def linearise(
    rod: Rod, g: Placement | HostPlacement, stress: Float[np.ndarray, "segments 6"]
) -> Here:
    """Linearise loads and strains about a placement and stresses that need not belong to it."""
    strains, by_strain, loads, by_loads = (
        np.asarray(x, dtype=float) for x in _derivatives(rod, g, stress)
    )
    nodes, segments = np.arange(rod.nodes), np.arange(rod.elements)
    B = np.concatenate([by_strain[(segments + k) % 2, :, segments] for k in (0, 1)], axis=1)
    before, here, after = (
        by_loads[(nodes + shift) % 3, :, nodes].transpose(0, 2, 1) for shift in (-1, 0, 1)
    )
    before[0], after[-1] = 0.0, 0.0
    compliance = 1 / stiffness(rod)
    return Here(loads, strains - compliance * stress, B.transpose(0, 2, 1), before, here, after)


def stiffness(rod: Rod) -> Float[np.ndarray, "segments 6"]:
    """Return the diagonal of $C$ in every segment."""
    shape = (rod.elements, 3)
    both = (np.broadcast_to(np.asarray(x), shape) for x in (rod.stretching, rod.bending))
    return np.concatenate(list(both), axis=1)


def stresses(rod: Rod, g: Placement | HostPlacement) -> Float[np.ndarray, "segments 6"]:
    """Return the elastic stresses in every segment; none where strains are round-off of places."""
    strains, h = np.asarray(_strains(rod, g)), float(rod.spacing)
    far = 1 + np.abs(np.asarray(g[1])).max() / h
    least = 8 * np.finfo(float).eps * np.array([far] * 3 + [1 / h] * 3)
    return np.where(np.abs(strains) <= least, 0.0, strains) * stiffness(rod)


@Evaluated
def _strains(rod: Rod, g: Placement) -> Array:
    return jnp.concatenate(rod.at_time(jnp.zeros(())).deformation(rod.strains(g)), axis=1)


@Evaluated
def _derivatives(
    rod: Rod, g: Placement, stress: Float[Array, "segments 6"]
) -> tuple[Array, Array, Array, Array]:
    """Return strains less those at rest, and loads; and beside them their derivatives by moves.

    A segment feels two nodes and a node three: all nodes $k = j$ modulo 2 or 3 move at once.
    """
    group, zero = rod.group, jnp.zeros(())
    now, rest = rod.at_time(zero), jnp.zeros(group.dim)

    def strains(x):
        return jnp.concatenate(now.deformation(rod.strains(x)), axis=1)

    def loads(x):
        acting = rod.total_loads(x, zero, Strain(stress[:, :3], stress[:, 3:]))
        return acting + rod.load(x, rest, zero) if rod.feedback else acting

    def by_moves(function, colours):
        def move(colour, part):
            chosen = (jnp.arange(rod.nodes) % colours == colour).astype(float)
            xi = jnp.outer(chosen, (jnp.arange(6) == part).astype(float)).reshape(-1)
            out = jax.jvp(function, (g,), (group.tangent(g, xi),))[1]
            return out.reshape(-1, 6)

        which = np.divmod(np.arange(6 * colours), 6)
        rows = jax.lax.map(lambda x: move(*x), which)
        return rows.reshape(colours, 6, -1, 6)

    return strains(g), by_moves(strains, 2), loads(g).reshape(-1, 6), by_moves(loads, 3)


class Mixed:
    """Solve (1) and (2) about `here`, with the shift $s$; the last node is held against `free`."""

    def __init__(self, rod: Rod, here: Here, shift: float = 0.0, free: Nodes | None = None):
        self.nodes, h = rod.nodes, float(rod.spacing)
        self.held = np.asarray(rod.mobility).reshape(-1, 6) == 0
        move, torque = units(rod)
        # Units of moves and stresses, of loads and strains, in which all entries are alike.
        self.columns = np.tile(np.concatenate([move, torque / move[::-1]]), self.nodes)[:-6]
        self.rows = np.tile(np.concatenate([move / torque, h / move[::-1]]), self.nodes)[:-6]
        mass = np.asarray(rod.inertia).reshape(-1, 6)
        G = here.here + shift * mass[:, :, None] * np.eye(6)
        self.spring = np.zeros((6, 6))  # holds the last node
        if free is not None:
            at = np.linalg.qr(free[-1] / move[:, None])[0] / move[:, None]
            self.spring = torque * at @ at.T
            G[-1] -= self.spring
        B, held = here.strains, self.held[:, :, None]
        pull = h * B.transpose(0, 2, 1)
        entries = [
            _entries(0, 0, np.where(held, np.eye(6), -G)),
            _entries(12, 0, np.where(held, 0.0, -here.before)[1:]),
            _entries(0, 12, np.where(held, 0.0, -here.after)[:-1]),
            _entries(0, 6, np.where(held[:-1], 0.0, pull[:, :6])),
            _entries(12, 6, np.where(held[1:], 0.0, pull[:, 6:])),
            _entries(6, 0, B[:, :, :6]),
            _entries(6, 12, B[:, :, 6:]),
            _entries(6, 6, -np.eye(6) / stiffness(rod)[:, :, None]),
        ]
        i, j, values = (np.concatenate(x) for x in zip(*entries, strict=True))
        self.matrix = PivotedBand(i, j, self.rows[i] * values * self.columns[j], len(self.rows))

    def solve(self, loads: Nodes, misfit: Segments) -> tuple[Nodes, Segments]:
        """Return moves and changes of the stresses, for columns of loads $f$ and misfits $e$."""
        x = self.matrix.solve(self.rows[:, None] * self._sides(loads, misfit))
        return self._apart(self.columns[:, None] * x)

    def residual(
        self, loads: Nodes, misfit: Segments, moves: Nodes, stress: Segments
    ) -> tuple[Nodes, Segments]:
        """Return what a solution leaves of loads and misfits, and round-off of what cancels."""
        b = self.rows[:, None] * self._sides(loads, misfit)
        x = self._join(moves, stress) / self.columns[:, None]
        off = np.abs(b - self.matrix.product(x)) + _ROUNDING * self.matrix.cancelling(x)
        return self._apart(off / self.rows[:, None])

    def _sides(self, loads: Nodes, misfit: Segments) -> Float[np.ndarray, "n m"]:
        return self._join(np.where(self.held[:, :, None], 0.0, loads), -misfit)

    def _join(self, at_nodes: Nodes, in_segments: Segments) -> Float[np.ndarray, "n m"]:
        in_segments = np.concatenate([in_segments, np.zeros_like(in_segments[:1])])
        rows = np.concatenate([at_nodes, in_segments], axis=1)
        return rows.reshape(12 * self.nodes, -1)[:-6]

    def _apart(self, x: Float[np.ndarray, "n m"]) -> tuple[Nodes, Segments]:
        rows = np.concatenate([x, np.zeros((6, x.shape[1]))]).reshape(self.nodes, 12, -1)
        return rows[:, :6], rows[:-1, 6:]


def _entries(
    down: int, right: int, blocks: Float[np.ndarray, "n b c"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the entries of blocks that stand every twelve rows and columns: where, and what."""
    n, b, c = blocks.shape
    start = 12 * np.arange(n)[:, None, None]
    i = start + down + np.arange(b)[:, None]
    j = start + right + np.arange(c)
    shape = blocks.shape
    return np.broadcast_to(i, shape).ravel(), np.broadcast_to(j, shape).ravel(), blocks.ravel()


def units(rod: Rod) -> tuple[Float[np.ndarray, "6"], float]:
    """Return units of the moves of a node, and of torques; a force is a torque over a length."""
    length = float(np.asarray(rod.spacing)) * rod.elements
    return np.array([1.0] * 3 + [length] * 3), float(np.min(np.asarray(rod.bending))) / length


def free_motions(
    rod: Rod, g: Placement | HostPlacement, here: Here
) -> Float[np.ndarray, "nodes 6 m"] | None:
    """Return the rigid motions that supports admit and that change no load; `None` without them."""
    frames, places = (np.asarray(x) for x in g)
    zero, away = np.zeros((3, rod.nodes, 3)), places - places[-1]
    turns = np.einsum("kji->jki", frames), np.cross(np.eye(3)[:, None], away)
    moves = zero, np.broadcast_to(np.eye(3)[:, None] * float(rod.length), zero.shape)
    held = np.asarray(rod.mobility).reshape(-1, 6) == 0
    rigid = np.concatenate([np.concatenate(x, axis=2) for x in (turns, moves)])
    rigid = _combine(rigid, rigid[:, held])
    changed = np.einsum("kij,mkj->mki", here.here, rigid)
    changed[:, 1:] += np.einsum("kij,mkj->mki", here.before[1:], rigid[:, :-1])
    changed[:, :-1] += np.einsum("kij,mkj->mki", here.after[:-1], rigid[:, 1:])
    move, torque = units(rod)
    free = _combine(rigid, (move / torque * changed)[:, ~held])
    return free.transpose(1, 2, 0) if len(free) else None


def _combine(
    motions: Float[np.ndarray, "m nodes 6"], rows: Float[np.ndarray, "m n"]
) -> Float[np.ndarray, "k nodes 6"]:
    """Return the combinations of motions of which the same combinations of `rows` vanish."""
    if not rows.size:
        return motions
    left, found, _ = np.linalg.svd(rows)
    sizes = np.zeros(len(rows))
    sizes[: len(found)] = found
    none = sizes <= _UNRESISTED * max(1.0, float(np.abs(rows).max()))
    return np.einsum("ij,ikl->jkl", left[:, none], motions)

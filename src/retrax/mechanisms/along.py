r"""The linear algebra of joints along their band: rows, impulses, and what stands between them.

Arrays of bodies have the ground in front, which never moves. With $W$ the rows of the joints and
$D$ what bodies have for an inertia, block by block, impulses obey

$$ W D^{-1} W'^T\,\lambda = b, \tag{1} $$

a block banded matrix. What is added to its diagonal makes it regular where rows are redundant.
"""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.groups.base import Coordinates, Element
from retrax.mechanisms.band import Band, band
from retrax.mechanisms.elimination import ADDED
from retrax.mechanisms.joined import Joints
from retrax.mechanisms.pose import Pose, ground
from retrax.mechanisms.stacks import Stack
from retrax.numerics import banded
from retrax.numerics.jax_hints import keep_axis
from retrax.numerics.small_matrices import inverse

if TYPE_CHECKING:
    from retrax.mechanisms.system import MechanismSystem

# Along ground and bodies, and along joints.
Spins = Float[Array, "places turns"]
Speeds = Float[Array, "places d"]
Momenta = Float[Array, "places each"]
Softness = Float[Array, "places turns turns"]
Impulses = Float[Array, "joints rows"]
Rows = Float[Array, "joints rows each"]

# So few equations are better written out one by one.
_FEW = 30
# The most numbers in a row of the window that elimination carries along the band.
_WIDEST = 30


def band_of(system: "MechanismSystem") -> Band | None:
    """Return the band of the joints, where there are many and they make a narrow one."""
    joints = system.constraint
    if joints is None or joints.rolling is not None or not joints.names:
        return None
    if sum(joints.counts) <= _FEW:
        return None
    found = band(joints.bodies, joints.counts, joints.n)
    return found if found.width * found.rows <= _WIDEST else None


class Along:
    """A mechanism along its band."""

    def __init__(self, system: "MechanismSystem", along: Band) -> None:
        assert isinstance(system.constraint, Joints)
        self.system, self.joints, self.band = system, system.constraint, along
        self.d = system.gravity.shape[0]
        self.turns = self.d * (self.d - 1) // 2
        self.inertia = behind(jnp.eye(self.turns), system.inertia)
        self.mass = behind(jnp.ones(()), system.mass)
        self.light = behind(jnp.zeros(()), 1.0 / system.mass)
        self.moves = (np.arange(len(system.names) + 1) > 0) * 1.0

    # Bodies.

    def places(self, g: Element) -> Pose:
        """Put the ground in front of all bodies."""
        still, (R, x) = ground(self.d), g
        return Pose(behind(still.R, R), behind(still.x, x))

    def bodies(self, flat: Coordinates) -> Momenta:
        """Put numbers of bodies behind those of the ground, which are zero."""
        each = flat.reshape(len(self.system.names), -1)
        return behind(jnp.zeros_like(each[0]), each)

    def flat(self, each: Momenta) -> Coordinates:
        """Return the numbers of all bodies one after the other, without the ground."""
        return each[1:].reshape(-1)

    def softness(self) -> Softness:
        """Return how easily bodies turn: the inverse of their inertia."""
        return self.soft(self.inertia)

    def soft(self, stiff: Float[Array, "places turns turns"]) -> Softness:
        """Return the inverse of what bodies have for an inertia; the ground does not give way."""
        return jax.vmap(inverse)(stiff) * self.moves[:, None, None]

    def apply_inverse_inertia(self, soft: Softness, mu: Momenta) -> Momenta:
        r"""Return $D^{-1}\mu$."""
        t = self.turns
        spin = jnp.einsum("nij,nj->ni", soft, mu[:, :t])
        return jnp.concatenate([spin, mu[:, t:] * self.light[:, None]], axis=1)

    # Joints.

    def residual(self, places: Pose) -> Impulses:
        """Return by how much joints are open, in order."""
        parts = [
            _fill(stack.residual(*poses), self.band.rows) for stack, poses in self._stacks(places)
        ]
        return self._in_order(parts)

    def rows(self, places: Pose) -> tuple[Rows, ...]:
        """Return the rows of the joints, in order, for the first body of each, the second, ..."""
        found: list[list[Array]] = []
        for stack, poses in self._stacks(places):
            blocks = [_fill(block, self.band.rows) for block in stack.rows(*poses)]
            more = len(self.band.sides) - len(blocks)
            found.append(blocks + [jnp.zeros_like(blocks[0])] * more)
        return tuple(self._in_order(list(parts)) for parts in zip(*found, strict=True))

    def _stacks(self, places: Pose) -> list[tuple[Stack, tuple[Pose, ...]]]:
        """List the stacks of joints and where their bodies are; a single one is put in order."""
        stacks, order = self.joints.stacks, self.band.order
        if len(stacks) == 1 and not np.array_equal(order, np.arange(len(order))):
            stacks = (stacks[0].take(order),)
        return [(s, tuple(Pose(places.R[k], places.x[k]) for k in s.sides + 1)) for s in stacks]

    def _in_order(self, parts: list[Array]) -> Array:
        """Put what stacks have found into the order of the band."""
        if len(parts) == 1:
            return parts[0]
        given = np.concatenate([stack.places for stack in self.joints.stacks])
        return jnp.concatenate(parts)[np.argsort(given)[self.band.order]]

    def to_user_order(self, lam: Impulses) -> Float[Array, " k"]:
        """Return the numbers of all joints as joints were written, without what fills up."""
        count, first = self.band.rows, np.argsort(self.band.order)
        each = [first[k] * count + np.arange(c) for k, c in enumerate(self.joints.counts)]
        return lam.reshape(-1)[np.concatenate(each)]

    def to_band_order(self, listed: Float[Array, " k"]) -> Impulses:
        """Return numbers of all joints, as joints were written, in the order of the band."""
        counts = self.joints.counts
        first, none = np.cumsum([0, *counts]), sum(counts)
        places = np.full(self.band.held.shape, none)
        for k, joint in enumerate(self.band.order):
            places[k, : counts[joint]] = first[joint] + np.arange(counts[joint])
        filled = jnp.concatenate([listed, jnp.zeros(1)])
        return filled[places.reshape(-1)].reshape(places.shape)

    def across(self, rows: tuple[Rows, ...], xi: Momenta) -> Impulses:
        r"""Return $W\xi$."""
        found = [
            jnp.einsum("nki,ni->nk", block, xi[side])
            for block, side in zip(rows, self.band.sides, strict=True)
        ]
        return sum(found[1:], found[0])

    # From joints to bodies.

    def by_body(self, rows: tuple[Rows, ...]) -> tuple[Rows, ...]:
        """Return the rows of the joints of each body, one array for each slot."""
        # Where there is no joint there are no impulses, whatever the rows.
        padded = [jnp.concatenate([block[:1], block, block[-1:]]) for block in rows]
        return tuple(padded[slot.side][slot.joints] for slot in self.band.slots)

    def pushes(self, by_body: tuple[Rows, ...], lam: Impulses) -> Momenta:
        r"""Return $W^T\lambda$."""
        none = jnp.zeros_like(lam[:1])
        padded = jnp.concatenate([none, lam, none])
        given = [
            jnp.einsum("nki,nk->ni", rows, padded[slot.joints])
            for rows, slot in zip(by_body, self.band.slots, strict=True)
        ]
        return sum(given[1:], given[0])

    # The matrix between joints.

    def factor(
        self,
        left: tuple[Rows, ...],
        right: tuple[Rows, ...],
        soft: Softness,
        *,
        symmetric: bool,
    ) -> banded.BandFactors:
        r"""Factor the matrix of (1); `left` is $W$, `right` $W'$."""
        t, one = self.turns, np.eye(self.band.rows)
        through = [
            jnp.concatenate(
                [
                    jnp.einsum("nki,nij->nkj", rows[:, :, :t], soft[side]),
                    rows[:, :, t:] * self.light[side][:, None, None],
                ],
                axis=2,
            )
            for rows, side in zip(left, self.band.sides, strict=True)
        ]
        diagonal = self._blocks(through, right, 0, False) * (1.0 + ADDED * one)[None]
        idle = 1.0 - self.band.held
        if idle.any():
            diagonal = diagonal + idle[:, :, None] * one[None]
        further = range(1, self.band.width + 1)
        above = tuple(self._blocks(through, right, q, False) for q in further)
        below = None if symmetric else tuple(self._blocks(through, right, q, True) for q in further)
        return banded.factor(diagonal, above, below)

    def _blocks(
        self, through: list[Array], right: tuple[Rows, ...], q: int, back: bool
    ) -> Float[Array, "joints rows rows"]:
        """Return the blocks of joints with those `q` places on, or `back` from those to these."""
        count, total = len(self.band.order) - q, None
        for (s, r), where in self.band.meetings[q]:
            if back:
                part = jnp.einsum("nki,nli->nkl", through[r][q:], right[s][:count])
            else:
                part = jnp.einsum("nki,nli->nkl", through[s][:count], right[r][q:])
            if where is not None:
                part = part * where[:, None, None]
            total = part if total is None else total + part
        m = self.band.rows
        if total is None:
            return jnp.zeros((count + q, m, m))
        return jnp.pad(total, ((0, q), (0, 0), (0, 0))) if q else total


def behind(first: Array, others: Array) -> Array:
    """Return the others with one more in front of them, along an axis that is kept."""
    return keep_axis(jnp.concatenate([first[None], others]))


def _fill(x: Float[Array, "joints k *each"], rows: int) -> Float[Array, "joints rows *each"]:
    """Fill up with zeros to `rows` rows."""
    more = rows - x.shape[1]
    return jnp.pad(x, [(0, 0), (0, more), *[(0, 0)] * (x.ndim - 2)]) if more else x

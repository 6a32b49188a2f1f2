"""The equations of one Verlet step of a mechanism, their matrix, and its end."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.groups.base import AbstractLieGroup, Element
from retrax.groups.power import Power
from retrax.groups.product import Product
from retrax.groups.retractions import AbstractRetraction
from retrax.mechanics.state import State
from retrax.mechanisms.body import GROUND
from retrax.mechanisms.elimination import Blocks, Factors, Order, eliminate, unpivoted_inverse
from retrax.mechanisms.joined import Connection, add_blocks
from retrax.mechanisms.pose import Pose, ground
from retrax.mechanisms.rolling import Touching
from retrax.mechanisms.system import MechanismSystem
from retrax.numerics.roundoff import SMALLEST, UNSEEN
from retrax.numerics.small_matrices import inverse

Scalar = Float[Array, ""]
Vector = Float[Array, " _"]
Matrix = Float[Array, "_ _"]

# A new matrix is made where an iteration leaves more than this of the residual, or after so many
# chords; an iteration that needs more matrices has failed. So one that converges leaves at most
# 10^(-16/40) in a chord where dampers couple bodies beside the matrix, and derivatives that are
# improved as often as there are matrices are right to round-off.
SLOW, CHORDS, MATRICES = 0.2, 12, 40
# The rows of a joint, a block for each body that moves.
Rows = dict[int, Matrix]


class Residuals(NamedTuple):
    """What is left of the equations: of bodies a momentum, of joints a speed; and how much of all.

    `size` is relative to the terms that cancel; `seen` is what of it moves bodies at all.
    """

    bodies: list[Vector]
    joints: list[Vector]
    size: Scalar
    seen: Scalar


class Inverse(NamedTuple):
    """The inverse of the part of Newton's matrix that belongs to one body.

    **Attributes:** `spin`: its block for turns; `light`: one over the mass; `whole`: all of it,
    where a force couples turns to travels, or `None`.
    """

    spin: Matrix
    light: Scalar
    whole: Matrix | None = None

    def after(self, rows: Matrix) -> Matrix:
        """Return the product of rows with this."""
        if self.whole is not None:
            return rows @ self.whole
        k = self.spin.shape[0]
        return jnp.concatenate([rows[:, :k] @ self.spin, rows[:, k:] * self.light], axis=1)

    def times(self, x: Vector) -> Vector:
        """Return the product of this with a vector."""
        if self.whole is not None:
            return self.whole @ x
        k = self.spin.shape[0]
        return jnp.concatenate([self.spin @ x[:k], x[k:] * self.light])


class NewtonMatrix(NamedTuple):
    """Newton's matrix, eliminated: by body, and what that leaves between the joints."""

    bodies: list[Inverse]
    rows: list[Rows]
    joints: Factors


class StepEquations:
    r"""The equations of `Rattle` for bodies that meet only in joints, from one state on.

    Lists have an entry for each body, or for each joint and then for each wheel.
    """

    def __init__(
        self, tau: AbstractRetraction, system: MechanismSystem, state: State, h: Scalar
    ) -> None:
        self.tau, self.system, self.state, self.h = tau, system, state, h
        self.n, self.d = len(system.names), system.gravity.shape[0]
        self.turns = self.d * (self.d - 1) // 2
        self.turn = turn_group(system)
        R, x = state.g
        self.start = [Pose(R[i], x[i]) for i in range(self.n)]
        joints, wheels = links(system)
        self.joints, self.wheels = joints, wheels
        self.counts = [c.law.count for c in joints] + [w.contact.count for w in wheels]
        self.rows = self.rows_at(self.start)
        self.momenta = self.by_body(state.momentum)

    @cached_property
    def order(self) -> Order:
        """In which order the impulses are eliminated."""
        return Order.of([tuple(rows) for rows in self.rows])

    @cached_property
    def arms(self) -> Scalar:
        """The size of the terms in the equations of the joints: lever arms and places."""
        total = jnp.asarray(SMALLEST)
        for rows in self.rows:
            for i, block in rows.items():
                size = jnp.abs(block)
                total = total + jnp.sum(size[:, : self.turns])
                total = total + jnp.sum(size[:, self.turns :] @ jnp.abs(self.start[i].x))
        return total

    @cached_property
    def unseen(self) -> Scalar:
        """The momentum of bodies that move by rounding errors in a step, and so nowhere."""
        extent = jnp.max(jnp.abs(self.state.g[1]))
        for rows in self.rows:
            for block in rows.values():
                arm, way = jnp.abs(block[:, : self.turns]), jnp.abs(block[:, self.turns :])
                held = jnp.sum(way, axis=1)[:, None] > 0
                extent = jnp.maximum(extent, jnp.max(jnp.where(held, arm, 0.0)))
        system, h = self.system, jnp.abs(self.h)
        moved = (jnp.sum(jnp.abs(system.inertia)) + self.d * extent * jnp.sum(system.mass)) / h
        if system.force is None:
            return UNSEEN * moved
        xi = system.velocity(self.state.g, self.state.momentum)
        others = system.differential(self.state.g, xi, self.state.momentum)
        return UNSEEN * (moved + h * jnp.sum(jnp.abs(others)))  # which forces may balance

    @cached_property
    def first_kick(self) -> Vector | None:
        """The first half kick, where it does not depend on the velocity."""
        if self.system.force is not None:
            return None
        return self.kick(self.state.g, jnp.zeros_like(self.state.momentum), self.state.t)

    def by_body(self, xi: Vector) -> list[Vector]:
        """Return the part of each body."""
        each = xi.reshape(self.n, -1)
        return [each[i] for i in range(self.n)]

    def by_joint(self, lam: Vector) -> list[Vector]:
        """Return the part of each joint and wheel."""
        found, begin = [], 0
        for count in self.counts:
            found.append(lam[begin : begin + count])
            begin += count
        return found

    def rows_at(self, places: Sequence[Pose]) -> list[Rows]:
        """Return all rows at other places."""
        held = [add_blocks(c.bodies, c.law.rows(*_poses(c, places, self.d))) for c in self.joints]
        return held + [{w.body: w.contact.rows(places[w.body])} for w in self.wheels]

    def kick(self, g: Element, xi: Vector, t: Scalar) -> Vector:
        """Return half a step of all forces."""
        return self.h / 2 * self.system.total_force(g, xi, self.system.momentum(g, xi), t)

    def move_body(self, place: Pose, xi: Vector) -> Pose:
        """Return where a body of velocity `xi` is at the end of the step."""
        delta = self.tau.minus_identity(self.turn, self.h * xi[: self.turns])
        return Pose(self.turn.advance(place.R, delta), place.x + self.h * xi[self.turns :])

    def drift(self, xi: Vector) -> list[Pose]:
        """Return where all bodies are at the end of the step."""
        return [self.move_body(p, x) for p, x in zip(self.start, self.by_body(xi), strict=True)]

    def carry(self, i: int, xi: Vector) -> Vector:
        r"""Return $(d^R\tau^{-1}_{h\xi})^*\,\mathbb I\xi$ of one body."""
        spin = xi[: self.turns]
        turned = self.tau.dR_inv_dual(self.turn, self.h * spin, self.system.inertia[i] @ spin)
        return jnp.concatenate([turned, self.system.mass[i] * xi[self.turns :]])

    def pushes(self, rows: list[Rows], lam: Sequence[Vector]) -> list[Vector]:
        r"""Return $W^T\lambda$, body by body."""
        given = [jnp.zeros(self.turns + self.d)] * self.n
        for blocks, impulse in zip(rows, lam, strict=True):
            for i, block in blocks.items():
                given[i] = given[i] + impulse @ block
        return given

    def push(self, rows: list[Rows], lam: Sequence[Vector]) -> Scalar:
        r"""Return the size of all terms of $W^T\lambda$: redundant impulses cancel in it."""
        parts = [
            jnp.sum(jnp.abs(impulse) @ jnp.abs(block))
            for blocks, impulse in zip(rows, lam, strict=True)
            for block in blocks.values()
        ]
        return sum(parts, jnp.zeros(()))

    def reach(self, felt: list[Vector]) -> Vector:
        r"""Return the size of the terms of $W^T\lambda$ for each impulse, weighed by body."""
        sums = [[jnp.abs(block) @ felt[i] for i, block in rows.items()] for rows in self.rows]
        return jnp.concatenate([sum(some[1:], some[0]) for some in sums])

    def residuals(self, xi: Vector, lam: Vector) -> Residuals:
        """Return what is left of equations (1) to (4) of `Rattle`."""
        places, each = self.drift(xi), self.by_body(xi)
        kick = self.first_kick
        kick = self.kick(self.state.g, xi, self.state.t) if kick is None else kick
        bodies, impulses = [], self.by_joint(lam)
        pushes, terms = (
            self.pushes(self.rows, impulses),
            SMALLEST + self.push(self.rows, impulses),
        )
        for i, (kicked, pushed) in enumerate(zip(self.by_body(kick), pushes, strict=True)):
            has = self.carry(i, each[i])
            bodies.append(has - (self.momenta[i] + kicked) - pushed)  # (1), (2)
            terms = terms + _sum(has) + _sum(kicked)
        joints = [c.law.residual(*_poses(c, places, self.d)) / self.h for c in self.joints]  # (3)
        for k, wheel in enumerate(self.wheels):
            joints.append(self._slip(k, wheel, each[wheel.body]))  # (4)
        left = sum(map(_sum, bodies), jnp.zeros(()))
        gaps = jnp.abs(self.h) * sum(map(_sum, joints), jnp.zeros(())) / self.arms
        size = left / terms + gaps
        return Residuals(bodies, joints, size, jnp.where(left <= self.unseen, gaps, size))

    def _slip(self, k: int, wheel: Touching, xi: Vector) -> Vector:
        first = self.rows[len(self.joints) + k][wheel.body]
        return (first + wheel.contact.rows(self.move_body(self.start[wheel.body], xi))) @ xi / 2

    def matrix(self, xi: Vector) -> NewtonMatrix:
        r"""Return $\begin{pmatrix}D & -W_k^T\\ W_{k+1} & 0\end{pmatrix}$ at a velocity."""
        each, places = self.by_body(xi), self.drift(xi)
        bodies = self._bodies(xi, each)
        ends = self.rows_at(places)[: len(self.joints)]
        for rows in ends:
            for i, block in rows.items():
                carry = partial(self.tau.dL_dual, self.turn, self.h * each[i][: self.turns])
                turned = jax.vmap(carry)(block[:, : self.turns])
                rows[i] = jnp.concatenate([turned, block[:, self.turns :]], axis=1)
        for k, wheel in enumerate(self.wheels):
            slope = jax.jacfwd(partial(self._slip, k, wheel))(each[wheel.body])
            ends.append({wheel.body: slope})
        through = [{i: bodies[i].after(block) for i, block in rows.items()} for rows in ends]
        left = eliminate(self.order, _products(through, self.rows), symmetric=False)
        return NewtonMatrix(bodies, ends, left)

    def _bodies(self, xi: Vector, each: list[Vector]) -> list[Inverse]:
        slopes = [jax.jacfwd(partial(self.carry, i))(x) for i, x in enumerate(each)]
        if self.first_kick is None:
            kicked: Callable[[Vector], Vector] = partial(self.kick, self.state.g, t=self.state.t)
            felt, w = jax.jacfwd(kicked)(xi), self.turns + self.d
            for i, slope in enumerate(slopes):
                block = slice(i * w, (i + 1) * w)
                slopes[i] = slope - felt[block, block]
            return [Inverse(s, s[0, 0], unpivoted_inverse(s)) for s in slopes]
        k = self.turns
        return [
            Inverse(inverse(s[:k, :k]), 1.0 / self.system.mass[i]) for i, s in enumerate(slopes)
        ]

    def improvement(
        self, matrix: NewtonMatrix, bodies: list[Vector], joints: list[Vector]
    ) -> tuple[Vector, Vector]:
        """Return by how much velocities and impulses change in an iteration."""
        free = [inner.times(r) for inner, r in zip(matrix.bodies, bodies, strict=True)]
        right = []
        for rows, r in zip(matrix.rows, joints, strict=True):
            parts = [block @ free[i] for i, block in rows.items()]
            right.append(sum(parts, -r))
        lam = matrix.joints.solve(right)
        gained = zip(matrix.bodies, self.pushes(self.rows, lam), bodies, strict=True)
        xi = [inner.times(push - r) for inner, push, r in gained]
        return jnp.concatenate(xi), jnp.concatenate([jnp.zeros(0), *lam])

    def arrive(self, xi: Vector, lam: Vector) -> tuple[Element, list[Vector], list[Vector]]:
        """Return where the step ends, momenta there before (6), and the sizes of their terms."""
        places, t = self.drift(xi), self.state.t
        g1 = jnp.stack([p.R for p in places]), jnp.stack([p.x for p in places])
        kick = self.first_kick
        kick = self.kick(self.state.g, xi, t) if kick is None else kick
        first, last = self.by_body(kick), self.by_body(self.kick(g1, xi, t + self.h))
        pushes, each = self.pushes(self.rows, self.by_joint(lam)), self.by_body(xi)
        momenta, sizes = [], []
        for i, mu in enumerate(self.momenta):
            given = first[i] + pushes[i]
            delta = self.tau.minus_identity(self.turn, self.h * each[i][: self.turns])
            turned = self.turn.coAdm1(delta, (mu + given)[: self.turns])
            change = given + last[i]
            ends = [change[: self.turns] + turned, change[self.turns :]]
            momenta.append(mu + jnp.concatenate(ends))  # (5)
            sizes.append(sum(map(jnp.abs, (mu, first[i], pushes[i], last[i]))))
        return g1, momenta, sizes

    def closing_matrix(self) -> tuple[list[Rows], Factors]:
        r"""Return $W\,\mathbb I^{-1}$ and $W\,\mathbb I^{-1}W^T$, eliminated, at the start."""
        system = self.system
        bodies = [Inverse(inverse(system.inertia[i]), 1.0 / system.mass[i]) for i in range(self.n)]
        through = [{i: bodies[i].after(block) for i, block in rows.items()} for rows in self.rows]
        return through, eliminate(self.order, _products(through, self.rows), symmetric=True)

    def opening(self, through: list[Rows], lam: Vector) -> list[Vector]:
        r"""Return how fast joints open after impulses: $W\,\mathbb I^{-1}(\mu + W^T\lambda)$."""
        pushes = self.pushes(self.rows, self.by_joint(lam))
        momenta = [mu + push for mu, push in zip(self.momenta, pushes, strict=True)]
        parts = [[block @ momenta[i] for i, block in rows.items()] for rows in through]
        return [sum(some[1:], some[0]) for some in parts]


def turn_group(system: MechanismSystem) -> AbstractLieGroup:
    """Return the group on which each body turns."""
    each = system.group
    assert isinstance(each, Power) and isinstance(each.group, Product)
    return each.group.groups[0]


def links(system: MechanismSystem) -> tuple[tuple[Connection, ...], tuple[Touching, ...]]:
    """Return the joints and the wheels of a mechanism."""
    held = system.constraint
    if held is None:
        return (), ()
    return held.connections, () if held.rolling is None else held.rolling.contacts


def _products(left: list[Rows], right: list[Rows]) -> Blocks:
    """Return the blocks of a product of rows with transposed rows."""
    found: Blocks = {}
    for i, rows in enumerate(left):
        for j, others in enumerate(right):
            for body in sorted(rows.keys() & others.keys()):
                product = rows[body] @ others[body].T
                found[i, j] = found[i, j] + product if (i, j) in found else product
    return found


def _poses(c: Connection, places: Sequence[Pose], d: int) -> tuple[Pose, ...]:
    return tuple(ground(d) if i == GROUND else places[i] for i in c.bodies)


def _sum(x: Vector) -> Scalar:
    return jnp.sum(jnp.abs(x))

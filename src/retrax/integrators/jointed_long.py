r"""Verlet for many bodies with joints: loops along the joints, whose code does not grow with them."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from retrax.groups.base import AbstractLieGroup
from retrax.groups.retractions import AbstractRetraction
from retrax.integrators.base import AbstractIntegrator, StepInfo, step_info
from retrax.mechanics.state import State
from retrax.mechanics.system import Coordinates, Element
from retrax.mechanisms.band import Band, band
from retrax.mechanisms.joined import Joints
from retrax.mechanisms.pose import Pose, ground
from retrax.mechanisms.stacks import Stack
from retrax.mechanisms.system import MechanismSystem
from retrax.numerics import banded
from retrax.numerics.newton import SMALLEST, NewtonStatus
from retrax.numerics.small_matrices import PROXIMAL, inverse

Scalar = Float[Array, ""]
# Along ground and bodies, and along joints.
Spins = Float[Array, "places turns"]
Speeds = Float[Array, "places d"]
Impulses = Float[Array, "joints rows"]
Rows = Float[Array, "joints rows dim"]

_EPS = float(jnp.finfo(jnp.float64).eps)
_AIM, _ACCEPT = 2 * _EPS, 64 * _EPS
# Iterations with one matrix are taken to gain no more than this each, whatever they have gained.
_BEST = 1e-3
# A matrix is made anew where an iteration gains less than this, and so often at most.
_GAIN, _MATRICES, _CHORDS = 0.2, 6, 12


# Fewer bodies are better written out one by one.
_FEW = 15


def is_long(system: MechanismSystem) -> bool:
    """Whether the bodies of a mechanism are many, and its joints a band."""
    joints = system.constraint
    if not isinstance(joints, Joints) or joints.rolling is not None:
        return False
    return len(system.names) > _FEW


class Last(NamedTuple):
    """What the step before found: its velocity, the impulses at its end, and its size."""

    xi: Coordinates
    impulses: Impulses
    h: Scalar


class JointedLong(AbstractIntegrator):
    r"""The equations of `Rattle` for a `MechanismSystem` whose joints are a band.

    As in `Jointed`, Newton's matrix is made once, where the step is expected to end, and bodies are
    eliminated before joints. All bodies are treated side by side, and so are all joints of one
    kind; elimination goes along the joints, in an order in which those with a common body are
    close (`retrax.mechanisms.band`).

    References: [Andersen1983], [HairerLubichWanner2006] VII.1.
    """

    retraction: AbstractRetraction
    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)

    def memory(self, system: MechanismSystem, state: State) -> Last:
        joints = _band(system)
        xi = system.velocity(state.g, state.momentum)
        return Last(xi, jnp.zeros((len(joints.order), joints.rows)), jnp.ones(()))

    def step(self, system: MechanismSystem, state: State, h: Scalar) -> tuple[State, StepInfo]:
        new, info, _ = self.next_step(system, state, h, self.memory(system, state))
        return new, info

    def next_step(
        self, system: MechanismSystem, state: State, h: Scalar, memory: Last
    ) -> tuple[State, StepInfo, Last]:
        step = _Step(self.retraction, system, state, h)
        it = step.solved(memory)
        new, xi, impulses = step.end(it.spin, it.speed, it.lam)
        covered = self.retraction.covers(system.group, h * xi)
        status = NewtonStatus(it.size <= _ACCEPT, it.size, it.chords)
        return new, step_info(status, h * xi, covered), Last(xi, impulses, h)


class _Iterate(NamedTuple):
    """Velocities and impulses; the size of what they leave, and of what those before left."""

    spin: Spins
    speed: Speeds
    lam: Impulses
    size: Scalar
    before: Scalar
    chords: Int[Array, ""]
    matrices: Int[Array, ""]


class _Matrix(NamedTuple):
    """Newton's matrix: the factors of the joints, how bodies give way, and rows at the end."""

    factors: banded.BandFactors
    inner: Float[Array, "places turns turns"]
    ends: tuple[Rows, ...]


class _Step:
    """One step: its equations along ground and bodies and along joints, and their solution."""

    def __init__(
        self, tau: AbstractRetraction, system: MechanismSystem, state: State, h: Scalar
    ) -> None:
        assert isinstance(system.constraint, Joints)
        self.tau, self.system, self.state, self.h = tau, system, state, h
        self.joints, self.band = system.constraint, _band(system)
        self.d = system.gravity.shape[0]
        self.turns = self.d * (self.d - 1) // 2
        self.turn: AbstractLieGroup = system.group.group.groups[0]
        still, (R, x) = ground(self.d), state.g
        self.start = Pose(_behind(still.R, R), _behind(still.x, x))
        self.inertia = _behind(jnp.eye(self.turns), system.inertia)
        self.light = 1.0 / _behind(jnp.ones(()), system.mass)
        self.heavy = _behind(jnp.ones(()), system.mass)
        self.momentum = self.along(state.momentum)
        self.rows = self.rows_at(self.start)
        self.by_body = self.of_bodies(self.rows)
        self.fed_back = system.force is not None
        self.kick = None if self.fed_back else self.kicked(state.g, None, state.t)
        self.arms = self._arms()

    def along(self, flat: Coordinates) -> Float[Array, "places dim"]:
        """Put numbers of bodies behind those of the ground, which are zero."""
        each = flat.reshape(len(self.system.names), -1)
        return _behind(jnp.zeros_like(each[0]), each)

    def flat(self, spin: Spins, speed: Speeds) -> Coordinates:
        return jnp.concatenate([spin, speed], axis=1)[1:].reshape(-1)

    # Joints.

    def residual_at(self, places: Pose) -> Impulses:
        """What the joints ask of these places, in order."""
        parts = [
            _filled(stack.residual(*poses), self.band.rows)
            for stack, poses in self._stacks(places)
        ]
        return self._in_order(parts)

    def rows_at(self, places: Pose) -> tuple[Rows, ...]:
        """The rows of the joints at these places, in order, for each body of a joint."""
        found: list[list[Array]] = []
        for stack, poses in self._stacks(places):
            rows = [_filled(block, self.band.rows) for block in stack.rows(*poses)]
            more = len(self.band.sides) - len(rows)
            found.append(rows + [jnp.zeros_like(rows[0])] * more)
        whole = [self._in_order(list(parts)) for parts in zip(*found, strict=True)]
        return tuple(
            rows if moves.all() else rows * moves[:, None, None]
            for rows, moves in zip(whole, self.band.moves, strict=True)
        )

    def _stacks(self, places: Pose) -> list[tuple[Stack, tuple[Pose, ...]]]:
        """The stacks of joints and where their bodies are; a single one is put in order."""
        stacks = self.joints.stacks
        if len(stacks) == 1:
            order = self.band.order
            natural = np.array_equal(order, np.arange(len(order)))
            stacks = (stacks[0] if natural else stacks[0].taken(order),)
        found = []
        for stack in stacks:
            sides = np.array(stack.bodies).T + 1
            found.append((stack, tuple(Pose(places.R[s], places.x[s]) for s in sides)))
        return found

    def _in_order(self, parts: list[Array]) -> Array:
        """Put what stacks have found into the order of the band."""
        if len(parts) == 1:
            return parts[0]
        given = np.concatenate([stack.places for stack in self.joints.stacks])
        return jnp.concatenate(parts)[np.argsort(given)[self.band.order]]

    # Bodies.

    def of_bodies(self, rows: tuple[Rows, ...]) -> tuple[Rows, ...]:
        """The rows of the joints of each body, one array for each slot."""
        none = jnp.zeros_like(rows[0][:1])
        padded = [jnp.concatenate([none, block, none]) for block in rows]
        return tuple(padded[slot.side][slot.joints] for slot in self.band.slots)

    def pushes(self, by_body: tuple[Rows, ...], lam: Impulses) -> Float[Array, "places dim"]:
        r"""$W^T\lambda$ for each body."""
        none = jnp.zeros_like(lam[:1])
        padded = jnp.concatenate([none, lam, none])
        given = [
            jnp.einsum("nki,nk->ni", rows, padded[slot.joints])
            for rows, slot in zip(by_body, self.band.slots, strict=True)
        ]
        return sum(given[1:], given[0])

    def across(self, rows: tuple[Rows, ...], xi: Float[Array, "places dim"]) -> Impulses:
        r"""$W\xi$ for each joint."""
        found = [
            jnp.einsum("nki,ni->nk", block, xi[side])
            for block, side in zip(rows, self.band.sides, strict=True)
        ]
        return sum(found[1:], found[0])

    def drifted(self, spin: Spins, speed: Speeds) -> Pose:
        def turned(R: Array, spin: Array) -> Array:
            return self.turn.advance(R, self.tau.minus_identity(self.turn, self.h * spin))

        return Pose(jax.vmap(turned)(self.start.R, spin), self.start.x + self.h * speed)

    def spun(self, inertia: Array, spin: Array) -> Array:
        return self.tau.dR_inv_dual(self.turn, self.h * spin, inertia @ spin)

    def kicked(self, g: Element, xi: Coordinates | None, t: Scalar) -> Float[Array, "places dim"]:
        velocity = jnp.zeros(self.system.group.dim) if xi is None else xi
        mu = self.system.momentum(g, velocity)
        return self.along(self.h / 2 * self.system.total_force(g, velocity, mu, t))

    def first_kick(self, spin: Spins, speed: Speeds) -> Float[Array, "places dim"]:
        if self.kick is not None:
            return self.kick
        return self.kicked(self.state.g, self.flat(spin, speed), self.state.t)

    def _arms(self) -> Scalar:
        """The size of the terms in the equations of the joints: lever arms and places."""
        total = jnp.asarray(SMALLEST)
        for rows, side in zip(self.rows, self.band.sides, strict=True):
            size, t = jnp.abs(rows), self.turns
            places = jnp.abs(self.start.x[side])
            total = total + jnp.sum(size[:, :, :t])
            total = total + jnp.sum(jnp.einsum("nki,ni->nk", size[:, :, t:], places))
        return total

    def mismatch(
        self, spin: Spins, speed: Speeds, lam: Impulses
    ) -> tuple[Float[Array, "places dim"], Impulses, Scalar]:
        """What bodies and joints miss, and its size relative to its terms."""
        has = jnp.concatenate(
            [jax.vmap(self.spun)(self.inertia, spin), self.heavy[:, None] * speed], axis=1
        )
        kick, push = self.first_kick(spin, speed), self.pushes(self.by_body, lam)
        bodies = has - (self.momentum + kick) - push
        gaps = self.residual_at(self.drifted(spin, speed))
        terms = SMALLEST + jnp.sum(jnp.abs(has) + jnp.abs(kick) + jnp.abs(push))
        size = jnp.sum(jnp.abs(bodies)) / terms + jnp.sum(jnp.abs(gaps)) / self.arms
        return bodies, gaps / self.h, size

    # Newton's matrix.

    def matrix(self, spin: Spins, speed: Speeds) -> _Matrix:
        inner = jax.vmap(lambda J, s: inverse(jax.jacfwd(self.spun, 1)(J, s)))(self.inertia, spin)
        t = self.turns

        def carried(rows: Array, spin: Array) -> Array:
            through = jax.vmap(lambda row: self.tau.dL_dual(self.turn, self.h * spin, row))
            return jnp.concatenate([through(rows[:, :t]), rows[:, t:]], axis=1)

        rows = self.rows_at(self.drifted(spin, speed))
        ends = tuple(
            jax.vmap(carried)(block, spin[side])
            for block, side in zip(rows, self.band.sides, strict=True)
        )
        return _Matrix(self.factored(ends, self.rows, inner, symmetric=False), inner, ends)

    def factored(
        self,
        left: tuple[Rows, ...],
        right: tuple[Rows, ...],
        inner: Float[Array, "places turns turns"],
        symmetric: bool,
    ) -> banded.BandFactors:
        r"""Factor $W D^{-1} W'^T$, regular also where rows are redundant."""
        t, sides = self.turns, self.band.sides
        soft = [
            jnp.concatenate(
                [
                    jnp.einsum("nki,nij->nkj", rows[:, :, :t], inner[side]),
                    rows[:, :, t:] * self.light[side][:, None, None],
                ],
                axis=2,
            )
            for rows, side in zip(left, sides, strict=True)
        ]

        def blocks(q: int, turned: bool) -> Array:
            """The blocks between joints and those q places on; `turned`: from these to those."""
            count, total = len(sides[0]) - q, None
            for (s, r), where in self.band.meetings[q]:
                if turned:
                    part = jnp.einsum("nki,nli->nkl", soft[r][q:], right[s][:count])
                else:
                    part = jnp.einsum("nki,nli->nkl", soft[s][:count], right[r][q:])
                if where is not None:
                    part = part * where[:, None, None]
                total = part if total is None else total + part
            assert total is not None
            return jnp.pad(total, ((0, q), (0, 0), (0, 0))) if q else total

        idle = 1.0 - self.band.held
        m, one = self.band.rows, jnp.eye(self.band.rows)
        diagonal = blocks(0, False) * (1.0 + PROXIMAL * np.eye(m))
        if idle.any():
            diagonal = diagonal + idle[:, :, None] * one
        further = range(1, self.band.width + 1)
        above = tuple(blocks(q, False) for q in further)
        below = None if symmetric else tuple(blocks(q, True) for q in further)
        return banded.factor(diagonal, above, below)

    def freed(
        self, inner: Float[Array, "places turns turns"], mu: Float[Array, "places dim"]
    ) -> tuple[Spins, Speeds]:
        t = self.turns
        return jnp.einsum("nij,nj->ni", inner, mu[:, :t]), mu[:, t:] * self.light[:, None]

    def improved(self, matrix: _Matrix, it: _Iterate) -> _Iterate:
        bodies, gaps, size = self.mismatch(it.spin, it.speed, it.lam)
        free = jnp.concatenate(self.freed(matrix.inner, bodies), axis=1)
        more = banded.solve(matrix.factors, self.across(matrix.ends, free) - gaps)
        spin, speed = self.freed(matrix.inner, self.pushes(self.by_body, more) - bodies)
        gain = jnp.clip(size / it.before, _BEST, 1.0)
        stalled = (size <= _ACCEPT) & (size > it.before / 2)
        left = jnp.where(stalled, jnp.minimum(size, _AIM), size * gain)
        return it._replace(
            spin=it.spin + spin,
            speed=it.speed + speed,
            lam=it.lam + more,
            size=left,
            before=size,
            chords=it.chords + 1,
        )

    def solved(self, memory: Last) -> _Iterate:
        system, state = self.system, self.state
        v, share = system.velocity(state.g, state.momentum), self.h / memory.h
        guess = self.along(v + share * (v - memory.xi))

        def unfinished(it: _Iterate) -> Bool[Array, ""]:
            return (it.size > _AIM) & (it.matrices < _MATRICES)

        def again(it: _Iterate) -> _Iterate:
            matrix, most = self.matrix(it.spin, it.speed), it.chords + _CHORDS

            def going(it: _Iterate) -> Bool[Array, ""]:
                slow = it.size > _GAIN * it.before
                return (it.size > _AIM) & ~slow & (it.chords < most)

            fresh = it._replace(before=jnp.asarray(jnp.inf))
            it = lax.while_loop(going, lambda it: self.improved(matrix, it), fresh)
            return it._replace(matrices=it.matrices + 1)

        none, t = jnp.asarray(0), self.turns
        size = jnp.asarray(jnp.inf)
        first = _Iterate(
            guess[:, :t], guess[:, t:], share * memory.impulses, size, size, none, none
        )
        return lax.while_loop(unfinished, again, first)

    def end(self, spin: Spins, speed: Speeds, lam: Impulses) -> tuple[State, Coordinates, Impulses]:
        """The state at the end of the step, its velocity, and the impulses at its end."""
        system, h, t, t1 = self.system, self.h, self.turns, self.state.t + self.h
        xi, places = self.flat(spin, speed), self.drifted(spin, speed)
        g1 = places.R[1:], places.x[1:]
        pushed = self.first_kick(spin, speed) + self.pushes(self.by_body, lam)

        def turned(spin: Array, mu: Array) -> Array:
            return self.turn.coAdm1(self.tau.minus_identity(self.turn, h * spin), mu)

        turn = jax.vmap(turned)(spin, (self.momentum + pushed)[:, :t])
        last = self.kicked(g1, xi if self.fed_back else None, t1)
        change = pushed + last
        mu = self.momentum + jnp.concatenate([change[:, :t] + turn, change[:, t:]], axis=1)
        rows, inner = self.rows_at(places), jax.vmap(inverse)(self.inertia)
        by_body = self.of_bodies(rows)
        factors = self.factored(rows, rows, inner, symmetric=True)
        found = jnp.zeros_like(lam)
        for _ in range(2):
            v = jnp.concatenate(self.freed(inner, mu), axis=1)
            more = banded.solve(factors, -self.across(rows, v))
            mu, found = mu + self.pushes(by_body, more), found + more
        return State(g1, mu[1:].reshape(-1), t1), xi, found


def _behind(first: Array, others: Array) -> Array:
    return jnp.concatenate([first[None], others])


def _filled(x: Float[Array, "joints k *dim"], rows: int) -> Float[Array, "joints rows *dim"]:
    """Fill up with zeros to so many rows."""
    more = rows - x.shape[1]
    return jnp.pad(x, [(0, 0), (0, more), *[(0, 0)] * (x.ndim - 2)]) if more else x


def _band(system: MechanismSystem) -> Band:
    joints = system.constraint
    assert isinstance(joints, Joints)
    return band(joints.bodies, joints.counts, joints.n)

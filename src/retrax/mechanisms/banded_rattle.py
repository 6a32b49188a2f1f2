r"""Verlet for many bodies with joints: loops along them, whose code does not grow with n."""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from retrax.groups.retractions import AbstractRetraction
from retrax.integrators.base import AbstractIntegrator, StepInfo, step_info
from retrax.mechanics.state import State
from retrax.mechanics.system import Coordinates, Element
from retrax.mechanisms.along import (
    Along,
    Impulses,
    Momenta,
    Rows,
    Softness,
    Speeds,
    Spins,
    band_of,
)
from retrax.mechanisms.band import Band
from retrax.mechanisms.pose import Pose
from retrax.mechanisms.rank import require_wheels_apart
from retrax.mechanisms.rattle_equations import CHORDS, MATRICES, SLOW, turn_group
from retrax.mechanisms.reactions import Reactions
from retrax.mechanisms.system import MechanismSystem
from retrax.numerics import banded
from retrax.numerics.newton import NewtonStatus
from retrax.numerics.roundoff import ACCEPT, AIM, SMALLEST, UNSEEN

Scalar = Float[Array, ""]


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

    def check_step(self, system: MechanismSystem, state: State, h: float) -> None:
        require_wheels_apart(system, state)

    def memory(self, system: MechanismSystem, state: State) -> Last:
        xi = system.velocity(state.g, state.momentum)
        return Last(xi, jnp.zeros(_band(system).held.shape), jnp.ones(()))

    def step(self, system: MechanismSystem, state: State, h: Scalar) -> tuple[State, StepInfo]:
        new, info, _ = self.next_step(system, state, h, self.memory(system, state))
        return new, info

    def next_step(
        self, system: MechanismSystem, state: State, h: Scalar, memory: Last
    ) -> tuple[State, StepInfo, Last]:
        found, (size, count) = _solution(self.retraction, system, state, h, memory)
        new, xi, impulses, opening = _Step(self.retraction, system, state, h).end(found)
        size = jnp.maximum(size, opening)
        covered = self.retraction.covers(system.group, h * xi)
        status = NewtonStatus(size <= ACCEPT, size, count.astype(int))
        return new, step_info(status, h * xi, covered), Last(xi, impulses, h)


class _Unknowns(NamedTuple):
    """Velocities of the ground and of bodies, and impulses of joints."""

    spin: Spins
    speed: Speeds
    lam: Impulses


class _Mismatch(NamedTuple):
    """What bodies and joints miss: momenta, and speeds; and its size relative to its terms.

    `seen` is what of the size moves bodies at all.
    """

    bodies: Momenta
    joints: Impulses
    size: Scalar
    seen: Scalar


class _Iterate(NamedTuple):
    """Unknowns, what they leave, and the size of what those before left."""

    at: _Unknowns
    left: _Mismatch
    before: Scalar
    chords: Int[Array, ""]
    matrices: Int[Array, ""]

    @property
    def finished(self) -> Bool[Array, ""]:
        """Whether the mismatch is lost in rounding errors, or stalls near there."""
        size = self.left.size
        return (size <= AIM) | ((self.left.seen <= ACCEPT) & (size > self.before / 2))


class _Matrix(NamedTuple):
    """Newton's matrix: the factors of the joints, how bodies give way, and rows at the end."""

    factors: banded.BandFactors
    soft: Softness
    ends: tuple[Rows, ...]


class _Step:
    """One step: its equations along bodies and along joints, and their solution."""

    def __init__(
        self, tau: AbstractRetraction, system: MechanismSystem, state: State, h: Scalar
    ) -> None:
        self.tau, self.system, self.state, self.h = tau, system, state, h
        self.along = Along(system, _band(system))
        self.turns = self.along.turns
        self.turn = turn_group(system)
        self.start = self.along.places(state.g)
        self.momentum = self.along.bodies(state.momentum)
        self.rows = self.along.rows(self.start)
        self.by_body = self.along.by_body(self.rows)
        self.fed_back = system.force is not None
        self.kick = None if self.fed_back else self.kick_by_forces(state.g, None, state.t)
        self.arms, self.weights, self.unseen = self._arms(), self._weights(), self._unseen()

    def flat(self, spin: Spins, speed: Speeds) -> Coordinates:
        return self.along.flat(jnp.concatenate([spin, speed], axis=1))

    def drift(self, spin: Spins, speed: Speeds) -> Pose:
        def turn(R: Array, spin: Array) -> Array:
            return self.turn.advance(R, self.tau.minus_identity(self.turn, self.h * spin))

        return Pose(jax.vmap(turn)(self.start.R, spin), self.start.x + self.h * speed)

    def spin(self, inertia: Array, spin: Array) -> Array:
        return self.tau.dR_inv_dual(self.turn, self.h * spin, inertia @ spin)

    def kick_by_forces(self, g: Element, xi: Coordinates | None, t: Scalar) -> Momenta:
        velocity = jnp.zeros(self.system.group.dim) if xi is None else xi
        mu = self.system.momentum(g, velocity)
        return self.along.bodies(self.h / 2 * self.system.total_force(g, velocity, mu, t))

    def first_kick(self, spin: Spins, speed: Speeds) -> Momenta:
        if self.kick is not None:
            return self.kick
        return self.kick_by_forces(self.state.g, self.flat(spin, speed), self.state.t)

    def _arms(self) -> Scalar:
        """Return the size of the terms in the equations of the joints: lever arms and places."""
        total = jnp.asarray(SMALLEST)
        for rows, side in zip(self.rows, self.along.band.sides, strict=True):
            size, t = jnp.abs(rows), self.turns
            places = jnp.abs(self.start.x[side])
            total = total + jnp.sum(size[:, :, :t])
            total = total + jnp.sum(jnp.einsum("nki,ni->nk", size[:, :, t:], places))
        return total

    def _unseen(self) -> Scalar:
        """Return the momentum of bodies that move by rounding errors in a step, and so nowhere."""
        t, d, h = self.turns, self.along.d, jnp.abs(self.h)
        extent = jnp.max(jnp.abs(self.start.x))
        for rows in self.rows:
            arm, way = jnp.abs(rows[:, :, :t]), jnp.sum(jnp.abs(rows[:, :, t:]), axis=2)
            extent = jnp.maximum(extent, jnp.max(jnp.where(way[:, :, None] > 0, arm, 0.0)))
        system, state = self.system, self.state
        moved = (jnp.sum(jnp.abs(system.inertia)) + d * extent * jnp.sum(system.mass)) / h
        if not self.fed_back:
            return UNSEEN * moved
        xi = system.velocity(state.g, state.momentum)
        others = system.differential(state.g, xi, state.momentum)
        return UNSEEN * (moved + h * jnp.sum(jnp.abs(others)))  # which forces may balance

    def _weights(self) -> Impulses:
        r"""Return the size of all terms of $W^T\lambda$ for each impulse: redundant ones cancel."""
        sizes = [jnp.sum(jnp.abs(rows), axis=2) for rows in self.rows]
        return sum(sizes[1:], sizes[0])

    def mismatch(self, at: _Unknowns) -> _Mismatch:
        """Return what is left of equations (1) to (3) of `Rattle`."""
        spin, speed, lam = at
        has = jnp.concatenate(
            [jax.vmap(self.spin)(self.along.inertia, spin), self.along.mass[:, None] * speed],
            axis=1,
        )
        kick, push = self.first_kick(spin, speed), self.along.pushes(self.by_body, lam)
        bodies = has - (self.momentum + kick) - push
        gaps = self.along.residual(self.drift(spin, speed))
        terms = SMALLEST + jnp.sum((jnp.abs(has) + jnp.abs(kick))[1:])
        terms = terms + jnp.sum(self.weights * jnp.abs(lam))
        left, open_by = jnp.sum(jnp.abs(bodies[1:])), jnp.sum(jnp.abs(gaps)) / self.arms
        size = left / terms + open_by
        seen = jnp.where(left <= self.unseen, open_by, size)
        return _Mismatch(bodies, gaps / self.h, size, seen)

    def matrix(self, at: _Unknowns) -> _Matrix:
        """Return Newton's matrix at a velocity."""
        t, along, (spin, speed, _) = self.turns, self.along, at
        soft = along.soft(jax.vmap(jax.jacfwd(self.spin, 1))(along.inertia, spin))

        def carry(rows: Array, spin: Array) -> Array:
            through = jax.vmap(lambda row: self.tau.dL_dual(self.turn, self.h * spin, row))
            return jnp.concatenate([through(rows[:, :t]), rows[:, t:]], axis=1)

        rows = along.rows(self.drift(spin, speed))
        ends = tuple(
            jax.vmap(carry)(block, spin[side])
            for block, side in zip(rows, along.band.sides, strict=True)
        )
        return _Matrix(along.factor(ends, self.rows, soft, symmetric=False), soft, ends)

    def correction(self, matrix: _Matrix, bodies: Momenta, gaps: Impulses) -> _Unknowns:
        """Solve for the change of the unknowns that takes away what bodies and joints miss."""
        along, t = self.along, self.turns
        free = along.apply_inverse_inertia(matrix.soft, bodies)
        lam = banded.solve(matrix.factors, along.across(matrix.ends, free) - gaps)
        xi = along.apply_inverse_inertia(matrix.soft, along.pushes(self.by_body, lam) - bodies)
        return _Unknowns(xi[:, :t], xi[:, t:], lam)

    def solve(self, memory: Last) -> _Iterate:
        system, state = self.system, self.state
        v, share = system.velocity(state.g, state.momentum), self.h / memory.h
        guess = self.along.bodies(v + share * (v - memory.xi))

        def is_unfinished(it: _Iterate) -> Bool[Array, ""]:
            return ~it.finished & (it.matrices < MATRICES)

        def with_new_matrix(it: _Iterate) -> _Iterate:
            matrix, begun = self.matrix(it.at), it.chords

            def goes_on(it: _Iterate) -> Bool[Array, ""]:
                slow = (it.left.size > SLOW * it.before) & (it.left.size > ACCEPT)
                enough = slow | (it.chords >= begun + CHORDS)
                return (it.chords == begun) | ~(it.finished | enough)

            def chord(it: _Iterate) -> _Iterate:
                change = self.correction(matrix, it.left.bodies, it.left.joints)
                at = jax.tree.map(jnp.add, it.at, change)
                return _Iterate(at, self.mismatch(at), it.left.size, it.chords + 1, it.matrices)

            it = lax.while_loop(goes_on, chord, it)
            return it._replace(matrices=it.matrices + 1)

        none, t = jnp.asarray(0), self.turns
        at = _Unknowns(guess[:, :t], guess[:, t:], share * memory.impulses)
        first = _Iterate(at, self.mismatch(at), jnp.asarray(jnp.inf), none, none)
        return lax.while_loop(is_unfinished, with_new_matrix, first)

    def end(self, found: _Unknowns) -> tuple[State, Coordinates, Impulses, Scalar]:
        """Return the state at the end, the velocity of the step, and the impulses at its end.

        The last number is how fast joints still open there, relatively.
        """
        spin, speed, lam = found
        h, t, t1 = self.h, self.turns, self.state.t + self.h
        xi, places = self.flat(spin, speed), self.drift(spin, speed)
        g1 = places.R[1:], places.x[1:]
        kick, push = self.first_kick(spin, speed), self.along.pushes(self.by_body, lam)
        pushed = kick + push

        def turn_by(spin: Array, mu: Array) -> Array:
            return self.turn.coAdm1(self.tau.minus_identity(self.turn, h * spin), mu)

        turn = jax.vmap(turn_by)(spin, (self.momentum + pushed)[:, :t])
        last = self.kick_by_forces(g1, xi if self.fed_back else None, t1)
        change = pushed + last
        mu = self.momentum + jnp.concatenate([change[:, :t] + turn, change[:, t:]], axis=1)
        terms = jnp.abs(self.momentum) + jnp.abs(kick) + jnp.abs(push) + jnp.abs(last)
        met = Reactions(self.along, places).stopping(mu, jnp.zeros_like(lam), terms)
        return State(g1, self.along.flat(met.mu), t1), xi, met.impulses, met.left


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _solution(
    tau: AbstractRetraction, system: MechanismSystem, state: State, h: Scalar, memory: Last
) -> tuple[_Unknowns, tuple[Scalar, Scalar]]:
    """Solve a step: return its unknowns, how well its equations hold, and the iterations."""
    it = _Step(tau, system, state, h).solve(memory)
    return it.at, (it.left.seen, it.chords.astype(h.dtype))


@_solution.defjvp
def _solution_jvp(tau: AbstractRetraction, primals: tuple, tangents: tuple) -> tuple:
    """Differentiate the solution, which depends on system, state and step, not on the memory."""
    found, status = _solution(tau, *primals)

    def miss(at: _Unknowns, *given: Any) -> tuple[Momenta, Impulses]:
        return _Step(tau, *given).mismatch(at)[:2]

    step = _Step(tau, *primals[:3])
    matrix = step.matrix(found)
    _, turned = jax.jvp(lambda *given: miss(found, *given), primals[:3], tangents[:3])
    change = step.correction(matrix, *turned)

    def refine(change: _Unknowns, _: None) -> tuple[_Unknowns, None]:
        _, moved = jax.jvp(lambda at: miss(at, *primals[:3]), (found,), (change,))
        rest = step.correction(matrix, *jax.tree.map(jnp.add, turned, moved))
        return jax.tree.map(jnp.add, change, rest), None

    if step.fed_back:  # forces of velocities couple bodies, beside the matrix
        change, _ = lax.scan(refine, change, None, length=MATRICES)
    else:
        for _ in range(2):  # takes out again what makes the matrix regular
            change, _ = refine(change, None)
    return (found, status), (change, jax.tree.map(jnp.zeros_like, status))


def _band(system: MechanismSystem) -> Band:
    joints = band_of(system)
    assert joints is not None
    return joints

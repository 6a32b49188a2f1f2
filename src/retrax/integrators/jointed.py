r"""Verlet for bodies with joints: closed forms, and sparse elimination in a fixed order."""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from retrax.groups.base import AbstractLieGroup
from retrax.groups.retractions import AbstractRetraction
from retrax.integrators.base import AbstractIntegrator, StepInfo, step_info
from retrax.mechanics.state import State
from retrax.mechanisms.elimination import Blocks, Factors, Order, eliminate
from retrax.mechanisms.joined import GROUND, Connection
from retrax.mechanisms.laws import Blocks as Rows
from retrax.mechanisms.pose import Pose, ground
from retrax.mechanisms.system import MechanismSystem
from retrax.numerics.newton import SMALLEST, NewtonStatus, Sizes, to_stagnation
from retrax.numerics.small_matrices import inverse

Scalar = Float[Array, ""]
Vector = Float[Array, " k"]

_EPS = float(jnp.finfo(jnp.float64).eps)
_AIM, _ACCEPT = 2 * _EPS, 64 * _EPS
# The matrix is made anew where an iteration gains less than this, and so often at most.
_GAIN, _MATRICES, _CHORDS = 0.2, 6, 12
# So often at most velocities are put back where the joints allow them.
_REFINED = 12


class Last(NamedTuple):
    """What the step before found: its velocity, the impulses at its end, and its size."""

    xi: Float[Array, " dim"]
    impulses: Float[Array, " k"]
    h: Scalar


class Jointed(AbstractIntegrator):
    r"""The equations of `Rattle` for a `MechanismSystem`, whose bodies meet only in their joints.

    Newton's matrix is eliminated body by body and then joint by joint,

    $$
    \begin{aligned}
    D\,\delta\xi - W_k^T\delta\lambda &= -r_1, \qquad W_{k+1}\,\delta\xi = -r_2  &&\text{(1)}\\
    W_{k+1}D^{-1}W_k^T\,\delta\lambda &= -r_2 + W_{k+1}D^{-1}r_1                 &&\text{(2)}
    \end{aligned}
    $$

    once, where the step is expected to end. What that leaves, iterations with the same matrix
    remove; a new one is made only where they converge slowly. The guess continues the step before,
    $\xi \approx v_k + \frac{h}{h'}(v_k - \xi')$.

    References: [Andersen1983], [HairerLubichWanner2006] VII.1.
    """

    retraction: AbstractRetraction
    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)

    def memory(self, system: MechanismSystem, state: State) -> Last:
        count = 0 if system.constraint is None else sum(c.law.count for c in _connections(system))
        xi = system.velocity(state.g, state.momentum)
        return Last(xi, jnp.zeros(count), jnp.ones(()))

    def step(self, system: MechanismSystem, state: State, h: Scalar) -> tuple[State, StepInfo]:
        new, info, _ = self.next_step(system, state, h, self.memory(system, state))
        return new, info

    def next_step(
        self, system: MechanismSystem, state: State, h: Scalar, memory: Last
    ) -> tuple[State, StepInfo, Last]:
        xi, lam, (residual, count) = _solution(self.retraction, system, state, h, memory)
        step = _Step(self.retraction, system, state, h)
        new, impulses, opening = step.end(xi, lam)
        residual = jnp.maximum(residual, opening)
        status = NewtonStatus(residual <= _ACCEPT, residual, count.astype(int))
        turn, tau = step.turn, self.retraction
        covered = [tau.covers(turn, h * spin) for spin, _ in step.velocities(xi)]
        info = step_info(status, h * xi, jnp.all(jnp.stack(covered)))
        return new, info, Last(xi, impulses, h)


class _Step:
    """One step of a mechanism: its equations, their matrix, and its end."""

    def __init__(
        self, tau: AbstractRetraction, system: MechanismSystem, state: State, h: Scalar
    ) -> None:
        self.tau, self.system, self.state, self.h = tau, system, state, h
        self.n, self.d = len(system.names), system.gravity.shape[0]
        self.turns = self.d * (self.d - 1) // 2
        self.turn: AbstractLieGroup = system.group.group.groups[0]  # type: ignore
        R, x = state.g
        self.start = [Pose(R[i], x[i]) for i in range(self.n)]
        self.connections = _connections(system)
        self.counts = [c.law.count for c in self.connections]
        self.bodies = [tuple(i for i in c.bodies if i != GROUND) for c in self.connections]
        self.order = Order.of(self.bodies)
        self.rows = self.rows_at(self.start)
        self.fed_back = system.force is not None
        self.kick = None if self.fed_back else self.kicked(state.g, None, state.t)
        self.arms = self._arms()

    def velocities(self, xi: Vector) -> list[tuple[Vector, Vector]]:
        each = xi.reshape(self.n, -1)
        return [(each[i, : self.turns], each[i, self.turns :]) for i in range(self.n)]

    def impulses(self, lam: Vector) -> list[Vector]:
        found, start = [], 0
        for count in self.counts:
            found.append(lam[start : start + count])
            start += count
        return found

    def poses(self, places: list[Pose], c: Connection) -> tuple[Pose, ...]:
        return tuple(ground(self.d) if i == GROUND else places[i] for i in c.bodies)

    def rows_at(self, places: list[Pose]) -> list[dict[int, Array]]:
        """The rows of each connection, by body."""
        found = []
        for c in self.connections:
            rows = c.law.rows(*self.poses(places, c))
            blocks: dict[int, Array] = {}
            for i, block in zip(c.bodies, rows, strict=True):
                if i != GROUND:
                    blocks[i] = blocks[i] + block if i in blocks else block
            found.append(blocks)
        return found

    def residuals(self, places: list[Pose]) -> list[Vector]:
        return [c.law.residual(*self.poses(places, c)) for c in self.connections]

    def _arms(self) -> Scalar:
        """The size of the terms in the equations of the joints: lever arms and places."""
        total = jnp.asarray(SMALLEST)
        for blocks in self.rows:
            for i, block in blocks.items():
                size = jnp.abs(block)
                total = total + jnp.sum(size[:, : self.turns])
                total = total + jnp.sum(size[:, self.turns :] @ jnp.abs(self.start[i].x))
        return total

    def kicked(self, g: tuple, xi: Vector | None, t: Scalar) -> Vector:
        velocity = jnp.zeros(self.system.group.dim) if xi is None else xi
        mu = self.system.momentum(g, velocity)
        return self.h / 2 * self.system.total_force(g, velocity, mu, t)

    def drifted(self, xi: Vector) -> list[Pose]:
        h, tau = self.h, self.tau
        return [
            Pose(
                self.turn.advance(p.R, tau.minus_identity(self.turn, h * spin)), p.x + h * velocity
            )
            for p, (spin, velocity) in zip(self.start, self.velocities(xi), strict=True)
        ]

    def spun(self, i: int, spin: Vector) -> Vector:
        return self.tau.dR_inv_dual(self.turn, self.h * spin, self.system.inertia[i] @ spin)

    def pushes(self, rows: list[dict[int, Array]], lam: list[Vector]) -> list[Vector]:
        """$W^T\\lambda$, body by body."""
        given = [jnp.zeros(self.turns + self.d)] * self.n
        for blocks, impulse in zip(rows, lam, strict=True):
            for i, block in blocks.items():
                given[i] = given[i] + impulse @ block
        return given

    def mismatch(
        self, xi: Vector, lam: Vector
    ) -> tuple[list[Vector], list[Vector], Scalar, list[Pose]]:
        """The residuals of bodies and of joints, their size relative to their terms, and the end."""
        places = self.drifted(xi)
        kick = self.kick
        if kick is None:
            kick = self.kicked(self.state.g, xi, self.state.t)
        given, kicks = self.state.momentum.reshape(self.n, -1), kick.reshape(self.n, -1)
        pushes = self.pushes(self.rows, self.impulses(lam))
        bodies, terms = [], jnp.asarray(SMALLEST)
        for i, (spin, velocity) in enumerate(self.velocities(xi)):
            has = jnp.concatenate([self.spun(i, spin), self.system.mass[i] * velocity])
            gets = given[i] + kicks[i]
            bodies.append(has - gets - pushes[i])
            terms = terms + jnp.sum(jnp.abs(has)) + jnp.sum(jnp.abs(kicks[i]))
            terms = terms + jnp.sum(jnp.abs(pushes[i]))
        joints = self.residuals(places)
        size = sum((jnp.sum(jnp.abs(r)) for r in bodies), jnp.zeros(())) / terms
        gaps = sum((jnp.sum(jnp.abs(r)) for r in joints), jnp.zeros(()))
        return bodies, [r / self.h for r in joints], size + gaps / self.arms, places

    def matrix(self, xi: Vector, places: list[Pose]) -> "_Matrix":
        """(1) at a velocity."""
        h, tau, turn = self.h, self.tau, self.turn
        spins = [spin for spin, _ in self.velocities(xi)]
        inner = [inverse(jax.jacfwd(partial(self.spun, i))(s)) for i, s in enumerate(spins)]
        ends = []
        for blocks in self.rows_at(places):
            moved = {}
            for i, block in blocks.items():
                carry = jax.vmap(lambda row, s=spins[i]: tau.dL_dual(turn, h * s, row))
                moved[i] = jnp.concatenate(
                    [carry(block[:, : self.turns]), block[:, self.turns :]], axis=1
                )
            ends.append(moved)
        light = [1.0 / self.system.mass[i] for i in range(self.n)]
        through = [
            {i: self._through(block, inner[i], light[i]) for i, block in blocks.items()}
            for blocks in ends
        ]
        factors = eliminate(self.order, _schur(through, self.rows), symmetric=False)
        return _Matrix(factors, inner, light, ends)

    def _through(self, block: Array, inner: Array, light: Scalar) -> Array:
        return jnp.concatenate(
            [block[:, : self.turns] @ inner, block[:, self.turns :] * light], axis=1
        )

    def improved(
        self, matrix: "_Matrix", xi: Vector, lam: Vector, bodies: list[Vector], joints: list[Vector]
    ) -> tuple[Vector, Vector]:
        """Solve (1) and (2), and move the unknowns."""
        free = [self._freed(matrix, i, r) for i, r in enumerate(bodies)]
        right = []
        for blocks, r in zip(matrix.ends, joints, strict=True):
            b = -r
            for i, block in blocks.items():
                b = b + block @ free[i]
            right.append(b)
        dlam = matrix.factors.solve(right)
        pushes = self.pushes(self.rows, dlam)
        dxi = [self._freed(matrix, i, pushes[i] - r) for i, r in enumerate(bodies)]
        new = lam + jnp.concatenate(dlam) if dlam else lam
        return xi + jnp.concatenate(dxi), new

    def _freed(self, matrix: "_Matrix", i: int, r: Vector) -> Vector:
        return jnp.concatenate(
            [matrix.inner[i] @ r[: self.turns], r[self.turns :] * matrix.light[i]]
        )

    def end(self, xi: Vector, lam: Vector) -> tuple[State, Vector, Scalar]:
        """The state at the end of the step, the impulses there, and what the joints still open."""
        system, h, t1 = self.system, self.h, self.state.t + self.h
        places = self.drifted(xi)
        g1 = jnp.stack([p.R for p in places]), jnp.stack([p.x for p in places])
        mu0 = self.state.momentum
        kick = self.kick
        if kick is None:
            kick = self.kicked(self.state.g, xi, self.state.t)
        last = self.kicked(g1, xi if self.fed_back else None, t1).reshape(self.n, -1)
        start, kicks = mu0.reshape(self.n, -1), kick.reshape(self.n, -1)
        pushes = self.pushes(self.rows, self.impulses(lam))
        momenta, sizes = [], []
        for i, (spin, _) in enumerate(self.velocities(xi)):
            pushed = kicks[i] + pushes[i]
            delta = self.tau.minus_identity(self.turn, h * spin)
            turned = self.turn.coAdm1(delta, (start[i] + pushed)[: self.turns])
            change = pushed + last[i]
            sizes.append(
                jnp.abs(start[i]) + jnp.abs(kicks[i]) + jnp.abs(pushes[i]) + jnp.abs(last[i])
            )
            momenta.append(
                start[i] + jnp.concatenate([change[: self.turns] + turned, change[self.turns :]])
            )
        light = [1.0 / system.mass[i] for i in range(self.n)]
        inner = [inverse(system.inertia[i]) for i in range(self.n)]
        if not self.connections:
            return State(g1, jnp.concatenate(momenta), t1), jnp.zeros(0), jnp.zeros(())
        rows = self.rows_at(places)
        through = [
            {i: self._through(block, inner[i], light[i]) for i, block in blocks.items()}
            for blocks in rows
        ]
        factors = eliminate(self.order, _schur(through, rows), symmetric=True)
        terms = jnp.asarray(SMALLEST)
        for blocks in through:
            for i, block in blocks.items():
                terms = terms + jnp.sum(jnp.abs(block) @ sizes[i])

        def across(momenta: list[Vector]) -> tuple[list[Vector], Scalar]:
            """How fast the joints open, and the sum of all that."""
            open_ = []
            for blocks in through:
                parts = [block @ momenta[i] for i, block in blocks.items()]
                open_.append(sum(parts[1:], parts[0]))
            return open_, sum((jnp.sum(jnp.abs(r)) for r in open_), jnp.zeros(()))

        def improve(at: _Closing) -> tuple[_Closing, Sizes]:
            more = [-x for x in factors.solve(at.speeds)]
            given = self.pushes(rows, more)
            momenta = [mu + push for mu, push in zip(at.momenta, given, strict=True)]
            found = [a + b for a, b in zip(at.impulses, more, strict=True)]
            speeds, size = across(momenta)
            return _Closing(momenta, found, speeds), (size, terms)

        start = _Closing(momenta, [jnp.zeros(count) for count in self.counts], across(momenta)[0])
        unknown = jnp.asarray(jnp.inf), jnp.zeros(())
        closed, status = to_stagnation(
            improve, start, unknown, aim=_AIM, accept=_ACCEPT, most=_REFINED
        )
        state = State(g1, jnp.concatenate(closed.momenta), t1)
        return state, jnp.concatenate(closed.impulses), status.residual


class _Closing(NamedTuple):
    """Momenta on their way to velocities that the joints allow."""

    momenta: list[Vector]
    impulses: list[Vector]
    speeds: list[Vector]


class _Matrix(NamedTuple):
    """The matrix of (1), eliminated: (2), the inverse of D by body, and the rows at the end."""

    factors: Factors
    inner: list[Array]
    light: list[Scalar]
    ends: list[dict[int, Array]]


def _connections(system: MechanismSystem) -> tuple[Connection, ...]:
    return () if system.constraint is None else system.constraint.connections


def _schur(left: list[dict[int, Array]], right: list[dict[int, Array]]) -> Blocks:
    found: Blocks = {}
    for i, blocks in enumerate(left):
        for j, others in enumerate(right):
            for body in blocks.keys() & others.keys():
                product = blocks[body] @ others[body].T
                found[i, j] = found[i, j] + product if (i, j) in found else product
    return found


class _Iterate(NamedTuple):
    xi: Vector
    lam: Vector
    bodies: list[Vector]
    joints: list[Vector]
    size: Scalar
    before: Scalar
    chords: Array
    matrices: Array


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _solution(
    tau: AbstractRetraction, system: MechanismSystem, state: State, h: Scalar, memory: Last
) -> tuple[Vector, Vector, tuple[Scalar, Scalar]]:
    """The velocity and the impulses of a step, and how well they solve its equations."""
    step = _Step(tau, system, state, h)
    v = system.velocity(state.g, state.momentum)
    share = h / memory.h
    xi = v + share * (v - memory.xi)
    lam = share * memory.impulses

    def finished(it: _Iterate) -> Bool[Array, ""]:
        stalled = (it.size <= _ACCEPT) & (it.size > it.before / 2)
        return (it.size <= _AIM) | stalled

    def unfinished(it: _Iterate) -> Bool[Array, ""]:
        return ~finished(it) & (it.matrices < _MATRICES)

    def again(it: _Iterate) -> _Iterate:
        places = step.drifted(it.xi)
        matrix = step.matrix(it.xi, places)
        before = it.chords

        def going(it: _Iterate) -> Bool[Array, ""]:
            slow = (it.size > _GAIN * it.before) & (it.size > _ACCEPT)
            first = it.chords == before
            return first | (~finished(it) & ~slow & (it.chords < before + _CHORDS))

        def chord(it: _Iterate) -> _Iterate:
            xi, lam = step.improved(matrix, it.xi, it.lam, it.bodies, it.joints)
            bodies, joints, size, _ = step.mismatch(xi, lam)
            return _Iterate(
                xi, lam, bodies, joints, size, it.size, it.chords + 1, it.matrices
            )

        it = lax.while_loop(going, chord, it)
        return it._replace(matrices=it.matrices + 1)

    bodies, joints, size, _ = step.mismatch(xi, lam)
    none, worst = jnp.asarray(0), jnp.asarray(jnp.inf)
    start = _Iterate(xi, lam, bodies, joints, size, worst, none, none)
    it = lax.while_loop(unfinished, again, start)
    return it.xi, it.lam, (it.size, it.chords.astype(xi.dtype))


@_solution.defjvp
def _solution_jvp(tau: AbstractRetraction, primals: tuple, tangents: tuple) -> tuple:
    xi, lam, status = _solution(tau, *primals)
    system, state, h, _ = primals

    def equations(system: MechanismSystem, state: State, h: Scalar) -> tuple:
        bodies, joints, _, _ = _Step(tau, system, state, h).mismatch(xi, lam)
        return bodies, joints

    _, (bodies, joints) = jax.jvp(equations, (system, state, h), tangents[:3])
    step = _Step(tau, system, state, h)
    matrix = step.matrix(xi, step.drifted(xi))
    dxi, dlam = step.improved(matrix, jnp.zeros_like(xi), jnp.zeros_like(lam), bodies, joints)
    return (xi, lam, status), (dxi, dlam, jax.tree.map(jnp.zeros_like, status))

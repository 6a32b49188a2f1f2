r"""Verlet for bodies with joints: closed forms, and sparse elimination in a fixed order."""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from retrax.groups.retractions import AbstractRetraction
from retrax.integrators.base import AbstractIntegrator, StepInfo, step_info
from retrax.mechanics.state import State
from retrax.mechanisms.rank import require_wheels_apart
from retrax.mechanisms.rattle_equations import (
    CHORDS,
    MATRICES,
    SLOW,
    Residuals,
    StepEquations,
    links,
    turn_group,
)
from retrax.mechanisms.system import MechanismSystem
from retrax.numerics.newton import NewtonStatus, Sizes, to_stagnation
from retrax.numerics.roundoff import ACCEPT, AIM, SMALLEST

Scalar = Float[Array, ""]
Vector = Float[Array, " _"]

# So often at most velocities are put back where the joints allow them.
_CLOSINGS = 12


class Last(NamedTuple):
    """What the step before found: its velocity, the impulses at its end, and its size."""

    xi: Vector
    impulses: Vector
    h: Scalar


class Jointed(AbstractIntegrator):
    r"""The equations of `Rattle` for a `MechanismSystem`, whose bodies meet only in their joints.

    Newton's matrix is eliminated body by body and then joint by joint: with residuals $r_1$ of
    bodies and $r_2$ of joints,

    $$
    \begin{aligned}
    D\,\delta\xi - W_k^T\delta\lambda &= -r_1, \qquad W_{k+1}\,\delta\xi = -r_2  &&\text{(1)}\\
    W_{k+1}D^{-1}W_k^T\,\delta\lambda &= -r_2 + W_{k+1}D^{-1}r_1                 &&\text{(2)}
    \end{aligned}
    $$

    It is made once, where the step is expected to end. What that leaves, iterations with the same
    matrix remove; a new one is made only where they converge slowly. The guess continues the step
    before, of size $h'$ and velocity $\xi'$: $\xi \approx v_k + \frac{h}{h'}(v_k - \xi')$.

    References: [Andersen1983], [HairerLubichWanner2006] VII.1.
    """

    retraction: AbstractRetraction
    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)

    def check_step(self, system: MechanismSystem, state: State, h: float) -> None:
        require_wheels_apart(system, state)

    def memory(self, system: MechanismSystem, state: State) -> Last:
        joints, wheels = links(system)
        count = sum(c.law.count for c in joints) + sum(w.contact.count for w in wheels)
        xi = system.velocity(state.g, state.momentum)
        return Last(xi, jnp.zeros(count), jnp.ones(()))

    def step(self, system: MechanismSystem, state: State, h: Scalar) -> tuple[State, StepInfo]:
        new, info, _ = self.next_step(system, state, h, self.memory(system, state))
        return new, info

    def next_step(
        self, system: MechanismSystem, state: State, h: Scalar, memory: Last
    ) -> tuple[State, StepInfo, Last]:
        tau, turn = self.retraction, turn_group(system)
        xi, lam, (left, count) = _solution(tau, system, state, h, memory)
        new, impulses, opening = _close(StepEquations(tau, system, state, h), xi, lam)
        left = jnp.maximum(left, opening)
        spins, _ = system.split(xi)
        covered = [tau.covers(turn, h * spins[i]) for i in range(len(system.names))]
        status = NewtonStatus(left <= ACCEPT, left, count.astype(int))
        info = step_info(status, h * xi, jnp.all(jnp.stack(covered)))
        return new, info, Last(xi, impulses, h)


class _Iterate(NamedTuple):
    xi: Vector
    lam: Vector
    left: Residuals
    before: Scalar
    chords: Int[Array, ""]
    matrices: Int[Array, ""]

    @property
    def finished(self) -> Bool[Array, ""]:
        """Whether the residual is lost in rounding errors, or stalls near there."""
        size = self.left.size
        return (size <= AIM) | ((self.left.seen <= ACCEPT) & (size > self.before / 2))


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _solution(
    tau: AbstractRetraction, system: MechanismSystem, state: State, h: Scalar, memory: Last
) -> tuple[Vector, Vector, tuple[Scalar, Scalar]]:
    """Return velocity and impulses of a step, the relative residual, and how many iterations."""
    equations = StepEquations(tau, system, state, h)
    v, share = system.velocity(state.g, state.momentum), h / memory.h
    xi, lam = v + share * (v - memory.xi), share * memory.impulses

    def is_unfinished(it: _Iterate) -> Bool[Array, ""]:
        return ~it.finished & (it.matrices < MATRICES)

    def with_new_matrix(it: _Iterate) -> _Iterate:
        matrix, begun = equations.matrix(it.xi), it.chords

        def goes_on(it: _Iterate) -> Bool[Array, ""]:
            slow = (it.left.size > SLOW * it.before) & (it.left.size > ACCEPT)
            enough = slow | (it.chords >= begun + CHORDS)
            return (it.chords == begun) | ~(it.finished | enough)

        def chord(it: _Iterate) -> _Iterate:
            dxi, dlam = equations.improvement(matrix, it.left.bodies, it.left.joints)  # (1), (2)
            xi, lam = it.xi + dxi, it.lam + dlam
            left = equations.residuals(xi, lam)
            return _Iterate(xi, lam, left, it.left.size, it.chords + 1, it.matrices)

        it = lax.while_loop(goes_on, chord, it)
        return it._replace(matrices=it.matrices + 1)

    none, worst = jnp.asarray(0), jnp.asarray(jnp.inf)
    first = _Iterate(xi, lam, equations.residuals(xi, lam), worst, none, none)
    it = lax.while_loop(is_unfinished, with_new_matrix, first)
    return it.xi, it.lam, (it.left.seen, it.chords.astype(xi.dtype))


@_solution.defjvp
def _solution_jvp(tau: AbstractRetraction, primals: tuple, tangents: tuple) -> tuple:
    """Differentiate the equations, not the iteration: (1) with their change on the right."""
    xi, lam, status = _solution(tau, *primals)
    given = primals[:3]

    def residual(system: MechanismSystem, state: State, h: Scalar) -> Residuals:
        return StepEquations(tau, system, state, h).residuals(xi, lam)

    _, change = jax.jvp(residual, given, tangents[:3])
    equations = StepEquations(tau, *given)
    matrix = equations.matrix(xi)

    def refine(moved: tuple[Vector, Vector], _: None) -> tuple[tuple[Vector, Vector], None]:
        _, off = jax.jvp(equations.residuals, (xi, lam), moved)
        parts = jax.tree.map(jnp.add, (change.bodies, change.joints), (off.bodies, off.joints))
        return jax.tree.map(jnp.add, moved, equations.improvement(matrix, *parts)), None

    moved = equations.improvement(matrix, change.bodies, change.joints)
    if equations.first_kick is None:  # forces of velocities couple bodies, beside the matrix
        moved, _ = lax.scan(refine, moved, None, length=MATRICES)
    return (xi, lam, status), (*moved, jax.tree.map(jnp.zeros_like, status))


def _close(equations: StepEquations, xi: Vector, lam: Vector) -> tuple[State, Vector, Scalar]:
    """Return the end of a step, (6) of `Rattle`: the state, impulses, and the relative residual."""
    g1, momenta, sizes = equations.arrive(xi, lam)
    end = State(g1, jnp.concatenate(momenta), equations.state.t + equations.h)
    if not equations.rows:
        return end, jnp.zeros(0), jnp.zeros(())
    tau, system = equations.tau, equations.system
    impulses, left = _closing_impulses(tau, system, end, equations.h, jnp.concatenate(sizes))
    there = StepEquations(tau, system, end, equations.h)
    mu = end.momentum + jnp.concatenate(there.pushes(there.rows, there.by_joint(impulses)))
    return State(g1, mu, end.t), impulses, left


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _closing_impulses(
    tau: AbstractRetraction, system: MechanismSystem, end: State, h: Scalar, sizes: Vector
) -> tuple[Vector, Scalar]:
    """Return the impulses after which no joint opens, and how fast they still do, relatively."""
    there = StepEquations(tau, system, end, h)
    through, factors = there.closing_matrix()
    terms, each = jnp.asarray(SMALLEST), there.by_body(sizes)
    felt = [jnp.zeros_like(size) for size in each]
    for rows in through:
        for i, block in rows.items():
            felt[i] = felt[i] + jnp.sum(jnp.abs(block), axis=0)
    terms = sum((weight @ size for weight, size in zip(felt, each, strict=True)), terms)
    reach = there.reach(felt)

    def improve(at: tuple[Vector, list[Vector]]) -> tuple[tuple[Vector, list[Vector]], Sizes]:
        lam = at[0] - jnp.concatenate(factors.solve(at[1]))
        speeds = there.opening(through, lam)
        left = sum((jnp.sum(jnp.abs(r)) for r in speeds), jnp.zeros(()))
        return (lam, speeds), (left, terms)

    none, unknown = jnp.zeros(sum(there.counts)), (jnp.asarray(jnp.inf), jnp.zeros(()))
    begin = none, there.opening(through, none)
    (lam, _), status = to_stagnation(improve, begin, unknown, most=_CLOSINGS)
    # What impulses leave that cancel cannot be solved for, but ends no iteration that goes on.
    return lam, status.residual * terms / (terms + reach @ jnp.abs(lam))


@_closing_impulses.defjvp
def _closing_impulses_jvp(tau: AbstractRetraction, primals: tuple, tangents: tuple) -> tuple:
    """Differentiate the equation that the impulses solve."""
    lam, left = _closing_impulses(tau, *primals)

    def opening(system: MechanismSystem, end: State, h: Scalar) -> list[Vector]:
        there = StepEquations(tau, system, end, h)
        return there.opening(there.closing_matrix()[0], lam)

    _, change = jax.jvp(opening, primals[:3], tangents[:3])
    _, factors = StepEquations(tau, *primals[:3]).closing_matrix()
    return (lam, left), (-jnp.concatenate(factors.solve(change)), jnp.zeros_like(left))

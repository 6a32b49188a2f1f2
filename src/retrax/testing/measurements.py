r"""One number for each thing an integrator can claim.

Step sizes are given in a unit of time in which the motion is of order one: a coarse step, where a
law that holds only as $h \to 0$ fails visibly.
"""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.analysis.convergence import Convergence, convergence, rounding
from retrax.analysis.reversibility import reversibility
from retrax.analysis.symplecticity import symplecticity
from retrax.errors import CheckFailed
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.evaluate import Evaluated, evaluate_in_jax
from retrax.numerics.jax_hints import compile_once
from retrax.run.simulate import simulate
from retrax.trajectory.observe import deviations, drift

COARSE, COARSE_STEPS = 0.1, 2000
LONG, LONG_STEPS, LONG_SAVES = 0.05, 20_000, 2000
ONE_STEP = 0.2
BACK_STEPS = 100
ORDER_TIME, ORDER_STEP, ORDER_MAX_STEPS = 10, 1 / 8, 2**14
# Differences of this many rounding errors are clear of them and still as fine as can be.
ORDER_AIM = 300.0

_STEPS = 20
# Central differences of fourth order: with this step truncation and rounding are both near 1e-12.
_EPSILON = 1e-3
_STENCIL = ((-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12))


class Problem(NamedTuple):
    """A system, a state to start from, and the unit of time in which the motion is of order one.

    `spread` says by how much the motion multiplies rounding errors in ten units.
    """

    system: AbstractGroupSystem
    state: State
    unit: float = 1.0
    spread: float = 1.0


class Conservation(NamedTuple):
    """How a run kept to the group, and the momenta of its symmetries relative to their size.

    `spatial` is the part of symmetries of space, `momentum` that of all.
    """

    group: float
    momentum: float
    spatial: float


class UnderConstraint(NamedTuple):
    """How far velocities missed the constraint, and the energy its start, relative to size."""

    constraint: float
    energy: float


class Energy(NamedTuple):
    """The largest energy error of a long run, and the part of it that a straight line explains."""

    amplitude: float
    drift: float


def order(integrator: AbstractIntegrator, problem: Problem) -> Convergence:
    """Measure the order, at the finest steps for which truncation stands clear of rounding.

    A first look tells how large the differences are; the step is then chosen so that the finest
    difference will be `ORDER_AIM` rounding errors, or the run `ORDER_MAX_STEPS` steps. Errors that
    fall faster than claimed drown in rounding at that step; the step then follows from the order
    of the first look.
    """
    system, state, unit, spread = problem
    time, n = ORDER_TIME * unit, round(ORDER_TIME / ORDER_STEP)
    look = convergence(system, integrator, state, h=time / n, time=time, halvings=2)
    claimed = integrator.order_on(system)

    def refine(power: float) -> Convergence:
        first = n
        for _ in range(3):  # the rounding errors depend a little on the number of steps
            aim = ORDER_AIM * spread * rounding(state, 4 * first)
            finer = (look.differences[-1] / aim) ** (1 / power)
            first = min(max(n, round(n * finer)), ORDER_MAX_STEPS // 4)
        return convergence(system, integrator, state, h=time / first, time=time, halvings=2)

    try:
        return refine(float(claimed))
    except CheckFailed:
        if look.order < claimed + 0.5:
            raise
        return refine(look.order)


def conservation(integrator: AbstractIntegrator, problem: Problem) -> Conservation:
    """Measure group defect and momentum errors over 2,000 coarse steps."""
    seen = _observe(integrator, problem, COARSE, COARSE_STEPS, 1)
    momenta = np.asarray(seen.momenta)
    size = max(1.0, float(np.max(np.abs(problem.state.momentum))), float(np.max(np.abs(momenta))))
    errors = np.max(np.abs(momenta - momenta[0]), axis=0) / size
    of_space = errors[: 1 + len(problem.system.symmetries().space)]
    return Conservation(float(np.max(seen.defect)), float(np.max(errors)), float(np.max(of_space)))


def energy(integrator: AbstractIntegrator, problem: Problem, steps: int = LONG_STEPS) -> Energy:
    """Measure energy error, and drift times duration, over 20,000 steps by default."""
    seen = _observe(integrator, problem, LONG, steps, steps // LONG_SAVES)
    errors = deviations(np.asarray(seen.energy))
    t = np.linspace(0.0, 1.0, len(errors))  # of the whole run: the slope is the total drift
    return Energy(float(np.max(np.abs(errors))), drift(t, errors))


def constraint_errors(integrator: AbstractIntegrator, problem: Problem) -> UnderConstraint:
    """Measure constraint violation, from the momenta, and energy errors over 2,000 coarse steps."""
    seen = _observe(integrator, problem, COARSE, COARSE_STEPS, 1)
    pace = max(1.0, float(np.max(np.abs(seen.speed))))
    size = max(1.0, float(np.max(np.abs(seen.energy))), float(np.max(seen.kinetic)))
    error = float(np.max(np.abs(deviations(np.asarray(seen.energy)))))
    return UnderConstraint(float(np.max(seen.violation)) / pace, error / size)


def symplectic_defect(integrator: AbstractIntegrator, problem: Problem) -> float:
    """Measure the defect of the symplectic form in one very coarse step."""
    return symplecticity(
        problem.system, integrator, problem.state, h=ONE_STEP * problem.unit
    ) / max(1.0, float(np.max(np.abs(problem.state.momentum))))


def symmetry_defect(integrator: AbstractIntegrator, problem: Problem) -> float:
    """Measure the way missed after 100 coarse steps forward and back."""
    h = COARSE * problem.unit
    return reversibility(problem.system, integrator, problem.state, h=h, steps=BACK_STEPS)


class _Seen(NamedTuple):
    """What is looked at in every saved state."""

    energy: Float[Array, "..."]
    kinetic: Float[Array, "..."]
    momenta: Float[Array, "..."]
    defect: Float[Array, "..."]
    violation: Float[Array, "..."]
    speed: Float[Array, "..."]


def _observe(
    integrator: AbstractIntegrator, problem: Problem, h: float, steps: int, save_every: int
) -> _Seen:
    system, state, unit, _ = problem
    run = simulate(
        system, integrator, state, h=h * unit, steps=steps, save_every=save_every, progress=False
    )
    found = system.symmetries()
    return _look(system, found.space, found.body, run.states)


@Evaluated
def _look(system, space, body, states: State) -> _Seen:
    @partial(jax.vmap, in_axes=0)
    def look(state):
        group = system.group
        spatial = group.coAd(group.inverse(state.g), state.momentum)
        momenta = jnp.concatenate([jnp.zeros(1), space @ spatial, body @ state.momentum])
        xi = system.velocity_at(state)
        return _Seen(
            system.energy(state),
            jnp.abs(state.momentum @ xi) / 2,
            momenta,
            group.defect(state.g),
            system.constraint_violation(state),
            jnp.max(jnp.abs(xi)),
        )

    return look(states)


def roundoff(steps: int) -> float:
    r"""Return what a conserved quantity of size one may lose to rounding:
    $8\,\varepsilon\sqrt n$.
    """
    return 8 * float(np.finfo(np.float64).eps) * math.sqrt(steps)


class _Slopes(NamedTuple):
    value: Float[Array, ""]
    forward: Float[Array, ""]
    reverse: Float[Array, ""]


def derivative_error(
    integrator: AbstractIntegrator, system: AbstractGroupSystem, state: State, *, h: float
) -> float:
    r"""Measure the relative error of the derivatives of a run of 20 steps, the worse of both modes.

    Differentiated is a random combination $w\cdot(g, \mu)$ of the end, along a random direction in
    the initial velocity and in every parameter of the system, such as the inertia.
    """
    rng = np.random.default_rng(1)
    inside = {id(leaf) for leaf in jax.tree.leaves(system.group)}

    def direction(leaf):
        if id(leaf) in inside:  # a group is what it is
            return np.zeros_like(leaf)
        return 0.3 * np.max(np.abs(leaf), initial=0.0) * rng.standard_normal(np.shape(leaf))

    velocity = evaluate_in_jax(type(system).velocity_at, system, state)
    at = (system, velocity)
    along = jax.tree.map(direction, at)
    weights = jax.tree.map(lambda x: rng.standard_normal(np.shape(x)), (state.g, state.momentum))

    def slopes(shift: float) -> _Slopes:
        moved = jax.tree.map(lambda x, dx: x + shift * dx, at, along)
        return _slopes(moved, along, integrator, state, weights, jnp.asarray(h, jnp.float64))

    here = slopes(0.0)
    difference = sum(w * float(slopes(k * _EPSILON).value) for k, w in _STENCIL) / _EPSILON
    errors = (abs(float(here.forward) - difference), abs(float(here.reverse) - difference))
    return max(errors) / max(abs(difference), 1.0)


@compile_once
def _slopes(at, along, integrator, state: State, weights, h: Float[Array, ""]) -> _Slopes:
    def outcome(at):
        system, velocity = at
        start = State(state.g, system.at_time(state.t).momentum(state.g, velocity), state.t)
        end = simulate(system, integrator, start, h=h, steps=_STEPS, save_every=_STEPS).final
        parts = jax.tree.map(lambda w, x: jnp.sum(w * x), weights, (end.g, end.momentum))
        return sum(jax.tree.leaves(parts))

    value, forward = jax.jvp(outcome, (at,), (along,))
    gradient = jax.grad(outcome)(at)
    reverse = jax.tree.map(lambda g, dx: jnp.sum(g * dx), gradient, along)
    return _Slopes(value, forward, sum(jax.tree.leaves(reverse), jnp.zeros(())))

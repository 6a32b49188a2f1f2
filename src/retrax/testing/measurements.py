r"""One number for each thing an integrator can claim.

Step sizes are given in a unit of time in which the motion is of order one: a coarse step, where a
law that holds only as $h \to 0$ fails visibly.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from retrax.analysis.convergence import Convergence, convergence, rounding
from retrax.analysis.reversibility import reversibility
from retrax.analysis.symplecticity import symplecticity
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.reuse import Jitted
from retrax.run.simulate import simulate
from retrax.trajectory.observe import deviations, drift

COARSE, COARSE_STEPS = 0.1, 2000
LONG, LONG_STEPS, LONG_SAVES = 0.05, 20_000, 2000
ONE_STEP = 0.2
BACK_STEPS = 100
ORDER_TIME, ORDER_STEP, ORDER_MAX_STEPS = 10, 1 / 8, 2**14
# Differences of this many rounding errors are clear of them and still as fine as can be.
ORDER_AIM = 120.0


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


class Kept(NamedTuple):
    """How far velocities missed the constraint, and the energy its start, relative to size."""

    constraint: float
    energy: float


class Energy(NamedTuple):
    """The largest energy error of a long run, and the part of it that a straight line explains."""

    amplitude: float
    drift: float


def order(integrator: AbstractIntegrator, problem: Problem) -> Convergence:
    """The order, at the finest steps for which truncation stands clear of rounding.

    A first look tells how large the differences are; the step is then chosen so that the finest
    difference will be `ORDER_AIM` rounding errors, or the run `ORDER_MAX_STEPS` steps.
    """
    system, state, unit, spread = problem
    time, n = ORDER_TIME * unit, round(ORDER_TIME / ORDER_STEP)
    look = convergence(system, integrator, state, h=time / n, time=time, halvings=2)
    first = n
    for _ in range(3):  # the rounding errors depend a little on the number of steps
        aim = ORDER_AIM * spread * rounding(state, 4 * first)
        finer = (look.differences[-1] / aim) ** (1 / integrator.order_on(system))
        first = min(max(n, round(n * finer)), ORDER_MAX_STEPS // 4)
    return convergence(system, integrator, state, h=time / first, time=time, halvings=2)


def conservation(integrator: AbstractIntegrator, problem: Problem) -> Conservation:
    """Group defect and momentum errors over 2,000 coarse steps."""
    seen = _observed(integrator, problem, COARSE, COARSE_STEPS, 1)
    momenta = np.asarray(seen.momenta)
    size = max(1.0, float(np.max(np.abs(problem.state.momentum))), float(np.max(np.abs(momenta))))
    errors = np.max(np.abs(momenta - momenta[0]), axis=0) / size
    of_space = errors[: 1 + len(problem.system.symmetries().space)]
    return Conservation(float(np.max(seen.defect)), float(np.max(errors)), float(np.max(of_space)))


def energy(integrator: AbstractIntegrator, problem: Problem, steps: int = LONG_STEPS) -> Energy:
    """Energy error, and drift times duration, over 20,000 steps unless another number is given."""
    seen = _observed(integrator, problem, LONG, steps, steps // LONG_SAVES)
    errors = deviations(np.asarray(seen.energy))
    t = np.linspace(0.0, 1.0, len(errors))  # of the whole run: the slope is the total drift
    return Energy(float(np.max(np.abs(errors))), drift(t, errors))


def kept(integrator: AbstractIntegrator, problem: Problem) -> Kept:
    """Constraint violation, from the momenta, and energy errors over 2,000 coarse steps."""
    seen = _observed(integrator, problem, COARSE, COARSE_STEPS, 1)
    pace = max(1.0, float(np.max(np.abs(seen.speed))))
    size = max(1.0, float(np.max(np.abs(seen.energy))), float(np.max(seen.kinetic)))
    error = float(np.max(np.abs(deviations(np.asarray(seen.energy)))))
    return Kept(float(np.max(seen.violation)) / pace, error / size)


def symplectic_defect(integrator: AbstractIntegrator, problem: Problem) -> float:
    """The defect of the symplectic form in one very coarse step."""
    return symplecticity(
        problem.system, integrator, problem.state, h=ONE_STEP * problem.unit
    ) / max(1.0, float(np.max(np.abs(problem.state.momentum))))


def symmetry_defect(integrator: AbstractIntegrator, problem: Problem) -> float:
    """The way missed after 100 coarse steps forward and back."""
    h = COARSE * problem.unit
    return reversibility(problem.system, integrator, problem.state, h=h, steps=BACK_STEPS)


class _Seen(NamedTuple):
    energy: Any
    kinetic: Any
    momenta: Any
    defect: Any
    violation: Any
    speed: Any


def _observed(
    integrator: AbstractIntegrator, problem: Problem, h: float, steps: int, save_every: int
) -> _Seen:
    system, state, unit, _ = problem
    run = simulate(
        system, integrator, state, h=h * unit, steps=steps, save_every=save_every, progress=False
    )
    return _look(system, *map(jnp.asarray, system.symmetries()), run.states)


@Jitted
def _look(system, space, body, states: State) -> _Seen:
    @partial(jax.vmap, in_axes=0)
    def look(state):
        group = system.group
        spatial = group.coAd(group.inverse(state.g), state.momentum)
        momenta = jnp.concatenate([jnp.zeros(1), space @ spatial, body @ state.momentum])
        xi = system.velocity(state.g, state.momentum)
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
    r"""What a conserved quantity of size one may lose to rounding: $8\,\varepsilon\sqrt n$."""
    return 8 * float(np.finfo(np.float64).eps) * math.sqrt(steps)

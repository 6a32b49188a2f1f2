r"""One number for each thing an integrator can claim.

Step sizes are in the unit of time of the problem, in which its motion is of order one: coarse
steps, where a law that holds only as $h \to 0$ fails visibly.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from retrax.analysis.convergence import Convergence, convergence, rounding
from retrax.analysis.once import compiled_once
from retrax.analysis.reversibility import reversibility
from retrax.analysis.symplecticity import symplecticity
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import Symmetries
from retrax.mechanics.system import AbstractGroupSystem
from retrax.simulate.simulate import simulate
from retrax.trajectory.measure import deviations, drift

COARSE, COARSE_STEPS = 0.1, 2000
LONG, LONG_STEPS, LONG_SAVE = 0.05, 20_000, 10
ONE_STEP = 0.2
BACK_STEPS = 100
ORDER_TIME, ORDER_STEP, ORDER_MAX_STEPS = 10.0, 1 / 8, 2**14
# Differences of this many rounding errors are clear of them and still as fine as can be.
ORDER_AIM = 200.0


class Bench(NamedTuple):
    """A system under test, the state it starts from, its symmetries, and its unit of time."""

    system: AbstractGroupSystem
    state: State
    symmetries: Symmetries
    unit: float

    @property
    def size(self) -> float:
        """The largest number in the initial momentum, or 1 if that is smaller."""
        return max(1.0, float(np.max(np.abs(self.state.momentum))))


class Energy(NamedTuple):
    """The largest energy error of a long run, and the change that a straight line through it makes."""

    amplitude: float
    drift: float


def bench(system: AbstractGroupSystem, state: State, unit: float = 1.0) -> Bench:
    return Bench(system, state, system.symmetries(), unit)


def order(integrator: AbstractIntegrator, on: Bench) -> Convergence:
    """The order, at the finest steps for which truncation stands clear of rounding.

    A first look tells how large the differences are; the step is then chosen so that the finest
    difference will be `ORDER_AIM` rounding errors, or the finest run `ORDER_MAX_STEPS` steps.
    """
    claimed = integrator.order_on(on.system)
    time, coarsest = ORDER_TIME * on.unit, round(ORDER_TIME / ORDER_STEP)

    def refine(steps: int) -> Convergence:
        h = time / steps
        return convergence(on.system, integrator, on.state, h=h, time=time, halvings=2)

    seen = refine(coarsest).differences[-1]
    steps = coarsest
    for _ in range(3):  # the rounding errors depend a little on the number of steps
        finer = (seen / (ORDER_AIM * rounding(on.state, 4 * steps))) ** (1 / claimed)
        steps = min(max(coarsest, round(coarsest * finer)), ORDER_MAX_STEPS // 4)
    return refine(steps)


def group_defect(integrator: AbstractIntegrator, on: Bench) -> float:
    """The largest distance from the group in 2,000 coarse steps."""
    return float(np.max(_observed(integrator, on, COARSE, COARSE_STEPS, 1).defect))


def momentum_error(integrator: AbstractIntegrator, on: Bench) -> float:
    """The largest error of the momentum of a symmetry in 2,000 coarse steps, relative to its size."""
    momenta = np.asarray(_observed(integrator, on, COARSE, COARSE_STEPS, 1).momenta)
    size = max(on.size, float(np.max(np.abs(momenta[0]))))
    return float(np.max(np.abs(momenta - momenta[0]))) / size


def energy(integrator: AbstractIntegrator, on: Bench) -> Energy:
    """How the energy fares over 20,000 steps."""
    errors = deviations(_observed(integrator, on, LONG, LONG_STEPS, LONG_SAVE).energy)
    whole = np.linspace(0.0, 1.0, len(errors))  # the run as unit of time: slope is total change
    return Energy(float(np.max(np.abs(errors))), drift(whole, errors))


def symplectic_defect(integrator: AbstractIntegrator, on: Bench) -> float:
    """The defect of the symplectic form in one very coarse step, relative to the momentum."""
    return symplecticity(on.system, integrator, on.state, h=ONE_STEP * on.unit) / on.size


def symmetry_defect(integrator: AbstractIntegrator, on: Bench) -> float:
    """The way missed after 100 coarse steps forward and 100 back, relative to the momentum."""
    h = COARSE * on.unit
    return reversibility(on.system, integrator, on.state, h=h, steps=BACK_STEPS) / on.size


def roundoff(steps: int) -> float:
    r"""What rounding may do to a number of size one in a run: $20\,\varepsilon\sqrt n$."""
    return 20 * float(np.finfo(np.float64).eps) * math.sqrt(steps)


class _Seen(NamedTuple):
    energy: Any
    momenta: Any
    defect: Any


def _observed(
    integrator: AbstractIntegrator, on: Bench, h: float, steps: int, save_every: int
) -> _Seen:
    run = simulate(
        on.system,
        integrator,
        on.state,
        h=h * on.unit,
        steps=steps,
        save_every=save_every,
        progress=False,
    )
    return jax.tree.map(np.asarray, _look(on.system, *on.symmetries, run.states))


@compiled_once
def _look(system, space, body, states: State) -> _Seen:
    def look(state):
        group = system.group
        spatial = group.coAd(group.inverse(state.g), state.momentum)
        momenta = jnp.concatenate([space @ spatial, body @ state.momentum])
        return _Seen(system.energy(state), momenta, group.defect(state.g))

    return jax.vmap(look)(states)

"""Whether a step back undoes a step forward."""

import jax
import numpy as np

from retrax.analysis.convergence import distance
from retrax.engine.backends import make_loop
from retrax.engine.progress import start
from retrax.errors import StepFailed
from retrax.integrators.base import AbstractIntegrator, as_integrator
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import require_untraced
from retrax.numerics.evaluate import Evaluated
from retrax.run.checks import require_run, start_of


def reversibility(
    system: AbstractGroupSystem,
    integrator: AbstractIntegrator | str,
    state: State,
    *,
    h: float,
    steps: int = 1,
) -> float:
    r"""Return the distance of $\Phi_{-h}^{\,n}\circ\Phi_h^{\,n}$ of `state` from it, $n$ = `steps`.

    Round-off for a symmetric method, $\Phi_{-h} = \Phi_h^{-1}$, and of the size of the error for
    any other. Rounding errors grow with the motion's own sensitivity: keep $n$ moderate.

    **Raises:** `StepFailed` if a step, forward or back, fails.
    """
    require_untraced("reversibility", system, integrator, state, h)
    state = start_of(system, state)
    integrator = as_integrator(integrator)
    require_run(system, integrator, state, h, steps, 1)
    now, h, steps = jax.tree.map(np.asarray, state), float(h), int(steps)
    for size in (h, -h):
        loop = make_loop("auto", system, integrator, now, size)
        at, *_ = loop.run(start(now), 1, steps, 1)
        if at.failed:
            raise StepFailed(
                f"{integrator!r} on the {system.name}: one of {steps} steps of h = {size:g} "
                "failed; try a smaller h."
            )
        now = at.state
    return float(_distance(system.group, state, now))


_distance = Evaluated(distance)

"""Whether a step back undoes a step forward."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from retrax.analysis.distance import distance
from retrax.analysis.once import compiled_once
from retrax.errors import StepFailed
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem


def reversibility(
    system: AbstractGroupSystem,
    integrator: AbstractIntegrator,
    state: State,
    *,
    h: float,
    steps: int = 1,
) -> float:
    r"""The distance between `state` and $\Phi_{-h}^{\,n}\circ\Phi_h^{\,n}$ of it, $n$ = `steps`.

    Round-off for a symmetric method, $\Phi_{-h} = \Phi_h^{-1}$, and of the size of the error for
    any other. Rounding errors grow with the motion's own sensitivity: keep $n$ moderate.

    **Raises:** `StepFailed` where a step, forward or back, does not converge.
    """
    gap, converged = _there_and_back(
        system, integrator, state, jnp.asarray(h, jnp.float64), jnp.asarray(steps)
    )
    if not converged:
        raise StepFailed(
            f"{integrator!r} on the {system.name}: one of {steps} steps of h = {h:g} forward or back "
            "did not converge; try a smaller h."
        )
    return float(gap)


@compiled_once
def _there_and_back(
    system, integrator, state: State, h: Float[Array, ""], steps: Int[Array, ""]
) -> tuple[Float[Array, ""], Bool[Array, ""]]:
    def step(k, carry):
        now, converged = carry
        new, info = integrator.step(system, now, jnp.where(k < steps, h, -h))
        return new, converged & info.converged

    end, converged = lax.fori_loop(0, 2 * steps, step, (state, jnp.asarray(True)))
    return distance(system.group, state, end), converged

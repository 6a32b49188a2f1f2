"""The same run as a JAX program: what has no scalar program, and derivatives of derivatives."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PyTree

from retrax.derivatives.stretches import Schedule
from retrax.engine.backends.xla import run_differentiable
from retrax.engine.progress import Interval, start
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem


def run_by_xla(
    system: AbstractGroupSystem,
    integrator: AbstractIntegrator,
    state: State,
    h: Array,
    plan: Schedule,
) -> tuple[State, Interval, Bool[Array, " record"]]:
    """Saved states, their times those of the start, intervals, and whether a step has failed.

    From a step that fails on, all numbers are NaN, or -1 among whole numbers.
    """
    at = start(state, integrator.memory(system, state))
    parts = [jax.tree.map(lambda x: jnp.asarray(x)[None], (state, at.interval, at.failed))]
    for _, records, every in plan.pieces(0, plan.steps, plan.steps):
        at, *saved = run_differentiable(system, integrator, at, state.t, h, records, every)
        parts.append(tuple(saved))
    states, info, failed = jax.tree.map(lambda *xs: jnp.concatenate(xs), *parts)
    return _nan_where(failed, states), _nan_where(failed, info), failed


def _nan_where(failed: Bool[Array, " record"], tree: PyTree) -> PyTree:
    """NaN, or -1 among whole numbers, in the rows of arrays at which a run has failed."""

    def blank(x: Array) -> Array:
        lost = failed.reshape(-1, *[1] * (x.ndim - 1))
        nothing = jnp.nan if jnp.issubdtype(x.dtype, jnp.floating) else -1
        return jnp.where(lost, jnp.asarray(nothing, x.dtype), x)

    return jax.tree.map(blank, tree)

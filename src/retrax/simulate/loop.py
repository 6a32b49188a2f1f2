"""The time loop: one compiled program, no Python per step."""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from retrax.integrators.base import AbstractIntegrator, StepInfo
from retrax.trajectory.statistics import Interval


class Progress(NamedTuple):
    """Where the loop is: the last good state, and how a failed step went."""

    state: Any
    step: Int[Array, ""]
    failed: Array
    failure: StepInfo
    interval: Interval


def _quiet() -> Interval:
    return Interval(jnp.asarray(0), jnp.zeros(()), jnp.zeros(()))


def start(state: Any, step: int = 0) -> Progress:
    yes, zero = jnp.asarray(True), jnp.zeros(())
    no_failure = StepInfo(yes, zero, jnp.asarray(0), zero, yes)
    return Progress(state, jnp.asarray(step), jnp.asarray(False), no_failure, _quiet())


def _attempt(system, integrator, t0, h, at: Progress) -> Progress:
    """One step. A step that fails changes nothing but the record of the failure."""
    # Times are t0 + k h, never accumulated.
    now = eqx.tree_at(lambda s: s.t, at.state, t0 + at.step.astype(h.dtype) * h)
    new, info = integrator.step(system, now, h)
    new = eqx.tree_at(lambda s: s.t, new, t0 + (at.step + 1).astype(h.dtype) * h)
    finite = jnp.stack([jnp.all(jnp.isfinite(x)) for x in jax.tree.leaves(new)])
    good = info.converged & info.in_chart & jnp.all(finite) & ~at.failed
    first_failure = ~good & ~at.failed
    keep = partial(jax.tree.map, partial(jnp.where, good))
    interval = Interval(
        at.interval.iterations + info.iterations,
        jnp.maximum(at.interval.residual, info.residual),
        jnp.maximum(at.interval.increment, info.increment),
    )
    return Progress(
        state=keep(new, at.state),
        step=at.step + good.astype(at.step.dtype),
        failed=~good,
        failure=jax.tree.map(partial(jnp.where, first_failure), info, at.failure),
        interval=keep(interval, at.interval),
    )


@partial(jax.jit, static_argnames=("capacity",))
def run_records(
    system: Any,
    integrator: AbstractIntegrator,
    at: Progress,
    t0: Float[Array, ""],
    h: Float[Array, ""],
    records: Int[Array, ""],
    save_every: Int[Array, ""],
    capacity: int,
) -> tuple[Progress, Any, Interval, Int[Array, ""]]:
    """Run `records` times `save_every` steps, saving after each, until done or a step fails.

    Both counts are dynamic, so one compiled program serves every run of the same system and
    integrator, and every chunk of it. Returns the progress, buffers of `capacity` states and
    intervals, and how many of them are filled.
    """
    buffers = jax.tree.map(
        lambda x: jnp.zeros((capacity, *x.shape), x.dtype), (at.state, at.interval)
    )

    def unfinished(carry):
        at, _, filled = carry
        return (filled < records) & ~at.failed

    def record(carry):
        at, buffers, filled = carry
        end = at.step + save_every
        at = lax.while_loop(
            lambda at: (at.step < end) & ~at.failed,
            partial(_attempt, system, integrator, t0, h),
            at._replace(interval=_quiet()),
        )
        saved = jax.tree.map(lambda b, x: b.at[filled].set(x), buffers, (at.state, at.interval))
        return at, saved, filled + (~at.failed).astype(filled.dtype)

    at, (states, intervals), filled = lax.while_loop(
        unfinished, record, (at, buffers, jnp.asarray(0))
    )
    return at, states, intervals, filled


def run_differentiable(
    system: Any,
    integrator: AbstractIntegrator,
    at: Progress,
    t0: Float[Array, ""],
    h: Float[Array, ""],
    records: int,
    save_every: int,
) -> tuple[Progress, Any, Interval]:
    """The same loop with counts fixed at trace time, for values that JAX is transforming."""

    def attempt(at, _):
        return _attempt(system, integrator, t0, h, at), None

    def record(at, _):
        at, _ = lax.scan(attempt, at._replace(interval=_quiet()), None, length=save_every)
        return at, (at.state, at.interval)

    at, (states, intervals) = lax.scan(record, at, None, length=records)
    return at, states, intervals

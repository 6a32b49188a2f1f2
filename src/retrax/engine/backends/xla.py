"""The XLA back end: the time loop as one JAX program, differentiable where it has to be."""

import math
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from retrax.engine.progress import Interval, Progress, quiet
from retrax.engine.step_program import guarded_step, memory_of, step_identity
from retrax.integrators.base import AbstractIntegrator, Memory
from retrax.numerics.looks import looking
from retrax.numerics.reuse import Jitted


def _attempt(system, integrator, t0, h, at: Progress) -> Progress:
    """Attempt one step. A step that fails changes nothing but the record of the failure."""
    # Times are t0 + k h, never accumulated.
    now = eqx.tree_at(lambda s: s.t, at.state, t0 + at.step.astype(h.dtype) * h)
    new, info, finite, memory = guarded_step(system, integrator, now, h, at.memory)
    new = eqx.tree_at(lambda s: s.t, new, t0 + (at.step + 1).astype(h.dtype) * h)
    good = info.converged & info.in_chart & finite & ~at.failed
    first_failure = ~good & ~at.failed
    keep = partial(jax.tree.map, partial(jnp.where, good))
    interval = Interval(
        at.interval.iterations + info.iterations,
        jnp.maximum(at.interval.residual, info.residual),
        jnp.maximum(at.interval.increment, info.increment),
    )
    return Progress(
        state=keep(new, at.state),
        memory=keep(memory, at.memory),
        step=at.step + good.astype(at.step.dtype),
        failed=~good,
        failure=jax.tree.map(partial(jnp.where, first_failure), info, at.failure),
        interval=keep(interval, at.interval),
    )


class XLALoop:
    """The loop for one run, compiled when it is first used, of functions as they are now."""

    name = "xla"

    def __init__(self, system: Any, integrator: AbstractIntegrator, state: Any, h: float):
        self.identity = step_identity(system, integrator)
        self._run = partial(_run_records, system, integrator, t0=state.t, h=jnp.asarray(h))
        self.memory_like = memory_of(system, integrator, state)
        self._remembers = bool(jax.tree.leaves(self.memory_like))
        self._memory = partial(_memory, system, integrator)

    def with_step(self, t0: float, h: float | None = None) -> "XLALoop":
        """Return the loop with another time of step 0, and steps of another size."""
        other = object.__new__(XLALoop)
        vars(other).update(vars(self))
        size = {} if h is None else {"h": jnp.asarray(h)}
        other._run = partial(self._run, t0=jnp.asarray(t0), **size)
        return other

    def catch_up(
        self, before: Progress, after: Progress, states: Any, every: int, capacity: int
    ) -> Progress:
        """Return the progress before the step at which a loop has halted, as if it had not."""
        return after._replace(failed=before.failed, failure=before.failure)

    def compile(self, at: Progress, capacity: int) -> None:
        """Compile what is not compiled yet, by taking no steps."""
        self.run(at, 0, 1, capacity)

    def run(
        self, at: Progress, records: int, every: int, capacity: int, whole: bool = True
    ) -> tuple:
        """Return the progress after `records` times `every` steps, the states and intervals saved.

        A JAX program hears no signals: what comes back is always `whole`.
        """
        counts = {"records": jnp.asarray(records), "every": jnp.asarray(every)}
        with looking(self.identity.looks):
            if at.memory is None:
                at = at._replace(memory=self._memory(at.state) if self._remembers else ())
            at, states, intervals, filled = jax.block_until_ready(
                self._run(at, capacity=capacity, **counts)
            )
        n = int(filled)
        return at, *jax.tree.map(lambda x: np.asarray(x[:n]), (states, intervals))


@Jitted
def _memory(system: Any, integrator: AbstractIntegrator, state: Any) -> Memory:
    return integrator.memory(system, state)


@partial(Jitted, static_argnames=("capacity",))
def _run_records(
    system: Any,
    integrator: AbstractIntegrator,
    at: Progress,
    t0: Float[Array, ""],
    h: Float[Array, ""],
    records: Int[Array, ""],
    every: Int[Array, ""],
    capacity: int,
) -> tuple[Progress, Any, Interval, Int[Array, ""]]:
    """Run `records` times `every` steps, saving after each, until done or a step fails.

    Both counts are dynamic, so one compiled program serves every run of the same system and
    integrator, and every chunk of it. Returns the progress, buffers of `capacity` states and
    intervals, and how many of them are filled.
    """
    buffers = jax.tree.map(
        lambda x: jnp.zeros((capacity, *x.shape), x.dtype), (at.state, at.interval)
    )

    def is_unfinished(carry):
        at, _, filled = carry
        return (filled < records) & ~at.failed

    def record(carry):
        at, buffers, filled = carry
        end = at.step + every
        at = lax.while_loop(
            lambda at: (at.step < end) & ~at.failed,
            partial(_attempt, system, integrator, t0, h),
            at._replace(interval=quiet()),
        )
        saved = jax.tree.map(lambda b, x: b.at[filled].set(x), buffers, (at.state, at.interval))
        return at, saved, filled + (~at.failed).astype(filled.dtype)

    at, (states, intervals), filled = lax.while_loop(
        is_unfinished, record, (at, buffers, jnp.asarray(0))
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
) -> tuple[Progress, Any, Interval, Bool[Array, " records"]]:
    """Run the same loop with counts fixed at trace time, for values that JAX is transforming.

    A derivative in reverse needs the run backwards. Kept are the saved states and, between two of
    them, about the square root of their number of steps; everything else is computed again.

    Besides the states and statistics it returns of each record whether a step has failed by then.
    """

    def attempt(at, _):
        return _attempt(system, integrator, t0, h, at), None

    def steps(at, count: int):
        return lax.scan(attempt, at, None, length=count)[0]

    def record(at, _):
        block = math.isqrt(save_every)
        whole, rest = divmod(save_every, block)
        again = jax.checkpoint(lambda at, _: (steps(at, block), None))
        at, _ = lax.scan(again, at._replace(interval=quiet()), None, length=whole)
        at = steps(at, rest)
        return at, (at.state, at.interval, at.failed)

    at, (states, intervals, failed) = lax.scan(jax.checkpoint(record), at, None, length=records)
    return at, states, intervals, failed

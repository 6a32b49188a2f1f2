"""A run that JAX is transforming: native where it can be, and a JAX program where it cannot."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from retrax.derivatives.primitives import run
from retrax.derivatives.problem import Problem
from retrax.derivatives.stretches import Schedule
from retrax.derivatives.traced_numbers import take_out
from retrax.derivatives.xla_runs import run_by_xla
from retrax.engine.backends import require_backend
from retrax.engine.kinds import Unscalarisable
from retrax.engine.progress import Interval
from retrax.errors import BadInput
from retrax.trajectory.provenance import provenance
from retrax.trajectory.run import Run
from retrax.trajectory.trajectory import Trajectory


def simulate_traced(traced: Run, backend: str) -> Trajectory:
    """Return the trajectory of a run of which JAX is tracing some number.

    A failing step raises no exception: later numbers are NaN, and `failed` is true.
    """
    state, plan = traced.state, traced.plan
    h = jnp.asarray(plan.h, jnp.float64)
    schedule = Schedule(plan.steps, plan.save_every)
    found: Any
    chosen, found = "native", _natively(traced, schedule, require_backend(backend), h)
    if found is None:
        chosen, found = "xla", run_by_xla(traced.system, traced.integrator, state, h, schedule)
    states, info, failed = found
    times: Any = state.t + jnp.asarray(schedule.saved, jnp.float64) * h
    return Trajectory(
        t=times,
        states=eqx.tree_at(lambda s: s.t, states, times),
        info=info,
        h=plan.h,
        steps=plan.steps,
        completed=plan.steps,
        save_every=plan.save_every,
        seconds=0.0,
        compile_seconds=0.0,
        provenance=provenance(traced.system, traced.integrator, chosen),
        system=traced.system,
        integrator=traced.integrator,
        failed=failed,
    )


def _natively(traced: Run, schedule: Schedule, backend: str, h: jax.Array) -> Any:
    """Return states, intervals and failures; `None` where the run is left to XLA."""
    if backend == "gpu":
        raise BadInput(
            "backend = 'gpu' runs many bodies on a GPU; one body runs on 'native' or 'xla', "
            "and ensemble(...) runs many."
        )
    if backend == "xla" or (backend == "auto" and jax.default_backend() != "cpu"):
        return None
    state = traced.state
    taken = take_out(traced.system, traced.integrator, state)
    try:
        if taken is None:
            raise Unscalarisable("it holds a traced number where no other can be put")
        problem = Problem(taken.made_for, schedule)
    except Unscalarisable as reason:
        if backend == "native":
            what = f"{traced.integrator!r} on the {traced.system.name}"
            sentence = f"backend = 'native': {what} has no scalar program here: {reason}."
            raise BadInput(f"{sentence} Use backend='auto'.") from reason
        return None
    *leaves, iterations, residual, increment, failed = run(
        problem, [*map(jnp.asarray, taken.params), *jax.tree.leaves(state), h]
    )
    states = jax.tree.unflatten(problem.state.structure, [*leaves, state.t])
    return states, Interval(iterations, residual, increment), failed

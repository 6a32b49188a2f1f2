"""The same run as a JAX program: what has no scalar program, and derivatives of derivatives."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, PyTree

from retrax.derivatives.problem import Flags, Problem
from retrax.derivatives.stretches import Schedule
from retrax.engine.backends.xla import run_differentiable
from retrax.engine.progress import Interval, start
from retrax.errors import BadInput
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
    """Return saved states, their times those of the start, intervals, and whether a step failed.

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
    """Return NaN, or -1 among whole numbers, in the rows of arrays at which a run has failed."""

    def blank(x: Array) -> Array:
        lost = failed.reshape(-1, *[1] * (x.ndim - 1))
        nothing = jnp.nan if jnp.issubdtype(x.dtype, jnp.floating) else -1
        return jnp.where(lost, jnp.asarray(nothing, x.dtype), x)

    return jax.tree.map(blank, tree)


def outs_by_xla(problem: Problem) -> Callable[..., list[Array]]:
    """Return the run of one body as a function of its leaves: states, intervals and failures."""
    count = len(problem.params.shapes)

    def outs(*leaves: Array) -> list[Array]:
        system, integrator = problem.parts.of(leaves[:count])
        state = jax.tree.unflatten(problem.state.structure, leaves[count:-1])
        states, info, failed = run_by_xla(system, integrator, state, leaves[-1], problem.plan)
        return [*jax.tree.leaves(states)[:-1], *info, failed]

    return outs


def push_by_xla(problem: Problem, given: Flags) -> Callable[..., list[Array]]:
    """Return tangents of the saved states of one body, from leaves and tangents of those given."""

    def tangents(*arguments: Array) -> list[Array]:
        leaves, ways = arguments[: len(given)], iter(arguments[len(given) :])
        full = [next(ways) if g else still(x) for x, g in zip(leaves, given, strict=True)]
        moved = jax.jvp(outs_by_xla(problem), tuple(leaves), tuple(full))[1]
        return _states(moved, problem)

    return tangents


def pull_by_xla(problem: Problem, given: Flags) -> Callable[..., list[Array]]:
    """Pull back through one body: cotangents of given leaves, from leaves and those of states."""

    def cotangents(*arguments: Array) -> list[Array]:
        leaves, ends = arguments[: len(given)], arguments[len(given) :]

        def states(*chosen: Array) -> list[Array]:
            left = iter(chosen)
            full = [next(left) if g else x for x, g in zip(leaves, given, strict=True)]
            return _states(outs_by_xla(problem)(*full), problem)

        chosen = [x for x, g in zip(leaves, given, strict=True) if g]
        try:
            return list(jax.vjp(states, *chosen)[1](list(ends)))
        except ValueError as cause:
            if "while_loop" not in str(cause):
                raise
            raise BadInput(
                f"this run by {type(problem.parts.integrator).__name__} has no derivative in "
                "reverse (jax.grad, jax.vjp, jax.jacrev): it iterates as often as the numbers ask "
                "for. Differentiate forwards, with jax.jvp or jax.jacfwd."
            ) from cause

    return cotangents


def turn_by_xla(problem: Problem, given: Flags, moved: Flags) -> Callable[..., list[Array]]:
    """Return tangents of what a pull gives, from its leaves, cotangents and some tangents."""

    def tangents(*arguments: Array) -> list[Array]:
        count, split = len(moved), len(arguments) - sum(moved)
        leaves, ends, ways = arguments[:count], arguments[count:split], iter(arguments[split:])
        full = [next(ways) if m else still(x) for x, m in zip(leaves, moved, strict=True)]
        pull = pull_by_xla(problem, given)
        return jax.jvp(lambda *leaves: pull(*leaves, *ends), leaves, tuple(full))[1]

    return tangents


def still(x: Array) -> Any:
    """Return the tangent of what does not move."""
    if jnp.issubdtype(jax.typeof(x).dtype, jnp.floating):
        return jnp.zeros_like(x)
    return np.zeros(jax.typeof(x).shape, jax.dtypes.float0)


def _states(outs: Sequence[Array], problem: Problem) -> list[Array]:
    return list(outs[: len(problem.state.shapes) - 1])


def of_members(
    function: Callable[..., list[Array]], members: int | None, own: Flags
) -> Callable[..., list[Array]]:
    """Return the function itself, or mapped over members."""
    if members is None:
        return function
    return jax.vmap(function, in_axes=tuple(0 if o else None for o in own), axis_size=members)

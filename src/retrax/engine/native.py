"""The native back end: the whole time loop as machine code for this processor."""

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from retrax.engine.kernel import FAILURE, INTERVAL, Layout, assemble
from retrax.engine.live import live
from retrax.engine.program import Program
from retrax.engine.progress import Interval, Progress
from retrax.engine.scalarise import scalarise
from retrax.integrators.base import AbstractIntegrator, StepInfo


def step_program(system: Any, integrator: AbstractIntegrator, state: Any) -> tuple[Program, Layout]:
    """The scalar program of one step: parameters, state (its time last) and h, to state and info.

    Everything in the system and the integrator that is an array stays an input.
    """
    params, tree = jax.tree.flatten((system, integrator))

    def step(params, state, h):
        system, integrator = jax.tree.unflatten(tree, params)
        return integrator.step(system, state, h)

    program = live(scalarise(step, params, state, jnp.zeros(())))
    size = _size(state)
    return program, Layout(params=len(program.inputs) - size - 1, state=size)


class NativeLoop:
    """The loop for one run: compiled, or found compiled, when it is made."""

    name = "native"

    def __init__(self, system: Any, integrator: AbstractIntegrator, state: Any, h: float):
        self._kernel = _kernel(*_signature(system, integrator, state))
        self._params = _packed((system, integrator))
        self._tree = jax.tree.structure(state)
        self._shapes = [np.shape(leaf) for leaf in jax.tree.leaves(state)]
        self._h, self._t0 = h, float(state.t)

    def run(self, at: Progress, records: int, every: int, capacity: int) -> tuple:
        """The progress after `records` times `every` steps, the states and intervals saved."""
        state = _packed(at.state)
        out = np.empty((records, len(state)))
        interval = np.zeros((records, len(INTERVAL)))
        failure = np.full(len(FAILURE), np.nan)
        arrays = (self._params, state, out, interval, failure)
        filled = self._kernel.run(
            *(array.ctypes.data for array in arrays),
            self._h, self._t0, int(at.step), records, every, 1, 0, 1,
        )  # fmt: skip
        failed = not np.isnan(failure[0])
        step = int(failure[0]) if failed else int(at.step) + records * every
        state[-1] = self._t0 + step * self._h
        progress = Progress(
            state=jax.tree.map(lambda x: jnp.asarray(x[0]), self._unpacked(state[None])),
            step=jnp.asarray(step),
            failed=jnp.asarray(failed),
            failure=_step_info(failure) if failed else at.failure,
            interval=at.interval,
        )
        iterations, residual, increment = interval[:filled].T
        return (
            progress,
            self._unpacked(out[:filled]),
            Interval(iterations.astype(int), residual, increment),
        )

    def _unpacked(self, rows: np.ndarray) -> Any:
        ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes])
        leaves = [
            rows[:, end - int(np.prod(shape)) : end].reshape(len(rows), *shape)
            for end, shape in zip(ends, self._shapes, strict=True)
        ]
        return jax.tree.unflatten(self._tree, leaves)


def _size(tree: Any) -> int:
    return sum(int(np.prod(np.shape(leaf))) for leaf in jax.tree.leaves(tree))


def _packed(tree: Any) -> np.ndarray:
    """All numbers of a pytree in one row."""
    leaves = [np.asarray(leaf, dtype=float).ravel() for leaf in jax.tree.leaves(tree)]
    return np.concatenate([*leaves, np.zeros(0)])


def _step_info(failure: np.ndarray) -> StepInfo:
    _, converged, residual, iterations, increment, in_chart = failure
    return StepInfo(
        jnp.asarray(bool(converged)),
        jnp.asarray(residual),
        jnp.asarray(int(iterations)),
        jnp.asarray(increment),
        jnp.asarray(bool(in_chart)),
    )


def _signature(system: Any, integrator: AbstractIntegrator, state: Any) -> tuple:
    """What a kernel depends on: structure and shapes, not the numbers in the arrays."""
    leaves, tree = jax.tree.flatten((system, integrator, state))
    return tree, tuple((jnp.shape(x), jnp.result_type(x)) for x in leaves)


@lru_cache(maxsize=256)
def _kernel(tree: Any, avals: tuple) -> Any:
    from retrax.engine.compiled import Compiled

    leaves = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in avals]
    system, integrator, state = jax.tree.unflatten(tree, leaves)
    return Compiled(assemble(*step_program(system, integrator, state), lanes=1))

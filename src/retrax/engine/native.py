"""The native back end: the whole time loop as machine code for this processor."""

from itertools import accumulate
from typing import Any

import numpy as np

from retrax.engine.kernel import assemble
from retrax.engine.layout import FAILURE, INTERVAL
from retrax.engine.packing import Packing
from retrax.engine.progress import Interval, Progress
from retrax.engine.step_program import signature, step_program
from retrax.integrators.base import AbstractIntegrator, StepInfo
from retrax.numerics.reuse import Reused


class NativeLoop:
    """The loop for one run: compiled, or found compiled, when it is made."""

    name = "native"

    def __init__(self, system: Any, integrator: AbstractIntegrator, state: Any, h: float):
        self._kernel = single_kernel(*signature(system, integrator, state))
        self._params = Packing.rows((system, integrator))
        self._params_at = self._params.ctypes.data
        self._packing = Packing(state)
        self._h, self._t0 = h, float(state.t)

    def compile(self, at: Progress, capacity: int) -> None:
        """Nothing is left to compile."""

    def run(self, at: Progress, records: int, every: int, capacity: int) -> tuple:
        """The progress after `records` times `every` steps, the states and intervals saved."""
        size = self._packing.size
        sizes = (size, records * size, records * len(INTERVAL), len(FAILURE))
        # One piece of memory for all: to look up an address costs more than a step.
        memory = np.empty(sum(sizes))
        ends = list(accumulate(sizes))
        state, failure = memory[:size], memory[ends[2] :]
        out = memory[size : ends[1]].reshape(records, size)
        interval = memory[ends[1] : ends[2]].reshape(records, len(INTERVAL))
        state[:] = self._packing.rows(at.state)[:, 0]
        state[-1], failure[:] = self._t0, np.nan
        first = memory.ctypes.data
        places = [first + memory.itemsize * start for start in (0, *ends[:-1])]
        filled = self._kernel.run(
            self._params_at, *places, self._h, int(at.step), records, every, 1, 0, 1
        )
        failed: Any = ~np.isnan(failure[0])
        step: Any = np.int64(failure[0] if failed else int(at.step) + records * every)
        state[-1] = self._t0 + step * self._h
        progress = Progress(
            state=self._packing.unpack_one(state),
            step=step,
            failed=failed,
            failure=_step_info(failure) if failed else at.failure,
            interval=at.interval,
        )
        iterations, residual, increment = interval[:filled].T
        return (
            progress,
            self._packing.unpack_one(out[:filled]),
            Interval(iterations.astype(int), residual, increment),
        )


def _step_info(failure: np.ndarray) -> StepInfo:
    types = (np.bool_, np.float64, np.int64, np.float64, np.bool_)
    numbers: list[Any] = [kind(x) for kind, x in zip(types, failure[1:], strict=True)]
    return StepInfo(*numbers)


@Reused
def single_kernel(*made_for: Any) -> Any:
    """The machine code for one body."""
    from retrax.engine.compiled import compiled

    return compiled(assemble(*step_program(*made_for), lanes=1, shared=True))

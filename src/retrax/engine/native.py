"""The native back end: the whole time loop as machine code for this processor."""

from functools import lru_cache
from typing import Any

import numpy as np

from retrax.engine.kernel import FAILURE, INTERVAL, assemble
from retrax.engine.packing import Packing
from retrax.engine.progress import Interval, Progress
from retrax.engine.step_program import signature, step_program
from retrax.integrators.base import AbstractIntegrator, StepInfo


class NativeLoop:
    """The loop for one run: compiled, or found compiled, when it is made."""

    name = "native"

    def __init__(self, system: Any, integrator: AbstractIntegrator, state: Any, h: float):
        self._kernel = _kernel(*signature(system, integrator, state))
        self._params = Packing.rows((system, integrator))
        self._packing = Packing(state)
        self._h, self._t0 = h, float(state.t)

    def compile(self, at: Progress, capacity: int) -> None:
        """Nothing is left to compile."""

    def run(self, at: Progress, records: int, every: int, capacity: int) -> tuple:
        """The progress after `records` times `every` steps, the states and intervals saved."""
        state = self._packing.rows(at.state)
        state[-1] = self._t0
        out = np.empty((records, len(state), 1))
        interval = np.zeros((records, len(INTERVAL)))
        failure = np.full(len(FAILURE), np.nan)
        arrays = (self._params, state, out, interval, failure)
        filled = self._kernel.run(
            *(array.ctypes.data for array in arrays),
            self._h, int(at.step), records, every, 1, 0, 1,
        )  # fmt: skip
        failed = not np.isnan(failure[0])
        step = int(failure[0]) if failed else int(at.step) + records * every
        state[-1] = self._t0 + step * self._h
        progress = Progress(
            state=self._packing.unpack_one(state[:, 0]),
            step=np.int64(step),
            failed=np.bool_(failed),
            failure=_step_info(failure) if failed else at.failure,
            interval=at.interval,
        )
        iterations, residual, increment = interval[:filled].T
        return (
            progress,
            self._packing.unpack_one(out[:filled, :, 0]),
            Interval(iterations.astype(int), residual, increment),
        )


def _step_info(failure: np.ndarray) -> StepInfo:
    _, converged, residual, iterations, increment, in_chart = failure
    return StepInfo(
        np.bool_(converged), residual, np.int64(iterations), increment, np.bool_(in_chart)
    )


@lru_cache(maxsize=256)
def _kernel(*made_for: Any) -> Any:
    from retrax.engine.compiled import Compiled

    return Compiled(assemble(*step_program(*made_for), lanes=1, shared=True))

"""The native back end: the whole time loop as machine code for this processor."""

import signal
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from retrax.engine.backends.signals import NEVER, interruptibly
from retrax.engine.llvm.kernel import assemble
from retrax.engine.progress import FAILURE, INTERVAL, Interval, Packing, Progress
from retrax.engine.step_program import signature, step_program
from retrax.integrators.base import AbstractIntegrator, StepInfo
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.reuse import Reused


class NativeLoop:
    """The loop for one run: compiled, or found compiled, when it is made."""

    name = "native"

    def __init__(
        self, system: AbstractGroupSystem, integrator: AbstractIntegrator, state: State, h: float
    ):
        made_for = signature(system, integrator, state)
        self.identity = made_for.identity
        self._kernel = single_kernel(*made_for)
        self._params = Packing.rows((system, integrator))
        self._params_at = self._params.ctypes.data
        self._packing = Packing(state)
        self._h, self._t0 = h, float(state.t)

    def compile(self, at: Progress, capacity: int) -> None:
        """Nothing is left to compile."""

    def run(
        self, at: Progress, records: int, every: int, capacity: int, whole: bool = True
    ) -> tuple:
        """The progress after `records` times `every` steps, the states and intervals saved.

        Python's handlers of Ctrl-C and the like run within a step's time and may raise. Where they
        do not, the rest is run, or, unless it must be `whole`, what there is comes back. A kernel
        that remembers numbers from step to step begins a chunk anew then, as every run does.
        """
        filled, heard, memory = self._call(at, records, every)
        if heard:
            signal.raise_signal(heard)
            if whole:
                filled, heard, memory = self._call(at, records, every, deaf=True)
        size = self._packing.size
        ends = list(accumulate((size, records * size, records * len(INTERVAL))))
        state, failure = memory[:size], memory[ends[2] :]
        out = memory[size : ends[1]].reshape(records, size)
        interval = memory[ends[1] : ends[2]].reshape(records, len(INTERVAL))
        if heard:
            filled = 0 if self._kernel.remembers else filled
            failure[:] = np.nan
            state[:] = out[filled - 1] if filled else self._packing.rows(at.state)[:, 0]
        taken = filled if heard else records
        failed: Any = ~np.isnan(failure[0])
        step: Any = np.int64(failure[0] if failed else int(at.step) + taken * every)
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

    def _call(
        self, at: Progress, records: int, every: int, deaf: bool = False
    ) -> tuple[int, int, np.ndarray]:
        """Records filled, the signal that ended it or 0, and state, records, intervals, failure."""
        size = self._packing.size
        sizes = (size, records * size, records * len(INTERVAL), len(FAILURE))
        # One piece of memory for all: to look up an address costs more than a step.
        memory = np.empty(sum(sizes))
        ends = list(accumulate(sizes))
        state, failure = memory[:size], memory[ends[2] :]
        state[:] = self._packing.rows(at.state)[:, 0]
        state[-1], failure[:] = self._t0, np.nan
        first = memory.ctypes.data
        places = [first + memory.itemsize * start for start in (0, *ends[:-1])]
        run = self._kernel.run
        given = (self._params_at, *places, self._h, int(at.step), records, every, 1, 0, 1)
        filled, heard = (run(*given, NEVER.address), 0) if deaf else interruptibly(run, *given)
        return filled, heard, memory


def _step_info(failure: np.ndarray) -> StepInfo:
    types = (np.bool_, np.float64, np.int64, np.float64, np.bool_)
    numbers: list[Any] = [kind(x) for kind, x in zip(types, failure[1:], strict=True)]
    return StepInfo(*numbers)


class Kernel(NamedTuple):
    """Machine code, and whether it remembers numbers from one step to the next."""

    run: Any
    remembers: bool
    code: Any  # holds the memory of `run`


@Reused
def single_kernel(*made_for: Any) -> Kernel:
    """The machine code for one body."""
    from retrax.engine.llvm.machine_code import compiled

    program, layout = step_program(*made_for)
    code = compiled(assemble(program, layout, lanes=1, shared=True))
    return Kernel(code.run, program.memory is not None, code)

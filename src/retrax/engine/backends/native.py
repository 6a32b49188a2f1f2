"""The native back end: the whole time loop as machine code for this processor."""

import signal
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import jax
import numpy as np

from retrax.engine.backends.signals import NEVER, interruptibly
from retrax.engine.backends.team import Team, cores, team_for
from retrax.engine.llvm.kernel import assemble
from retrax.engine.llvm.team_kernel import assemble_team
from retrax.engine.progress import FAILURE, INTERVAL, Interval, Packing, Progress, quiet
from retrax.engine.step_program import Structure, signature, step_program
from retrax.integrators.base import AbstractIntegrator, StepInfo
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.reuse import Reused, Signature


class NativeLoop:
    """The loop for one run: compiled, or found compiled, when it is made."""

    name = "native"

    def __init__(
        self,
        system: AbstractGroupSystem,
        integrator: AbstractIntegrator,
        state: State,
        h: float,
        made_for: Signature | None = None,
    ):
        made_for = made_for or signature(system, integrator, state)
        self.structure: Structure = made_for.tree
        self.identity = self.structure.content.fingerprint()
        self._kernel = loop_kernel(*made_for, cores())
        self._params = Packing.rows((system, integrator, self.structure.numbers))
        self._params_at = self._params.ctypes.data
        self._packing = Packing(state)
        self._h, self._t0 = h, float(state.t)

    def compile(self, at: Progress, capacity: int) -> None:
        """Do nothing: nothing is left to compile."""

    def run(
        self, at: Progress, records: int, every: int, capacity: int, whole: bool = True
    ) -> tuple:
        """Return the progress after `records` times `every` steps, the states and intervals saved.

        Python's handlers of Ctrl-C and the like run within a step's time and may raise. Where they
        do not, the rest is run, or, unless it must be `whole`, what there is comes back.
        """
        filled, heard, parts = self._call(at, records, every)
        if heard:
            signal.raise_signal(heard)
            if whole:
                filled, heard, parts = self._call(at, records, every, deaf=True)
        state, memory, out, interval, failure = parts
        out = out.reshape(records, self._packing.size)
        interval = interval.reshape(records, len(INTERVAL))
        if heard:
            failure[:] = np.nan
            state[:] = out[filled - 1] if filled else self._packing.rows(at.state)[:, 0]
        taken = filled if heard else records
        failed: Any = ~np.isnan(failure[0])
        step: Any = np.int64(failure[0] if failed else int(at.step) + taken * every)
        state[-1] = self._t0 + step * self._h
        progress = Progress(
            state=self._packing.unpack_one(state),
            memory=self._kernel.memory.unpack_one(memory),
            step=step,
            failed=failed,
            failure=step_info_of(failure) if failed else at.failure,
            interval=at.interval,
        )
        iterations, residual, increment = interval[:filled].T
        return (
            progress,
            self._packing.unpack_one(out[:filled]),
            Interval(iterations.astype(int), residual, increment),
        )

    def catch_up(
        self, before: Progress, after: Progress, states: Any, every: int, capacity: int
    ) -> Progress:
        """Return the progress before the step at which a loop has halted, as if it had not.

        A kernel that halts leaves the memory of the last saved state: what came after that is done
        again.
        """
        filled = len(states.t)
        last: Any = np.int64(int(before.step) + filled * every)
        state = jax.tree.map(lambda x: x[-1], states) if filled else before.state
        at = before._replace(state=state, memory=after.memory, step=last, interval=quiet())
        left = int(after.step) - int(last)
        if not left:
            return at
        at, _, passed = self.run(at, 1, left, capacity)
        return at._replace(interval=jax.tree.map(lambda x: x[0], passed))

    def records(
        self,
        start: np.ndarray,
        h: float,
        records: int,
        every: int,
        rest: int,
        changed: Sequence[np.ndarray] = (),
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Take `records` times `every` steps from the start and, unless 0, `rest` more, as rows.

        These are the numbers of each saved state, the start first, and what happened since the row
        before. `None` where a step failed or a signal was heard: then `run` tells more.

        **Arguments:** `start`: the numbers of a state; `changed`: the parameters, if they differ
        from those that the loop was made with.
        """
        size, rows = len(start), records + 1 + (rest > 0)
        state = self._params.size if changed else 0
        memory = state + size
        failure = memory + self._kernel.memory.size
        since = failure + len(FAILURE)
        out = since + rows * len(INTERVAL)
        whole = np.empty(out + rows * size)
        whole[state:memory] = whole[out : out + size] = start
        whole[since : since + len(INTERVAL)] = 0.0
        whole[failure] = np.nan
        if changed:
            np.concatenate(changed, out=whole[:state])
        # Faster than `whole.ctypes.data`, and to look up an address costs more than a step.
        first = whole.__array_interface__["data"][0]
        params_at = first if changed else self._params_at
        taken, row = 0, 1
        for count, length in ((records, every), (1, rest)):
            if count == 0 or length == 0:
                continue
            whole[memory - 1] = start[-1]  # times count from the start
            _, heard = interruptibly(
                self._kernel.run,
                params_at,
                first + 8 * state,
                first + 8 * memory,
                first + 8 * (out + row * size),
                first + 8 * (since + row * len(INTERVAL)),
                first + 8 * failure,
                *(h, taken, count, length, 1, taken == 0, 0, 1),
            )
            if heard:
                signal.raise_signal(heard)
            if heard or whole[failure] == whole[failure]:
                return None
            taken, row = taken + count * length, row + count
        intervals = whole[since:out].reshape(rows, len(INTERVAL))
        return whole[out:].reshape(rows, size), intervals

    def _call(
        self, at: Progress, records: int, every: int, deaf: bool = False
    ) -> tuple[int, int, list[np.ndarray]]:
        """Return records filled, the signal that ended it or 0, and what the kernel left behind.

        These are state, memory, records, intervals and failure.
        """
        size, carried = self._packing.size, self._kernel.memory.size
        sizes = (size, carried, records * size, records * len(INTERVAL), len(FAILURE))
        # One piece of memory for all: to look up an address costs more than a step.
        whole = np.empty(sum(sizes))
        ends = list(accumulate(sizes))
        parts = [whole[end - n : end] for end, n in zip(ends, sizes, strict=True)]
        state, memory, *_, failure = parts
        state[:] = self._packing.rows(at.state)[:, 0]
        state[-1], failure[:] = self._t0, np.nan
        if carried and at.memory is not None:
            memory[:] = self._packing.rows(at.memory)[:, 0]
        first = whole.ctypes.data
        places = [first + whole.itemsize * start for start in (0, *ends[:-1])]
        run = self._kernel.run
        opens = int(at.memory is None)
        given = (self._params_at, *places, self._h, int(at.step), records, every, 1, opens, 0, 1)
        filled, heard = (run(*given, NEVER.address), 0) if deaf else interruptibly(run, *given)
        return filled, heard, parts


def step_info_of(failure: np.ndarray) -> StepInfo:
    """Return how a step failed, from the numbers that a kernel leaves."""
    types = (np.bool_, np.float64, np.int64, np.float64, np.bool_)
    numbers: list[Any] = [kind(x) for kind, x in zip(types, failure[1:], strict=True)]
    return StepInfo(*numbers)


class Kernel(NamedTuple):
    """Machine code, and the layout of what it hands from one step to the next."""

    run: Any
    memory: Packing
    code: Any  # holds the memory of `run`


@Reused
def single_kernel(*made_for: Any) -> Kernel:
    """Return the machine code for one body."""
    from retrax.engine.llvm.machine_code import compile_code

    program, layout = step_program(*made_for)
    code = compile_code(assemble(program, layout, lanes=1, shared=True))
    return Kernel(code.run, layout.memory, code)


@Reused
def loop_kernel(tree: Any, avals: tuple, identity: Any, cores: int) -> Kernel:
    """Return the machine code for one body that may use several cores."""
    from retrax.engine.llvm.machine_code import compile_code

    program, layout = step_program(tree, avals, identity)
    threads, seconds = team_for(program, cores)
    if threads == 1:
        return single_kernel(tree, avals, identity)
    assembly, scratch = assemble_team(program, layout)
    code = compile_code(assembly)
    return Kernel(Team(code.address("work"), scratch, threads, seconds), layout.memory, code)

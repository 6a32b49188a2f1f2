"""Steps that are asked for a few at a time, and the memory for what they pass.

To hand fifteen arguments to machine code costs Python more than a step takes. So they lie in a
table; a call changes those that differ, and hands over one address.
"""

import ctypes
import signal
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

import equinox as eqx
import numpy as np

from retrax.engine.backends.members import spread
from retrax.engine.backends.native import Kernel
from retrax.engine.backends.signals import NEVER, Flag, interruptibly
from retrax.engine.backends.team import Team, cores
from retrax.engine.backends.xla import XLALoop
from retrax.engine.progress import FAILURE, INTERVAL, Packing
from retrax.engine.progress import start as begun
from retrax.mechanics.state import State

# The places of the table that calls change; the address of the kernel comes first.
_OUT, _INTERVAL, _H, _START, _EVERY, _OPEN = 4, 5, 7, 8, 10, 12
_ENTRIES = 16
# So many steps pass, of all blocks together, before Ctrl-C is heard.
_DEAF = 1000

_CALL = """
define i64 @call(ptr %table) {
  %kernel = load ptr, ptr %table
LOADS
  %filled = call i64 %kernel(ARGUMENTS)
  ret i64 %filled
}
"""


class Stepping:
    """Bodies that machine code takes on from where they stand, a few steps at a time.

    **Arguments:** `kernel`; `params`: rows of parameters; `start`: rows of the states, a column for
    each body, as many as `lanes` divides; `h`.

    **Attributes:** `state`: the rows where the bodies stand, with the time of step 0 in the last
    one: inputs are written there; `taken`: the steps behind it; `failure`: as a kernel leaves it.
    """

    name = "native"

    def __init__(
        self, kernel: Kernel, params: np.ndarray, start: np.ndarray, h: float, lanes: int = 1
    ):
        self._kernel, self._params, self._h = kernel, np.ascontiguousarray(params), h
        self.state = np.array(start, order="C")
        columns = self.state.shape[1]
        self._memory = np.empty((kernel.memory.size, columns))
        self.failure = np.full((len(FAILURE), columns), np.nan)
        self._failed_at = (ctypes.c_double * columns).from_buffer(self.failure)
        self._bodies, self._blocks = columns, columns // lanes
        self._table = (ctypes.c_int64 * _ENTRIES)()
        self._address = ctypes.c_void_p(ctypes.addressof(self._table))
        self._size = ctypes.c_double.from_buffer(self._table, 8 * _H)
        self._size.value = h
        arrays = (self._params, self.state, self._memory)
        self._fixed = tuple(x.ctypes.data for x in arrays), self.failure.ctypes.data
        sizes = (0, 1, 1, columns, 1, 0, self._blocks)
        code = 0 if isinstance(kernel.run, Team) else ctypes.cast(kernel.run, ctypes.c_void_p).value
        entries = (code, *self._fixed[0], 0, 0, self._fixed[1], None, *sizes, NEVER.address)
        for place, entry in enumerate(entries):
            if entry is not None:
                self._table[place] = entry
        self._call, self._caller = _call()
        self.taken = 0

    def begin(self, start: np.ndarray) -> None:
        """Stand at other states, before the first step."""
        self.state[...] = start
        self.failure[...] = np.nan
        self.taken, self._table[_OPEN] = 0, 1

    def go(self, out: int, interval: int, steps: int) -> bool:
        """Take steps; write the rows there are then to the addresses `out` and `interval`.

        Return whether no body has failed. One that has stands where its last good step ended.
        """
        table = self._table
        if steps * self._blocks > _DEAF or not table[0]:
            self._go_far(out, interval, steps)
        else:
            table[_OUT], table[_INTERVAL] = out, interval
            table[_START], table[_EVERY] = self.taken, steps
            self._call(self._address)
        table[_OPEN] = 0
        failed = self._failed_at
        if self._bodies == 1 and failed[0] == failed[0]:
            self.taken, table[_OPEN] = int(failed[0]), 1
            return False
        self.taken += steps
        return self._bodies == 1 or bool(np.isnan(self.failure[0]).all())

    def _go_far(self, out: int, interval: int, steps: int) -> None:
        """Take many steps, in several threads; where Ctrl-C ends them, nothing has moved."""
        before, memory, failure = self.state.copy(), self._memory.copy(), self.failure.copy()
        pointers = (*self._fixed[0], out, interval, self._fixed[1])
        sizes = (self.taken, 1, steps, self._bodies, self._table[_OPEN])

        def restore() -> None:
            self.state[...], self._memory[...], self.failure[...] = before, memory, failure

        if self._blocks == 1:
            run = (self._kernel.run, *pointers, self._h, *sizes, 0, 1)
            _, heard = interruptibly(*run)
            if heard:
                restore()
                signal.raise_signal(heard)
                run[0](*run[1:], NEVER.address)
            return
        group = -(-self._blocks // cores())

        def work(first: int, stop: Flag) -> None:
            last = min(first + group, self._blocks)
            self._kernel.run(*pointers, self._h, *sizes, first, last, stop.address)

        try:
            spread(work, range(0, self._blocks, group), cores())
        except BaseException:
            restore()
            raise

    def forget(self) -> None:
        """Let bodies that have failed take steps again."""
        self.failure[...] = np.nan

    def take(
        self,
        start: np.ndarray,
        h: float,
        steps: int = 1,
        *,
        taken: int = 0,
        memory: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Take steps of any size from the numbers of any state, and of a memory, of one body.

        Step 0 was at the last number of `start`, and `taken` steps lie behind. Return the numbers
        and the memory after them, copied; `None` where a step fails.
        """
        self.begin(start[:, None])
        if memory is not None:
            self._memory[:, 0] = memory
            self._table[_OPEN] = 0
        self.taken, self._h, self._size.value = taken, h, h
        out, interval = np.empty(len(start)), np.empty(len(INTERVAL))
        good = self.go(out.ctypes.data, interval.ctypes.data, steps)
        return (out, self._memory[:, 0].copy()) if good else None


class XLASteps:
    """One body whose steps have no scalar program: what `Stepping` does, on XLA."""

    name = "xla"

    def __init__(self, loop: XLALoop, start: State):
        self._loop, self._packing = loop, Packing(start)
        self._memory = Packing(loop.memory_like)
        self.state = self._packing.rows(start)
        self.failure = np.full((len(FAILURE), 1), np.nan)
        self.begin(self.state)

    def begin(self, start: np.ndarray) -> None:
        self.state[...] = start
        self._at = begun(self._packing.unpack_one(self.state[:, 0], copy=True))
        self._loop = self._loop.with_step(start[-1, 0])
        self.taken = 0
        self.forget()

    def go(self, out: int, interval: int, steps: int) -> bool:
        here = eqx.tree_at(
            lambda s: s.t, self._packing.unpack_one(self.state[:, 0]), self._at.state.t
        )
        at, _, passed = self._loop.run(self._at._replace(state=here), 1, steps, 1)
        self.taken = int(at.step)
        if bool(at.failed):
            self.failure[:, 0] = [self.taken, *map(float, at.failure)]
            at = at._replace(failed=np.bool_(False), memory=None)
        self._at = at
        row = self._packing.rows(at.state)[:, 0]
        self.state[:-1, 0] = row[:-1]
        since = np.zeros(len(INTERVAL)) if bool(np.isfinite(self.failure[0, 0])) else passed
        for place, numbers in ((out, row), (interval, np.ravel(np.array(since, float)))):
            ctypes.memmove(place, numbers.ctypes.data, numbers.nbytes)
        return not np.isfinite(self.failure[0, 0])

    def forget(self) -> None:
        self.failure[...] = np.nan

    def take(
        self,
        start: np.ndarray,
        h: float,
        steps: int = 1,
        *,
        taken: int = 0,
        memory: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray] | None:
        here = begun(self._packing.unpack_one(start, copy=True))
        if memory is not None:
            here = here._replace(memory=self._memory.unpack_one(memory, copy=True))
        here = here._replace(step=np.int64(taken))
        at, *_ = self._loop.with_step(start[-1], h).run(here, 1, steps, 1)
        if bool(at.failed):
            return None
        return self._packing.rows(at.state)[:, 0], self._memory.rows(at.memory)[:, 0]


class OneByOne:
    """Bodies that step one after the other: large ones, and those without a scalar program."""

    def __init__(self, bodies: Sequence["Steps"]):
        self._bodies, self.name = list(bodies), bodies[0].name
        self.state, self.failure = (
            np.concatenate([getattr(body, name) for body in bodies], axis=1)
            for name in ("state", "failure")
        )
        self.taken = 0

    def begin(self, start: np.ndarray) -> None:
        self.state[...], self.taken = start, 0
        for k, body in enumerate(self._bodies):
            body.begin(start[:, k : k + 1])
        self.forget()

    def go(self, out: int, interval: int, steps: int) -> bool:
        rows, columns = self.state.shape
        for k, body in enumerate(self._bodies):
            if np.isfinite(self.failure[0, k]):
                continue
            body.state[:, 0] = self.state[:, k]
            row, passed = np.empty(rows), np.empty(len(INTERVAL))
            body.go(row.ctypes.data, passed.ctypes.data, steps)
            self.state[:-1, k], self.failure[:, k] = body.state[:-1, 0], body.failure[:, 0]
            for place, numbers in ((out, row), (interval, passed)):
                here = (ctypes.c_double * (len(numbers) * columns)).from_address(place)
                np.frombuffer(here)[k::columns] = numbers
        self.taken += steps
        return not np.isfinite(self.failure[0]).any()

    def forget(self) -> None:
        self.failure[...] = np.nan
        for body in self._bodies:
            body.forget()


Steps: TypeAlias = Stepping | XLASteps | OneByOne
# Of one body.
Single: TypeAlias = Stepping | XLASteps


class Rows:
    """Memory for what passes: the rows at the end of every call, in blocks that grow.

    Those who look at the rows cannot write to them; rows are never copied.
    """

    _FIRST, _MOST_BYTES = 64, 2**22

    def __init__(self, size: int, columns: int, keep: bool):
        self._shapes, self._keep = ((size, columns), (len(INTERVAL), columns)), keep
        self._most = max(1, self._MOST_BYTES // (8 * size * columns))
        self.clear()

    def clear(self) -> None:
        """Forget all rows. Whoever still looks at some of them keeps their block alive."""
        self._full: list[list[np.ndarray]] = []
        self._length, self._used = min(self._FIRST, self._most), 0
        self._open()
        self.first = self._shown[0]

    def _open(self) -> None:
        self._blocks = [np.empty((self._length, *shape)) for shape in self._shapes]
        (numbers, passed), self._shown = self._blocks, self._blocks[0].view()
        self._shown.flags.writeable = False
        self._at, self._sizes = numbers.ctypes.data, numbers.strides[0]
        self._passed_at, self._passed_sizes = passed.ctypes.data, passed.strides[0]

    def next(self) -> tuple[int, int]:
        """Return the addresses of the next row: numbers, and what happened since the last one."""
        if self._used == self._length:
            if self._keep:
                self._full.append(self._blocks)
            self._length, self._used = min(2 * self._length, self._most), 0
            self._open()
        k = self._used
        return self._at + k * self._sizes, self._passed_at + k * self._passed_sizes

    def add(self) -> np.ndarray:
        """Count the row whose addresses `next` gave, and return its numbers."""
        k = self._used
        self._used = k + 1
        return self._shown[k]

    def write(self, numbers: np.ndarray, passed: np.ndarray | float) -> None:
        """Write to the row whose addresses `next` gave."""
        for block, new in zip(self._blocks, (numbers, passed), strict=True):
            block[self._used] = new

    def blank(self, columns: np.ndarray) -> None:
        """Make the numbers of some bodies NaN in the row whose addresses `next` gave."""
        for block in self._blocks:
            block[self._used][:, columns] = np.nan

    def all(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all rows that are kept, and what happened between them: copies."""
        parts = [*self._full, [block[: self._used] for block in self._blocks]]
        numbers, passed = zip(*parts, strict=True)
        return np.concatenate(numbers), np.concatenate(passed)


@cache
def _call() -> tuple[Callable[[ctypes.c_void_p], int], Any]:
    """Return the function that calls a kernel with the arguments of a table, and what holds it."""
    from retrax.engine.llvm.machine_code import Compiled

    kinds = ["ptr"] * 6 + ["double"] + ["i64"] * 7 + ["ptr"]
    loads = []
    for k, kind in enumerate(kinds, 1):
        loads.append(f"  %place{k} = getelementptr i64, ptr %table, i64 {k}")
        loads.append(f"  %a{k} = load {kind}, ptr %place{k}")
    arguments = ", ".join(f"{kind} %a{k}" for k, kind in enumerate(kinds, 1))
    code = Compiled(_CALL.replace("LOADS", "\n".join(loads)).replace("ARGUMENTS", arguments))
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(code.address("call")), code

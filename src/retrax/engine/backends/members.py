"""Many bodies at once: what the back ends of `ensemble` have in common, and the native one.

Rows are numbers and columns are members, so that neighbours in memory are neighbours in the vector
units. A back end holds where its members are; `run` takes them on and writes down what it passes.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import numpy as np

from retrax.engine.backends.signals import Flag
from retrax.engine.backends.team import cores
from retrax.engine.llvm.host import lanes
from retrax.engine.progress import FAILURE

# Blocks are handed to threads in groups, large enough that handing over costs nothing.
_GROUPS_PER_THREAD = 8


class Members(ABC):
    """Members on their way. `failure` has a column of NaN for a member that has not failed.

    `at_once` is how many steps, of all members together, may be asked for in one call of `run`.
    """

    name: ClassVar[str]
    at_once: ClassVar[float] = 2e8
    columns: int

    @property
    @abstractmethod
    def failure(self) -> np.ndarray:
        """The first step of each member that failed, and how it went."""

    @abstractmethod
    def write_start(self, saved: np.ndarray) -> None:
        """Write the states before the first step to `saved` [row, column]."""

    @abstractmethod
    def compile(self, saved: np.ndarray, interval: np.ndarray) -> None:
        """Compile what `run` needs for records like these, which may be written to."""

    @abstractmethod
    def run(self, saved: np.ndarray, interval: np.ndarray, every: int) -> Iterator[int]:
        """Take `every` steps for each record in `saved` [record, row, column], and fill it.

        Yields how many steps have been taken since it last did.
        """

    def room(self, records: int, rows: int) -> np.ndarray:
        """Allocate `rows` numbers of each member in each record, on the host."""
        return np.empty((records, rows, self.columns))


def pad(rows: np.ndarray, columns: int) -> np.ndarray:
    """Return the rows with the last column repeated until there are `columns`."""
    members = rows.shape[1]
    if members == columns:
        return np.ascontiguousarray(rows)
    wide = np.empty((len(rows), columns))
    wide[:, :members], wide[:, members:] = rows, rows[:, -1:]
    return wide


class NativeMembers(Members):
    """Blocks of members in the lanes of vector registers, spread over the processor's cores."""

    name = "native"

    def __init__(
        self,
        kernel: Any,
        params: np.ndarray,
        state: np.ndarray,
        h: float,
        shared: bool,
        threads: int | None = None,
    ):
        self._threads = threads or cores()
        self.blocks = -(-state.shape[1] // lanes())
        self.columns = self.blocks * lanes()
        self._kernel, self._h, self._step = kernel, h, 0
        self._params = np.ascontiguousarray(params) if shared else pad(params, self.columns)
        self._state = pad(state, self.columns)
        self._memory = np.empty((kernel.memory.size, self.columns))
        self._failure = np.full((len(FAILURE), self.columns), np.nan)

    @property
    def failure(self) -> np.ndarray:
        return self._failure

    def write_start(self, saved: np.ndarray) -> None:
        saved[...] = self._state

    def compile(self, saved: np.ndarray, interval: np.ndarray) -> None:
        """Do nothing: nothing is left to compile."""

    def run(self, saved: np.ndarray, interval: np.ndarray, every: int) -> Iterator[int]:
        arrays = (self._params, self._state, self._memory, saved, interval, self._failure)
        pointers = [x.ctypes.data for x in arrays]
        opens = int(self._step == 0)
        group = max(1, self.blocks // (self._threads * _GROUPS_PER_THREAD))

        def work(first: int, stop: Flag) -> None:
            last = min(first + group, self.blocks)
            sizes = (len(saved), every, self.columns, opens)
            self._kernel.run(*pointers, self._h, self._step, *sizes, first, last, stop.address)

        spread(work, range(0, self.blocks, group), self._threads)
        self._step += len(saved) * every
        yield len(saved) * every


class LargeMembers(Members):
    """Members with a kept axis: each fills the vector units by itself, and has a thread to itself.

    The memory of a member is in one piece, so what it saves is copied to its column.
    """

    name = "native"

    def __init__(
        self,
        kernel: Any,
        params: np.ndarray,
        state: np.ndarray,
        h: float,
        threads: int | None = None,
    ):
        self._threads = threads or cores()
        self.columns = state.shape[1]
        self._kernel, self._h, self._step = kernel, h, 0
        self._params, self._state = (np.ascontiguousarray(x.T) for x in (params, state))
        self._memory = np.empty((self.columns, kernel.memory.size))
        self._failure = np.full((self.columns, len(FAILURE)), np.nan)

    @property
    def failure(self) -> np.ndarray:
        return self._failure.T

    def write_start(self, saved: np.ndarray) -> None:
        saved[...] = self._state.T

    def compile(self, saved: np.ndarray, interval: np.ndarray) -> None:
        """Do nothing: nothing is left to compile."""

    def run(self, saved: np.ndarray, interval: np.ndarray, every: int) -> Iterator[int]:
        def work(member: int, stop: Flag) -> None:
            params = self._params[min(member, len(self._params) - 1)]
            out = np.empty(saved.shape[:2])
            passed = np.zeros(interval.shape[:2])
            own = (self._state[member], self._memory[member], out, passed, self._failure[member])
            pointers = [x.ctypes.data for x in (params, *own)]
            sizes = (len(saved), every, 1, int(self._step == 0))
            self._kernel.run(*pointers, self._h, self._step, *sizes, 0, 1, stop.address)
            saved[..., member], interval[..., member] = out, passed

        spread(work, range(self.columns), self._threads)
        self._step += len(saved) * every
        yield len(saved) * every


def spread(work: Callable[[int, Flag], None], items: range, threads: int) -> None:
    """Work on all items. This thread waits and hears signals; where one ends it, all end."""
    stop = Flag()
    with ThreadPoolExecutor(min(threads, len(items))) as pool:
        try:
            list(pool.map(lambda item: work(item, stop), items))
        except BaseException:
            stop.raise_it()
            pool.shutdown(wait=True, cancel_futures=True)
            raise

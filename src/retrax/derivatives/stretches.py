r"""Runs of a block of bodies forwards and backwards, in memory that grows like the square root.

A derivative in reverse needs the states of a run from the last one to the first. A stretch of steps
that is short has all of them in memory. A longer one is cut: forwards the state at the start of
each piece is kept, with what its steps remember; then piece by piece, from the end, it is run again
by the same machine code, which gives the same bits, and pulled back.
"""

import math
import signal
from typing import Any, NamedTuple

import numpy as np

from retrax.engine.backends.native import Kernel
from retrax.engine.backends.signals import interruptibly
from retrax.engine.progress import FAILURE, INTERVAL

# A stretch of so many bytes of states is short.
_SHORT = 2**22
# So many bytes of states stay near the processor.
_CACHED = 2**20
# From so many steps on pieces are cut again.
_LONG = 10**8


class Schedule(NamedTuple):
    """A run of `steps` steps of which the start, every `every`-th state and the last are saved."""

    steps: int
    every: int

    @property
    def saved(self) -> np.ndarray:
        """The number of steps behind each saved state."""
        return np.minimum(np.arange(0, self.steps + self.every, self.every), self.steps)

    def pieces(self, first: int, last: int, most: int) -> list[tuple[int, int, int]]:
        """Return pieces (start, records, steps of each) of the steps from `first` to `last`.

        A piece has at most `most` steps, or as many as lie between two saved states.
        """
        found, step = [], first
        while step < last:
            whole = (last - step) // self.every
            if step % self.every == 0 and self.every <= most and whole:
                records, length = min(max(1, most // self.every), whole), self.every
            else:
                records = 1
                length = min(most, self.every - step % self.every, last - step)
            found.append((step, records, length))
            step += records * length
        return found

    def row(self, step: int) -> int | None:
        """Return the row of the saved state that lies at the end of `step` steps."""
        if step % self.every and step != self.steps:
            return None
        return -(-step // self.every)


def is_short(steps: int, numbers: int) -> bool:
    """Return whether all states of `steps` steps are kept, each of `numbers` numbers."""
    return 8 * steps * numbers <= _SHORT


def piece_length(steps: int, numbers: int) -> int:
    """Return the length of the pieces of a long stretch, for states of `numbers` numbers.

    The square root of its length, or as many steps as the cache of a processor holds.
    """
    root = round(steps ** (2 / 3)) if steps >= _LONG else math.isqrt(steps)
    return max(1, root, min(steps // 2, _CACHED // (8 * numbers)))


class Block:
    """Bodies side by side, their parameters and step, and the kernel that moves them.

    Arrays are rows of numbers with a column for each body; the kernel takes `lanes` at a time.
    """

    def __init__(self, kernel: Kernel, params: np.ndarray, start: np.ndarray, h: float, lanes: int):
        self.kernel, self.params, self.start, self.h = kernel, params, start, h
        self.size, self.columns = start.shape
        self.parts = self.columns // lanes
        self.remembered = kernel.memory.size

    def go(self, at: "At", records: int, every: int, out: np.ndarray, since: np.ndarray) -> "At":
        """Take `records` times `every` steps, and fill `out` and `since` with what is saved."""
        state, memory = at.state.copy(), at.memory.copy()
        state[-1] = self.start[-1]
        arrays = (self.params, state, memory, out, since, at.failure)
        call(
            self.kernel,
            arrays,
            (self.h, at.step, records, every, self.columns, int(at.step == 0), 0, self.parts),
        )
        return At(at.step + records * every, state, memory, at.failure)

    def begin(self) -> "At":
        """Return the point before the first step."""
        failure = np.full((len(FAILURE), self.columns), np.nan)
        return At(0, self.start, np.zeros((self.remembered, self.columns)), failure)

    def rows(self, count: int, width: int | None = None) -> np.ndarray:
        """Allocate rows of numbers."""
        return np.empty((count, self.size if width is None else width, self.columns))


class At(NamedTuple):
    """Where a block is: steps behind it, its state, what the last step remembers, failures."""

    step: int
    state: np.ndarray
    memory: np.ndarray
    failure: np.ndarray


def call(kernel: Kernel, arrays: tuple[np.ndarray, ...], numbers: tuple[Any, ...]) -> None:
    """Call machine code; a signal that ends it is raised."""
    pointers = [x.__array_interface__["data"][0] for x in arrays]
    _, heard = interruptibly(kernel.run, *pointers, *numbers)
    if heard:
        signal.raise_signal(heard)
        raise KeyboardInterrupt


class Ran(NamedTuple):
    """Saved states and intervals, the first step that failed (or NaN), and what was kept.

    What is kept is the start of every piece, or all states but the last.
    """

    states: np.ndarray
    intervals: np.ndarray
    failed_at: np.ndarray
    kept: np.ndarray


def run(block: Block, plan: Schedule) -> Ran:
    """Take all steps, and keep nothing but what is saved."""
    states, since = _allocate(block, plan)
    at = block.begin()
    for first, records, every in plan.pieces(0, plan.steps, plan.steps):
        row = -(-first // plan.every) + 1
        here = slice(row, row + records)
        at = block.go(at, records, every, states[here], since[here])
    return Ran(states, since, at.failure[0], block.rows(0))


def run_densely(block: Block, plan: Schedule) -> Ran:
    """Take all steps, and keep all states."""
    every = block.rows(plan.steps + 1)
    since = block.rows(plan.steps, len(INTERVAL))
    every[0] = block.start
    at = block.go(block.begin(), plan.steps, 1, every[1:], since)
    if plan.every == 1:
        nothing = np.zeros((1, *since.shape[1:]))
        return Ran(every, np.concatenate([nothing, since]), at.failure[0], every[:-1])
    states, intervals = _allocate(block, plan)
    states[:] = every[plan.saved]
    firsts = plan.saved[:-1]
    intervals[1:, 0] = np.add.reduceat(since[:, 0], firsts)
    intervals[1:, 1:] = np.maximum.reduceat(since[:, 1:], firsts)
    return Ran(states, intervals, at.failure[0], every[:-1])


def run_sparsely(block: Block, plan: Schedule, most: int) -> Ran:
    """Take all steps, and keep the start of each piece of at most `most` steps."""
    states, since = _allocate(block, plan)
    since[:] = 0.0
    at, kept = block.begin(), []
    for first, records, every in plan.pieces(0, plan.steps, most):
        kept.append(np.concatenate([at.state, at.memory]))
        row = plan.row(first + every)
        out = block.rows(1) if row is None else states[row : row + records]
        passed = block.rows(records, len(INTERVAL))
        at = block.go(at, records, every, out, passed)
        # The parts of a record together are what happened in it.
        record = -(-(first + every) // plan.every)
        whole = since[record : record + records]
        whole[:, 0] += passed[:, 0]
        np.maximum(whole[:, 1:], passed[:, 1:], out=whole[:, 1:])
    return Ran(states, since, at.failure[0], np.stack(kept))


def _allocate(block: Block, plan: Schedule) -> tuple[np.ndarray, np.ndarray]:
    """Allocate what is saved, with the start in it."""
    count = len(plan.saved)
    states, since = block.rows(count), block.rows(count, len(INTERVAL))
    states[0], since[0] = block.start, 0.0
    return states, since


class Pullback:
    """Goes back over a run with cotangents.

    **Arguments:** `block`: as it runs forwards; `kernel`: of the pullback; `plan`: what was saved;
    `cotangents`: of each saved state but the start, without its time; `carried`: how many numbers
    are carried.
    """

    def __init__(
        self, block: Block, kernel: Kernel, plan: Schedule, cotangents: np.ndarray, carried: int
    ):
        self.block, self.kernel, self.plan, self.cotangents = block, kernel, plan, cotangents
        self.carried = np.zeros((carried + 1, block.columns))
        self.carried[-1] = block.start[-1]
        self.failed = np.zeros(block.columns, bool)
        self._nothing = np.zeros((1, block.size - 1, block.columns))

    def through(self, kept: np.ndarray | None) -> np.ndarray:
        """Return the cotangents of the start, and the sums, from what a run kept, if anything."""
        block, steps = self.block, self.plan.steps
        if kept is None:
            self._stretch(block.begin(), steps)
        elif np.isnan(kept[0, 0]).any():  # the mark of a run that has failed
            self.failed[:] = True
        elif len(kept) == steps:
            self._dense(0, steps, kept)
        else:
            pieces = self.plan.pieces(0, steps, piece_length(steps, block.size * block.columns))
            self._pieces(pieces, [self._at(*two) for two in zip(pieces, kept, strict=True)])
        self.carried[:, self.failed] = np.nan
        return self.carried[:-1]

    def _at(self, piece: tuple[int, int, int], kept: np.ndarray) -> At:
        start = self.block.begin()
        size = self.block.size
        return At(piece[0], kept[:size], kept[size:], start.failure)

    def _stretch(self, at: At, last: int) -> None:
        """Pull back all steps from `at` to `last`."""
        block, count = self.block, last - at.step
        if is_short(count, block.size * block.columns) or count <= 2:
            states = block.rows(count + 1)
            states[0] = at.state
            since = block.rows(count, len(INTERVAL))
            self.failed |= ~np.isnan(block.go(at, count, 1, states[1:], since).failure[0])
            self._dense(at.step, last, states)
            return
        pieces = self.plan.pieces(at.step, last, piece_length(count, block.size * block.columns))
        starts = [at]
        for _, records, every in pieces[:-1]:
            out, since = block.rows(records), block.rows(records, len(INTERVAL))
            starts.append(block.go(starts[-1], records, every, out, since))
        self._pieces(pieces, starts)

    def _pieces(self, pieces: list[tuple[int, int, int]], starts: list[At]) -> None:
        for (first, records, every), at in reversed(list(zip(pieces, starts, strict=True))):
            self._stretch(at, first + records * every)

    def _dense(self, first: int, last: int, states: np.ndarray) -> None:
        """Pull back steps of which all states are in memory."""
        plan, block = self.plan, self.block
        for start, records, every in reversed(plan.pieces(first, last, last - first)):
            row = plan.row(start + every)
            added = self._nothing if row is None else self.cotangents[row - 1 : row - 1 + records]
            points = states[start - first :]
            call(
                self.kernel,
                (block.params, self.carried, points, added, added, added),
                (block.h, start, records, every, block.columns, 0, 0, block.parts),
            )

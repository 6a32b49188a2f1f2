"""Runs and their derivatives on the host: arrays in, arrays out, machine code between.

With members every array that differs from one to the next has them along its first axis, and so
have all results. Members lie in the lanes of vector registers, block by block, and blocks are
shared out to threads; where they differ in the step, or are large, each is a block by itself.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from retrax.derivatives.kernels import Shape, is_large, pull_kernel, push_kernel, step_kernel
from retrax.derivatives.problem import Problem
from retrax.derivatives.stretches import (
    Block,
    Pullback,
    Ran,
    Schedule,
    is_short,
    piece_length,
    run,
    run_densely,
    run_sparsely,
)
from retrax.engine.backends.members import lanes, spread
from retrax.engine.backends.native import Kernel
from retrax.engine.backends.team import cores
from retrax.engine.derivative_programs import Wanted
from retrax.engine.progress import INTERVAL, Packing

# So many bytes of states stay near a core.
_CACHED = 2**20


class Leaf(NamedTuple):
    """An array, and whether its first axis is that of members."""

    array: np.ndarray
    own: bool


class Numbers:
    """The numbers of one run or of many: parameters, start, step.

    **Arguments:** `leaves`: of parameters, of the state, and the step; `members`: how many there
    are, `None` for a single run.
    """

    def __init__(self, problem: Problem, leaves: Sequence[Leaf], members: int | None):
        self.problem, self.members = problem, members
        self.count = members or 1
        split = len(problem.params.shapes)
        self.params, self.shared = self.shareable(leaves[:split])
        self.start = self.columns(leaves[split:-1])
        self.h = leaves[-1]
        self.alone = self.count == 1 or self.h.own or is_large(problem.made_for)

    def columns(self, leaves: Sequence[Leaf]) -> np.ndarray:
        """Return rows of numbers with a column for each member."""
        return _rows(leaves, self.count)

    def shareable(self, leaves: Sequence[Leaf]) -> tuple[np.ndarray, bool]:
        """Return rows, with a single column where all members agree, and whether they do."""
        shared = not any(leaf.own for leaf in leaves)
        return _rows(leaves, 1 if shared else self.count), shared

    def shape(self, shared: bool) -> Shape:
        """Return the layout of members in memory."""
        return Shape(1, True) if self.alone else Shape(lanes(), shared)

    def each(self, work: Callable[["Cut"], None]) -> None:
        """Call `work` for each block of members."""
        width = 1 if self.alone else lanes() * self._together()
        blocks = range(0, self.count, width)
        if len(blocks) == 1:
            work(Cut(self, 0, width))
        else:
            spread(lambda first, stop: work(Cut(self, first, width)), blocks, cores())

    def _together(self) -> int:
        """Return how many vectors of members a thread takes at once, their states in its cache."""
        vectors = -(-self.count // lanes())
        bytes_of_one = 8 * self.problem.state.size * self.problem.plan.steps * lanes()
        return max(1, min(_CACHED // bytes_of_one, vectors // (2 * cores())))

    def leaves(self, packing: Packing, rows: np.ndarray) -> list[np.ndarray]:
        """Turn rows (..., numbers, members) into leaves (members, ...)."""
        first = np.ascontiguousarray(self.first_axis(rows))
        return [
            first[..., start:stop].reshape(first.shape[:-1] + tuple(shape))
            for shape, start, stop in packing.slots
        ]

    def first_axis(self, rows: np.ndarray) -> np.ndarray:
        """Move the axis of members to the front, or leave it out for a single run."""
        return rows[..., 0] if self.members is None else np.moveaxis(rows, -1, 0)


def _rows(leaves: Sequence[Leaf], count: int) -> np.ndarray:
    parts = []
    for leaf in leaves:
        flat = np.asarray(leaf.array, float).reshape(count if leaf.own else 1, -1).T
        parts.append(np.broadcast_to(flat, (len(flat), count)))
    return np.concatenate(parts) if parts else np.empty((0, count))


class Cut:
    """A block of members among all: which they are, and their part of rows of numbers."""

    def __init__(self, numbers: Numbers, first: int, width: int):
        last = min(first + width, numbers.count)
        self.here, self.inner = slice(first, last), slice(0, last - first)
        self._chosen = np.minimum(np.arange(first, first + width), numbers.count - 1)
        h = numbers.h
        self.h = float(h.array[first] if h.own else h.array)
        self.lanes = 1 if numbers.alone else lanes()

    def block(self, kernel: Kernel, params: np.ndarray, start: np.ndarray, shared: bool) -> Block:
        """Return the bodies of this block, ready to run."""
        return Block(kernel, self.of(params, shared), self.of(start), self.h, self.lanes)

    def of(self, rows: np.ndarray, shared: bool = False) -> np.ndarray:
        """Return the columns of this block, the last one repeated where members do not fill it."""
        if shared or rows.shape[-1] == 1:
            return np.ascontiguousarray(rows)
        return np.ascontiguousarray(rows[..., self._chosen])


def forward(numbers: Numbers, keeps: bool) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the saved leaves of the state but its time, intervals and failures; and what is kept.

    Of members nothing is kept: they are run again.
    """
    problem, plan = numbers.problem, numbers.problem.plan
    kernel = step_kernel(problem.made_for, numbers.shape(numbers.shared))
    states, since, failed_at = _room(numbers, problem.state.size)
    kept: list[np.ndarray] = []

    def work(cut: Cut) -> None:
        block = cut.block(kernel, numbers.params, numbers.start, numbers.shared)
        ran = _ran(block, plan, keeps)
        states[..., cut.here] = ran.states[..., cut.inner]
        since[..., cut.here] = ran.intervals[..., cut.inner]
        failed_at[cut.here] = ran.failed_at[cut.inner]
        kept.append(ran.kept)

    numbers.each(work)
    failed = plan.saved[:, None] > failed_at
    states[np.broadcast_to(failed[:, None], states.shape)] = np.nan
    iterations = np.where(failed, -1, since[:, 0]).astype(np.int64)
    residual, increment = (np.where(failed, np.nan, since[:, k]) for k in (1, 2))
    info = [numbers.first_axis(x) for x in (iterations, residual, increment, failed)]
    rows = kept[0][..., 0] if keeps else np.empty((0, 0))
    if keeps and failed.any():
        rows = np.full_like(rows, np.nan)
    return [*numbers.leaves(problem.state, states)[:-1], *info], rows


def _ran(block: Block, plan: Schedule, keeps: bool) -> Ran:
    if not keeps:
        return run(block, plan)
    if is_short(plan.steps, block.size):
        return run_densely(block, plan)
    return run_sparsely(block, plan, piece_length(plan.steps, block.size))


def _room(numbers: Numbers, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Allocate saved rows, intervals, and the first steps that failed."""
    records, count = len(numbers.problem.plan.saved), numbers.count
    sizes = (records, size, count), (records, len(INTERVAL), count), (count,)
    return np.empty(sizes[0]), np.empty(sizes[1]), np.empty(sizes[2])


def push(numbers: Numbers, tangents: Sequence[Leaf | None]) -> list[np.ndarray]:
    """Return tangents of the saved leaves of the state but its time.

    **Arguments:** `tangents`: of the leaves of `numbers`, `None` for what does not move. All leaves
    of the state have one.
    """
    problem, plan = numbers.problem, numbers.problem.plan
    wanted, chosen, moving = _of_parts(problem, tangents)
    dots, alike = numbers.shareable([leaf for leaf in chosen if leaf is not None])
    shared = numbers.shared and alike
    params = np.concatenate(
        [
            np.broadcast_to(x, (len(x), 1 if shared else numbers.count))
            for x in (numbers.params, dots)
        ]
    )
    # g, momentum, their tangents, that of time, time
    ways = numbers.columns([leaf for leaf in moving if leaf is not None])
    state = np.concatenate([numbers.start[:-1], ways, numbers.start[-1:]])
    kernel = push_kernel(*problem.made_for, wanted, numbers.shape(shared))
    size = problem.state.size
    moved, _, failed_at = _room(numbers, size)

    def work(cut: Cut) -> None:
        ran = run(cut.block(kernel, params, state, shared), plan)
        moved[..., cut.here] = ran.states[:, size - 1 : -1, cut.inner]
        failed_at[cut.here] = ran.failed_at[cut.inner]

    numbers.each(work)
    failed = plan.saved[:, None] > failed_at
    moved[np.broadcast_to(failed[:, None], moved.shape)] = np.nan
    return numbers.leaves(problem.state, moved)[:-1]


def _of_parts(
    problem: Problem, leaves: Sequence[Leaf | None]
) -> tuple[Wanted, Sequence[Leaf | None], Sequence[Leaf | None]]:
    """Return what is wanted, its leaves, and those of the state."""
    split = len(problem.params.shapes)
    wanted = Wanted(tuple(x is not None for x in leaves[:split]), leaves[-1] is not None)
    return wanted, wanted.of(leaves[:split], leaves[-1]), leaves[split:-1]


def pull(
    numbers: Numbers, wanted: Wanted, cotangents: Sequence[Leaf], kept: np.ndarray | None
) -> list[np.ndarray]:
    """Pull back to what is wanted among parameters and step, and to all leaves of the state.

    **Arguments:** `cotangents`: of the saved leaves of the state but its time; `kept`: what a
    single run has kept.
    """
    problem, plan = numbers.problem, numbers.problem.plan
    forwards = step_kernel(problem.made_for, numbers.shape(numbers.shared))
    backwards = pull_kernel(*problem.made_for, wanted, numbers.shape(numbers.shared))
    given = _records(numbers, cotangents)
    sums = Packing(wanted.of([np.zeros(s) for s in problem.params.shapes], np.zeros(())))
    size = problem.state.size
    found = np.empty((size + sums.size, numbers.count))

    def work(cut: Cut) -> None:
        block = cut.block(forwards, numbers.params, numbers.start, numbers.shared)
        ends = cut.of(given)
        back = Pullback(block, backwards, plan, ends[1:], len(found))
        result = back.through(None if kept is None else kept[..., None])
        result[: size - 1] += ends[0]
        found[:, cut.here] = result[:, cut.inner]

    numbers.each(work)
    state = numbers.leaves(problem.state, found[:size])
    return [*numbers.leaves(sums, found[size:]), *state]


def _records(numbers: Numbers, leaves: Sequence[Leaf]) -> np.ndarray:
    """Turn leaves (members, records, ...) into rows (records, numbers, members)."""
    records, count = len(numbers.problem.plan.saved), numbers.count
    parts = []
    for leaf in leaves:
        flat = np.asarray(leaf.array, float).reshape(count if leaf.own else 1, records, -1)
        parts.append(np.broadcast_to(np.moveaxis(flat, 0, -1), (records, flat.shape[-1], count)))
    return np.concatenate(parts, axis=1)

"""Solve problems side by side that differ in their starts: from guesses to last iterates."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array

from retrax.engine.backends.sweeps import Rows
from retrax.engine.llvm.host import lanes
from retrax.mechanics.state import State
from retrax.planning.duration import Free
from retrax.planning.ends import AxisEnd, PoseEnd
from retrax.planning.kernels import Programs
from retrax.planning.measure import Errors, Scales
from retrax.planning.problem import ControlProblem
from retrax.planning.search import FIRST, LAST, Search
from retrax.planning.workspace import Workspace, width, workspace

MOST_ITERATIONS = 300
# A free duration starts this far inside its bounds, as a part of it or of their distance.
_INSIDE = 1e-3
# How large the bumps of guesses are, as parts of the way.
_BUMP, _SEED = 0.7, 1


class Start(NamedTuple):
    """Where problems start: the numbers of states [row, problem], and their times."""

    nodes: np.ndarray
    times: np.ndarray

    @staticmethod
    def of(state: State) -> "Start":
        leaves = [np.asarray(x, float).reshape(-1, 1) for x in jax.tree.leaves(state.g)]
        nodes = np.concatenate([*leaves, np.asarray(state.momentum).reshape(-1, 1)])
        return Start(nodes, np.asarray(state.t, float).reshape(1))

    @staticmethod
    def of_many(states: State) -> "Start":
        count = len(states.momentum)
        leaves = [np.asarray(x, float).reshape(count, -1).T for x in jax.tree.leaves(states.g)]
        nodes = np.concatenate([*leaves, np.asarray(states.momentum).T])
        return Start(nodes, np.broadcast_to(np.asarray(states.t, float), (count,)))

    def pad(self, width: int) -> "Start":
        """Return the same with the last one repeated until there are `width`."""
        more = width - self.nodes.shape[1]
        if more == 0:
            return self
        nodes = np.pad(self.nodes, ((0, 0), (0, more)), mode="edge")
        return Start(nodes, np.pad(self.times, (0, more), mode="edge"))


class Found(NamedTuple):
    """Last iterates: states [row, N + 1, problem], stage variables [row, N, problem], and so on.

    **Attributes:** `minimum`: whether the Hessian needed no shift at the end.
    """

    nodes: np.ndarray
    stages: np.ndarray
    path: np.ndarray
    end_multipliers: np.ndarray
    time_multipliers: np.ndarray
    h: np.ndarray
    cost: np.ndarray
    miss: np.ndarray
    converged: np.ndarray
    minimum: np.ndarray
    iterations: np.ndarray
    errors: Errors
    defects: np.ndarray


class Iterate(NamedTuple):
    """A guess of everything: states, stage variables and steps, as in `Found`."""

    nodes: np.ndarray
    stages: np.ndarray
    h: np.ndarray


def bumps(problem: ControlProblem, count: int) -> np.ndarray:
    """Return bumps [coordinate, guess] of several guesses, as parts of the way; the first has none.

    The shortest way is often a saddle among quicker ones where inputs have bounds.
    """
    directions = np.random.default_rng(_SEED).normal(size=(count, problem.model.sizes.dim)).T
    directions /= np.linalg.norm(directions, axis=0)
    return directions * np.where(np.arange(count) == 0, 0.0, _BUMP)


class Solver:
    """Solves a problem with its programs, from several guesses or several starts side by side."""

    def __init__(self, problem: ControlProblem, programs: Programs, most: int):
        self.problem, self.programs, self.most = problem, programs, most
        self.slack = 0.0  # by which bounds are widened, as a part of their distance

    def from_ways(
        self,
        starts: Start,
        bumps: np.ndarray,
        steps: int,
        last: float = LAST,
    ) -> Found:
        """Search from the geodesics from each start to the end, with a bump for each."""
        count = starts.nodes.shape[1]
        with self._workspace(starts, steps) as work:
            P, T = work.width, self.problem.first_duration
            self.extents = _raise_to_floor(work.aim(T, work.clock[1, 0]))
            work.hills[:, :count] = bumps * self._bump_sizes()[:, None]
            work.hills[:, count:] = work.hills[:, count - 1 : count]
            work.go_along()
            search = self._search(work, np.full(P, T / steps), FIRST, last)
            search.run(self.most)
            return _find(search, count)

    def from_iterate(
        self,
        starts: Start,
        guess: Iterate,
        first: float,
        last: float = LAST,
        elastic: float = 0.0,
        steps: int | None = None,
    ) -> Found:
        """Search from another solution, whose steps may be others, from a barrier on."""
        count = starts.nodes.shape[1]
        with self._workspace(starts, steps or self.problem.steps) as work:
            if not hasattr(self, "extents"):
                self.extents = _raise_to_floor(
                    work.aim(self.problem.first_duration, work.clock[1, 0])
                )
            h = self._take_over(work, guess)
            work.X[0][:, 0] = work.starts
            search = self._search(work, h, first, last, elastic)
            search.run(self.most, with_inputs=True)
            return _find(search, count)

    def _bump_sizes(self) -> np.ndarray:
        """Limit bumps: as far as the way, and under a constraint in every direction.

        A plant that cannot go sideways has to turn and go ahead first.
        """
        if self.problem.system.constraint is None:
            return self.extents
        return np.full_like(self.extents, self.extents.max())

    @contextmanager
    def _workspace(self, starts: Start, steps: int) -> Iterator[Workspace]:
        problem, sizes = self.problem, self.problem.model.sizes
        P = width(starts.nodes.shape[1], steps)
        starts = starts.pad(P)
        with workspace(self.programs, sizes, problem.params, steps, P) as work:
            work.starts[...], work.clock[1] = starts.nodes, starts.times
            lower, upper = np.split(problem.limits, 2)
            wider = self.slack * np.where(np.isfinite(upper - lower), upper - lower, 1.0)
            limits = np.concatenate([lower - wider, upper + wider])[: sizes.limits]
            work.limits[...] = limits[:, None]
            yield work

    def _search(
        self, work: Workspace, h: np.ndarray, first: float, last: float, elastic: float = 0.0
    ) -> Search:
        free, one = self.problem.duration, np.ones(work.width) / work.stages
        low, high = (free.lower, free.upper) if isinstance(free, Free) else (0.0, np.inf)
        if isinstance(free, Free):  # the barrier has no value on its bounds
            margin = _INSIDE * min(free.guess, high - low)
            h = np.clip(h, one * (low + margin), one * (high - margin))
        scales = self._scales(work)
        return Search(work, scales, h, one * low, one * high, first, last, elastic)

    def _take_over(self, work: Workspace, guess: Iterate) -> np.ndarray:
        """Take another solution over at the same parts of its duration; return the steps."""
        N, P, s = work.stages, work.width, work.sizes
        old = guess.stages.shape[1]
        more = ((0, 0), (0, 0), (0, P - guess.nodes.shape[2]))
        nodes, stages = (np.pad(x, more, mode="edge") for x in (guess.nodes, guess.stages))
        h = np.pad(guess.h, (0, P - len(guess.h)), mode="edge") * (old / N)
        if not self.problem.is_free:
            h = np.full(P, self.problem.first_duration / N)
        place = np.arange(N + 1) * (old / N)
        before = np.minimum(place.astype(int), old - 1)
        a, b = (np.ascontiguousarray(nodes[:, k]) for k in (before, before + 1))
        part = np.ascontiguousarray(np.broadcast_to((place - before)[:, None], (N + 1, P)))
        shared, none = Rows(self.problem.params, 0, 1, 0), Rows(np.zeros(1), 0, 0, 0)
        columns = (N + 1) * P
        self.programs.between.bind(
            [shared, none, *(Rows(x, 0, columns, 0) for x in (a, b, part, work.X[0]))],
            *(1, columns, lanes()),
        )()
        kept = s.inputs + s.state
        work.V[0][:kept] = stages[:kept, before[:-1]]
        u = work.inputs(0)
        if s.bounded:
            low, high = work.limits[: s.inputs, None], work.limits[s.inputs :, None]
            margin = np.where(np.isfinite(high - low), 1e-6 * (high - low), 1e-6)
            np.clip(u, low + margin, high - margin, out=u)
        return h

    def _scales(self, work: Workspace) -> Scales:
        problem, s = self.problem, work.sizes
        momenta = _raise_to_floor(np.abs(work.X[0][s.element :]).max(axis=(1, 2)))
        state = np.concatenate([self.extents, momenta])
        ends, end = np.ones(s.ends), problem.model.end
        if isinstance(end, PoseEnd):
            ends = np.concatenate([self.extents, _along(end.directions, momenta)])[: s.ends]
        elif isinstance(end, AxisEnd) and end.velocity is not None:
            ends[2:] = _along(end.directions, self.extents / problem.first_duration)
        lower, upper = np.split(problem.limits, 2)
        half = (upper - lower) / 2
        return Scales(state, np.where(np.isfinite(half), half, np.inf), ends, np.ones(s.path))


def _raise_to_floor(sizes: np.ndarray) -> np.ndarray:
    """Raise scales to a tenth of the largest; all are one where nothing moves."""
    top = sizes.max()
    return np.maximum(sizes, 0.1 * top) if top > 0 else np.ones_like(sizes)


def _along(directions: Array | None, scales: np.ndarray) -> np.ndarray:
    """Return scales of components along directions, from those of coordinates."""
    return scales if directions is None else np.abs(np.asarray(directions)) @ scales


def _find(search: Search, count: int) -> Found:
    work, at = search.work, search.at

    def mine(x: np.ndarray) -> np.ndarray:
        return x[..., :count].copy()

    cost, miss, *_ = work.end(at)
    return Found(
        nodes=mine(work.X[at]),
        stages=mine(work.V[at]),
        path=mine(work.path(at)),
        end_multipliers=mine(work.nu[at]),
        time_multipliers=mine(search.times),
        h=mine(search.h),
        cost=mine(search.now.cost + cost),
        miss=mine(miss),
        converged=mine(search.converged),
        minimum=mine(search.shift == 0),
        iterations=mine(search.iterations),
        errors=Errors(*map(mine, search.errors)),
        defects=mine(search.now.defects),
    )

"""Solve problems side by side that differ in their starts: from guesses to last iterates."""

from typing import NamedTuple

import jax
import numpy as np

from retrax.engine.backends.sweeps import Rows
from retrax.engine.llvm.host import lanes
from retrax.mechanics.state import State
from retrax.planning.duration import Free
from retrax.planning.ends import AxisEnd, PoseEnd
from retrax.planning.kernels import Programs
from retrax.planning.problem import ControlProblem
from retrax.planning.search import Errors, Scales, Search
from retrax.planning.workspace import Workspace, width

MOST_ITERATIONS = 300
# A bump on the way of a first guess, as a part of the way: bounds make symmetric ways saddles.
_BUMP = 0.2


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

    def padded(self, width: int) -> "Start":
        """Return the same with the last one repeated until there are `width`."""
        more = width - self.nodes.shape[1]
        nodes = np.pad(self.nodes, ((0, 0), (0, more)), mode="edge")
        return Start(np.ascontiguousarray(nodes), np.pad(self.times, (0, more), mode="edge"))


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


def bump(problem: ControlProblem, number: int) -> np.ndarray:
    """Return the bump of the guess of this number, as parts of the way; the first has none.

    Where inputs have bounds it has one: the shortest way is often a saddle among quicker ones.
    """
    sizes = problem.model.sizes
    if number == 0 and not (sizes.bounded or sizes.path):
        return np.zeros(sizes.dim)
    rng = np.random.default_rng(number)
    direction = rng.normal(size=sizes.dim)
    return _BUMP * (1 + number) * direction / np.linalg.norm(direction)


def solve(
    problem: ControlProblem,
    programs: Programs,
    starts: Start,
    number: int = 0,
    most: int = MOST_ITERATIONS,
) -> Found:
    """Search from the guess of this number, for all starts at once."""
    N, sizes = problem.steps, problem.model.sizes
    count = starts.nodes.shape[1]
    P = width(count, N)
    starts = starts.padded(P)
    work = Workspace(programs, sizes, problem.params, N, P)
    T, way = _guess(problem, programs, work, starts, bump(problem, number))
    work.clock[1] = starts.times
    work.limits[...] = np.concatenate([problem.lower, problem.upper])[:, None][: sizes.limits]
    scales = _scales(problem, work, way)
    free = problem.duration
    low, high = (free.lower, free.upper) if isinstance(free, Free) else (0.0, np.inf)
    one = np.ones(P)
    search = Search(work, scales, one * T / N, one * low / N, one * high / N)
    search.run(most)
    return _found(search, count)


def _guess(
    problem: ControlProblem,
    programs: Programs,
    work: Workspace,
    starts: Start,
    part: np.ndarray,
) -> tuple[float, np.ndarray]:
    """Write the guess into the first iterate; return its duration and its way."""
    N, P, s = work.stages, work.width, work.sizes
    plan = problem.guess
    if plan is not None:
        return _taken_over(problem, work, starts)
    T, few = problem.first_duration, 1 if P == 1 else lanes()
    shared, none = Rows(problem.params, 0, 1, 0), Rows(np.zeros(1), 0, 0, 0)
    clock = np.empty((3, N + 1, P))
    clock[0], clock[1], clock[2] = T, starts.times, np.linspace(0.0, 1.0, N + 1)[:, None]
    way = np.empty((3 * s.dim, P))
    first = Rows(starts.nodes, 0, P, 0)
    at_start = Rows(clock, 0, (N + 1) * P, 0)
    programs.aim.bound([shared, none, first, at_start, Rows(way, 0, P, 0)], 1, P, few)()
    size = _extent(way, s.dim)
    hill = np.ascontiguousarray(np.broadcast_to((part * size)[:, None], (s.dim, P)))
    programs.along.bound(
        [
            *(shared, none, first, Rows(way, 0, P, 0), Rows(hill, 0, P, 0)),
            *(Rows(clock, 0, (N + 1) * P, P), Rows(work.X[0], 0, (N + 1) * P, P)),
        ],
        *(N + 1, P, few),
    )()
    return T, way


def _taken_over(
    problem: ControlProblem, work: Workspace, starts: Start
) -> tuple[float, np.ndarray]:
    """Start from another plan: states, inputs and costates at the same parts of its duration."""
    plan, N = problem.guess, work.stages
    assert plan is not None
    nodes, stages = plan.numbers
    at = np.round(np.linspace(0, nodes.shape[1] - 1, N + 1)).astype(int)
    work.X[0][...] = nodes[:, at, None]
    work.X[0][:, 0] = starts.nodes
    within = np.minimum((np.arange(N) * stages.shape[1]) // N, stages.shape[1] - 1)
    rows = work.sizes.inputs + work.sizes.state
    work.V[0][:rows] = stages[:rows, within, None]
    extents = np.tile(np.maximum(plan.extents, 1e-300), 3)[:, None] / 3
    T = plan.T if problem.is_free else problem.first_duration
    return T, np.broadcast_to(extents, (len(extents), work.width))


def _extent(way: np.ndarray, dim: int) -> np.ndarray:
    """How far each coordinate goes on the way; one where none of them goes anywhere."""
    a, b, c = way[:dim], way[dim : 2 * dim], way[2 * dim :]
    far = np.maximum(np.abs(a + b + c), np.abs(a)).max(axis=1)
    top = far.max()
    return np.maximum(far, 0.1 * top) if top > 0 else np.ones(dim)


def _scales(problem: ControlProblem, work: Workspace, way: np.ndarray) -> Scales:
    s = work.sizes
    far = _extent(way, s.dim)
    momenta = np.abs(work.X[0][s.element :]).max(axis=(1, 2))
    top = momenta.max()
    momenta = np.maximum(momenta, 0.1 * top) if top > 0 else np.ones(s.dim)
    state = np.concatenate([far, momenta])
    ends, end = np.ones(s.ends), problem.model.end
    if isinstance(end, PoseEnd):
        ends = state[: s.ends]
    elif isinstance(end, AxisEnd) and end.velocity is not None:
        ends[2:] = np.maximum(far / problem.first_duration, 1e-300)
    inputs = np.full(s.inputs, np.inf)
    half = (problem.upper - problem.lower) / 2
    inputs = np.where(np.isfinite(half), half, np.inf)
    return Scales(state, inputs, ends, np.ones(s.path))


def _found(search: Search, count: int) -> Found:
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

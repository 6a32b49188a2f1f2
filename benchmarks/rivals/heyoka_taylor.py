"""heyoka: Taylor series of adaptive order and step, compiled by LLVM; one body or eight abreast."""

import heyoka
import numpy as np

from benchmarks.methods import Call, Method, tolerances
from benchmarks.rivals.quaternion import attitude, field, initial
from retrax_papers.bench.problems import TimedProblem

# The integrator is compiled anew for every tolerance, since its order depends on it.
LANES = 8


def equations(problem: TimedProblem) -> list:
    symbols = heyoka.make_vars("w", "x", "y", "z", "a", "b", "c")
    return list(zip(symbols, field(problem, symbols), strict=True))


def methods(problem: TimedProblem) -> list[Method]:
    y0 = initial(problem)

    def prepare(tolerance: float) -> Call:
        taylor = heyoka.taylor_adaptive(equations(problem), y0, tol=tolerance)

        def call():
            taylor.time, taylor.state[:] = 0.0, y0
            taylor.propagate_until(problem.end)
            return attitude(taylor.state)

        return call

    return [Method("heyoka", "Taylor", "tolerance", tolerances(1e-15), prepare)]


def ensemble_methods(problem: TimedProblem, starts: np.ndarray, end: float) -> list[Method]:
    """The bodies of `starts` (7, members), eight at a time on one core."""
    members = starts.shape[1]
    blocks = np.ascontiguousarray(starts.reshape(7, -1, LANES).transpose(1, 0, 2))
    zeros, ends = np.zeros(LANES), np.full(LANES, end)

    def prepare(tolerance: float) -> Call:
        taylor = heyoka.taylor_adaptive_batch(equations(problem), blocks[0], tol=tolerance)

        def call():
            results = np.empty_like(blocks)
            for block, result in zip(blocks, results, strict=True):
                taylor.set_time(zeros)
                taylor.state[:] = block
                taylor.propagate_until(ends)
                result[:] = taylor.state
            return attitude(results.transpose(1, 0, 2).reshape(7, members))

        return call

    return [Method("heyoka", "Taylor, batches of 8", "tolerance", tolerances(1e-15), prepare)]

r"""A driven step near a state or along a plan: $d_{k+1} = A_k d_k + B_k\,\delta u_k$."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from retrax.planning.kernels import programs
from retrax.planning.problem import ControlProblem
from retrax.planning.workspace import width, workspace


class Linear(NamedTuple):
    """Matrices of each step, in changes $(\\log(g_k^{-1}g), \\mu - \\mu_k)$, and its defect."""

    A: Float[np.ndarray, "N n n"]
    B: Float[np.ndarray, "N n m"]
    defect: Float[np.ndarray, "N n"]


def linearised(
    problem: ControlProblem,
    nodes: Float[np.ndarray, "row node"],
    inputs: Float[np.ndarray, "N m"],
    h: float,
) -> Linear:
    """Differentiate the step from each state with its inputs."""
    s, N = problem.model.sizes, len(inputs)
    P = width(1, N)
    with workspace(programs(problem.model), s, problem.params, N, P) as work:
        work.X[0][...] = nodes[..., None]
        work.inputs(0)[...] = inputs.T[..., None]
        work.clock[1] = float(problem.start.t)
        work.evaluate(0, np.full(P, h))
        jacobian = work.slopes[0][: s.state * s.changes, :, 0].reshape(s.state, s.changes, N)
        defect = work.defects(0)[..., 0].T.copy()
    n = s.state
    whole = jacobian.transpose(2, 0, 1)
    return Linear(whole[..., :n].copy(), whole[..., n : n + s.inputs].copy(), defect)

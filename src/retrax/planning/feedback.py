r"""Linear quadratic regulators on the group: about a plan, and about a state of rest.

$$ K = (R + B^TPB)^{-1}B^TPA, \qquad P \leftarrow Q + A^TP(A - BK). \tag{1} $$
"""

from typing import TYPE_CHECKING, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import Coordinates, Element
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.actuated import Actuated, Inputs
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import ArrayLike, finite64, host_finite64, require_number
from retrax.numerics.frozen import Frozen
from retrax.numerics.meant import explain_keywords
from retrax.planning.costs import MinimumEffort
from retrax.planning.kernels import programs
from retrax.planning.problem import ControlProblem
from retrax.planning.solve import Start
from retrax.planning.workspace import width, workspace

if TYPE_CHECKING:
    from retrax.planning.plan import Plan

# A state of rest moves by no more than this in a step, relative to the sizes of its numbers.
_AT_REST = 1e-8
# Doublings until Riccati's equation has converged or never will.
_DOUBLINGS = 60
_ENDLESS = 1e100


class TrackingLaw(Frozen):
    r"""$u = u_k - K_k\,(\log(g_k^{-1}g),\ \mu - \mu_k)$, a law for `Sampled` and `Feedback`.

    After the last step the last state is held, with the last gain.

    **Attributes:** `gains`: $K_k$; `g`, `momentum`, `inputs`: what it keeps to, at steps of `h`
    from `t0` on; `eigenvalues`: those of $A - BK$ for one state, else empty.
    """

    system: AbstractGroupSystem
    g: Element
    momentum: Float[Array, "k dim"]
    inputs: Float[Array, "k m"]
    gains: Float[Array, "k m n"]
    t0: Float[Array, ""]
    h: Float[Array, ""]
    eigenvalues: tuple[complex, ...] = eqx.field(static=True, default=())

    def __call__(self, g: Element, xi: Coordinates, t: Float[Array, ""]) -> Inputs:
        group = self.system.group
        # Times are sums of steps, and a little below whole ones by rounding.
        steps = jnp.floor((t - self.t0) / self.h + 1e-6).astype(int)
        k = jnp.clip(steps, 0, self.momentum.shape[0] - 1)
        there = jax.tree.map(lambda x: x[k], self.g)
        turn = group.log(group.compose(group.inverse(there), g))
        change = jnp.concatenate([turn, self.system.momentum(g, xi) - self.momentum[k]])
        return self.inputs[k] - self.gains[k] @ change


def tracking_law(plan: "Plan", Q: ArrayLike, R: ArrayLike) -> TrackingLaw:
    """Return the time-varying regulator about a plan."""
    problem, s = plan.problem, plan.problem.model.sizes
    q, r = _weights("Q", Q, s.state, 0.0), _weights("R", R, s.inputs, 1e-300)
    A, B, _ = linearise(problem, plan.numbers[0], plan.controls, plan.h)
    P, gains = q, []
    for a, b in zip(A[::-1], B[::-1], strict=True):
        K = np.linalg.solve(r + b.T @ P @ b, b.T @ P @ a)  # (1)
        P = q + a.T @ P @ (a - b @ K)
        P = (P + P.T) / 2
        gains.append(K)
    gains = gains[::-1]
    states = jax.tree.map(jnp.asarray, plan.states)
    return TrackingLaw(
        problem.system,
        states.g,
        states.momentum,
        jnp.asarray(np.concatenate([plan.controls, np.zeros((1, s.inputs))])),
        jnp.asarray(np.stack([*gains, gains[-1]])),
        jnp.asarray(plan.t[0]),
        jnp.asarray(plan.h),
    )


@explain_keywords
def lqr(
    plant: Actuated,
    integrator: AbstractIntegrator | str,
    state: State,
    *,
    h: float,
    Q: ArrayLike,
    R: ArrayLike,
    inputs: ArrayLike | None = None,
) -> TrackingLaw:
    r"""Return the regulator that keeps a plant at a state of rest, its inputs held for `h` seconds.

    It minimises $\sum_k d_k^TQd_k + \delta u_k^TR\,\delta u_k$ of the sampled loop, with
    $d = (\log(g_e^{-1}g), \mu - \mu_e)$ and the exact derivatives of the step. Give it to
    `Sampled(law, period=h)`; `law.eigenvalues` are those of the loop.

    **Arguments:**

    - `plant`, `integrator`, `h`: what moves, and the step for which inputs are held.
    - `state`: the state of rest; `inputs`: those that hold it there, none unless they are given.
    - `Q`, `R`: numbers, one for each coordinate ($g$, then $\mu$) and for each input, or matrices.

    **Raises:** `BadInput` where the state is not one of rest, or where no inputs can hold it.
    """
    size = require_number("h", h, "> 0", "s")
    problem = ControlProblem(
        plant, integrator, start=state, end=None, duration=size, steps=1, cost=MinimumEffort()
    )
    s = problem.model.sizes
    u = np.zeros(s.inputs) if inputs is None else host_finite64("inputs", inputs, (s.inputs,))
    q, r = _weights("Q", Q, s.state, 0.0), _weights("R", R, s.inputs, 1e-300)
    node = Start.of(problem.start).nodes
    A, B, defect = (x[0] for x in linearise(problem, np.repeat(node, 2, 1), u[None], size))
    moved = np.abs(defect).max() / max(1.0, np.abs(node).max())
    if not moved <= _AT_REST:
        raise BadInput(
            f"state is not one of rest: with these inputs a step of h = {size} s moves it by "
            f"{np.abs(defect).max():.2g}; give inputs=... that hold it."
        )
    P = _stationary(A, B, q, r)
    K = np.linalg.solve(r + B.T @ P @ B, B.T @ P @ A) if np.isfinite(P).all() else 0 * B.T  # (1)
    loop = np.linalg.eigvals(A - B @ K)
    if np.abs(loop).max() >= 1.0:
        raise BadInput(
            "no feedback of these inputs keeps this state: some motion that grows, or that Q does "
            "not see, is out of their reach."
        )
    start = problem.start
    return TrackingLaw(
        problem.system,
        jax.tree.map(lambda x: jnp.asarray(x)[None], start.g),
        jnp.asarray(start.momentum)[None],
        jnp.asarray(u)[None],
        jnp.asarray(K)[None],
        jnp.asarray(start.t),
        jnp.asarray(size),
        tuple(complex(x) for x in loop),
    )


def _stationary(A: np.ndarray, B: np.ndarray, Q: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Solve the discrete Riccati equation by doubling.

    References: [ChuFanLinWang2004].
    """
    a, g, p = A, B @ np.linalg.solve(R, B.T), Q
    one = np.eye(len(A))
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(_DOUBLINGS):
            inverse = np.linalg.inv(one + g @ p) if np.isfinite(g @ p).all() else one * np.nan
            new = p + a.T @ p @ inverse @ a
            g, a = g + a @ inverse @ g @ a.T, a @ inverse @ a
            done = np.abs(new - p).max() <= 1e-15 * np.abs(new).max()
            p = (new + new.T) / 2
            if done or not np.abs(p).max() < _ENDLESS:
                break
    return p if np.abs(p).max() < _ENDLESS else p * np.nan


def _weights(name: str, value: ArrayLike, size: int, least: float) -> np.ndarray:
    """Return a symmetric matrix of weights from a number, a vector or a matrix."""
    given = np.asarray(finite64(name, value, np.shape(value)))
    if given.shape not in ((), (size,), (size, size)):
        raise BadInput(
            f"{name} has shape {given.shape}, but must be a number, {size} numbers or a matrix of "
            f"shape ({size}, {size})."
        )
    matrix = given if given.ndim == 2 else np.diag(np.broadcast_to(given, (size,)))
    if not np.allclose(matrix, matrix.T, rtol=1e-12, atol=0.0):
        raise BadInput(f"{name} must be symmetric.")
    lowest = np.linalg.eigvalsh(matrix)[0]
    if not lowest >= least - 1e-12 * np.abs(matrix).max() * (least == 0.0):
        raise BadInput(f"{name} must be positive{'' if least > 0 else ' semidefinite'}.")
    return matrix


class Linear(NamedTuple):
    r"""A driven step near a state or along a plan: $d_{k+1} = A_k d_k + B_k\,\delta u_k$.

    Changes are $d_k = (\log(g_k^{-1}g), \mu - \mu_k)$; `defect` is what a step misses.
    """

    A: Float[np.ndarray, "N n n"]
    B: Float[np.ndarray, "N n m"]
    defect: Float[np.ndarray, "N n"]


def linearise(
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

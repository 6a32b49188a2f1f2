"""The largest Lyapunov exponent of a motion, as the steps of an integrator have it."""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from retrax.engine.backends import make_loop
from retrax.engine.progress import start
from retrax.errors import BadInput, StepFailed
from retrax.integrators.base import AbstractIntegrator, StepInfo
from retrax.integrators.catalogue import as_integrator
from retrax.mechanics.reactions import admissible
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates
from retrax.numerics.checks import require_finite, require_whole
from retrax.numerics.frozen import Frozen
from retrax.numerics.once import compiled_once
from retrax.numerics.precision import host_float64
from retrax.run.checks import require_run, started


class Lyapunov(NamedTuple):
    """The largest exponent, and how it was approached.

    **Attributes:**

    - `exponent`: per second.
    - `error`: its standard error, from the scatter of `blocks` equal parts of the run; it knows
        nothing of a slow trend, so look at `running` as well.
    - `t`, `running`: times, and the estimate from everything up to there.
    - `growth`: the logarithm of the growth in all: below about 10 an exponent and algebraic growth
        cannot be told apart.
    """

    exponent: float
    error: float
    t: np.ndarray
    running: np.ndarray
    growth: float


def lyapunov(
    system: AbstractGroupSystem,
    integrator: AbstractIntegrator | str,
    state: Any,
    *,
    h: float,
    steps: int,
    skip: int = 0,
    blocks: int = 10,
    history: int = 200,
    direction: Any = None,
    seed: int = 0,
) -> Lyapunov:
    r"""Benettin's method with a tangent vector that is scaled back to length 1 in every step.

    With $\Phi$ the step, a perturbation $(\eta, \alpha)$ of $(g, \mu)$ is the tangent of
    $\epsilon \mapsto (g\exp\epsilon\eta,\ \mu + \epsilon\alpha)$, and

    $$
    \begin{aligned}
    (\eta', \alpha') &= D\Phi\,(\eta, \alpha), \qquad \eta' \text{ read off by }
        \log(g_1^{-1}\,\cdot\,)                                                     &&\text{(1)}\\
    \lambda &= \frac1{nh}\sum_k\log\bigl|(\eta'_k, \alpha'_k)\bigr|                 &&\text{(2)}
    \end{aligned}
    $$

    The derivative (1) is exact, and motion and tangent run together in one compiled loop. A motion
    that is not chaotic has $\lambda$ falling like $\log t/t$: zero is approached, not reached.

    **Arguments:**

    - `h`, `steps`: the run; `skip`: steps taken before it, in which the vector turns into its
        direction of growth without being counted.
    - `blocks`: into how many parts the run is cut for the error; `history`: how many running
        estimates are kept.
    - `direction`: the first vector, $\eta$ and $\alpha$ one after the other, instead of a random
        one of `seed`. Under a constraint it is made admissible to first order.

    **Raises:** `StepFailed` where a step fails, `BadInput` where the run cannot start.

    References: [BenettinGalganiGiorgilliStrelcyn1980].
    """
    state = started(system, state)
    integrator = as_integrator(integrator)
    require_run(system, integrator, state, h, steps, 1)
    blocks, history = require_whole("blocks", blocks, 2), require_whole("history", history, 2)
    skip, seed = require_whole("skip", skip, 0), require_whole("seed", seed, 0)
    if not 2 <= blocks <= history <= steps:
        raise BadInput(
            f"blocks = {blocks}, history = {history}, steps = {steps}: at least 2 blocks, and no "
            "more of them than running estimates, and of these no more than steps, are needed."
        )
    tangent = _first(system, jax.tree.map(jnp.asarray, state), direction, seed)
    loop = make_loop("auto", system, _TangentStep(integrator), tangent, float(h))
    at = start(jax.tree.map(np.asarray, tangent))
    if skip:
        at, *_ = _run(loop, at, 1, skip, system, integrator)
    every = steps // history
    before, t0 = float(at.state.growth), float(at.state.t)
    at, states, _ = _run(loop, at, history, every, system, integrator)
    t, growth = np.asarray(states.t) - t0, np.asarray(states.growth) - before
    running = growth / t  # (2)
    return Lyapunov(float(running[-1]), _scatter(t, growth, blocks), t, running, float(growth[-1]))


def _scatter(t: np.ndarray, growth: np.ndarray, blocks: int) -> float:
    """The standard error of the rate of growth, from the rates in equal blocks."""
    ends = np.linspace(0, len(t), blocks + 1).round().astype(int)
    times, values = (np.concatenate([[0.0], x])[ends] for x in (t, growth))
    return float(np.std(np.diff(values) / np.diff(times), ddof=1) / math.sqrt(blocks))


class _Tangent(Frozen):
    """A state with a perturbation of it, the logarithm of its growth, and the time."""

    g: PyTree[Float[Array, "..."]]
    momentum: Coordinates
    eta: Coordinates
    alpha: Coordinates
    growth: Float[Array, ""]
    t: Float[Array, ""]


class _TangentStep(AbstractIntegrator):
    """A step of the integrator, and of its derivative."""

    base: AbstractIntegrator
    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)

    def __init__(self, base: AbstractIntegrator):
        self.base, self.order, self.preserves = base, base.order, frozenset()

    def step(
        self, system: AbstractGroupSystem, state: Any, h: Float[Array, ""]
    ) -> tuple[Any, StepInfo]:
        group, now = system.group, state

        def move(g, mu):
            end, info = self.base.step(system, State(g, mu, now.t), h)
            return (end.g, end.momentum), info

        moved = (group.tangent(now.g, now.eta), now.alpha)
        (g, mu), (dg, alpha), info = jax.jvp(move, (now.g, now.momentum), moved, has_aux=True)
        back = group.inverse(g)
        _, eta = jax.jvp(lambda k: group.log(group.compose(back, k)), (g,), (dg,))  # (1)
        length = jnp.sqrt(eta @ eta + alpha @ alpha)
        growth = now.growth + jnp.log(length)
        return _Tangent(g, mu, eta / length, alpha / length, growth, now.t + h), info


def _first(system: AbstractGroupSystem, state: State, direction: Any, seed: int) -> _Tangent:
    """The state with a perturbation of length 1 that the constraint admits."""
    dim, group = system.group.dim, system.group
    if direction is None:
        direction = np.random.default_rng(seed).normal(size=2 * dim)
    vector = host_float64("direction", direction)
    require_finite("direction", vector)
    if vector.shape != (2 * dim,) or not np.any(vector):
        raise BadInput(
            f"direction has shape {vector.shape}, but {2 * dim} numbers that are not all 0 are "
            f"needed: a change of g in the {dim} coordinates of {group.name}, and of its momentum."
        )
    eta, alpha = jnp.asarray(vector[:dim]), jnp.asarray(vector[dim:])
    if not system.has_momentum:
        alpha = jnp.zeros_like(alpha)
    if system.constraint is not None:
        alpha = _admissible_change(system, state, eta, alpha)
    length = jnp.sqrt(eta @ eta + alpha @ alpha)
    return _Tangent(
        state.g, state.momentum, eta / length, alpha / length, jnp.zeros(()), jnp.asarray(state.t)
    )


@compiled_once
def _admissible_change(
    system: AbstractGroupSystem, state: State, eta: Coordinates, alpha: Coordinates
) -> Coordinates:
    """The change of the momentum that, with the change of g, keeps to the constraint."""

    def onto(g, mu):
        return admissible(system, system.constraint, g, mu, jnp.asarray(state.t))[0]

    moved = (system.group.tangent(state.g, eta), alpha)
    return jax.jvp(onto, (state.g, state.momentum), moved)[1]


def _run(loop: Any, at: Any, records: int, every: int, system: Any, integrator: Any) -> tuple:
    at, states, interval = loop.run(at, records, every, records)
    if at.failed:
        raise StepFailed(
            f"{integrator!r} on the {system.name}: step {int(at.step) + 1} (from t = "
            f"{float(at.state.t):.6g} s) failed while its derivative was followed; simulate the "
            "motion alone to see why."
        )
    return at, states, interval

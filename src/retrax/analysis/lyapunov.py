"""The Lyapunov exponents of a motion, as the steps of an integrator have them."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PyTree

from retrax.engine.backends import make_loop
from retrax.engine.backends.native import NativeLoop
from retrax.engine.backends.xla import XLALoop
from retrax.engine.progress import Progress, start
from retrax.errors import BadInput, StepFailed
from retrax.integrators.base import AbstractIntegrator, Memory, StepInfo, as_integrator
from retrax.mechanics.holonomic import AbstractHolonomic
from retrax.mechanics.placement import changes_across
from retrax.mechanics.reactions import admissible
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem, Coordinates
from retrax.numerics.checks import host_float64, require_finite, require_untraced, require_whole
from retrax.numerics.evaluate import evaluate
from retrax.numerics.frozen import Frozen
from retrax.numerics.jax_hints import compile_once
from retrax.run.checks import require_run, start_of

# Rows are dependent where a singular value is this part of the largest.
_DEPENDENT = 1e-10


class Lyapunov(NamedTuple):
    """The largest exponents, and how they were approached.

    **Attributes:**

    - `exponent`: the largest, per second.
    - `error`: its standard error, from the scatter of `blocks` equal parts of the run; it knows
        nothing of a slow trend, so look at `running` as well.
    - `t`, `running`: times, and the estimate from everything up to there.
    - `growth`: the logarithm of the growth in all: below about 10 an exponent and algebraic growth
        cannot be told apart.
    - `spectrum`, `errors`: as many exponents as were asked for, the largest first, and the standard
        error of each; `running_spectrum`: the estimates at the times `t`, one column for each.
    """

    exponent: float
    error: float
    t: np.ndarray
    running: np.ndarray
    growth: float
    spectrum: np.ndarray
    errors: np.ndarray
    running_spectrum: np.ndarray

    def __repr__(self) -> str:
        pairs = zip(self.spectrum.tolist(), self.errors.tolist(), strict=True)
        told = ", ".join(f"{value:.4g} +- {error:.1g}" for value, error in pairs)
        what = "exponent" if len(self.spectrum) == 1 else "exponents"
        return (
            f"<Lyapunov {what} {told} per second; growth by e^{self.growth:.3g} up to "
            f"t = {float(self.t[-1]):.6g} s>"
        )


def lyapunov(
    system: AbstractGroupSystem,
    integrator: AbstractIntegrator,
    state: State | ArrayLike,
    *,
    h: float,
    steps: int,
    skip: int = 0,
    blocks: int = 10,
    history: int | None = None,
    direction: ArrayLike | Sequence[float] | None = None,
    seed: int = 0,
    exponents: int | None = 1,
) -> Lyapunov:
    r"""Compute Lyapunov exponents by Benettin's method, orthonormalising tangents in every step.

    With $\Phi$ the step, a perturbation $(\eta, \alpha)$ of $(g, \mu)$ is the tangent of
    $\epsilon \mapsto (g\exp\epsilon\eta,\ \mu + \epsilon\alpha)$, and

    $$
    \begin{aligned}
    (\eta', \alpha') &= D\Phi\,(\eta, \alpha), \qquad \eta' \text{ read off by }
        \log(g_1^{-1}\,\cdot\,)                                                     &&\text{(1)}\\
    \lambda &= \frac1{nh}\sum_k\log\bigl|(\eta'_k, \alpha'_k)\bigr|                 &&\text{(2)}
    \end{aligned}
    $$

    for the first vector; those that follow count what (1) leaves of them at right angles to the
    ones before, the diagonal of the factor $R$ in $QR$. The derivative (1) is exact, and motion and
    tangents run together in one compiled loop. A motion that is not chaotic has $\lambda$ falling
    like $\log t/t$: zero is approached, not reached. The steps of a symplectic method keep volumes,
    so that all exponents add up to zero to round-off; in pairs, the largest and the smallest, they
    do so in the limit.

    **Arguments:**

    - `h`, `steps`: the run; `skip`: steps taken before it, in which the vector turns into its
        direction of growth without being counted.
    - `blocks`: into how many parts the run is cut for the error; `history`: how many running
        estimates are kept, 200 or one for each step.
    - `direction`: the first vector, $\eta$ and $\alpha$ one after the other, instead of a random
        one of `seed`. Under a constraint it is made admissible to first order.
    - `exponents`: how many, the largest first; `None` for all of them.

    **Raises:** `StepFailed` if a step fails, `BadInput` if the run cannot start.

    References: [BenettinGalganiGiorgilliStrelcyn1980].
    """
    require_untraced("lyapunov", system, integrator, state, h)
    state = start_of(system, state)
    integrator = as_integrator(integrator)
    require_run(system, integrator, state, h, steps, 1)
    blocks = require_whole("blocks", blocks, 2)
    history = min(steps, 200) if history is None else require_whole("history", history, 2)
    skip, seed = require_whole("skip", skip, 0), require_whole("seed", seed, 0)
    if not 2 <= blocks <= history <= steps:
        raise BadInput(
            f"blocks = {blocks}, history = {history}, steps = {steps} must satisfy 2 <= blocks <= "
            "history <= steps."
        )
    count = _count(system, jax.tree.map(jnp.asarray, state), exponents, direction)
    tangent = _first(system, jax.tree.map(jnp.asarray, state), direction, seed, count)
    loop = make_loop("auto", system, _TangentStep(integrator), tangent, float(h))
    at = start(jax.tree.map(np.asarray, tangent))
    if skip:
        at, _ = _run(loop, at, 1, skip, system, integrator)
    every = steps // history
    before, t0 = np.asarray(at.state.growth), float(at.state.t)
    at, states = _run(loop, at, history, every, system, integrator)
    t, growth = np.asarray(states.t) - t0, np.asarray(states.growth) - before
    growth = growth.reshape(len(t), -1)
    running = growth / t[:, None]  # (2)
    errors = np.array([_scatter(t, column, blocks) for column in growth.T])
    return Lyapunov(
        float(running[-1, 0]),
        float(errors[0]),
        t,
        running[:, 0],
        float(growth[-1, 0]),
        running[-1],
        errors,
        running,
    )


def _scatter(t: np.ndarray, growth: np.ndarray, blocks: int) -> float:
    """Return the standard error of the rate of growth, from the rates in equal blocks."""
    ends = np.linspace(0, len(t), blocks + 1).round().astype(int)
    times, values = (np.concatenate([[0.0], x])[ends] for x in (t, growth))
    return float(np.std(np.diff(values) / np.diff(times), ddof=1) / math.sqrt(blocks))


class _Tangent(Frozen):
    """A state with one perturbation of it or several, logarithms of their growth, and the time.

    A single one has no axis of its own: on long chains its only axis is that of the nodes.
    """

    g: PyTree[Float[Array, "..."]]
    momentum: Coordinates
    eta: Float[Array, "*several dim"]
    alpha: Float[Array, "*several dim"]
    growth: Float[Array, "*several"]
    t: Float[Array, ""]


class _TangentStep(AbstractIntegrator):
    """A step of the integrator, and of its derivative."""

    base: AbstractIntegrator
    order: int = eqx.field(static=True)
    preserves: frozenset[str] = eqx.field(static=True)

    def __init__(self, base: AbstractIntegrator):
        self.base, self.order, self.preserves = base, base.order, frozenset()

    def step(
        self, system: AbstractGroupSystem, state: _Tangent, h: Float[Array, ""]
    ) -> tuple[_Tangent, StepInfo]:
        group, now = system.group, state

        def move(g, mu):
            end, info = self.base.step(system, State(g, mu, now.t), h)
            return (end.g, end.momentum), info

        def push(eta, alpha):
            moved = (group.tangent(now.g, eta), alpha)
            (g, mu), (dg, alpha), info = jax.jvp(move, (now.g, now.momentum), moved, has_aux=True)
            back = group.inverse(g)
            _, eta = jax.jvp(lambda k: group.log(group.compose(back, k)), (g,), (dg,))  # (1)
            return (g, mu, info), eta, alpha

        if now.eta.ndim == 1:
            (g, mu, info), eta, alpha = push(now.eta, now.alpha)
            length = jnp.sqrt(eta @ eta + alpha @ alpha)
            growth = now.growth + jnp.log(length)
            return _Tangent(g, mu, eta / length, alpha / length, growth, now.t + h), info
        (g, mu), info = move(now.g, now.momentum)
        eta, alpha = jax.vmap(lambda eta, alpha: push(eta, alpha)[1:])(now.eta, now.alpha)
        vectors, lengths = orthonormal(jnp.concatenate([eta, alpha], axis=1))
        n, growth = eta.shape[1], now.growth + jnp.log(lengths)
        return _Tangent(g, mu, vectors[:, :n], vectors[:, n:], growth, now.t + h), info

    def memory(self, system: AbstractGroupSystem, state: _Tangent) -> Memory:
        return ()

    def next_step(
        self, system: AbstractGroupSystem, state: _Tangent, h: Float[Array, ""], memory: Memory
    ) -> tuple[_Tangent, StepInfo, Memory]:
        return *self.step(system, state, h), memory


def orthonormal(
    rows: Float[Array, "k n"],
) -> tuple[Float[Array, "k n"], Float[Array, " k"]]:
    """Make rows orthonormal, the first one first, and return also what was left of each.

    Each is made orthogonal twice to those before it: once is not enough where it nearly lies in
    their span.
    """
    done, lengths = [], []
    for k in range(rows.shape[0]):
        row = rows[k]
        for _ in range(2):
            for other in done:
                row = row - (other @ row) * other
        length = jnp.sqrt(row @ row)
        lengths.append(length)
        done.append(row / length)
    return jnp.stack(done), jnp.stack(lengths)


def _count(
    system: AbstractGroupSystem, state: State, exponents: int | None, direction: object
) -> int:
    """Return how many exponents are asked for, at most as many as there are directions."""
    most = 2 * system.group.dim if system.has_momentum else system.group.dim
    if isinstance(system.constraint, AbstractHolonomic):
        most = len(_admissible_directions(system, state))
    elif system.constraint is not None:
        most -= len(evaluate(lambda s, x: s.multipliers(x), system, state))
    count = most if exponents is None else require_whole("exponents", exponents, 1, most)
    if direction is not None and count > 1:
        raise BadInput(
            f"direction is the first of one vector, but {count} exponents need as many: leave it "
            "out."
        )
    return count


def _first(
    system: AbstractGroupSystem,
    state: State,
    direction: ArrayLike | Sequence[float] | None,
    seed: int,
    count: int,
) -> _Tangent:
    """Return the state with orthonormal perturbations that the constraint admits."""
    dim, group = system.group.dim, system.group
    if count > 1:
        rows = np.random.default_rng(seed).normal(size=(count, 2 * dim))
        parts = [_admissible_perturbation(system, state, row[:dim], row[dim:]) for row in rows]
        both = np.stack([np.concatenate(part) for part in parts])
        vectors = np.linalg.qr(both.T)[0].T
        return _Tangent(
            state.g,
            state.momentum,
            jnp.asarray(vectors[:, :dim]),
            jnp.asarray(vectors[:, dim:]),
            jnp.zeros(count),
            jnp.asarray(state.t),
        )
    if direction is None:
        direction = np.random.default_rng(seed).normal(size=2 * dim)
    vector = host_float64("direction", direction)
    require_finite("direction", vector)
    if vector.shape != (2 * dim,) or not np.any(vector):
        raise BadInput(
            f"direction has shape {vector.shape}, but {2 * dim} numbers that are not all 0 are "
            f"needed: a change of g in the {dim} coordinates of {group.name}, and of its momentum."
        )
    eta, alpha = _admissible_perturbation(system, state, vector[:dim], vector[dim:])
    length = jnp.sqrt(eta @ eta + alpha @ alpha)
    return _Tangent(
        state.g, state.momentum, eta / length, alpha / length, jnp.zeros(()), jnp.asarray(state.t)
    )


def _admissible_perturbation(
    system: AbstractGroupSystem, state: State, first: np.ndarray, second: np.ndarray
) -> tuple[Coordinates, Coordinates]:
    """Return the perturbation with its change of the momentum as the system admits it."""
    eta, alpha = jnp.asarray(first), jnp.asarray(second)
    if not system.has_momentum:
        alpha = jnp.zeros_like(alpha)
    if isinstance(system.constraint, AbstractHolonomic):
        basis, n = _admissible_directions(system, state), len(eta)
        both = jnp.asarray(basis.T @ (basis @ np.concatenate([first, second])))
        return both[:n], both[n:]
    if system.constraint is not None:
        alpha = _admissible_change(system, state, eta, alpha)
    return eta, alpha


def _admissible_directions(
    system: AbstractGroupSystem, state: State
) -> Float[np.ndarray, "m twice_dim"]:
    """Find an orthonormal basis of changes that leave a state on its constraint on positions."""
    across = np.asarray(evaluate(changes_across, system, state))
    _, singular, rows = np.linalg.svd(across)
    return rows[int(np.sum(singular > _DEPENDENT * singular[0])) :]


@compile_once
def _admissible_change(
    system: AbstractGroupSystem, state: State, eta: Coordinates, alpha: Coordinates
) -> Coordinates:
    """Return the change of the momentum that, with the change of g, keeps to the constraint."""

    def onto(g, mu):
        return admissible(system, system.constraint, g, mu, jnp.asarray(state.t))[0]

    moved = (system.group.tangent(state.g, eta), alpha)
    return jax.jvp(onto, (state.g, state.momentum), moved)[1]


def _run(
    loop: NativeLoop | XLALoop,
    at: Progress,
    records: int,
    every: int,
    system: AbstractGroupSystem,
    integrator: AbstractIntegrator,
) -> tuple[Progress, _Tangent]:
    at, states, _ = loop.run(at, records, every, records)
    if at.failed:
        raise StepFailed(
            f"{integrator!r} on the {system.name}: step {int(at.step) + 1} (from t = "
            f"{float(at.state.t):.6g} s) failed while its derivative was followed; simulate the "
            "motion alone to see why."
        )
    return at, states

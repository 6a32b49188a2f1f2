"""The motion that measurements show, where the system is not known quite well enough."""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from retrax.errors import BadInput, warn
from retrax.estimation.first_state import first_state
from retrax.estimation.gaussian import Forward, backward, forward
from retrax.estimation.grid import grid
from retrax.estimation.measurements import Measurements, as_measurements
from retrax.estimation.plausibility import require_units
from retrax.estimation.sensors import Sensor, bind
from retrax.estimation.smoothed import Smoothed
from retrax.integrators.base import AbstractIntegrator, as_integrator, require_fit
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import MOST_NODES, host_float64, quote, require_number, require_whole
from retrax.numerics.frozen import Frozen
from retrax.numerics.meant import explain_keywords
from retrax.numerics.reuse import Jitted
from retrax.run.checks import require_state, require_system

# The start is unknown: so many radians, and times its speed or 1, are as good as anything.
_ANYWHERE = 10.0
_ENOUGH = 1e-6


@explain_keywords
def smooth(
    system: AbstractGroupSystem,
    data: Measurements | Sequence[Measurements],
    noise: float | Sequence[float],
    *,
    h: float | None = None,
    state: State | None = None,
    integrator: AbstractIntegrator | str | None = None,
    most: int = 30,
) -> Smoothed:
    r"""Estimate a motion that measurements and an imperfect system agree on.

    A random force acts beside those of the system, as an impulse $w_k$ at the end of every step
    $\Phi$, and what is most likely minimises

    $$
    \begin{aligned}
    J &= \sum_k\frac{|w_k|^2}{q^2h} + \sum_j\Bigl|\frac{\log(\bar g_j^{-1}g_j)}{\sigma}\Bigr|^2
                                                                                  &&\text{(1)}\\
    x_{k+1} &= \Phi_h(x_k)\oplus(0, w_k)                                            &&\text{(2)}
    \end{aligned}
    $$

    by the method of Gauss and Newton: (2) is linearised in left-trivialised changes of all states
    at once, and the equations, whose matrix is block tridiagonal, are solved by one elimination
    forwards and one backwards, which give the covariance of every state as well.

    **Arguments:**

    - `system`, `data`: what moves, and what was measured, with its noise.
    - `noise`: $q$, the strength of the random force, in units of force times $\sqrt s$; one number
        or one for each coordinate of the momentum. Of the order of a force that the system lacks,
        times the square root of how long it acts one way.
    - `h`: the longest step; by default the usual distance of measurements.
    - `state`: a first guess of the state at the start; without it, it is read off the measurements.
    - `integrator`: how a step is taken, by default `RKMK("rk4")`.
    - `most`: how many times (2) is linearised at most.

    **Raises:** `BadInput` where measurements and system do not fit together.

    References: [RauchTungStriebel1965].
    """
    system = require_system(system)
    sensors = as_measurements(data)
    if any(one.noise is None for one in sensors):
        raise BadInput("smoothing weighs measurements against forces: give their noise=...")
    if system.constraint is not None or not system.has_momentum:
        raise BadInput(
            f"the {system.name} has a constraint or no momenta: impulses would break the one and "
            "do nothing without the other."
        )
    begin = first_state(system, sensors) if state is None else state
    require_state(system, begin)
    attached = tuple(bind(one, system, begin) for one in sensors)
    require_units(sensors, system, state)
    method = _method(system, integrator)
    times = [one.t for one in sensors]
    usual = min(float(np.median(np.diff(np.unique(t)))) for t in times)
    longest = usual if h is None else require_number("h", h, "> 0", "s")
    found = grid(float(begin.t), times, longest)
    if min(float(t[0]) for t in times) < float(begin.t):
        raise BadInput(f"the state is that at t = {float(begin.t):g} s, after measurements begin.")
    if found.steps > MOST_NODES:
        raise BadInput(
            f"h = {longest:g} s takes {found.steps} steps through the measurements, and a state "
            f"of each is kept: at most {MOST_NODES} are."
        )
    watches = tuple(
        _Watch(sensor, rows * found.save_every, rest, bool(np.any(rest > 0)))
        for sensor, rows, rest in zip(attached, found.rows, found.rest, strict=True)
    )
    strength = _strength(system, noise)
    task = _Task(system, method, watches, np.asarray(found.h))
    return _solve(task, begin, found.steps, strength, require_whole("most", most, 1), sensors)


class _Watch(Frozen):
    """A sensor, the step at or before each of its measurements, and the time since, if any."""

    sensor: Sensor
    steps: PyTree
    rest: PyTree
    between: bool = eqx.field(static=True)

    def single(self, j: int) -> "_Watch":
        """Return one measurement alone, at the only state there is."""
        values = jax.tree.map(lambda v: v[j : j + 1], self.sensor.values)
        alone = Sensor(self.sensor.of, values, self.sensor.noise)
        return _Watch(alone, np.zeros(1, int), self.rest[j : j + 1], self.between)


class _Task(Frozen):
    """What is smoothed: everything but the motion."""

    system: AbstractGroupSystem
    integrator: AbstractIntegrator
    watches: tuple[_Watch, ...]
    h: Float[np.ndarray, ""]

    def move(self, x: State, change: Float[Array, " n"]) -> State:
        """Return $x \\oplus \\delta$."""
        group, n = self.system.group, self.system.group.dim
        g = group.compose(x.g, group.exp(change[:n]))
        return State(g, x.momentum + change[n:], x.t)

    def between(self, x: State, y: State) -> Float[Array, " n"]:
        """Return $y \\ominus x$."""
        group = self.system.group
        turned = group.log(group.compose(group.inverse(x.g), y.g))
        return jnp.concatenate([turned, y.momentum - x.momentum])

    def step(self, x: State) -> State:
        new, _ = self.integrator.step(self.system, x, jnp.asarray(self.h))
        return new

    def residual(self, watch: _Watch, x: State, rest: Array, value: PyTree) -> Array:
        """Return a residual over its noise, seen `rest` seconds after a state."""
        if watch.between:
            new, _ = self.integrator.step(self.system, x, rest)
            x = jax.tree.map(lambda a, b: jnp.where(rest > 0, b, a), x, new)
        found = watch.sensor.residual(self.system, x, value)
        return found / jnp.asarray(watch.sensor.noise)


class _Linear(NamedTuple):
    """(2) and the residuals linearised: of steps from each state to the next, and of sensors."""

    gap: np.ndarray
    before: np.ndarray
    after: np.ndarray
    residuals: list[np.ndarray]
    slopes: list[np.ndarray]


@Jitted
def _step(task: _Task, x: State) -> State:
    return task.step(x)


@Jitted
def _along_steps(task: _Task, first: State, second: State) -> tuple[Array, Array, Array]:
    def one(x: State, y: State) -> tuple[Array, Array, Array]:
        none = jnp.zeros(2 * task.system.group.dim)

        def gap(a: Array, b: Array) -> Array:
            return task.between(task.step(task.move(x, a)), task.move(y, b))

        return gap(none, none), *jax.jacfwd(gap, argnums=(0, 1))(none, none)

    return jax.vmap(one)(first, second)


@Jitted
def _observe(task: _Task, watch: _Watch, states: State) -> tuple[Array, Array]:
    def one(x: State, rest: Array, value: PyTree) -> tuple[Array, Array]:
        none = jnp.zeros(2 * task.system.group.dim)

        def residual(a: Array) -> Array:
            return task.residual(watch, task.move(x, a), rest, value)

        return residual(none), jax.jacfwd(residual)(none)

    there = jax.tree.map(lambda x: jnp.asarray(x)[jnp.asarray(watch.steps)], states)
    values = jax.tree.map(jnp.asarray, watch.sensor.values)
    return jax.vmap(one)(there, jnp.asarray(watch.rest), values)


@Jitted
def _shift(task: _Task, states: State, changes: Array) -> State:
    return jax.vmap(task.move)(states, changes)


def _linear(task: _Task, states: State) -> _Linear:
    first = jax.tree.map(lambda x: x[:-1], states)
    second = jax.tree.map(lambda x: x[1:], states)
    gap, before, after = map(np.asarray, _along_steps(task, first, second))
    seen = [tuple(map(np.asarray, _observe(task, watch, states))) for watch in task.watches]
    return _Linear(gap, before, after, [r for r, _ in seen], [s for _, s in seen])


def _solve(
    task: _Task,
    begin: State,
    steps: int,
    strength: np.ndarray,
    most: int,
    data: Sequence[Measurements],
) -> Smoothed:
    states = _follow(task, begin, steps, strength)
    converged, looks, covariances = False, 0, np.zeros(0)
    while looks < most and not converged:
        looks += 1
        linear = _linear(task, states)
        _require_finite(linear)
        ahead = _eliminate(task, linear, strength, begin)
        changes, covariances = backward(ahead)
        states = jax.tree.map(np.asarray, _shift(task, states, changes))
        errors = np.sqrt(np.einsum("kii->ki", covariances))
        converged = bool(np.max(np.abs(changes) / errors) < _ENOUGH)
    if not converged:
        warn("the smoothing did not converge: give a nearer state=..., or a larger noise.")
    linear = _linear(task, states)
    controls = linear.gap[:, task.system.group.dim :]
    residuals = {
        one.name: r * watch.sensor.noise
        for one, watch, r in zip(data, task.watches, linear.residuals, strict=True)
    }
    chi2 = sum(float(np.sum(r**2)) for r in linear.residuals)
    times = {one.name: one.t for one in data}
    return Smoothed(
        np.asarray(states.t), states, covariances, controls, strength * np.sqrt(float(task.h)),
        residuals, times, chi2, converged, looks, task.system, task.integrator,
    )  # fmt: skip


def _eliminate(task: _Task, linear: _Linear, strength: np.ndarray, begin: State) -> Forward:
    """Eliminate forwards: the states of each step from what was measured up to it."""
    dim = task.system.group.dim
    back = np.linalg.inv(linear.after)
    pushed = back[:, :, dim:] * (strength * np.sqrt(float(task.h)))
    return forward(
        -back @ linear.before,
        -np.einsum("kij,kj->ki", back, linear.gap),
        pushed @ np.swapaxes(pushed, 1, 2),
        _anywhere(task.system, begin),
        _by_step(task, linear, len(linear.gap) + 1),
    )


def _by_step(task: _Task, linear: _Linear, count: int) -> list[list[tuple[np.ndarray, np.ndarray]]]:
    found: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in range(count)]
    for watch, residuals, slopes in zip(task.watches, linear.residuals, linear.slopes, strict=True):
        for step, r, slope in zip(np.asarray(watch.steps), residuals, slopes, strict=True):
            found[int(step)].append((r, slope))
    return found


def _follow(task: _Task, begin: State, steps: int, strength: np.ndarray) -> State:
    """Follow the measurements from step to step, each linearised where the last one led."""
    starts: list[list[tuple[_Watch, int]]] = [[] for _ in range(steps + 1)]
    for watch in task.watches:
        for j, step in enumerate(np.asarray(watch.steps)):
            starts[int(step)].append((watch, j))
    x = jax.tree.map(jnp.asarray, begin)
    spread, found = _anywhere(task.system, begin), []
    dim = task.system.group.dim
    pushed = np.concatenate([np.zeros(dim), strength**2 * float(task.h)])
    # What a program depends on is looked at once: it is the same in every step.
    step, along = _step.program(task, x), _along_steps.program(task, x, x)
    shift = _shift.program(task, x, spread)
    see = {id(watch): _observe.program(task, watch, x) for watch in task.watches}
    for k in range(steps + 1):
        for watch, j in starts[k]:
            here = jax.tree.map(lambda v: v[None], x)
            look = see[id(watch)]
            r, slope = (np.asarray(v)[0] for v in look(task, watch.single(j), here))
            gain = spread @ slope.T @ np.linalg.inv(slope @ spread @ slope.T + np.eye(len(r)))
            x = jax.tree.map(lambda v: v[0], shift(task, here, (-gain @ r)[None]))
            kept = np.eye(2 * dim) - gain @ slope
            spread = kept @ spread @ kept.T + gain @ gain.T
        t = float(begin.t) + k * float(task.h)
        x = State(x.g, x.momentum, jnp.asarray(t))
        found.append(jax.tree.map(np.asarray, x))
        if k < steps:
            y = step(task, x)
            one, two = (jax.tree.map(lambda v: v[None], z) for z in (x, y))
            _, before, after = (np.asarray(v)[0] for v in along(task, one, two))
            moved = -np.linalg.inv(after) @ before
            spread = moved @ spread @ moved.T + np.diag(pushed)
            x = y
    return jax.tree.map(lambda *xs: np.stack(xs), *found)


def _anywhere(system: AbstractGroupSystem, begin: State) -> np.ndarray:
    size = max(1.0, float(np.max(np.abs(np.asarray(begin.momentum)), initial=0.0)))
    half = np.ones(system.group.dim)
    return np.diag(np.concatenate([half, half * size]) * _ANYWHERE) ** 2


def _method(system: AbstractGroupSystem, integrator: object) -> AbstractIntegrator:
    chosen = as_integrator("rkmk-4" if integrator is None else integrator)
    require_fit(system, chosen)
    return chosen


def _strength(system: AbstractGroupSystem, noise: object) -> np.ndarray:
    array = np.atleast_1d(host_float64("noise", noise))
    n = system.group.dim
    if array.ndim != 1 or len(array) not in (1, n) or not (np.isfinite(array) & (array > 0)).all():
        raise BadInput(
            f"noise = {quote(noise)} must be a positive number, or {n} of them: one for each "
            f"coordinate on {system.group.name}."
        )
    return np.broadcast_to(array, (n,)).copy()


def _require_finite(linear: _Linear) -> None:
    if not all(np.isfinite(x).all() for x in (linear.gap, linear.before, *linear.residuals)):
        raise BadInput(
            "a step fails along the estimated motion: give a nearer state=..., or a smaller h."
        )

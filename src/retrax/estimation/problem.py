r"""The residuals of a motion, weighted by their noise, and their derivatives in all unknowns."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from retrax.errors import BadInput, StepFailed
from retrax.estimation.sensors import Sensor
from retrax.estimation.unknowns import Point, Unknowns
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.controls import AbstractControl
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.evaluate import as_jax, evaluate
from retrax.numerics.frozen import Frozen
from retrax.numerics.reuse import Jitted
from retrax.run.drive import Plant, unwrap
from retrax.run.simulate import simulate
from retrax.trajectory.trajectory import Trajectory


class Linear(NamedTuple):
    """Weighted residuals, and their derivatives in left-trivialised changes of the unknowns."""

    residuals: Float[np.ndarray, " residual"]
    jacobian: Float[np.ndarray, "residual unknown"]


class Sloped(NamedTuple):
    """Half the sum of squares of the weighted residuals, and its gradient."""

    value: float
    gradient: Float[np.ndarray, " unknown"]


class Along(Frozen):
    """A sensor along a run.

    **Attributes:** `times` of its measurements, since the start; `rows`, `rest`: as in `Grid`;
    `between`: whether some of the times lie between saved states.
    """

    sensor: Sensor
    times: Float[np.ndarray, " time"]
    rows: Int[np.ndarray, " time"]
    rest: Float[np.ndarray, " time"]
    between: bool = eqx.field(static=True)

    def weigh(
        self, integrator: AbstractIntegrator, system: AbstractGroupSystem, states: State
    ) -> Float[Array, "time component"]:
        """Return residuals over their noise, from the saved states of a run."""
        there = jax.tree.map(lambda x: jnp.asarray(x)[jnp.asarray(self.rows)], states)
        if self.between:

            def partial(state: State, rest: Array) -> State:
                new, _ = integrator.step(system, state, rest)
                return jax.tree.map(lambda x, y: jnp.where(rest > 0, y, x), state, new)

            there = jax.vmap(partial)(there, jnp.asarray(self.rest))
        values = jax.tree.map(jnp.asarray, self.sensor.values)
        noise = jnp.asarray(self.sensor.noise)

        def over_noise(state: State, value: PyTree) -> Array:
            return self.sensor.residual(system, state, value) / noise

        return jax.vmap(over_noise)(there, values)


class Problem(Frozen):
    """Sensors along a run: everything that residuals depend on except the unknowns.

    **Attributes:** `control`: what drives the run, if something does; `h`, `steps`, `save_every`:
    the run.
    """

    unknowns: Unknowns
    integrator: AbstractIntegrator
    control: AbstractControl | None
    sensors: tuple[Along, ...]
    h: float = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    save_every: int = eqx.field(static=True)

    def linear(self, point: Point, until: float = np.inf) -> Linear:
        """Linearise the residuals at a point; those later than `until` count nothing.

        They are NaN at a point at which there is no such system: a search has gone too far.
        """
        if not self._is_possible(point):
            return Linear(np.full(1, np.nan), np.full((1, self.unknowns.size(point)), np.nan))
        return Linear(*map(np.asarray, _linear(self, point, np.asarray(until))))

    def differentiate(self, point: Point, until: float = np.inf) -> Sloped:
        """Differentiate half the sum of squares at a point, in reverse; NaN as in `linear`."""
        if not self._is_possible(point):
            return Sloped(np.nan, np.full(self.unknowns.size(point), np.nan))
        value, gradient = _differentiate(self, point, np.asarray(until))
        return Sloped(float(value), np.asarray(gradient))

    def _is_possible(self, point: Point) -> bool:
        """Tell whether the parameters make a system: no negative mass, for instance."""
        try:
            self.unknowns.plant(jax.tree.map(as_jax, point))
        except BadInput:
            return False
        return True

    def residuals(self, point: Point) -> Float[np.ndarray, " residual"]:
        """Return the weighted residuals at a point, without derivatives; NaN where a step fails."""
        plant, state = self.unknowns.make(jax.tree.map(as_jax, point))
        system, integrator = unwrap(plant, self.integrator, self.control)
        try:
            states = self.run(plant, state).states
        except StepFailed:
            return np.full(sum(x.sensor.noise.size * len(x.times) for x in self.sensors), np.nan)
        parts = [evaluate(Along.weigh, x, integrator, system, states) for x in self.sensors]
        return np.concatenate([part.ravel() for part in parts])

    def move(self, point: Point, change: Float[np.ndarray, " unknown"]) -> Point:
        """Return the point after a change of the unknowns."""
        return evaluate(Unknowns.move, self.unknowns, point, change)

    def run(self, plant: Plant, state: State) -> Trajectory:
        """Run through the times of all measurements."""
        return simulate(
            plant,
            self.integrator,
            state,
            h=self.h,
            steps=self.steps,
            control=self.control,
            save_every=self.save_every,
            progress=False,
        )


def _change(problem: Problem, point: Point, change: Array, until: Array) -> Array:
    """Return all residuals over their noise after a change; zero where they are too late."""
    plant, state = problem.unknowns.make(problem.unknowns.move(point, change))
    system, integrator = unwrap(plant, problem.integrator, problem.control)
    states = problem.run(plant, state).states
    parts = []
    for sensor in problem.sensors:
        found = sensor.weigh(integrator, system, states)
        counts = jnp.asarray(sensor.times)[:, None] <= until
        parts.append(jnp.where(counts, found, 0.0).ravel())
    return jnp.concatenate(parts)


@Jitted
def _linear(problem: Problem, point: Point, until: Array) -> tuple[Array, Array]:
    def both(change: Array) -> tuple[Array, Array]:
        found = _change(problem, point, change, until)
        return found, found

    jacobian, residuals = jax.jacfwd(both, has_aux=True)(jnp.zeros(problem.unknowns.size(point)))
    return residuals, jacobian


@Jitted
def _differentiate(problem: Problem, point: Point, until: Array) -> tuple[Array, Array]:
    def half(change: Array) -> Array:
        found = _change(problem, point, change, until)
        return found @ found / 2

    return jax.value_and_grad(half)(jnp.zeros(problem.unknowns.size(point)))

"""An optimal control problem: a plant, its step, where it starts and ends, and what it costs."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.errors import BadInput
from retrax.groups.base import Coordinates, Element
from retrax.integrators.base import AbstractIntegrator, as_integrator, require_fit
from retrax.integrators.driven import Driven
from retrax.mechanics.actuated import Actuated, Actuators, Inputs
from retrax.mechanics.controls import Held
from retrax.mechanics.functions import Function, as_pytree
from retrax.mechanics.state import State
from retrax.numerics.checks import (
    MOST_NODES,
    ArrayLike,
    as_float,
    float64,
    is_traced,
    output,
    quote,
    require_double_precision,
    require_instance,
    require_number,
    require_output,
    require_whole,
)
from retrax.numerics.meant import explain_keywords
from retrax.planning.costs import MinimumEffort, MinimumTime
from retrax.planning.duration import Free
from retrax.planning.ends import Reach, end_function
from retrax.planning.model import Model, Sizes
from retrax.run.checks import require_state

if TYPE_CHECKING:
    from retrax.planning.plan import Plan

Cost = Callable[[Element, Coordinates, Inputs, Float[Array, ""]], Float[Array, ""]]


class ControlProblem:
    r"""Minimise a cost over the inputs $u_k$ of a plant, each held for one step of an integrator.

    $$
    \min \sum_k h\,l(g_k, \xi_k, u_k, t_k) + L(g_N, \mu_N), \qquad
    x_{k+1} = \Phi(x_k, u_k, h),\quad \psi(x_N) = 0,\quad c(g_k, \xi_k, u_k) \ge 0,
    $$

    for $k = 0, \dots, N - 1$, with $x_0$ given, $Nh = T$, and bounds of the inputs.
    `optimise(problem)` solves it.

    **Arguments:**

    - `plant`: an `Actuated` system; `integrator`: any integrator of the library.
    - `start`: the state at the start.
    - `end`: a `Reach(...)`, a function `psi(g, mu)` that is to be zero, or `None`: free.
    - `duration`: in seconds, or `Free(guess)`; `steps`: how many steps it is divided into.
    - `cost`: `MinimumEffort()`, `MinimumTime()`, or a function `l(g, xi, u, t)`.
    - `final_cost`: a function `L(g, mu)` of the end.
    - `bounds`: `(lower, upper)` of the inputs, numbers or one for each; those of the plant unless
        they are given. An input whose bounds are equal is frozen.
    - `path`: a function `c(g, xi, u)` whose numbers are to stay non-negative at the states
        $k = 0, \dots, N - 1$, with the inputs that act from there. It does not bind the last
        state, at which no inputs act: `end` and `final_cost` do.
    - `guess`: a plan for a similar problem to start from, on the same group and with as many
        inputs. Otherwise the search starts from the geodesic between start and end, with their
        velocities.
    """

    @explain_keywords
    def __init__(
        self,
        plant: Actuated,
        integrator: AbstractIntegrator | str,
        *,
        start: State,
        end: Reach | Callable[[Element, Coordinates], Array] | None,
        duration: float | Free,
        steps: int,
        cost: Cost,
        final_cost: Callable[[Element, Coordinates], Array] | None = None,
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
        path: Callable[[Element, Coordinates, Inputs], Array] | None = None,
        guess: "Plan | None" = None,
    ):
        require_double_precision()
        what = "a plant: write Actuated(system, inputs=B)"
        self.plant = require_instance("plant", plant, Actuated, what)
        self.integrator = as_integrator(integrator)
        system = self.system = plant.system
        if system.flows or not system.has_momentum:
            raise BadInput(f"the {system.name} has no momenta that inputs could change.")
        if is_traced(plant, self.integrator, start):
            raise BadInput("optimal control problems are made of numbers, not of traced values.")
        require_fit(system, self.integrator)
        self.start = jax.tree.map(np.asarray, _check_start(self, start))
        self.end, self.guess = end, _check_guess(self, guess)
        self.duration = _check_duration(duration)
        self.steps = require_whole("steps", steps, 1, MOST_NODES)
        self.integrator.check_step(system, self.start, self.first_duration / self.steps)
        if isinstance(cost, MinimumTime) and not self.is_free:
            raise BadInput(
                f"MinimumTime() is {self.duration:g} s for every plan of duration = "
                f"{self.duration:g} s: let the duration be found, duration=Free({self.duration:g})."
            )
        self.cost, self.final_cost, self.path = cost, final_cost, path
        _require_fitting_cost(self)
        self.lower, self.upper = _check_bounds(plant.actuators, bounds)
        self.model = self._model()
        self.params = np.concatenate(
            [np.ravel(x).astype(float) for x in jax.tree.leaves(self.model)] or [np.zeros(0)]
        )

    def __repr__(self) -> str:
        return (
            f"<ControlProblem of {self.system.name} by {self.integrator!r}: {self.steps} steps, "
            f"duration {self.duration}>"
        )

    @property
    def count(self) -> int:
        """How many inputs there are."""
        return self.plant.count

    @property
    def is_free(self) -> bool:
        """Whether the duration is free."""
        return isinstance(self.duration, Free)

    @property
    def first_duration(self) -> float:
        """The duration, or its guess where it is free."""
        return self.duration.guess if isinstance(self.duration, Free) else self.duration

    @property
    def limits(self) -> Float[np.ndarray, " 2m"]:
        """The bounds below and above of inputs that are to be found, infinite for frozen ones."""
        frozen = self.lower == self.upper
        lower, upper = np.where(frozen, -np.inf, self.lower), np.where(frozen, np.inf, self.upper)
        return np.concatenate([lower, upper])

    def _model(self) -> Model:
        system, group = self.system, self.system.group
        coordinates = jax.ShapeDtypeStruct((group.dim,), jnp.float64)
        inputs = jax.ShapeDtypeStruct((self.count,), jnp.float64)
        number = jax.ShapeDtypeStruct((), jnp.float64)
        require_output("cost", self.cost, (group.layout(), coordinates, inputs, number), ())
        if self.final_cost is not None:
            require_output("final_cost", self.final_cost, (group.layout(), coordinates), ())
        along = 0
        if self.path is not None:
            found = output("path", self.path, (group.layout(), coordinates, inputs))
            along = int(np.prod(found.shape))
            if found.dtype != jnp.float64 or along < 1:
                raise BadInput(
                    f"path returns {found.dtype} of shape {found.shape}, but it must return real "
                    "numbers that are to stay non-negative."
                )
        last = float(self.start.t) + self.first_duration
        end = end_function(self.end, system, last, self.is_free)
        ends = 0
        if end is not None:
            ends = int(np.prod(output("end", end, (group.layout(), coordinates)).shape))
        _require_enough_steps(self, ends)
        bounded = bool(np.isfinite(self.limits).any())
        element = sum(int(np.prod(x.shape)) for x in jax.tree.leaves(group.layout()))
        sizes = Sizes(element, group.dim, self.count, along, ends, int(self.is_free), bounded)
        unlimited = Actuators(self.plant.actuators.matrix, None, None, self.count)
        step = Driven(self.integrator, unlimited, Held())
        final: Function | None = as_pytree(self.final_cost)
        cost, path, fixed = as_pytree(self.cost), as_pytree(self.path), self.lower == self.upper
        frozen = jnp.asarray(np.where(fixed, self.lower, np.nan)) if fixed.any() else None
        return Model(system, step, cost, final, path, end, frozen, sizes)


def _check_start(problem: ControlProblem, start: object) -> State:
    state = require_instance("start", start, State, "a State, as plant.state(g, ...) makes it")
    require_state(problem.system, state, problem.integrator)
    return State(state.g, state.momentum, state.t)


def _check_guess(problem: ControlProblem, guess: object) -> "Plan | None":
    """Return the guess as a plan with states and inputs of the kinds of the problem."""
    from retrax.planning.plan import Plan

    if guess is None:
        return None
    plan = require_instance("guess", guess, Plan, "a Plan, as optimise(problem) returns it")
    own, other = problem.system.group, plan.problem.system.group
    if (own.name, own.layout()) != (other.name, other.layout()):
        raise BadInput(
            f"guess is a plan on {other.name}, and the {problem.system.name} moves on {own.name}."
        )
    if plan.problem.count != problem.count:
        raise BadInput(
            f"guess is a plan of {plan.problem.count} inputs, and the plant has {problem.count}."
        )
    return plan


def _require_fitting_cost(problem: ControlProblem) -> None:
    cost, count = problem.cost, problem.count
    if not isinstance(cost, MinimumEffort) or cost.weights is None:
        return
    shape = cost.weights.shape
    if shape[:1] not in ((), (count,)):
        raise BadInput(
            f"the weights of MinimumEffort are of shape {shape}, and the plant has {count} "
            f"{'input' if count == 1 else 'inputs'}."
        )


def _require_enough_steps(problem: ControlProblem, ends: int) -> None:
    count = int(np.sum(problem.lower < problem.upper))
    if not count:
        raise BadInput("the bounds of every input are equal: there is nothing to be found.")
    numbers = problem.steps * count + problem.is_free
    if numbers < ends:
        least = -(-(ends - problem.is_free) // count)
        raise BadInput(
            f"steps = {problem.steps} are too few: the end has {ends} equations, and "
            f"{problem.steps} x {count} inputs cannot meet them all; give {least} steps or "
            "more."
        )


def _check_duration(duration: object) -> float | Free:
    if isinstance(duration, Free):
        return duration
    number = as_float(duration)
    if not (np.isfinite(number) and number > 0):
        raise BadInput(
            f"duration = {quote(duration)} must be a positive number of seconds, or Free(guess)."
        )
    return require_number("duration", duration, "> 0", "s")


def _check_bounds(
    actuators: Actuators, bounds: Any
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """Return the bounds of the inputs, by default those of the plant; infinite if none."""
    count = actuators.count
    own = (
        (np.full(count, -np.inf), np.full(count, np.inf))
        if actuators.lower is None
        else (np.asarray(actuators.lower), np.asarray(actuators.upper))
    )
    if bounds is None:
        given = own
    else:
        if not isinstance(bounds, tuple | list) or len(bounds) != 2:
            raise BadInput(f"bounds = {quote(bounds)} must be a pair (lower, upper).")
        parts = [np.asarray(float64(f"bounds[{k}]", b)) for k, b in enumerate(bounds)]
        for part in parts:
            if part.shape not in ((), (count,)) or np.isnan(part).any():
                raise BadInput(
                    f"bounds = {quote(bounds)} must be numbers, or one for each of the {count} "
                    "inputs."
                )
        given = tuple(np.broadcast_to(part, (count,)) for part in parts)
    lower, upper = given
    for k in range(count):
        if not lower[k] <= upper[k] or (np.isinf(lower[k]) and lower[k] == upper[k]):
            raise BadInput(
                f"the bounds of input {k} leave it no room: lower = {lower[k]:g}, upper = "
                f"{upper[k]:g}."
            )
        if lower[k] < own[0][k] or upper[k] > own[1][k]:
            raise BadInput(
                f"input {k} of the plant saturates at {own[0][k]:g} and {own[1][k]:g}, and the "
                f"bounds {lower[k]:g} and {upper[k]:g} of the problem go beyond that."
            )
    return np.array(lower, float), np.array(upper, float)

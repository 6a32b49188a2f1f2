"""A motion and its inputs under a problem: what its steps, costs and constraints really are."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.mechanics.actuated import Inputs
from retrax.mechanics.state import State
from retrax.numerics.evaluate import evaluate
from retrax.planning.model import Model
from retrax.planning.problem import ControlProblem


class Evaluation(NamedTuple):
    """Numbers of a motion, made by the functions of a problem one by one.

    **Attributes:** `defects`: how far the step from each state is from the next one; `costs`: of
    each step; `final_cost`; `miss`: the equations of the end; `path`: at all states, at the last
    one with the inputs of the step that leads to it.
    """

    defects: Float[np.ndarray, "N n"]
    costs: Float[np.ndarray, " N"]
    final_cost: Float[np.ndarray, ""]
    miss: Float[np.ndarray, " p"]
    path: Float[np.ndarray, "N+1 c"]

    @property
    def cost(self) -> float:
        return float(self.costs.sum() + self.final_cost)


def evaluation(
    problem: ControlProblem, states: State, controls: Float[np.ndarray, "N m"], h: float
) -> Evaluation:
    """Evaluate steps, costs and constraints along N + 1 states with N inputs."""
    found = evaluate(_evaluate, problem.model, states, controls, np.asarray(h))
    return Evaluation(*map(np.asarray, found))


def path_at(model: Model, state: State, u: Inputs) -> Float[Array, " c"]:
    """Return the numbers of the path at a state with inputs."""
    if model.path is None:
        return jnp.zeros(0)
    return jnp.ravel(model.path(state.g, model.system.velocity_at(state), u))


def path_at_states(model: Model, states: State, controls: Inputs) -> Float[Array, "k c"]:
    """Return the numbers of the path at several states."""
    return jax.vmap(lambda state, u: path_at(model, state, u))(states, controls)


def _evaluate(model: Model, states: State, controls: Inputs, h: Array) -> tuple[Array, ...]:
    system, group = model.system, model.system.group

    def stage(here: State, there: State, u: Inputs) -> tuple[Array, Array]:
        new, _ = model.step.step(system, State(here.g, here.momentum, here.t, u), h)
        miss = group.log(group.compose(group.inverse(there.g), new.g))
        cost = model.cost(here.g, system.velocity_at(here), u, here.t)
        return jnp.concatenate([miss, new.momentum - there.momentum]), h * jnp.asarray(cost)

    before, after = (
        jax.tree.map(lambda x, part=part: x[part], states) for part in (slice(-1), slice(1, None))
    )
    defects, costs = jax.vmap(stage)(before, after, controls)
    last = jax.tree.map(lambda x: x[-1], states)
    final = 0.0 if model.final_cost is None else model.final_cost(last.g, last.momentum)
    miss = jnp.zeros(0) if model.end is None else jnp.ravel(model.end(last.g, last.momentum))
    held = jnp.concatenate([controls, controls[-1:]])
    return defects, costs, jnp.asarray(final, float), miss, path_at_states(model, states, held)

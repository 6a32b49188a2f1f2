"""The inputs of driven runs: what was asked of the actuators, and where they saturated."""

from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from retrax.integrators.driven import Driven
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.evaluate import Evaluated
from retrax.trajectory.observe import in_blocks, make_picker

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory

# An input that is asked for beyond a bound by less, relative to the bound, is at it.
_ROUNDING = 1e-9


def ask_inputs(
    system: AbstractGroupSystem,
    integrator: Driven,
    states: State,
    h: float,
    owner: np.ndarray | None = None,
) -> np.ndarray:
    """Return the inputs that a controller asks for from each state on.

    With `owner` the arrays of system and integrator have a first axis, and it says which row is
    that of each state.
    """
    size = np.float64(h)
    if owner is None:
        return in_blocks(_ask, make_picker(states), len(states.t), system, integrator, size)

    def each(rows: np.ndarray) -> tuple[Any, State]:
        return make_picker((system, integrator))(owner[rows]), make_picker(states)(rows)

    return in_blocks(_ask_each, each, len(states.t), size)


@Evaluated
def _ask(states: State, system: AbstractGroupSystem, integrator: Driven, h: Any) -> Any:
    return jax.vmap(lambda state: integrator.ask_inputs(system, state, h))(states)


@Evaluated
def _ask_each(pairs: tuple[Any, State], h: Any) -> Any:
    def one(parts: tuple[AbstractGroupSystem, Driven], state: State) -> Any:
        system, integrator = parts
        return integrator.ask_inputs(system, state, h)

    return jax.vmap(one)(*pairs)


def ask_members(
    system: AbstractGroupSystem, integrator: Driven, states: State, h: float, shared: bool
) -> np.ndarray:
    """Return the inputs that controllers ask for: (time, member, input).

    They are NaN where a member has failed before.
    """
    records, members = np.shape(states.t)
    flat = jax.tree.map(lambda x: np.reshape(x, (records * members, *x.shape[2:])), states)
    owner = None if shared else np.tile(np.arange(members), records)
    found = np.array(ask_inputs(system, integrator, flat, h, owner)).reshape(records, members, -1)
    found[np.isnan(states.momentum).any(axis=-1)] = np.nan  # a table would go on
    return found


def limit(integrator: Driven, u: np.ndarray) -> np.ndarray:
    """Return what the actuators make of inputs that are asked of them."""
    lower, upper = integrator.actuators.lower, integrator.actuators.upper
    return u if lower is None else np.clip(u, np.asarray(lower), np.asarray(upper))


def saturation_warning(integrator: Driven, u: np.ndarray, of: str = "saved states") -> str | None:
    """Return a sentence about inputs `u` that were asked for beyond their bounds, if any were.

    All axes of `u` but the last run through what the sentence calls `of`.
    """
    lower, upper = integrator.actuators.lower, integrator.actuators.upper
    if lower is None or upper is None:
        return None
    low, high = np.asarray(lower), np.asarray(upper)
    beyond = (u < low - _ROUNDING * np.abs(low)) | (u > high + _ROUNDING * np.abs(high))
    counts = beyond.reshape(-1, u.shape[-1]).sum(axis=0)
    if not counts.any():
        return None
    total = beyond[..., 0].size
    told = [f"input {k} at {count} of {total} {of}" for k, count in enumerate(counts) if count]
    worst = int(np.argmax(counts))
    with np.errstate(invalid="ignore"):
        by = np.where(beyond, np.maximum(low - u, u - high), -np.inf)[..., worst]
    most = float(u[..., worst].flat[np.argmax(by)])
    return (
        f"the actuators saturate: {', '.join(told)} was asked for beyond its bounds and stayed at "
        f"them; the farthest was input {worst} = {most:.4g}."
    )


def saturation(run: "Trajectory") -> str | None:
    """Return a sentence about inputs of a run that were at their bounds, if any were."""
    integrator = run.integrator
    if not isinstance(integrator, Driven) or integrator.actuators.lower is None:
        return None
    assert run.system is not None
    return saturation_warning(integrator, ask_inputs(run.system, integrator, run.states, run.h))

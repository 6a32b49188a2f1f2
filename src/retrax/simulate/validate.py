"""Host-side checks of a run before it starts: one sentence for each thing that is wrong."""

import math
import numbers
from typing import Any

import jax
import numpy as np

from retrax.errors import BadInput
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import is_traced, require_finite, require_shape
from retrax.numerics.precision import require_double_precision


def require_run(system: Any, integrator: Any, state: Any, h: Any, steps: Any, save_every: Any):
    """Refuse a run that cannot start."""
    require_double_precision()
    if not isinstance(system, AbstractGroupSystem):
        raise BadInput(f"system = {system!r} is not a retrax system.")
    if not isinstance(integrator, AbstractIntegrator):
        raise BadInput(
            f"integrator = {integrator!r} is not a retrax integrator; "
            "an instance is needed, such as LieVerlet()."
        )
    if not isinstance(state, State):
        raise BadInput(
            f"state = {state!r} is not a State; make one with system.state(g, velocity=...)."
        )
    integrator.check(system)
    _require_state(system, state)
    _require_step_size(h)
    _require_count("steps", steps)
    _require_count("save_every", save_every)


def _require_state(system: AbstractGroupSystem, state: State) -> None:
    if is_traced(*jax.tree.leaves(state)):
        return
    for leaf in jax.tree.leaves(state):
        if np.asarray(leaf).dtype != np.float64:
            raise BadInput(
                f"state holds {np.asarray(leaf).dtype} numbers, but retrax computes in float64."
            )
    system.group.check("state.g", state.g)
    require_shape("state.momentum", state.momentum, (system.group.dim,))
    require_finite("state.momentum", state.momentum)
    require_finite("state.t", state.t)


def _require_step_size(h: Any) -> None:
    if is_traced(h):
        return
    try:
        value = float(h)
    except (TypeError, ValueError) as cause:
        raise BadInput(f"h = {h!r} must be a positive number of seconds.") from cause
    if not (math.isfinite(value) and value > 0):
        raise BadInput(f"h = {value} must be a positive, finite number of seconds.")


def _require_count(name: str, value: Any) -> None:
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)
    if not whole or value < 1:
        raise BadInput(f"{name} = {value!r} must be a whole number of at least 1.")

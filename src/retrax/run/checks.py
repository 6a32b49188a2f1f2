"""Host-side checks of a run before it starts: one sentence for each thing that is wrong."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from retrax.errors import BadInput, warn
from retrax.integrators.base import AbstractIntegrator, StepInfo, require_fit
from retrax.mechanics.state import State, as_state
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import (
    as_float,
    is_traced,
    quote,
    require_double_precision,
    require_finite,
    require_shape,
    require_whole,
    shape_and_dtype,
)
from retrax.numerics.evaluate import as_jax
from retrax.numerics.known import check_members, depends_on_traced, require_each
from retrax.numerics.platform import require_platform
from retrax.store.free_memory import available, gigabytes

# The velocity of a start may miss the constraint by this much, relative to its components.
ALLOWED_AT_START = 1e-6
# So much may one miss that a method left which does not keep the constraint at its nodes.
ALLOWED_OF_DRIFT = 1e-2


def start_of(system: object, state: object) -> Any:
    """Return what a run starts from, as a state where the system knows how."""
    require_platform()
    return system.as_state(state) if isinstance(system, AbstractGroupSystem) else state


def uses_traced(system: object, integrator: AbstractIntegrator, state: object) -> bool:
    """Tell whether a step uses a value that JAX is tracing and that no argument shows."""
    if not isinstance(system, AbstractGroupSystem) or not isinstance(state, State):
        return False  # `require_run` rejects it

    def step(state: State) -> tuple[State, StepInfo]:
        return integrator.step(system, state, jnp.ones(()))

    return depends_on_traced(step, jax.tree.map(np.asarray, state))


def require_run(
    system: object,
    integrator: AbstractIntegrator,
    state: object,
    h: object,
    steps: object,
    save_every: object,
) -> None:
    """Reject a run that cannot start."""
    system, state = require_parts(system, state)
    require_fit(system, integrator)
    require_state(system, state, integrator)
    require_step_size(h)
    require_time_to_pass(state.t, h)
    if not is_traced(system, integrator, state, h):
        integrator.check_step(system, state, abs(as_float(h)))
    count = require_count("steps", steps)
    require_count("save_every", save_every)
    if not is_traced(system, integrator, state, h):
        doubt = integrator.check_run(as_float(state.t), as_float(h), count)
        if doubt is not None:
            warn(doubt)


def require_commits(checkpoint: object, every: object, traced: bool) -> None:
    """Reject a count of steps between commits that is not one, and checkpoints of traced runs."""
    if checkpoint is not None and traced:
        raise BadInput(
            f"checkpoint = {checkpoint!r} is for runs, but this one is being traced by JAX and has "
            "no numbers to keep."
        )
    if every is not None:
        require_count("every", every)
        if checkpoint is None:
            raise BadInput(f"every = {every!r} is the steps between commits to a checkpoint=...")


def require_parts(system: object, state: object) -> tuple[AbstractGroupSystem, State]:
    """Reject what is not a system and a state; return them as what they are."""
    require_double_precision()
    return require_system(system), as_state(state)


def require_system(system: object) -> AbstractGroupSystem:
    """Reject what is not a system; return it as what it is."""
    if not isinstance(system, AbstractGroupSystem):
        lost = "so give the system that you ran: a file keeps none on a group or space of your own"
        why = f", {lost}" if system is None else ""
        raise BadInput(f"system = {quote(system)} is not a retrax system{why}.")
    return system


def require_state(
    system: AbstractGroupSystem, state: object, integrator: AbstractIntegrator | None = None
) -> None:
    """Reject what is not a state of that system, or one from which the integrator cannot go on."""
    state = as_state(state)
    if is_traced(state):
        return  # `system.state` has seen what JAX knows of it
    require_arrays("state", state)
    system.configuration_space.check("state.g", state.g)
    require_shape("state.momentum", state.momentum, (system.group.dim,))
    require_finite("state.momentum", state.momentum)
    require_shape("state.t", state.t, ())
    require_finite("state.t", state.t)
    if not is_traced(system):
        require_possible(system, state, integrator)


def is_possible_anywhere(system: AbstractGroupSystem) -> bool:
    """Tell whether the system can be in every state of its space."""
    anywhere = type(system).check_state is AbstractGroupSystem.check_state
    return system.constraint is None and system.contact is None and anywhere


def require_possible(
    system: AbstractGroupSystem, state: State, integrator: AbstractIntegrator | None = None
) -> None:
    """Reject a state in which the system cannot be, or whose velocity breaks its constraint.

    A start may be where another run ended, so it is held to less than what `system.state` makes,
    and to still less where the integrator does not keep the constraint.
    """
    if is_possible_anywhere(system):
        return
    state = jax.tree.map(as_jax, state)
    system.check_state(state)
    keeps = integrator is None or not {"constraint", "positions"}.isdisjoint(integrator.preserves)
    system.require_admissible(state, ALLOWED_AT_START if keeps else ALLOWED_OF_DRIFT)


def require_arrays(name: str, state: State) -> None:
    """Reject a momentum that is not an array, and numbers of another type."""
    if not isinstance(state.momentum, np.ndarray | jax.Array):
        raise BadInput(f"{name}.momentum = {quote(state.momentum)} must be an array of float64.")
    for leaf in jax.tree.leaves(state):
        if (dtype := shape_and_dtype(leaf)[1]) != np.float64:
            raise BadInput(f"{name} holds {dtype} numbers, but retrax computes in float64.")


def require_step_size(h: object) -> None:
    if is_traced(h):
        require_each(_require_step_size, h)
    else:
        _require_step_size(h)


def _require_step_size(h: object) -> None:
    if not 0 < abs(as_float(h)) < math.inf:
        raise BadInput(
            f"h = {quote(h)} must be a finite number of seconds, and not zero; below zero it goes "
            "back in time."
        )


def require_time_to_pass(t: object, h: object) -> None:
    """Reject a step that rounding loses, now or later, beside a time that is too large."""
    require_each(_require_time_to_pass, t, h, fine=_passes)


def require_members_time(t: np.ndarray, h: float) -> None:
    """Reject a step that rounding loses beside the time of a member."""
    if not _passes(np.asarray(np.max(np.abs(t))), np.asarray(h)):
        sizes = np.full(len(t), h)
        check_members(_require_time_to_pass, (t, sizes), (len(t),), fine=_passes)


def _passes(t: np.ndarray, h: np.ndarray) -> np.ndarray:
    # Times at a distance of one spacing may round to one number, and spacings double on the way.
    return np.asarray(np.abs(h) > 2 * np.spacing(np.abs(t)))


def _require_time_to_pass(t: np.ndarray, h: np.ndarray) -> None:
    if not _passes(t, h):
        raise BadInput(
            f"h = {float(h):g} s is lost in rounding beside the time t = {float(abs(t)):g} s."
        )


MOST_STEPS = 2**53


def require_count(name: str, value: object) -> int:
    """Reject what is not a whole number of at least 1; return it."""
    count = require_whole(name, value, 1)
    if name == "steps" and count > MOST_STEPS:
        raise BadInput(f"steps = {value} is more than 2**53, beyond which times are not exact.")
    return count


# Results may take this part of the memory that is free; the rest is for those who look at them.
_PART = 0.8
# The solver statistics that are saved with each state, in bytes.
_STATISTICS = 24
# Results of fewer bytes always fit, and to look how much memory is free takes longer than a step.
_SMALL = 2**26


def require_memory(needed: int, members: int, records: int) -> None:
    """Reject results that do not fit, before anything runs."""
    free = available()
    if free is not None and needed > _PART * free:
        most = int(_PART * free / needed * records)
        advice = (
            f"save at most {most} states of each member (a larger save_every, or None)"
            if records > 1 and most > 0
            else "run the members in several parts"
        )
        raise BadInput(
            f"{members} members with {records} saved states each need {gigabytes(needed)} of "
            f"memory, but {gigabytes(free)} are free: {advice}."
        )


def require_room(bytes_per_record: int, steps: int, save_every: int) -> None:
    """Reject a run of one body whose saved states do not fit, before anything runs.

    They are there twice when the chunks of a run are put together.
    """
    records = steps // save_every + 1
    needed = 2 * records * (bytes_per_record + _STATISTICS)
    free = available() if needed > _SMALL else None
    if free is not None and needed > _PART * free:
        raise BadInput(
            f"steps = {steps} with save_every = {save_every} saves {records} states, which need "
            f"{gigabytes(needed)} of memory, but {gigabytes(free)} are free: save_every = "
            f"{math.ceil(save_every * needed / (_PART * free))} would fit."
        )

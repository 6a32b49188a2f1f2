"""Check that a file holds a whole run."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from retrax.errors import BadInput, RetraxError
from retrax.numerics.checks import reason

if TYPE_CHECKING:
    from retrax.engine.progress import Interval
    from retrax.mechanics.state import State
    from retrax.trajectory.trajectory import Trajectory

# Times are computed anew at each step, not added up.
_ROUNDING = 1e-12
# A residual, relative to the terms of its equation, of a step that solved nothing.
_UNSOLVED = 1e3


def whole_run(path: Path, read: Callable[[], "Trajectory"]) -> "Trajectory":
    """Return the run that `read` puts together from a file; reject one with a part missing."""
    try:
        run = read()
        wrong = _wrong(run)
    except RetraxError as error:
        raise BadInput(f"path = {str(path)!r}: {error}") from error
    except Exception as cause:
        raise BadInput(f"path = {str(path)!r} holds no whole run: {reason(cause)}.") from cause
    if wrong is not None:
        raise BadInput(f"path = {str(path)!r} holds no whole run: {wrong}.")
    return run


def require_even(run: "Trajectory") -> None:
    """Reject a run that lacks states: a file knows how many steps lie between all of them."""
    if len(run.t) < _count_saved(run.completed, run.save_every):
        raise BadInput(
            f"this run cannot be saved: it has {len(run.t)} states after {run.completed} steps, "
            "but a file holds states that are equally many steps apart. Give all calls of a "
            "Stepper as many steps, or keep run.dataset()."
        )


def whole_states(path: Path, states: "State", info: "Interval", told: dict[str, Any]) -> None:
    """Reject states and statistics that do not fit the numbers of their run."""
    wrong = _wrong_states(states, info, told)
    if wrong is not None:
        raise BadInput(f"path = {str(path)!r} holds no whole run: {wrong}.")


def _wrong(run: "Trajectory") -> str | None:
    """Say what is not as `save` writes it."""
    seen = run.observations
    told = {name: getattr(run, name) for name in ("h", "steps", "completed", "save_every")}
    wrong = _wrong_states(run.states, run.info, told)
    if wrong is not None:
        return wrong
    alike = {"velocity": (seen.velocity, 2), "reaction": (seen.reaction, 2)}
    each = {"group_defect": (seen.defect, 1), "constraint_violation": (seen.violation, 1)}
    worked = {name: (getattr(seen, name), 1) for name in ("energy", "power")}
    each |= {name: of for name, of in worked.items() if of[0] is not None}
    invariants = {name: (values, 1) for name, values in seen.invariants.items()}
    rest = {name: (values, None) for name, values in seen.observables.items()}
    multipliers = {"multipliers": (seen.multipliers, 2)}
    driven = {"inputs": (seen.inputs, 2), "input_rates": (seen.rates, 2)}
    driven = {name: of for name, of in driven.items() if of[0] is not None}
    named: dict[str, Any] = alike | each | invariants | multipliers | rest | driven
    wrong = _wrong_arrays(named, len(run.t))
    if wrong is not None:
        return wrong
    if not all(0 <= getattr(run, name) < np.inf for name in ("seconds", "compile_seconds")):
        return f"it took {run.seconds} s, compiled in {run.compile_seconds} s"
    lacking = [name for name in ("system", "group", "integrator") if name not in run.provenance]
    return f"its provenance does not name the {lacking[0]}" if lacking else None


def _wrong_states(states: "State", info: "Interval", told: dict[str, Any]) -> str | None:
    h, steps, completed, every = (told[k] for k in ("h", "steps", "completed", "save_every"))
    if not (np.isfinite(h) and h != 0 and 0 <= completed <= steps and every >= 1):
        return (
            f"h = {h}, steps = {steps}, completed = {completed} and save_every = {every} are those "
            "of no run"
        )
    parts = {f"g{k}": (leaf, None) for k, leaf in enumerate(jax.tree.leaves(states.g))}
    own = {"time": (states.t, 1), "momentum": (states.momentum, 2)}
    named: dict[str, Any] = own | parts
    kept = enumerate(jax.tree.leaves(states.control))
    named |= {f"control{k}": (leaf, None) for k, leaf in kept}
    named |= {name: (values, 1) for name, values in info._asdict().items()}
    wrong = _wrong_arrays(named, len(np.atleast_1d(states.t)))
    if wrong is not None:
        return wrong
    numbers = (states.t, states.g, states.momentum, states.control, tuple(info))
    if not len(states.t) or not all(np.isfinite(x).all() for x in jax.tree.leaves(numbers)):
        return "its states are not finite numbers"
    if any(np.any(x < 0) for x in info):
        return "its statistics are negative"
    if np.any(info.residual >= _UNSOLVED):
        return f"equations of its steps are left with a residual of {np.max(info.residual):.3g}"
    return _wrong_times(np.asarray(states.t), h, steps, completed, every)


def _wrong_arrays(named: dict[str, tuple[Any, int | None]], records: int) -> str | None:
    """Say which array lacks real numbers, a row for each time, or its number of axes."""
    for name, (values, axes) in named.items():
        array = np.asarray(values)
        fits = array.shape[:1] == (records,) and axes in (None, array.ndim)
        if array.dtype.kind not in "fiub" or not fits:
            return f"{name} is {array.dtype} of shape {array.shape} at {records} times"
    return None


def _count_saved(completed: int, every: int) -> int:
    """Return how many states a run has, with its start and its end."""
    return -(-completed // every) + 1


def _wrong_times(t: np.ndarray, h: float, steps: int, completed: int, every: int) -> str | None:
    """Say which time is not t0 + k h; a run that stopped early may end between two steps."""
    saved = _count_saved(completed, every)
    if completed < steps and len(t) == saved + 1:  # the last state is that of an event
        t, event = t[:-1], (t[-1] - t[0]) / h - completed
        if not 0 < event <= 1:
            return f"it ends {event} steps after its last whole one"
    behind = np.minimum(np.arange(len(t)) * float(every), float(completed))
    if len(t) != saved:
        took = f"{completed} step{'s' if completed != 1 else ''}"
        return f"it has {len(t)} states after {took}, saved every {every}"
    with np.errstate(over="ignore"):
        off = np.abs(t - (t[0] + h * behind))
    if completed < steps:
        off, last = off[:-1], off[-1]
        if last > every * abs(h):
            return f"it ends at t = {t[-1]} s, which is not after {completed} steps of {h} s"
    if np.any(off > _ROUNDING * (np.abs(t[: len(off)]) + abs(t[0]))):
        return f"its times are not {t[0]} + k h with h = {h} s"
    return None

"""Whether what a file holds is a run, and all of it."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import numpy as np

from retrax.errors import BadInput, RetraxError
from retrax.numerics.checks import reason

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory


def whole_run(path: Path, read: Callable[[], "Trajectory"]) -> "Trajectory":
    """The run that `read` puts together from a file, refused where a part of it is none."""
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


def _wrong(run: "Trajectory") -> str | None:
    """What is not as `save` writes it."""
    records = len(run.t)
    named = {"time": run.t, "momentum": run.momentum, "velocity": run.velocity}
    arrays = named | {f"g{k}": leaf for k, leaf in enumerate(jax.tree.leaves(run.g))}
    arrays |= dict(run.invariants()) | run.info._asdict()
    worked = {name: getattr(run.observations, name) for name in ("energy", "power")}
    arrays |= {name: values for name, values in worked.items() if values is not None}
    for name, values in arrays.items():
        array = np.asarray(values)
        if array.dtype.kind not in "fiub" or array.shape[:1] != (records,):
            return f"{name} is {array.dtype} of shape {array.shape} at {records} times"
    states = (run.t, run.g, run.momentum, tuple(run.info))
    if not records or not all(np.isfinite(x).all() for x in jax.tree.leaves(states)):
        return "its states are not finite numbers"
    if not (np.isfinite(run.h) and 0 <= run.completed <= run.steps and run.save_every >= 1):
        return (
            f"h = {run.h}, steps = {run.steps}, completed = {run.completed} and save_every = "
            f"{run.save_every} are those of no run"
        )
    return None

"""What a checkpoint stores of a run before its first step."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from retrax.engine.progress import Packing
from retrax.errors import BadInput
from retrax.simulate.checkpoint import restart
from retrax.simulate.checkpoint_store import Store, require_free
from retrax.simulate.running import Running
from retrax.trajectory.checkpoint_format import FORMAT, FORMAT_VERSION, columns, numbers_text
from retrax.trajectory.encoding import Unstorable, encode
from retrax.trajectory.nesting import flattened
from retrax.trajectory.provenance import environment

# The first steps of a run, taken again when it is resumed to see that they are the same.
_PROBE = 8


def require_path(checkpoint: Any) -> Path:
    """Refuse what is not a path, or one where a checkpoint cannot be made."""
    try:
        path = Path(checkpoint)
    except TypeError:
        path = Path()
    if not path.name or "\0" in str(path):
        raise BadInput(f"checkpoint = {checkpoint!r} must be a path, such as 'run.zarr'.")
    require_free(path)
    return path


def stored_objects(system: Any, integrator: Any) -> dict[str, Any]:
    """What moves and how, as data; `None` for what is not data, and a notice about it."""
    made: dict[str, Any] = {}
    for name, value in (("system", system), ("integrator", integrator)):
        try:
            made[name] = encode(value, name)
        except Unstorable as reason:
            made[name] = None
            warnings.warn(
                f"{reason}, and a checkpoint keeps data, not code: the states are safe, but to go "
                f"on it takes rx.resume(path, {name}=...); a {name} made by an importable function "
                "marked with @rx.factory can be stored.",
                stacklevel=4,
            )
    return made


def new_store(
    path: Path,
    objects: dict[str, Any],
    running: Running,
    *,
    h: float,
    every: int | None,
    compile_seconds: float,
    made: dict[str, str],
) -> Store:
    """The files of a run that begins, with all it takes to go on with it."""
    plan, state = running.plan, running.at.state
    record = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "configuration": json.dumps(flattened(state.g)[1]),
        "h": h,
        "save_every": plan.save_every,
        "every": every,
        "plan": list(plan),
        "environment": environment(running.loop.name),
        "compile_seconds": compile_seconds,
        "status": "running",
        "failure": None,
        "steps": running.steps,
        "completed": 0,
        "seconds": 0.0,
        "restart": restart(running.at, running.since),
        **{f"provenance_{key}": value for key, value in made.items()},
    }
    first = {"probe": numbers_text(probe(running)), "probe_steps": min(_PROBE, running.steps)}
    kinds = columns(state, made["group"])
    return Store.create(path, kinds, record, {**objects, **first}, running.saved[0])


def probe(running: Running, steps: int = _PROBE) -> np.ndarray:
    """The numbers of the state after the first few steps of a run that has not begun."""
    at, *_ = running.loop.run(running.at, 1, min(steps, running.steps), running.plan.capacity)
    return Packing(at.state).rows(at.state)[:, 0]

"""What a checkpoint stores of a run before its first step."""

import json
import warnings
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from retrax.errors import BadInput
from retrax.simulate.checkpoint import OnItsWay, restart
from retrax.simulate.checkpoint_store import Store, require_free
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


class NotBegun(OnItsWay, Protocol):
    """A run before its first step: what its checkpoint stores once and for all."""

    compile_seconds: float
    provenance: dict[str, str]

    def first_steps(self, count: int) -> np.ndarray: ...


def new_store(path: Path, objects: dict[str, Any], running: NotBegun) -> Store:
    """The files of a run that begins, with all it takes to go on with it."""
    run, made = running.run, running.provenance
    record = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "configuration": json.dumps(flattened(run.state.g)[1]),
        "h": run.plan.h,
        "save_every": run.plan.save_every,
        "every": run.plan.commit_every,
        "environment": environment(made["backend"]),
        "compile_seconds": running.compile_seconds,
        "status": "running",
        "failure": None,
        "steps": run.plan.steps,
        "completed": 0,
        "seconds": 0.0,
        "restart": restart(run, running.since),
        **{f"provenance_{key}": value for key, value in made.items()},
    }
    count = min(_PROBE, run.plan.steps)
    first = {"probe": numbers_text(running.first_steps(count)), "probe_steps": count}
    kinds = columns(run.state, made["group"])
    return Store.create(path, kinds, record, {**objects, **first}, running.saved[0])

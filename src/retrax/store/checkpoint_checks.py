"""The record of a checkpoint, checked: a checksum does not show that retrax wrote it."""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from retrax.engine.progress import Interval
from retrax.errors import BadInput
from retrax.numerics.checks import quote
from retrax.store.checkpoint_format import Column, Shapes, columns_of, of_state, read_numbers
from retrax.trajectory.dataset import CONTROL, INPUTS, read_nesting

# No whole number of a run is larger; the arrays of one chunk together have at most so many bytes.
_MOST, _CHUNK_BYTES = 2**53, 2**26
_STATUSES = ("running", "finished", "interrupted", "failed")


def _whole(least: int) -> Callable[[Any], bool]:
    return lambda x: type(x) is int and least <= x <= _MOST


def _duration(x: Any) -> bool:
    return type(x) in (int, float) and 0 <= x <= sys.float_info.max


def _texts(x: Any) -> bool:
    return isinstance(x, dict) and all(isinstance(value, str) for value in x.values())


def _failure(x: Any) -> bool:
    return x is None or (_texts(x) and {"error", "sentence"} <= x.keys())


def _restart(x: Any) -> bool:
    if not isinstance(x, dict) or not {"step", "state", "since"} <= x.keys():
        return False
    remembered = x.get("memory")  # nothing before the first step
    numbers = [x["state"], x["since"], *([] if remembered is None else [remembered])]
    return _whole(0)(x["step"]) and all(map(_numbers, numbers))


def _numbers(x: Any) -> bool:
    try:
        return bool(np.isfinite(read_numbers(x)).all())
    except (ValueError, TypeError):
        return False


_RULES: dict[str, Callable[[Any], bool]] = {
    "configuration": lambda x: isinstance(x, str),
    "h": lambda x: type(x) is float and 0 < abs(x) < 1e100,
    "save_every": _whole(1),
    "every": lambda x: x is None or _whole(1)(x),
    "environment": lambda x: _texts(x) and "backend" in x,
    "compile_seconds": _duration,
    "seconds": _duration,
    "status": lambda x: x in _STATUSES,
    "failure": _failure,
    "steps": _whole(1),
    "completed": _whole(0),
    "rows": _whole(1),
    "rows_per_chunk": _whole(1),
    "commit": _whole(0),
    "start": lambda x: isinstance(x, str),
    "crc": lambda x: isinstance(x, dict) and all(map(_whole(0), x.values())),
    "restart": _restart,
    "provenance_system": lambda x: isinstance(x, str),
    "provenance_group": lambda x: isinstance(x, str),
    "provenance_integrator": lambda x: isinstance(x, str),
}


def check_record(path: str, record: dict[str, Any]) -> tuple[dict[str, Any], list[Column]]:
    """Return the attributes of a commit record and its columns; reject any other record."""
    told = record["attributes"]
    for name, rule in _RULES.items():
        if name not in told:
            raise _no_record(path, f"{name} is missing")
        if not rule(told[name]):
            raise _no_record(path, f"it does not write {name} = {quote(told[name])}")
    odd = [k for k, x in told.items() if k.startswith("provenance_") and not isinstance(x, str)]
    if odd:
        raise _no_record(path, f"{odd[0]} = {quote(told[odd[0]])} is not text")
    if not isinstance(told.get("events", {}), dict):
        raise _no_record(path, f"it does not write events = {quote(told['events'])}")
    kinds = _columns(path, record, told)
    wrong = _contradiction(told, kinds)
    if wrong is not None:
        raise _no_record(path, wrong)
    # JSON knows no type of a number: some tools write 0.0 as 0.
    return told | {name: float(told[name]) for name in ("seconds", "compile_seconds")}, kinds


def _columns(path: str, record: dict[str, Any], told: dict[str, Any]) -> list[Column]:
    """Return the columns, checked to have the names, types, chunks and codecs of retrax."""
    try:
        parts = len(jax.tree.leaves(read_nesting(told["configuration"])))
    except ValueError as cause:
        raise _no_record(path, str(cause)) from cause
    arrays: Any = record.get("consolidated_metadata")
    arrays = arrays.get("metadata") if isinstance(arrays, dict) else None
    names = [*(["g"] if parts == 1 else [f"g{k}" for k in range(parts)]), "momentum"]
    if not isinstance(arrays, dict) or list(arrays)[: len(names)] != names:
        raise _no_record(path, f"its arrays are not {quote(names)} and their times")
    kept = sum(name.startswith(CONTROL) for name in arrays)
    names += [f"{CONTROL}{k}" for k in range(kept)]
    if not set(names) <= set(arrays):
        raise _no_record(path, f"its arrays are {quote(list(arrays))}")
    shapes = [_shape(path, name, arrays[name]) for name in names]
    driven = _shape(path, INPUTS, arrays[INPUTS]) if INPUTS in arrays else None
    momentum = shapes[parts]
    if len(momentum) != 1 or (driven is not None and len(driven) != 1):
        raise _no_record(path, f"its momenta have the shape {quote(momentum)}")
    inputs = None if driven is None else driven[0]
    found = Shapes(shapes[:parts], momentum, shapes[parts + 1 :], inputs)
    kinds = columns_of(found, told["provenance_group"])
    if [kind.name for kind in kinds] != list(arrays):
        raise _no_record(path, f"its arrays are {quote(list(arrays))}")
    for kind in kinds:
        found = arrays[kind.name]
        wanted = kind.metadata(told["rows"], told["rows_per_chunk"])
        if not isinstance(found, dict) or not _texts(found.get("attributes")):
            raise _no_record(path, f"its array {kind.name} is not described")
        if _exactly(found) != _exactly(wanted):
            raise _no_record(path, f"its array {kind.name} is not laid out as retrax does it")
    return [
        kind._replace(attributes=arrays[kind.name]["attributes"])
        for kind in kinds  # words may change from version to version
    ]


def _exactly(metadata: Mapping[str, Any]) -> str:
    return json.dumps({**metadata, "attributes": {}}, sort_keys=True)


def _shape(path: str, name: str, about: Any) -> tuple[int, ...]:
    shape = about.get("shape") if isinstance(about, dict) else None
    if not (isinstance(shape, list) and 1 <= len(shape) <= 6 and all(map(_whole(0), shape))):
        raise _no_record(path, f"its array {name} has the shape {quote(shape)}")
    return tuple(shape[1:])


def _contradiction(told: dict[str, Any], kinds: list[Column]) -> str | None:
    """Find a contradiction between the numbers of a record."""
    steps, completed, every, rows = (told[k] for k in ("steps", "completed", "save_every", "rows"))
    failed, restart = told["failure"] is not None, told["restart"]
    stopped = told.get("events", {}).get("ended_by") is not None
    state = sum(kind.row_bytes() for kind in kinds[: of_state(kinds)])
    per_chunk, row = told["rows_per_chunk"], sum(kind.row_bytes() for kind in kinds)
    behind = restart["step"] % every
    says = {
        f"{completed} of {steps} steps": completed <= steps,
        f"{rows} rows after {completed} steps": rows == -(-completed // every) + 1,
        f"an end after {completed} steps": completed % every == 0
        or failed
        or stopped
        or completed == steps,
        f"status = {told['status']}": (told["status"] == "failed") == failed,
        f"chunks of {per_chunk} rows": per_chunk == 1 or per_chunk * row <= _CHUNK_BYTES,
        f"a restart at step {restart['step']}": restart["step"] < completed + every
        and restart["step"] <= steps,
        "a restart from other numbers": 8 * len(read_numbers(restart["state"])) == state,
        "a restart without what its step hands on": restart["step"] == 0
        or restart.get("memory") is not None,
        "a restart after other statistics": _since(read_numbers(restart["since"]), behind),
        "checksums of other arrays": list(told["crc"]) == [kind.name for kind in kinds],
    }
    return next((what for what, good in says.items() if not good), None)


def _since(numbers: np.ndarray, steps: int) -> bool:
    """Return whether these can be the statistics of `steps` steps; no steps have none."""
    fits = len(numbers) == len(Interval._fields) and bool(np.all(numbers >= 0))
    return fits and (steps > 0 or not numbers.any())


def _no_record(path: str, why: str) -> BadInput:
    return BadInput(f"path = {path!r} is not a record that retrax writes: {why}.")

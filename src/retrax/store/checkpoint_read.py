"""A checkpoint read back: its record checked first, then all that is committed, byte by byte.

A checksum shows that a record is as it was written, not that retrax wrote it.
"""

import json
import math
import os
import stat
import sys
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from retrax.engine.progress import Interval
from retrax.errors import BadInput, printable, printable_lines
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import shown
from retrax.store.checkpoint_format import (
    FORMAT,
    FORMAT_VERSION,
    RECORD,
    START,
    Column,
    chunk_end,
    columns_of,
    digest,
    read_numbers,
    read_text,
)
from retrax.store.free_memory import require_readable
from retrax.store.objects import Trust
from retrax.store.run_objects import read_objects, state_like
from retrax.store.version_0_1 import without_picture
from retrax.store.whole import whole_states
from retrax.trajectory.dataset import MEMBERS_FORMAT, read_nesting, unflattened
from retrax.trajectory.trajectory import Trajectory

# No whole number of a run is larger; the arrays of one chunk together have at most so many bytes.
_MOST, _CHUNK_BYTES = 2**53, 2**26
_PREFIX = "provenance_"
# No record of a run, nor what it begins with, is longer.
_LONGEST_TEXT = 2**30
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
    remembered = x.get("memory")  # nothing before the first step, and in format 1
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


def checked_record(path: str, record: dict[str, Any]) -> tuple[dict[str, Any], list[Column]]:
    """Return the attributes of a commit record and its columns; reject any other record."""
    told = record["attributes"]
    for name, rule in _RULES.items():
        if name not in told:
            raise _no_record(path, f"{name} is missing")
        if not rule(told[name]):
            raise _no_record(path, f"it does not write {name} = {shown(told[name])}")
    odd = [k for k, x in told.items() if k.startswith("provenance_") and not isinstance(x, str)]
    if odd:
        raise _no_record(path, f"{odd[0]} = {shown(told[odd[0]])} is not text")
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
        raise _no_record(path, f"its arrays are not {shown(names)} and their times")
    shapes = [_shape(path, name, arrays[name]) for name in names]
    kinds = columns_of(shapes[:-1], shapes[-1], told["provenance_group"])
    if [kind.name for kind in kinds] != list(arrays) or len(shapes[-1]) != 1:
        raise _no_record(path, f"its arrays are {shown(list(arrays))}")
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
        raise _no_record(path, f"its array {name} has the shape {shown(shape)}")
    return tuple(shape[1:])


def _contradiction(told: dict[str, Any], kinds: list[Column]) -> str | None:
    """Find a contradiction between the numbers of a record."""
    steps, completed, every, rows = (told[k] for k in ("steps", "completed", "save_every", "rows"))
    failed, restart = told["failure"] is not None, told["restart"]
    state = sum(kind.row_bytes() for kind in kinds[: -len(Interval._fields)])
    per_chunk, row = told["rows_per_chunk"], sum(kind.row_bytes() for kind in kinds)
    says = {
        f"{completed} of {steps} steps": completed <= steps,
        f"{rows} rows after {completed} steps": rows == -(-completed // every) + 1,
        f"an end after {completed} steps": completed % every == 0 or failed or completed == steps,
        f"status = {told['status']}": (told["status"] == "failed") == failed,
        f"chunks of {per_chunk} rows": per_chunk == 1 or per_chunk * row <= _CHUNK_BYTES,
        f"a restart at step {restart['step']}": restart["step"] < completed + every
        and restart["step"] <= steps,
        "a restart from other numbers": 8 * len(read_numbers(restart["state"])) == state,
        "a restart after other statistics": len(read_numbers(restart["since"]))
        == len(Interval._fields),
        "checksums of other arrays": list(told["crc"]) == [kind.name for kind in kinds],
    }
    return next((what for what, good in says.items() if not good), None)


def _no_record(path: str, why: str) -> BadInput:
    return BadInput(f"path = {path!r} is not a record that retrax writes: {why}.")


class Stored(NamedTuple):
    """A committed run: what the record says, what moves and how, and an array for each column."""

    path: Path
    record: dict[str, Any]
    start: dict[str, Any]
    columns: list[Column]
    arrays: list[Any]

    def states(self) -> State:
        """Return the states, stacked along time, their configuration as nested tuples."""
        nested = json.loads(self.record["configuration"])
        g = unflattened(nested, lambda k: self.columns[k].name)
        return state_like(g, self.arrays[: -len(Interval._fields)])

    def info(self) -> Interval:
        """Return how the steps went, between saved states."""
        return Interval(*self.arrays[-len(Interval._fields) :])

    def words(self) -> dict[str, str]:
        """Return all that the record tells of the run in words."""
        return {
            printable(key[len(_PREFIX) :]): printable_lines(value)
            for key, value in self.record.items()
            if key.startswith(_PREFIX)
        }

    def provenance(self) -> dict[str, str]:
        """Return how the run was made, and why it failed if it did."""
        made = without_picture(self.words())
        failure = self.record["failure"]
        return made if failure is None else made | {"failure": printable(failure["sentence"])}


def read_record(path: Path) -> tuple[dict[str, Any], list[Column]]:
    """Read the commit record and the columns it speaks of."""
    if not path.exists():
        raise BadInput(f"path = {str(path)!r}: there is no such checkpoint.")
    if path.is_file():
        raise BadInput(
            f"path = {str(path)!r} is not a checkpoint of retrax, which is a folder, but a file. "
            "Continue the run of a NetCDF file with run = rx.load(path) and "
            "rx.simulate(run.system, run.integrator, run.final, ...)."
        )
    text = _bytes(path / RECORD, f"path = {str(path)!r} is not a checkpoint of retrax")
    _require_no_sweep(path, text)
    record = read_text(text, str(path / RECORD))
    attributes = record["attributes"]
    if attributes.get("format") != FORMAT:
        raise BadInput(f"path = {str(path)!r} is a Zarr store, but not a checkpoint of retrax.")
    version = attributes.get("format_version")
    if type(version) is not int or version < 1:
        raise BadInput(f"path = {str(path)!r} is damaged: retrax has no format {shown(version)}.")
    if version > FORMAT_VERSION:
        raise BadInput(
            f"path = {str(path)!r} was written in format {version}, and this retrax reads up to "
            f"{FORMAT_VERSION}: a newer retrax is needed."
        )
    return checked_record(str(path / RECORD), record)


def _require_no_sweep(path: Path, text: bytes) -> None:
    """Say how to read the other stores that retrax writes."""
    try:
        found = json.loads(text)["attributes"]["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return
    if found == "retrax-sweep":
        raise BadInput(
            f"path = {str(path)!r} holds a sweep: read it with xarray.open_zarr, and make the same "
            "call of rx.sweep again to go on with it."
        )
    if found == MEMBERS_FORMAT:
        raise BadInput(
            f"path = {str(path)!r} holds an ensemble, many runs at once: read it with "
            "xarray.open_zarr."
        )


def read_checkpoint(path: str | Path) -> Stored:
    """Read all that is committed in a checkpoint, also while its run goes on."""
    path = Path(path)
    record, kinds = read_record(path)
    _require_own_folder(path / START)
    begun = _bytes(path / START, f"the checkpoint {str(path)!r} is not whole")
    if digest(begun) != record["start"]:
        raise BadInput(f"path = {str(path / START)!r} is damaged, or that of another checkpoint.")
    start = _checked_start(path, read_text(begun, str(path / START))["attributes"], kinds)
    needed = record["rows"] * sum(kind.row_bytes() for kind in kinds)
    require_readable(path, needed, f"xarray.open_zarr({str(path)!r})")
    arrays = [_column(path, kind, record) for kind in kinds]
    stored = Stored(path, record, start, kinds, arrays)
    whole_states(path, stored.states(), stored.info(), record)
    _require_restart(stored)
    return stored


def _require_restart(stored: Stored) -> None:
    """Reject a run that restarts at a saved state from other numbers."""
    restart, every = stored.record["restart"], stored.record["save_every"]
    row, between = divmod(restart["step"], every)
    saved = [array[row].ravel() for array in stored.arrays[: -len(Interval._fields)]]
    if not between and not np.array_equal(np.concatenate(saved), read_numbers(restart["state"])):
        raise BadInput(
            f"path = {str(stored.path)!r} restarts at step {restart['step']} from another state "
            "than it saved there."
        )


def _checked_start(path: Path, start: dict[str, Any], kinds: list[Column]) -> dict[str, Any]:
    """Check what a run begins with: its objects as data, and where its first steps led."""
    try:
        size = sum(math.prod(kind.shape) for kind in kinds[: -len(Interval._fields)])
        good = (
            len(read_numbers(start["probe"])) == size and {"system", "integrator"} <= start.keys()
        )
        good = good and type(start["probe_steps"]) is int and 1 <= start["probe_steps"] <= 2**20
    except (KeyError, ValueError, TypeError):
        good = False
    if not good:
        raise BadInput(f"path = {str(path / START)!r} is not what retrax writes there.")
    return start


def _column(path: Path, kind: Column, record: dict[str, Any]) -> np.ndarray:
    """Read the committed rows of one array."""
    rows, per_chunk = record["rows"], record["rows_per_chunk"]
    size = per_chunk * kind.row_bytes()
    files = [path / kind.file(chunk) for chunk in range(-(-rows // per_chunk))]
    for file in files:  # all of them, before there is memory for any
        _require_file(file, size + 4, f"the checkpoint {str(path)!r} is not whole")
    data = np.empty((rows, *kind.shape), kind.dtype)
    for chunk, file in enumerate(files):
        text = _bytes(file, f"the checkpoint {str(path)!r} is not whole")
        body, check = text[:size], text[size:]
        if len(body) != size or check != chunk_end(body):
            raise _damaged(file)
        here = data[chunk * per_chunk : (chunk + 1) * per_chunk]
        here[:] = np.frombuffer(body, kind.dtype).reshape(per_chunk, *kind.shape)[: len(here)]
    if zlib.crc32(data.tobytes()) != record["crc"][kind.name]:
        raise BadInput(
            f"path = {str(path / kind.name)!r} is damaged: its chunks are whole, but not those "
            "that were committed."
        )
    return data


def _require_file(file: Path, size: int, otherwise: str) -> None:
    """Reject files of another size, and links: a checkpoint holds all its own files."""
    _require_own_folder(file)
    try:
        found = os.lstat(file)
    except OSError as cause:
        raise _unreadable(file, otherwise, cause) from cause
    if not stat.S_ISREG(found.st_mode):
        raise BadInput(f"path = {str(file)!r} is not a regular file, as those of checkpoints are.")
    if found.st_size != size:
        raise _damaged(file)


def _require_own_folder(file: Path) -> None:
    if file.parent.is_symlink():
        raise BadInput(f"path = {str(file.parent)!r} is a link, but a checkpoint has no links.")


def _damaged(file: Path) -> BadInput:
    return BadInput(f"path = {str(file)!r} is damaged: its bytes do not fit their checksum.")


def _unreadable(file: Path, otherwise: str, cause: OSError) -> BadInput:
    return BadInput(f"{otherwise}: {str(file)!r} cannot be read ({cause.strerror}).")


def _bytes(file: Path, otherwise: str) -> bytes:
    """Read all of a regular file; never wait for a pipe or follow a link."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with open(os.open(file, flags), "rb") as opened:
            found = os.fstat(opened.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > _LONGEST_TEXT:
                raise BadInput(f"{otherwise}: {str(file)!r} is not a file that retrax writes.")
            return opened.read()
    except OSError as cause:
        raise _unreadable(file, otherwise, cause) from cause


def load_checkpoint(path: Path, trust: Trust) -> Trajectory:
    """Read a run as far as it is committed."""
    stored = read_checkpoint(path)
    found = read_objects(path, stored.start, stored.states(), stored.words(), trust)
    return trajectory_of(stored, *found)


def trajectory_of(
    stored: Stored, system: AbstractGroupSystem | None, integrator: AbstractIntegrator | None
) -> Trajectory:
    """Make the trajectory of all that is committed."""
    states, record = stored.states(), stored.record
    return Trajectory(
        t=np.asarray(states.t),
        states=states,
        info=stored.info(),
        h=record["h"],
        steps=record["steps"],
        completed=record["completed"],
        save_every=record["save_every"],
        seconds=record["seconds"],
        compile_seconds=record["compile_seconds"],
        provenance=stored.provenance(),
        system=system,
        integrator=integrator,
    )

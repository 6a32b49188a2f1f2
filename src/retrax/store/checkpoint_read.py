"""A checkpoint read back: its record checked first, then all that is committed, byte by byte.

A checksum shows that a record is as it was written, not that retrax wrote it.
"""

import json
import math
import os
import stat
import zlib
from pathlib import Path
from typing import Any, NamedTuple, cast

import jax
import numpy as np

from retrax.engine.progress import Interval, Packing
from retrax.engine.step_program import memory_of
from retrax.errors import BadInput, RetraxError, printable, printable_lines, warn
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.remembered import RememberedSystem
from retrax.mechanics.state import State
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import quote, reason
from retrax.store.checkpoint_checks import check_record
from retrax.store.checkpoint_format import (
    FORMAT,
    FORMAT_VERSION,
    RECORD,
    START,
    Column,
    chunk_end,
    digest,
    of_state,
    read_numbers,
    read_text,
)
from retrax.store.free_memory import require_readable
from retrax.store.measured import require_measured, require_start
from retrax.store.objects import Trust
from retrax.store.run_objects import read_objects, state_like, with_kept
from retrax.store.whole import whole_states
from retrax.trajectory.crossings import Events, events_of
from retrax.trajectory.dataset import INPUTS, unflatten
from retrax.trajectory.members import MEMBERS_FORMAT
from retrax.trajectory.trajectory import Trajectory

_PREFIX = "provenance_"
# No record of a run, nor what it begins with, is longer.
_LONGEST_TEXT = 2**30


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
        g = unflatten(nested, lambda k: self.columns[k].name)
        return state_like(g, self.arrays[: of_state(self.columns)])

    def info(self) -> Interval:
        """Return how the steps went, between saved states."""
        first = of_state(self.columns)
        return Interval(*self.arrays[first : first + len(Interval._fields)])

    def rows(self) -> list[Any]:
        """Return the arrays of states and of how the steps went."""
        return self.arrays[: of_state(self.columns) + len(Interval._fields)]

    def inputs(self) -> Any:
        """Return the inputs of a driven run; `None` of another."""
        return self.arrays[-1] if self.columns[-1].name == INPUTS else None

    def events(self) -> Events | None:
        """Return the events that were found; `None` where none was looked for."""
        told = self.record.get("events")
        if told is None:
            return None
        first = jax.tree.map(lambda x: np.asarray(x[0]), self.states())
        try:
            return events_of(told, first)
        except (ValueError, TypeError) as cause:
            raise BadInput(f"path = {str(self.path)!r} is damaged: {cause}.") from cause

    def words(self) -> dict[str, str]:
        """Return all descriptions of the run in its record."""
        return {
            printable(key[len(_PREFIX) :]): printable_lines(value)
            for key, value in self.record.items()
            if key.startswith(_PREFIX)
        }

    def provenance(self) -> dict[str, str]:
        """Return how the run was made, and why it failed if it did."""
        made = self.words()
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
    if type(version) is not int or version < FORMAT_VERSION:
        raise BadInput(f"path = {str(path)!r} is damaged: retrax has no format {quote(version)}.")
    if version > FORMAT_VERSION:
        raise BadInput(
            f"path = {str(path)!r} was written in format {version}, and this retrax reads "
            f"{FORMAT_VERSION}: a newer retrax is needed."
        )
    return check_record(str(path / RECORD), record)


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
    start = _check_start(path, read_text(begun, str(path / START))["attributes"], kinds)
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
    saved = [array[row].ravel() for array in stored.arrays[: of_state(stored.columns)]]
    if not between and not np.array_equal(np.concatenate(saved), read_numbers(restart["state"])):
        raise BadInput(
            f"path = {str(stored.path)!r} restarts at step {restart['step']} from another state "
            "than it saved there."
        )


def _check_start(path: Path, start: dict[str, Any], kinds: list[Column]) -> dict[str, Any]:
    """Check what a run begins with: its objects as data, and where its first steps led."""
    try:
        size = sum(math.prod(kind.shape) for kind in kinds[: of_state(kinds)])
        good = (
            len(read_numbers(start["probe"])) == size and {"system", "integrator"} <= start.keys()
        )
        if "measured" in start:
            good = good and read_numbers(start["measured"]).ndim == 1
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
            raise _damage(file)
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
        raise _damage(file)


def _require_own_folder(file: Path) -> None:
    if file.parent.is_symlink():
        raise BadInput(f"path = {str(file.parent)!r} is a link, but a checkpoint has no links.")


def _damage(file: Path) -> BadInput:
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
    found = read_objects(path, stored.start, stored.states(), trust)
    return trajectory_of(stored, *found)


def trajectory_of(
    stored: Stored, system: AbstractGroupSystem | None, integrator: AbstractIntegrator | None
) -> Trajectory:
    """Make the trajectory of all that is committed."""
    states, record = with_kept(stored.states(), integrator), stored.record
    info, events, inputs = stored.info(), stored.events(), stored.inputs()
    if events is not None and (at := events.end) is not None:
        # The last state is that of the event, with what acts there.
        last = jax.tree.map(lambda x: x[-1], states)
        end = State(at.g, at.momentum, at.t, last.control)
        states = jax.tree.map(lambda x, y: np.concatenate([x, np.asarray(y)[None]]), states, end)
        info = jax.tree.map(lambda x: np.append(x, np.zeros(1, x.dtype)), info)
        inputs = None if inputs is None else np.concatenate([inputs, inputs[-1:]])
    run = Trajectory(
        t=np.asarray(states.t),
        states=states,
        info=info,
        h=record["h"],
        steps=record["steps"],
        completed=record["completed"],
        save_every=record["save_every"],
        seconds=record["seconds"],
        compile_seconds=record["compile_seconds"],
        provenance=stored.provenance(),
        system=system,
        integrator=integrator,
        inputs=inputs,
        events=events,
    )
    _require_sound(stored, run)
    return run


def _require_sound(stored: Stored, run: Trajectory) -> None:
    """Reject a run that its system and its integrator do not fit; warn where little can be told."""
    path = f"path = {str(stored.path)!r}"
    measured, restart = stored.start.get("measured"), stored.record["restart"]
    try:
        require_measured(run)
        if measured is not None:
            require_start(run, read_numbers(measured))
        whole = run.integrator is not None and not isinstance(run.system, RememberedSystem | None)
        if whole and restart.get("memory") is not None:
            _require_memory(run, len(read_numbers(restart["memory"])))
    except RetraxError as cause:
        raise BadInput(f"{path}: {cause}") from cause
    except Exception as cause:  # whatever a system makes of parts that do not belong to it
        raise BadInput(f"{path} holds no whole run: {reason(cause)}.") from cause
    if measured is None:
        warn(
            f"{path} does not tell velocity and energy at its start: an earlier retrax wrote it, "
            "or somebody changed it. Whether its system is the one that ran cannot be checked."
        )


def _require_memory(run: Trajectory, numbers: int) -> None:
    first = jax.tree.map(lambda x: np.asarray(x)[0], run.states)
    needed = Packing(memory_of(run.system, cast(AbstractIntegrator, run.integrator), first)).size
    if numbers != needed:
        raise BadInput(
            f"it holds a memory of {numbers} numbers, but steps of {run.integrator!r} hand on "
            f"{needed}"
        )

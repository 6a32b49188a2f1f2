"""A checkpoint read back: what is committed, checked to the last byte."""

import json
import math
import os
import stat
import warnings
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from retrax.engine.progress import Interval
from retrax.errors import BadInput, printable, printable_lines
from retrax.integrators.base import AbstractIntegrator
from retrax.mechanics.state import State
from retrax.mechanics.symmetry import Symmetries
from retrax.mechanics.system import AbstractGroupSystem
from retrax.numerics.checks import reason, shown
from retrax.trajectory.checkpoint_checks import checked_record
from retrax.trajectory.checkpoint_format import (
    FORMAT,
    FORMAT_VERSION,
    RECORD,
    START,
    Column,
    chunk_end,
    digest,
    read_numbers,
    read_text,
)
from retrax.trajectory.decoding import NeedsImport, Trust, decode
from retrax.trajectory.free_memory import require_readable
from retrax.trajectory.nesting import unflattened
from retrax.trajectory.whole import whole_states

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory

_PREFIX = "provenance_"
_KINDS = {
    "system": (AbstractGroupSystem, "a retrax system"),
    "integrator": (AbstractIntegrator, "a retrax integrator"),
}
# No record of a run, nor what it begins with, is longer.
_LONGEST_TEXT = 2**30


class Stored(NamedTuple):
    """A committed run: what the record says, what moves and how, and an array for each column."""

    path: Path
    record: dict[str, Any]
    start: dict[str, Any]
    columns: list[Column]
    arrays: list[Any]

    def made(self, name: str, trust: Trust) -> Any:
        """The system or the integrator; `None` where it is not in the file."""
        value = decode(self.start[name], trust)
        kind, what = _KINDS[name]
        if value is not None and not isinstance(value, kind):
            raise BadInput(f"the stored {name} is {shown(value)}, not {what}.")
        return value

    def states(self) -> State:
        """The states, stacked along time, their configuration as nested tuples."""
        nested = json.loads(self.record["configuration"])
        g = unflattened(nested, lambda k: self.columns[k].name)
        return state_like(g, self.arrays[: -len(Interval._fields)])

    def info(self) -> Interval:
        """How the steps went, between saved states."""
        return Interval(*self.arrays[-len(Interval._fields) :])

    def provenance(self) -> dict[str, str]:
        record = self.record
        made = {
            printable(key[len(_PREFIX) :]): printable_lines(value)
            for key, value in record.items()
            if key.startswith(_PREFIX)
        }
        if record["failure"] is not None:
            made["failure"] = printable(record["failure"]["sentence"])
        return made


def state_like(g: Any, leaves: list[Any]) -> State:
    """A state whose configuration is nested like `g`, from its leaves as NumPy arrays."""
    nested = jax.tree.map(lambda _: jnp.zeros(()), g)
    tree = jax.tree.structure(State(nested, jnp.zeros(1), jnp.zeros(())))
    return jax.tree.unflatten(tree, leaves)


def read_record(path: Path) -> tuple[dict[str, Any], list[Column]]:
    """The commit record and the columns it speaks of; a sentence where there is none."""
    if not path.exists():
        raise BadInput(f"path = {str(path)!r}: there is no such checkpoint.")
    text = _bytes(path / RECORD, f"path = {str(path)!r} is not a checkpoint of retrax")
    record = read_text(text, str(path / RECORD))
    attributes = record["attributes"]
    if attributes.get("format") != FORMAT:
        raise BadInput(f"path = {str(path)!r} is a Zarr store, but not a checkpoint of retrax.")
    version = attributes.get("format_version")
    if type(version) is not int or version < 1:
        raise BadInput(f"path = {str(path)!r} is damaged: its format {shown(version)} is none.")
    if version > FORMAT_VERSION:
        raise BadInput(
            f"path = {str(path)!r} was written in format {version}, and this retrax reads up to "
            f"{FORMAT_VERSION}: a newer retrax is needed."
        )
    return checked_record(str(path / RECORD), record)


def read_checkpoint(path: str | Path) -> Stored:
    """All that is committed in a checkpoint, also while its run goes on."""
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
    """Where a run restarts at a saved state, it restarts from that state."""
    restart, every = stored.record["restart"], stored.record["save_every"]
    row, between = divmod(restart["step"], every)
    saved = [array[row].ravel() for array in stored.arrays[: -len(Interval._fields)]]
    if not between and not np.array_equal(np.concatenate(saved), read_numbers(restart["state"])):
        raise BadInput(
            f"path = {str(stored.path)!r} restarts at step {restart['step']} from another state "
            "than it saved there."
        )


def _checked_start(path: Path, start: dict[str, Any], kinds: list[Column]) -> dict[str, Any]:
    """What a run begins with: its objects as data, and where its first steps led."""
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
    """The committed rows of one array."""
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
    """Refuse a file of another size, and one that a link leads to: a checkpoint is all its own."""
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
        raise BadInput(f"path = {str(file.parent)!r} is a link, and a checkpoint has none.")


def _damaged(file: Path) -> BadInput:
    return BadInput(f"path = {str(file)!r} is damaged: its bytes do not fit their checksum.")


def _unreadable(file: Path, otherwise: str, cause: OSError) -> BadInput:
    return BadInput(f"{otherwise}: {str(file)!r} cannot be read ({cause.strerror}).")


def _bytes(file: Path, otherwise: str) -> bytes:
    """All of a regular file; pipes and links are not waited for and not followed."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with open(os.open(file, flags), "rb") as opened:
            found = os.fstat(opened.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > _LONGEST_TEXT:
                raise BadInput(f"{otherwise}: {str(file)!r} is not a file that retrax writes.")
            return opened.read()
    except OSError as cause:
        raise _unreadable(file, otherwise, cause) from cause


def load_checkpoint(path: str | Path) -> "Trajectory":
    """The run as far as it is committed, with its system where retrax can build it from data."""
    stored = read_checkpoint(path)
    try:
        system, integrator = (stored.made(name, None) for name in ("system", "integrator"))
        require_fit(stored, system)
    except NeedsImport:
        system = integrator = None
    except BadInput as cause:
        system = integrator = None
        warnings.warn(
            f"the system in {str(stored.path)!r} cannot be made here, so its run is read without "
            f"it: {cause}",
            stacklevel=3,
        )
    return trajectory_of(stored, system, integrator)


def require_fit(stored: Stored, system: Any) -> None:
    """Refuse a stored system whose states are not those of the run, or that measures nothing."""
    if system is None:
        return
    try:
        state = stored.states()
        like = system.configuration_space.layout()
        state = state_like(like, jax.tree.leaves(state))
        first = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), state)
        wanted = [np.shape(leaf) for leaf in jax.tree.leaves(like)]
        fits = [leaf.shape for leaf in jax.tree.leaves(first.g)] == wanted
        nothing = np.zeros((0, first.momentum.shape[0]))
        seen = jax.eval_shape(
            lambda s: (
                system.velocity_at(s),
                system.invariants(s, Symmetries(nothing, nothing)),
                system.multipliers(s),
                system.observables(s),
            ),
            first,
        )
    except Exception as cause:  # whatever a system makes of parts that are none of its own
        raise BadInput(f"the stored system is none: {reason(cause)}.") from cause
    if not fits or len(seen[0].shape) != 1:
        raise BadInput("the stored system is not that of the stored states.")


def trajectory_of(stored: Stored, system: Any, integrator: Any) -> "Trajectory":
    from retrax.trajectory.trajectory import Trajectory

    states, record = stored.states(), stored.record
    return Trajectory(
        t=states.t,
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

"""A checkpoint read back: what is committed, checked to the last byte."""

import json
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from retrax.engine.progress import Interval
from retrax.errors import BadInput
from retrax.mechanics.state import State
from retrax.trajectory.checkpoint_format import (
    FORMAT,
    FORMAT_VERSION,
    RECORD,
    START,
    Column,
    chunk_end,
    digest,
    read_text,
)
from retrax.trajectory.decoding import NeedsImport, decode
from retrax.trajectory.nesting import unflattened

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory

_PREFIX = "provenance_"


class Stored(NamedTuple):
    """A committed run: what the record says, what moves and how, and an array for each column."""

    path: Path
    record: dict[str, Any]
    start: dict[str, Any]
    columns: list[Column]
    arrays: list[Any]

    def made(self, name: str, factories: bool = True) -> Any:
        """The system or the integrator; `None` where it is not in the file."""
        return decode(self.start[name], factories)

    def states(self) -> State:
        """The states, stacked along time, their configuration as nested tuples."""
        nested = json.loads(self.record["configuration"])
        g = unflattened(nested, lambda k: self.columns[k].name)
        return state_like(g, self.arrays[: -len(Interval._fields)])

    def provenance(self) -> dict[str, str]:
        record = self.record
        made = {k[len(_PREFIX) :]: str(v) for k, v in record.items() if k.startswith(_PREFIX)}
        if record["failure"] is not None:
            made["failure"] = record["failure"]["sentence"]
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
    if attributes["format_version"] > FORMAT_VERSION:
        raise BadInput(
            f"path = {str(path)!r} was written in format {attributes['format_version']}, and this "
            f"retrax reads up to {FORMAT_VERSION}: a newer retrax is needed."
        )
    arrays = record["consolidated_metadata"]["metadata"]
    kinds = [
        Column(
            name,
            tuple(about["shape"][1:]),
            about["data_type"],
            tuple(about["dimension_names"]),
            about["attributes"],
        )
        for name, about in arrays.items()
    ]
    return attributes, kinds


def read_checkpoint(path: str | Path) -> Stored:
    """All that is committed in a checkpoint, also while its run goes on."""
    path = Path(path)
    record, kinds = read_record(path)
    begun = _bytes(path / START, f"the checkpoint {str(path)!r} is not whole")
    if digest(begun) != record["start"]:
        raise BadInput(f"path = {str(path / START)!r} is damaged, or that of another checkpoint.")
    start = read_text(begun, str(path / START))
    arrays = [_column(path, kind, record) for kind in kinds]
    return Stored(path, record, start["attributes"], kinds, arrays)


def _column(path: Path, kind: Column, record: dict[str, Any]) -> np.ndarray:
    """The committed rows of one array."""
    rows, per_chunk = record["rows"], record["rows_per_chunk"]
    data = np.empty((rows, *kind.shape), kind.dtype)
    for chunk in range(-(-rows // per_chunk)):
        file = path / kind.file(chunk)
        text = _bytes(file, f"the checkpoint {str(path)!r} is not whole")
        size = per_chunk * kind.row_bytes()
        body, check = text[:size], text[size:]
        if len(body) != size or check != chunk_end(body):
            raise BadInput(f"path = {str(file)!r} is damaged: its bytes do not fit their checksum.")
        here = data[chunk * per_chunk : (chunk + 1) * per_chunk]
        here[:] = np.frombuffer(body, kind.dtype).reshape(per_chunk, *kind.shape)[: len(here)]
    if zlib.crc32(data.tobytes()) != record["crc"][kind.name]:
        raise BadInput(
            f"path = {str(path / kind.name)!r} is damaged: its chunks are whole, but not those "
            "that were committed."
        )
    return data


def _bytes(file: Path, otherwise: str) -> bytes:
    try:
        return file.read_bytes()
    except OSError as cause:
        raise BadInput(f"{otherwise}: {str(file)!r} cannot be read ({cause.strerror}).") from cause


def load_checkpoint(path: str | Path) -> "Trajectory":
    """The run as far as it is committed, with its system where retrax can build it from data."""
    stored = read_checkpoint(path)
    try:
        system, integrator = (stored.made(name, False) for name in ("system", "integrator"))
    except (NeedsImport, BadInput):
        system = integrator = None
    return trajectory_of(stored, system, integrator)


def trajectory_of(stored: Stored, system: Any, integrator: Any) -> "Trajectory":
    from retrax.trajectory.trajectory import Trajectory

    states, record = stored.states(), stored.record
    return Trajectory(
        t=states.t,
        states=states,
        info=Interval(*stored.arrays[-len(Interval._fields) :]),
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

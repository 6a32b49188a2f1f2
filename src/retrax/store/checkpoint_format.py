"""What a checkpoint looks like on disk: a Zarr store that any reader of Zarr opens.

    run.zarr/zarr.json          the commit record: metadata of all arrays, where the run is
    run.zarr/start/zarr.json    the system, the integrator, and their first steps
    run.zarr/g/c.3.0.0          rows 3 R to 4 R of the configurations, little-endian, with a CRC-32C
    run.zarr/momentum/c.3.0     the same rows of the momenta, and so on for each array

The commit record holds the metadata of all arrays (Zarr calls that consolidated), and with it their
length. To replace that one file is to commit: rows beyond the length are not there yet.
"""

import base64
import hashlib
import json
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from retrax.engine.progress import Interval
from retrax.errors import BadInput
from retrax.mechanics.state import State
from retrax.trajectory.dataset import CONTROL, INPUTS, flatten

FORMAT, FORMAT_VERSION = "retrax-checkpoint", 2
RECORD, START = "zarr.json", "start/zarr.json"
# All arrays of a run together have this many bytes in a chunk, at the least those of one state.
_CHUNK_BYTES = 2**21


class Column(NamedTuple):
    """One array of a run, and what a row of it is."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    dims: tuple[str, ...]
    attributes: dict[str, str]

    def file(self, chunk: int) -> str:
        """Name the file that holds a chunk of rows."""
        return f"{self.name}/c.{'.'.join(map(str, (chunk, *(0 for _ in self.shape))))}"

    def row_bytes(self) -> int:
        return 8 * math.prod(self.shape)

    def metadata(self, rows: int, rows_per_chunk: int) -> dict[str, Any]:
        """Describe the array as Zarr does."""
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": [rows, *self.shape],
            "data_type": self.dtype,
            "chunk_grid": {
                "name": "regular",
                "configuration": {"chunk_shape": [rows_per_chunk, *self.shape]},
            },
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
            "fill_value": "NaN" if self.dtype == "float64" else 0,
            "codecs": [
                {"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "crc32c"},
            ],
            "attributes": self.attributes,
            "dimension_names": list(self.dims),
            "storage_transformers": [],
        }


class Shapes(NamedTuple):
    """The shapes of a state: of the parts of its configuration, its momentum, its control.

    `inputs`: how many inputs a driven run has; `None` for one that is free.
    """

    parts: Sequence[tuple[int, ...]]
    momentum: tuple[int, ...]
    control: Sequence[tuple[int, ...]]
    inputs: int | None


def columns(state: State, group: str, inputs: int | None) -> list[Column]:
    """List the arrays of a run through states like this, in the order of its leaves.

    The inputs of a driven run come last.
    """
    parts, _ = flatten(state.g)
    control = [np.shape(leaf) for leaf in jax.tree.leaves(state.control)]
    shapes = Shapes([part.shape for part in parts], np.shape(state.momentum), control, inputs)
    return columns_of(shapes, group)


def of_state(kinds: Sequence[Column]) -> int:
    """Count the columns that hold a state, which come first."""
    return next(k for k, kind in enumerate(kinds) if kind.name == "time") + 1


def columns_of(shapes: Shapes, group: str) -> list[Column]:
    """List the arrays of a run whose states have these shapes."""
    made, parts = [], shapes.parts
    for k, shape in enumerate(parts):
        name = "g" if len(parts) == 1 else f"g{k}"
        own = tuple(f"{name}_{axis}" for axis in range(len(shape)))
        about = {"long_name": f"configuration in {group}", "kind": "configuration"}
        made.append(Column(name, shape, "float64", ("time", *own), about))
    body = {"long_name": "body momentum"}
    made.append(Column("momentum", shapes.momentum, "float64", ("time", "body"), body))
    for k, shape in enumerate(shapes.control):
        name = f"{CONTROL}{k}"
        own = tuple(f"{name}_{axis}" for axis in range(len(shape)))
        about = {"long_name": "what the controller keeps", "kind": CONTROL}
        made.append(Column(name, shape, "float64", ("time", *own), about))
    time = {"units": "s", "long_name": "time"}
    made.append(Column("time", (), "float64", ("time",), time))
    for name in Interval._fields:
        dtype = "int64" if name == "iterations" else "float64"
        about = {"long_name": f"Newton {name} since the last saved state"}
        made.append(Column(name, (), dtype, ("time",), about))
    if shapes.inputs is not None:
        about = {"long_name": "inputs from here on"}
        made.append(Column(INPUTS, (shapes.inputs,), "float64", ("time", "input"), about))
    return made


def rows_per_chunk(kinds: list[Column]) -> int:
    """Choose how many rows a chunk has: a power of two."""
    rows = max(1, _CHUNK_BYTES // sum(kind.row_bytes() for kind in kinds))
    return 1 << (rows.bit_length() - 1)


def record_text(attributes: dict[str, Any], kinds: list[Column]) -> bytes:
    """Write the commit record, with its own checksum."""
    rows, per_chunk = attributes["rows"], attributes["rows_per_chunk"]
    arrays = {kind.name: kind.metadata(rows, per_chunk) for kind in kinds}
    record = {
        "zarr_format": 3,
        "node_type": "group",
        "attributes": attributes,
        "consolidated_metadata": {
            "kind": "inline",
            "must_understand": False,
            "metadata": arrays,
        },
    }
    return _check(record)


def start_text(attributes: dict[str, Any]) -> bytes:
    """Write the file about the system, with its own checksum."""
    return _check({"zarr_format": 3, "node_type": "group", "attributes": attributes})


def _check(record: dict[str, Any]) -> bytes:
    attributes = {**record["attributes"], "checksum": _checksum(record)}
    text = json.dumps({**record, "attributes": attributes}, allow_nan=False)
    return text.encode()


def _checksum(record: dict[str, Any]) -> str:
    return digest(
        json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    )


def digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def read_text(text: bytes, path: str) -> dict[str, Any]:
    """Read a record; reject one that does not fit its checksum."""
    try:
        record = json.loads(text)
        claimed = record["attributes"].pop("checksum")
        good = claimed == _checksum(record)
    except KeyError as cause:
        raise BadInput(f"path = {path!r} was not written by retrax, or is damaged.") from cause
    except (ValueError, TypeError, AttributeError, RecursionError):
        good = False
    if not good:
        raise BadInput(f"path = {path!r} is damaged: its bytes do not fit their checksum.")
    return record


def chunk_end(body: bytes) -> bytes:
    """Return what ends a chunk: the CRC-32C of Zarr."""
    import google_crc32c

    return google_crc32c.value(body).to_bytes(4, "little")


def numbers_text(numbers: np.ndarray) -> str:
    """Write float64 numbers as text, every bit of them."""
    return base64.b64encode(np.ascontiguousarray(numbers, "<f8").tobytes()).decode()


def read_numbers(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text, validate=True), "<f8").astype(float)

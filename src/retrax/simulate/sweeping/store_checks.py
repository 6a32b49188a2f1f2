"""Whether the store of a sweep is laid out as this sweep lays it out, before anything is read.

A store may come from elsewhere. Its names, shapes, chunks and codecs are compared with those of a
store that is made in memory; links lead out of it and are refused; a chunk is decompressed only
where it says that it is no larger than it should be.
"""

import json
import math
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from retrax.errors import BadInput
from retrax.numerics.checks import reason, shown

_ZSTD = b"\x28\xb5\x2f\xfd"
_LONGEST_TEXT = 2**28


def require_own_files(path: Path) -> None:
    """Refuse links and whatever else is neither a folder nor a regular file."""
    with os.scandir(path) as entries:
        found = list(entries)
    for entry in found:
        kind = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISDIR(kind):
            require_own_files(Path(entry.path))
        elif not stat.S_ISREG(kind):
            raise BadInput(
                f"store = {str(path)!r} holds {shown(entry.name)}, which is a link or not a "
                "regular file: a sweep writes into its own store only."
            )


def require_same_layout(path: Path, found: Any, wanted: Any, labels: Iterable[str]) -> None:
    """Refuse a group with other arrays than `wanted` has, or with other values of `labels`."""
    try:
        odd = _odd_array(path, found, wanted, labels)
    except BadInput:
        raise
    except Exception as cause:  # whatever Zarr makes of metadata that is none
        odd = reason(cause)
    if odd is not None:
        raise BadInput(f"store = {str(path)!r} is not laid out as this sweep: {odd}.")


def _odd_array(path: Path, found: Any, wanted: Any, labels: Iterable[str]) -> str | None:
    if (path / "zarr.json").stat().st_size > _LONGEST_TEXT:
        return "its zarr.json is longer than any"
    record = json.loads((path / "zarr.json").read_bytes())
    if record.get("zarr_format") != 3 or record.get("node_type") != "group":
        return "it is not a group of Zarr 3"
    members = dict(wanted.members(max_depth=None))
    names = {name for name, _ in found.members(max_depth=None)}
    if names != set(members):
        return f"it has {shown(sorted(names ^ set(members)))} more or less"
    arrays = {name: array for name, array in members.items() if hasattr(array, "chunks")}
    for name, array in arrays.items():
        if _kind(found[name]) != _kind(array):
            return f"its array {name} has another shape, type, fill value, chunks or codecs"
    odd = (name for name in labels if not _same(path, found[name], arrays[name]))
    return next((f"its {name} are others" for name in odd), None)


def _kind(array: Any) -> tuple:
    about = array.metadata
    codecs = [type(codec).__name__ for codec in about.codecs]
    fill, attributes = repr(about.fill_value), dict(array.attrs)
    names = about.zarr_format, about.dimension_names, about.chunk_key_encoding
    return array.shape, array.dtype, array.chunks, codecs, fill, attributes, names


def _same(path: Path, found: Any, wanted: Any) -> bool:
    """Whether a label of the sweep is what it is here; a label is one chunk."""
    whole = tuple(slice(0, n) for n in wanted.shape)
    return chunk_fits(path, found, whole) and np.array_equal(found[...], wanted[...])


def chunk_fits(path: Path, array: Any, region: tuple[slice, ...]) -> bool:
    """Whether the chunk of a region says that it decompresses to no more than a chunk has.

    A chunk that is not there counts as one that fits: it is all fill value, and has the shape of
    the array. Words have no size of their own, and are few.
    """
    at = [(part.start or 0) // size for part, size in zip(region, array.chunks, strict=True)]
    file = path.joinpath(array.path, "c", *map(str, at))
    try:
        with file.open("rb") as opened:
            head = opened.read(18)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    size = declared_size(head)
    words = array.dtype.kind not in "fiubc"
    most = 2**26 if words else math.prod(array.chunks) * array.dtype.itemsize
    return size is not None and size <= most


def declared_size(head: bytes) -> int | None:
    """What a frame of Zstandard says it decompresses to; `None` where it does not say.

    References: RFC 8878, section 3.1.1.1.
    """
    if not head.startswith(_ZSTD) or len(head) < 6:
        return None
    flags = head[4]
    single = flags >> 5 & 1
    width = (1 if single else 0, 2, 4, 8)[flags >> 6]
    first = 5 + (not single) + (0, 1, 2, 4)[flags & 3]
    field = head[first : first + width]
    if not width or len(field) < width:
        return None
    return int.from_bytes(field, "little") + (256 if width == 2 else 0)

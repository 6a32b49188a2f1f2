"""One Zarr store for the results of a sweep, filled region by region.

A block is first written and then committed: its row in the array `blocks/committed` gets a checksum
of what was written. Zarr writes every chunk to a file beside it and renames that, and the row is
one chunk, so a block is committed or not, whenever the process that writes it dies.
"""

import hashlib
import json
import math
import os
import shutil
import stat
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from retrax.atomic import appearing
from retrax.errors import BadInput
from retrax.simulate.memory import gigabytes
from retrax.simulate.sweeping.axes import MEMBER
from retrax.simulate.sweeping.blocks import Block
from retrax.simulate.sweeping.store_checks import (
    chunk_fits,
    require_own_files,
    require_same_layout,
)
from retrax.simulate.writing_lock import WritingLock

if TYPE_CHECKING:
    import xarray as xr

FORMAT, FORMAT_VERSION = "retrax-sweep", 1
_COMMITTED = "blocks/committed"
# What a row of that array holds: a checksum, never 0, and the nanoseconds that the block took.
_CHECKSUM, _NANOSECONDS = 0, 1


class Variable(NamedTuple):
    """A result: `before` and `after` are its dimensions on both sides of those of the sweep."""

    name: str
    before: dict[str, int]
    after: dict[str, int]
    dtype: str
    attributes: dict[str, Any]

    def region(self, block: Block) -> tuple[slice, ...]:
        whole = slice(None)
        return (*[whole] * len(self.before), *block.region, *[whole] * len(self.after))


class Layout(NamedTuple):
    """What a store holds: results, the sizes of the sweep's dimensions and of a block, labels."""

    results: Sequence[Variable]
    sizes: dict[str, int]
    sides: Sequence[int]
    blocks: int
    labels: dict[str, tuple[tuple[str, ...], np.ndarray]]
    attributes: dict[str, Any]


def variables(example: "xr.Dataset") -> tuple[Variable, ...]:
    """The results of a sweep, after those of a few members."""
    found = []
    for name, array in example.data_vars.items():
        place = array.dims.index(MEMBER)
        sizes = [(str(dim), array.sizes[dim]) for dim in array.dims]
        attributes = {
            key: value.tolist() if isinstance(value, np.ndarray | np.generic) else value
            for key, value in array.attrs.items()
        }
        before, after = dict(sizes[:place]), dict(sizes[place + 1 :])
        found.append(Variable(str(name), before, after, str(array.dtype), attributes))
    return tuple(found)


def create(path: Path, layout: Layout) -> WritingLock:
    """A store without results, made beside `path` and put in place whole; it is held already."""
    import zarr

    try:
        with appearing(path) as temporary:
            _require_room(path, layout.results, layout.sizes)
            _fill(str(temporary), layout)
            with warnings.catch_warnings():  # that other readers may not know of such metadata
                warnings.simplefilter("ignore")
                zarr.consolidate_metadata(str(temporary))
            return WritingLock(temporary, "store")
    except OSError as cause:
        raise _unusable(path, cause) from cause


def _fill(place: Any, layout: Layout) -> Any:
    """An empty store in a folder, or in memory."""
    import zarr

    group = zarr.create_group(place, zarr_format=3, attributes=layout.attributes)
    for v in layout.results:
        whole = v.before | layout.sizes | v.after
        group.create_array(
            v.name,
            shape=tuple(whole.values()),
            chunks=(*v.before.values(), *layout.sides, *v.after.values()),
            dtype=v.dtype,
            fill_value=np.nan if np.dtype(v.dtype).kind in "fc" else None,
            dimension_names=tuple(whole),
            attributes=v.attributes,
        )
    for name, (dims, values) in layout.labels.items():
        words = values.dtype.kind == "U"
        array = group.create_array(
            name,
            shape=values.shape,
            chunks=values.shape,
            dtype=str if words else values.dtype,
            dimension_names=dims,
            attributes={"units": "s"} if name in ("time", "t", "h") else {},
        )
        array[...] = values
    shape = (layout.blocks, 2)
    group.create_array(_COMMITTED, shape=shape, chunks=(1, 2), dtype="uint64", fill_value=0)
    return group


def held(path: Path) -> WritingLock | None:
    """The right to write into a store that is there; `None` where it cannot be written at all."""
    try:
        return WritingLock(path, "store")
    except OSError:
        return None


def require_layout(path: Path, layout: Layout) -> None:
    """Refuse a store that is not made as this sweep makes it, before any number is read."""
    from zarr.storage import MemoryStore

    require_own_files(path)
    wanted = _fill(MemoryStore(), layout)
    require_same_layout(path, _opened(path, "r"), wanted, layout.labels)


def existing(path: Path, identity: dict[str, Any]) -> bool:
    """Whether the store is there already; refused where it is not that of this sweep."""
    import zarr

    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return False
    try:
        if not stat.S_ISREG(os.lstat(path / "zarr.json").st_mode):
            raise _no_sweep(path)
        attributes = dict(zarr.open_group(str(path), mode="r", zarr_format=3).attrs)
        found, version = attributes["format"], int(str(attributes["format_version"]))
        theirs = dict(json.loads(str(attributes["identity"])))
    except Exception as cause:
        raise _no_sweep(path) from cause
    if found != FORMAT or version < 1:
        raise _no_sweep(path)
    if version > FORMAT_VERSION:
        raise BadInput(
            f"store = {str(path)!r} is written in format {version}, and this retrax writes "
            f"{FORMAT_VERSION}: a newer retrax is needed."
        )
    other = [key for key in identity if theirs.get(key) != identity[key]]
    if other:
        raise BadInput(
            f"store = {str(path)!r} holds another sweep, which differs from this one in "
            f"{' and '.join(other)}; choose another path, or remove it."
        )
    return True


def require_writable(path: Path) -> None:
    if not os.access(path, os.W_OK):
        raise BadInput(f"store = {str(path)!r} cannot be written to.")


def committed(path: Path, results: Sequence[Variable], blocks: Sequence[Block]) -> set[int]:
    """The numbers of the blocks that are in the store whole: what is read has its checksum."""
    group = _opened(path, "r")
    try:
        rows = _rows(path, group[_COMMITTED])
    except Exception:  # without its commits nothing in a store counts
        rows = np.zeros((len(blocks), 2), dtype=np.uint64)
    return {
        block.number
        for block in blocks
        if rows[block.number, _CHECKSUM] and _is_whole(path, group, results, block, rows)
    }


def _rows(path: Path, array: Any) -> np.ndarray:
    """The commits. Ignore those whose chunk cannot be read."""
    rows = np.zeros(array.shape, dtype=np.uint64)
    for number in range(len(rows)):
        here = slice(number, number + 1)
        if chunk_fits(path, array, (here, slice(None))):
            rows[here] = array[here]
    return rows


def _is_whole(
    path: Path, group: Any, results: Sequence[Variable], block: Block, rows: np.ndarray
) -> bool:
    try:
        if not all(chunk_fits(path, group[v.name], v.region(block)) for v in results):
            return False
        values = [np.asarray(group[v.name][v.region(block)]) for v in results]
    except Exception:  # a chunk that is cut short or cannot be decompressed
        return False
    return bool(rows[block.number, _CHECKSUM] == _checksum(values))


def write(
    path: Path, results: Sequence[Variable], block: Block, runs: "xr.Dataset", seconds: float
) -> None:
    """Write the results of a block, then commit it."""
    group = _opened(path, "r+")
    values = []
    for v in results:
        array = runs[v.name].transpose(*v.before, MEMBER, *v.after).values
        shape = (*v.before.values(), *block.shape, *v.after.values())
        values.append(np.ascontiguousarray(array, dtype=v.dtype).reshape(shape))
        group[v.name][v.region(block)] = values[-1]
    row = np.array([[_checksum(values), int(1e9 * seconds)]], dtype=np.uint64)
    group[_COMMITTED][block.number : block.number + 1] = row


def _checksum(values: Sequence[np.ndarray]) -> np.uint64:
    total = hashlib.blake2b(digest_size=8)
    for array in values:
        total.update(array.tobytes())
    return np.uint64(int.from_bytes(total.digest(), "little") or 1)


def _opened(path: Path, mode: Literal["r", "r+"]) -> Any:
    import zarr

    return zarr.open_group(str(path), mode=mode, zarr_format=3)


def _require_room(path: Path, results: Sequence[Variable], sizes: dict[str, int]) -> None:
    each = sum(
        np.dtype(v.dtype).itemsize * math.prod([*v.before.values(), *v.after.values()])
        for v in results
    )
    needed, free = each * math.prod(sizes.values()), shutil.disk_usage(path.parent).free
    if needed > free:
        raise BadInput(
            f"store = {str(path)!r} will take up to {gigabytes(needed)}, but its disk has "
            f"{gigabytes(free)} free: save fewer states, or measure them."
        )


def _no_sweep(path: Path) -> BadInput:
    return BadInput(f"store = {str(path)!r} exists and is not a sweep of retrax, or is damaged.")


def _unusable(path: Path, cause: OSError) -> BadInput:
    return BadInput(f"store = {str(path)!r} cannot be written: {cause.strerror or cause}.")

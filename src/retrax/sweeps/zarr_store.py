"""One Zarr store for the results of a sweep, filled region by region.

A block is first written and then committed: its row in the array `blocks/committed` gets a checksum
of what was written. Zarr writes every chunk to a file beside it and renames that, and the row is
one chunk, so a block is committed or not, whenever the process that writes it dies.

A store may come from elsewhere. So its names, shapes, chunks and codecs are compared with those of
an empty store that is made in memory, links are rejected, and a chunk is decompressed only where
it declares no more bytes than a chunk has.
"""

import hashlib
import json
import math
import os
import shutil
import stat
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from retrax.errors import BadInput
from retrax.files import WritingLock, appearing
from retrax.numerics.checks import quote, reason
from retrax.run.checks import gigabytes
from retrax.sweeps.axes import MEMBER, Block

if TYPE_CHECKING:
    import xarray as xr

FORMAT, FORMAT_VERSION = "retrax-sweep", 1
_COMMITTED = "blocks/committed"
# What a row of that array holds: a checksum, never 0, and the nanoseconds that the block took.
_CHECKSUM, _NANOSECONDS = 0, 1
# What it tells of its runs, and by which version.
_TOLD = (
    "h",
    "steps",
    "save_every",
    *(f"provenance_{x}" for x in ("system", "group", "integrator")),
)
_VERSION = "provenance_retrax"
_ZSTD = b"\x28\xb5\x2f\xfd"
_LONGEST_TEXT = 2**28


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
    """Return the results of a sweep, after those of a few members."""
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
    """Create a store without results, beside `path` and put in place whole; it is held."""
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
    """Create an empty store in a folder, or in memory."""
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


def take_lock(path: Path) -> WritingLock | None:
    """Take the right to write into a store; return `None` if it cannot be written at all."""
    try:
        return WritingLock(path, "store")
    except OSError:
        return None


def require_layout(path: Path, layout: Layout) -> None:
    """Reject a store that is not made as this sweep makes it, before any number is read."""
    from zarr.storage import MemoryStore

    require_own_files(path)
    wanted = _fill(MemoryStore(), layout)
    found = _open(path, "r")
    require_same_layout(path, found, wanted, layout.labels)
    told, known = found.attrs, layout.attributes
    same = told.get(_VERSION) == known[_VERSION]  # of retrax, which may encode a run differently
    odd = [name for name in (*_TOLD, *["run"] * same) if told.get(name) != known[name]]
    if odd:
        raise BadInput(f"store = {str(path)!r} tells another {odd[0]} than this sweep has.")


def existing(path: Path, identity: dict[str, Any]) -> bool:
    """Return whether the store is there already; reject the store of another sweep."""
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


def list_committed(path: Path, results: Sequence[Variable], blocks: Sequence[Block]) -> set[int]:
    """Return the numbers of the blocks that are in the store whole, by their checksums."""
    group = _open(path, "r")
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
    """Return the commits. Ignore those whose chunk cannot be read."""
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
    group = _open(path, "r+")
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


def _open(path: Path, mode: Literal["r", "r+"]) -> Any:
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


def require_own_files(path: Path) -> None:
    """Reject links and whatever else is neither a folder nor a regular file."""
    with os.scandir(path) as entries:
        found = list(entries)
    for entry in found:
        kind = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISDIR(kind):
            require_own_files(Path(entry.path))
        elif not stat.S_ISREG(kind):
            raise BadInput(
                f"store = {str(path)!r} holds {quote(entry.name)}, which is a link or not a "
                "regular file: a sweep writes into its own store only."
            )


def require_same_layout(path: Path, found: Any, wanted: Any, labels: Iterable[str]) -> None:
    """Reject a group with other arrays than `wanted` has, or with other values of `labels`."""
    try:
        odd = _odd_array(path, found, wanted, labels)
    except BadInput:
        raise
    except Exception as cause:  # whatever Zarr makes of broken metadata
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
        return f"it has {quote(sorted(names ^ set(members)))} more or less"
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
    """Return whether a label of the sweep is what it is here; a label is one chunk."""
    whole = tuple(slice(0, n) for n in wanted.shape)
    return chunk_fits(path, found, whole) and np.array_equal(found[...], wanted[...])


def chunk_fits(path: Path, array: Any, region: tuple[slice, ...]) -> bool:
    """Return whether the chunk of a region says that it decompresses to no more than a chunk has.

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
    """Return the size that a frame of Zstandard says it decompresses to, or `None`.

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

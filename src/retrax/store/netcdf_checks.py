"""Look at what a NetCDF file is made of, before any of its numbers is read.

HDF5 can keep the numbers of a file in other files, and declare arrays that are not there. A run
that was sent by somebody must neither read what else is on this disk nor fill the memory.
"""

import math
from pathlib import Path
from typing import Any

import h5py

from retrax.errors import BadInput
from retrax.numerics.checks import quote
from retrax.store.free_memory import gigabytes, require_readable

# The filters of NetCDF: deflate, shuffle, Fletcher's checksum; what HDF5 has besides may be a
# program of its own. Deflate makes at most 1032 bytes of one.
_FILTERS, _DEFLATE = (1, 2, 3), 1032
_MOST_VARIABLES, _MOST_VALUES = 10_000, 10_000
# The attributes that NetCDF uses to tie variables to their dimensions are references.
_TIES = ("DIMENSION_LIST", "REFERENCE_LIST")
_BARE = b"This is a netCDF dimension but not a netCDF variable"
# Attributes by which a reader would make other numbers of those that are there.
_PACKED = ("scale_factor", "add_offset", "missing_value")


def require_plain(path: Path) -> None:
    """Reject a file unless it holds arrays of numbers of its own, as many as it declares.

    **Raises:** `BadInput`, and what HDF5 raises for a file that it did not write.
    """
    size, held, declared = path.stat().st_size, 0, 0
    with h5py.File(path, "r") as file:
        _require_attributes(path, "it", file)
        if len(file) > _MOST_VARIABLES:
            raise _odd(path, f"{len(file)} variables")
        for name in map(str, file):
            array = _array(path, file, name)
            _require_attributes(path, name, array)
            if not _is_bare_dimension(array):
                many, stored = _bytes(path, name, array)
                declared, held = declared + many, held + stored
    if held > size:
        raise _odd(path, f"{gigabytes(held)} in arrays that overlap, in {gigabytes(size)} of file")
    require_readable(path, declared, f"xarray.open_dataset({str(path)!r})")


def _array(path: Path, file: h5py.File, name: str) -> h5py.Dataset:
    """Return an array of numbers that is in this file and nowhere else."""
    link = file.get(name, getlink=True)
    if not isinstance(link, h5py.HardLink):
        what = "another file" if isinstance(link, h5py.ExternalLink) else "another place"
        raise _odd(path, f"{quote(name)}, a link to {what}")
    if file.get(name, getclass=True) is not h5py.Dataset:
        raise _odd(path, f"{quote(name)}, which is not an array")
    array: Any = file[name]
    layout = array.id.get_create_plist()
    if layout.get_layout() == h5py.h5d.VIRTUAL or layout.get_external_count():
        raise _odd(path, f"{quote(name)}, whose numbers are in other files")
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 16:
        raise _odd(path, f"{quote(name)} of the type {array.dtype}")
    filters = [layout.get_filter(k)[0] for k in range(layout.get_nfilters())]
    if not set(filters) <= set(_FILTERS):
        raise _odd(path, f"{quote(name)}, packed by a filter that NetCDF does not have")
    return array


def _is_bare_dimension(array: h5py.Dataset) -> bool:
    """Return whether this is only the length of a dimension: NetCDF reads no numbers of it."""
    name, kind = (array.attrs.get(key) for key in ("NAME", "CLASS"))
    if not (isinstance(name, bytes) and isinstance(kind, bytes) and len(array.shape) == 1):
        return False
    return name.startswith(_BARE) and kind == b"DIMENSION_SCALE"


def _bytes(path: Path, name: str, array: h5py.Dataset) -> tuple[int, int]:
    """Count the bytes that an array declares, and those of them in the file."""
    if array.shape is None:
        raise _odd(path, f"{quote(name)}, an array without a shape")
    declared = array.size * array.dtype.itemsize
    stored = array.id.get_storage_size()
    packed = array.id.get_create_plist().get_nfilters() > 0
    if declared > (_DEFLATE if packed else 1) * stored:
        raise _odd(
            path,
            f"{quote(name)}, which declares {gigabytes(declared)} of numbers and holds "
            f"{gigabytes(stored)}",
        )
    if packed and array.chunks is not None:
        chunk = math.prod(array.chunks) * array.dtype.itemsize
        if chunk > max(declared, 2**20):
            raise _odd(path, f"{quote(name)} in chunks of {gigabytes(chunk)}")
    return declared, stored


def _require_attributes(path: Path, owner: str, of: h5py.File | h5py.Dataset) -> None:
    """Reject attributes that are neither text nor a few numbers."""
    for name in of.attrs:
        about = of.attrs.get_id(name)
        text = h5py.check_string_dtype(about.dtype) is not None
        shape: Any = about.shape
        values = math.prod(shape) if shape is not None and len(shape) <= 1 else 0
        number = about.dtype.kind in "fiub" and 1 <= values <= _MOST_VALUES
        if name in _PACKED or not (name in _TIES or number or (text and values == 1)):
            raise _odd(path, f"{quote(owner)} with the attribute {quote(name)}, which no run has")


def _odd(path: Path, what: str) -> BadInput:
    return BadInput(f"path = {str(path)!r} is not a run that retrax wrote: it holds {what}.")

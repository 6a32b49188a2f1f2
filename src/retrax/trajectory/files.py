"""Files that are written whole or not at all."""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from retrax.atomic import replacing, sync_folder
from retrax.errors import BadInput, NotWritten
from retrax.numerics.checks import shown

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def as_path(path: Any, whose: str = "a file") -> Path:
    """What a user gave for a path, as one."""
    if not isinstance(path, str | os.PathLike) or "\0" in os.fsdecode(path):
        raise BadInput(f"path = {shown(path)} must be the path of {whose}.")
    return Path(os.fsdecode(path))


def require_folder(path: Path) -> None:
    """Refuse a path whose folder does not exist, before any work is done for it."""
    if not path.parent.is_dir():
        raise BadInput(f"path = {str(path)!r}: the folder {str(path.parent)!r} does not exist.")


def require_place(path: Path) -> Path:
    """Where a file given as `path` goes; refused, before any work, where none can be written.

    A link leads to the regular file that it names. Folders, pipes, sockets, devices, links to
    nothing, write-protected files and folders that take no files are refused.
    """
    require_folder(path)
    place = _regular_place(path)
    try:
        with contextlib.suppress(_Tried), replacing(place):
            raise _Tried
    except OSError as cause:
        raise BadInput(
            f"path = {str(path)!r} cannot be written: {cause.strerror or cause}."
        ) from cause
    return place


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` to write to; it takes its place when all has gone well.

    A file that is there keeps its mode; a link stays one, and what it leads to is written.

    **Raises:** `BadInput` where `path` is no place for a file, `NotWritten` where the disk refuses.
    """
    place = require_place(path)
    try:
        with replacing(place) as temporary:
            yield temporary
        sync_folder(place.parent)
    except OSError as cause:
        if isinstance(cause, NotWritten):
            raise
        raise NotWritten(
            f"path = {str(path)!r} could not be written ({cause.strerror or cause}): what was "
            "there before is unchanged. Make room, or choose another place."
        ) from cause


def written_by_retrax(path: Path) -> bool:
    """Whether a file looks like a run or a page that retrax wrote."""
    try:
        with path.open("rb") as file:
            head = file.read(4096)
        if head.startswith(b"\x89HDF"):
            import h5py

            with h5py.File(path, "r") as run:
                told = run.attrs.get("format")
                return isinstance(told, str) and told.startswith("retrax-")
    except Exception:  # whatever the libraries below make of bytes that are no run
        return False
    return b'<meta name="generator" content="retrax">' in head


class _Tried(Exception):
    """A file could be made."""


def _regular_place(path: Path) -> Path:
    try:
        place = path.resolve(strict=True) if path.is_symlink() else path
        found = os.lstat(place)
    except FileNotFoundError as cause:
        if path.is_symlink():
            raise BadInput(f"path = {str(path)!r} is a link that leads to no file.") from cause
        return path
    except (OSError, RuntimeError) as cause:  # a link to itself, a name that is too long
        raise BadInput(f"path = {str(path)!r} cannot be written: {cause}.") from cause
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "not a regular file")
        leads = f"leads to {str(place)!r}, which is" if place != path else "is"
        raise BadInput(f"path = {str(path)!r} {leads} {kind}: retrax writes regular files only.")
    if not os.access(place, os.W_OK):
        raise BadInput(f"path = {str(path)!r} is write-protected.")
    return place

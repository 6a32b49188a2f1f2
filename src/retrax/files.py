"""Files and folders that appear whole or not at all, and the right to write into a folder."""

import contextlib
import os
import re
import secrets
import shutil
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from retrax.errors import BadInput, NotWritten
from retrax.numerics.checks import quote

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
# The file of a lock, and how much of it is read; it says who holds it.
_LONGEST_PATH, _LONGEST_NAME = 4096, 255
_LOCK, _LONGEST = ".lock", 300
_HOLDER = re.compile(rb"process \d+ on [\w.-]*\n")


@contextlib.contextmanager
def replacing(path: Path, name: str | None = None, private: bool = False) -> Iterator[Path]:
    """Yield a new file beside `path`, and rename it to `path` when all has gone well.

    The file is forced to disk before it is renamed, so a crash leaves the old file or the new one.
    What is at `path` is replaced, never followed or opened; a regular file there hands its mode and
    owner on, and a file that is new gets the mode that the umask leaves.

    **Arguments:**

    - `name`: what to call the new file meanwhile. Whoever holds a lock gives one, so that a process
        that was killed leaves a single file behind, which the next one replaces.
    - `private`: give the file to its owner alone, whatever was there.
    """
    temporary = path.with_name(_beside(path) if name is None else name)
    if name is not None:
        temporary.unlink(missing_ok=True)
    old = None if private else _regular(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    os.close(os.open(temporary, flags, 0o666 if old is None and not private else 0o600))
    try:
        yield temporary
        handle = os.open(temporary, os.O_RDWR)
        try:
            if old is not None:
                with contextlib.suppress(OSError):  # only an administrator may give a file away
                    os.fchown(handle, old.st_uid, old.st_gid)
                os.fchmod(handle, old.st_mode & 0o777)
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


@contextlib.contextmanager
def appearing(path: Path) -> Iterator[Path]:
    """Yield a new folder beside `path`, and rename it to `path` when all has gone well."""
    temporary = path.with_name(_beside(path))
    temporary.mkdir()
    try:
        yield temporary
        os.rename(temporary, path)
        sync_folder(path.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def sync_folder(path: Path) -> None:
    """Force the list of files of a folder to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _beside(path: Path) -> str:
    """Make a name that nothing has; of a long one only a part fits."""
    return f".{path.name[:40]}.{secrets.token_hex(6)}.tmp"


def _regular(path: Path) -> os.stat_result | None:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def write_text(path: str | Path, make: Callable[[], str]) -> Path:
    """Write the text that `make` returns, whole or not at all; look for a place before it is made.

    **Raises:** `BadInput` where there is no such place.
    """
    path = as_path(path)
    require_place(path)
    text = make()
    with write_whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def as_path(path: str | os.PathLike[str] | Any, whose: str = "a file") -> Path:
    """Return the path that a user gave."""
    if not isinstance(path, str | os.PathLike) or "\0" in os.fsdecode(path):
        raise BadInput(f"path = {quote(path)} must be the path of {whose}.")
    given = Path(os.fsdecode(path))
    if len(os.fsencode(given)) > _LONGEST_PATH or len(os.fsencode(given.name)) > _LONGEST_NAME:
        raise BadInput(f"path = {quote(path)} is longer than the name of any file.")
    return given


def require_folder(path: Path) -> None:
    """Reject a path whose folder does not exist, before any work is done for it."""
    if not path.parent.is_dir():
        raise BadInput(f"path = {str(path)!r}: the folder {str(path.parent)!r} does not exist.")


def require_readable(path: Path) -> Path:
    """Reject what is there and is no regular file: a pipe never ends, nor does a device."""
    if path.exists() and not path.is_file():
        kind = _KINDS.get(stat.S_IFMT(path.stat().st_mode), "not a regular file")
        raise BadInput(f"path = {str(path)!r} is {kind}: retrax reads regular files only.")
    return path


def require_place(path: Path) -> Path:
    """Return where a file given as `path` goes; reject a bad place before any work.

    A link leads to the regular file that it names. Folders, pipes, sockets, devices, links to
    nothing, write-protected files and folders that take no files are rejected.
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
def write_whole(path: Path) -> Iterator[Path]:
    """Yield a temporary file to write to; it takes the place of `path` when all has gone well.

    A file that is there keeps its mode; a link stays one, and what it leads to is written.

    **Raises:** `BadInput` where no file can go to `path`, `NotWritten` where the disk refuses it.
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


def is_written_by_retrax(path: Path) -> bool:
    """Return whether a file looks like a run or a page that retrax wrote."""
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
    """A file can be made."""


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


class WritingLock:
    """The right to write into a folder, until `release` or the end of the process.

    The file of the lock is never followed as a link. Whoever holds it leaves its number there.

    **Raises:** `BadInput` where another process holds it; `OSError` where nothing can be written.
    """

    def __init__(self, folder: Path, argument: str = "path"):
        self._handle: int | None = None
        if fcntl is None:
            return
        path = folder / _LOCK
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        if path.is_symlink():
            raise _refusal(folder, argument, "its file .lock is a link")
        handle = os.open(path, flags, 0o666)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise _refusal(folder, argument, "its .lock is not a regular file")
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as cause:
                who = _holder(handle)
                raise BadInput(
                    f"{argument} = {str(folder)!r} is being written by another process{who}: its "
                    "run still goes on."
                ) from cause
            _sign(handle)
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle

    def release(self) -> None:
        """Let others write."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _refusal(folder: Path, argument: str, why: str) -> BadInput:
    return BadInput(f"{argument} = {str(folder)!r} cannot be written: {why}.")


def _holder(handle: int) -> str:
    told = os.pread(handle, _LONGEST, 0)
    return f" ({told.decode().strip()})" if _HOLDER.fullmatch(told) else ""


def _sign(handle: int) -> None:
    """Write the holder into the lock; leave a file with anything else in it as it is."""
    told = os.pread(handle, _LONGEST, 0)
    if told and not _HOLDER.fullmatch(told):
        return
    host = re.sub(r"[^\w.-]", "", socket.gethostname(), flags=re.ASCII)[:200]
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"process {os.getpid()} on {host}\n".encode(), 0)

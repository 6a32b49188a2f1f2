"""Files and folders that appear under their name whole, or not at all."""

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path


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
    """Force to disk which files a folder has."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _beside(path: Path) -> str:
    """A name that nothing has; of a long one only a part fits."""
    return f".{path.name[:40]}.{secrets.token_hex(6)}.tmp"


def _regular(path: Path) -> os.stat_result | None:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None

"""One writer at a time: a lock that ends with its process, however that ends."""

import os
import re
import socket
import stat
from pathlib import Path

from retrax.errors import BadInput

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None

_FILE, _LONGEST = ".lock", 300
_HOLDER = re.compile(rb"process \d+ on [\w.-]*\n")


class WritingLock:
    """The right to write into a folder, until `release` or the end of the process.

    The file of the lock is never followed as a link. Whoever holds it leaves its number there.

    **Raises:** `BadInput` where another process holds it; `OSError` where nothing can be written.
    """

    def __init__(self, folder: Path, argument: str = "path"):
        self._handle: int | None = None
        if fcntl is None:
            return
        path = folder / _FILE
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        if path.is_symlink():
            raise _refused(folder, argument, "its file .lock is a link")
        handle = os.open(path, flags, 0o666)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise _refused(folder, argument, "its .lock is not a regular file")
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


def _refused(folder: Path, argument: str, why: str) -> BadInput:
    return BadInput(f"{argument} = {str(folder)!r} cannot be written: {why}.")


def _holder(handle: int) -> str:
    told = os.pread(handle, _LONGEST, 0)
    return f" ({told.decode().strip()})" if _HOLDER.fullmatch(told) else ""


def _sign(handle: int) -> None:
    """Say who holds the lock; a file with anything else in it is left as it is."""
    told = os.pread(handle, _LONGEST, 0)
    if told and not _HOLDER.fullmatch(told):
        return
    host = re.sub(r"[^\w.-]", "", socket.gethostname(), flags=re.ASCII)[:200]
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"process {os.getpid()} on {host}\n".encode(), 0)

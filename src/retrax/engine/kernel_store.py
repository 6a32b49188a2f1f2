"""Machine code on disk: written whole, and verified before anything of it is loaded.

A file holds a line that names the format, a SHA-256 checksum over the name of the kernel and its
code, the length of the code, and the code. A file that is not exactly that counts as missing, and
its kernel is compiled again. A checksum finds damage, not malice: who can write to the folder can
put in what he likes. So files count only in a folder that belongs to this user and that nobody else
can write to.
"""

import hashlib
import os
import stat
import warnings
from pathlib import Path

from retrax.files import replacing

_FORMAT = b"retrax kernel 1\n"
_CHECKSUM, _LENGTH = hashlib.sha256().digest_size, 8
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
# Symbolic links are not followed, and a FIFO is not waited for.
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_READ |= getattr(os, "O_BINARY", 0)
_said: set[str] = set()


def cache_folder() -> Path | None:
    """`RETRAX_CACHE`, or `retrax` in the user's cache folder; `None` for users without a home."""
    chosen = os.environ.get("RETRAX_CACHE")
    if chosen:
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(home) if home else Path.home() / ".cache") / "retrax"
    except RuntimeError:  # no HOME, and a user number without a name, as in containers
        return None


def kept(name: str) -> bytes | None:
    """The code of the kernel of this name, if it is there, whole and safe to load."""
    folder = cache_folder()
    if folder is None or not _is_trusted(folder):
        return None
    try:
        handle = os.open(folder / f"{name}.kernel", _READ)
    except OSError:
        return None
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode) or _objection(about) is not None:
        os.close(handle)
        return None
    try:
        with os.fdopen(handle, "rb") as file:
            return _verified(name, file.read())
    except OSError:
        return None


def keep(name: str, code: bytes) -> None:
    """Write a kernel, whole or not at all; a folder that cannot be written is no reason to stop."""
    folder = cache_folder()
    if folder is None:
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_trusted(folder):
            return
        with replacing(folder / f"{name}.kernel", private=True) as file:
            file.write_bytes(_framed(name, code))
    except OSError:
        return


def _framed(name: str, code: bytes) -> bytes:
    length = len(code).to_bytes(_LENGTH, "little")
    return b"".join([_FORMAT, _checksum(name, code), length, code])


def _verified(name: str, content: bytes) -> bytes | None:
    """The code in a file, or `None` where a single bit is not as it was written."""
    start = len(_FORMAT) + _CHECKSUM + _LENGTH
    code = content[start:]
    return code if code and content == _framed(name, code) else None


def _checksum(name: str, code: bytes) -> bytes:
    return hashlib.sha256(b"\n".join([_FORMAT, name.encode(), code])).digest()


def _is_trusted(folder: Path) -> bool:
    """Whether nobody else can write to a folder; one sentence, once, where somebody can."""
    try:
        about = folder.stat()
    except OSError:
        return False
    why = _objection(about) if stat.S_ISDIR(about.st_mode) else "is not a folder"
    if why is None:
        return True
    sentence = (
        f"the folder for compiled kernels, {str(folder)!r}, {why}: nothing is loaded from it or "
        f"kept there, and every process compiles its kernels anew. Set RETRAX_CACHE to a folder of "
        "your own, or take the right to write away from others with chmod go-w."
    )
    if sentence not in _said:
        _said.add(sentence)
        warnings.warn(sentence, stacklevel=2)
    return False


def _objection(about: os.stat_result) -> str | None:
    """Why what lies here may be somebody else's."""
    if not hasattr(os, "geteuid"):
        return None
    if about.st_uid != os.geteuid():
        return f"belongs to user {about.st_uid}, and this process runs as user {os.geteuid()}"
    if about.st_mode & _OTHERS_WRITE:
        return f"can be written by others (its mode is {stat.S_IMODE(about.st_mode):o})"
    return None

"""Files that are written whole or not at all."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from retrax.errors import BadInput
from retrax.numerics.checks import shown


def as_path(path: Any, whose: str = "a file") -> Path:
    """What a user gave for a path, as one."""
    if not isinstance(path, str | os.PathLike) or "\0" in os.fsdecode(path):
        raise BadInput(f"path = {shown(path)} must be the path of {whose}.")
    return Path(path)


def require_folder(path: Path) -> None:
    """Refuse a path whose folder does not exist, before any work is done for it."""
    if not path.parent.is_dir():
        raise BadInput(f"path = {str(path)!r}: the folder {str(path.parent)!r} does not exist.")


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` to write to; it takes its place when all has gone well."""
    require_folder(path)
    if path.is_dir():
        raise BadInput(f"path = {str(path)!r} is a folder, not a file that can be written.")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink()
        raise

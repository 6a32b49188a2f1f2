"""Writing pages and figures: whole or not at all."""

import os
import tempfile
from pathlib import Path

from retrax.errors import BadInput


def require_folder(path: Path) -> None:
    """Refuse a path whose folder does not exist, before any work is done for it."""
    if not path.parent.is_dir():
        raise BadInput(f"path = {str(path)!r}: the folder {str(path.parent)!r} does not exist.")


def write_atomically(path: Path, content: bytes) -> Path:
    """Write to a temporary file beside `path`, then rename: a crash leaves the old file or the new."""
    require_folder(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return path

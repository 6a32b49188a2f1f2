"""Keep the run of a command, also where the disk that was meant for it is full."""

import tempfile
from pathlib import Path

from retrax.errors import BadInput, NotWritten, RetraxError
from retrax.files import require_place, written_by_retrax
from retrax.trajectory.trajectory import Trajectory


def keep(trajectory: Trajectory, path: Path) -> Path:
    """Save a run; where its disk refuses, save it where temporary files go, and raise.

    **Raises:** `NotWritten`, which says where the run is now.
    """
    try:
        return trajectory.save(path)
    except NotWritten as cause:
        try:
            other = trajectory.save(Path(tempfile.mkdtemp(prefix="retrax-")) / path.name)
        except (RetraxError, OSError):
            raise cause from None
        raise NotWritten(f"{cause} The run was saved to {str(other)!r} instead.") from cause


def require_asked(key: str, path: Path, typed: bool) -> None:
    """Refuse, before a run, a place that cannot be written or that nobody asked to write over.

    A file named on the command line is replaced. One that only a run file names is replaced where
    retrax wrote it, and otherwise left alone.
    """
    place = require_place(path)
    if not typed and place.exists() and not written_by_retrax(place):
        raise BadInput(
            f"{key} = {str(path)!r} in the run file is a file that retrax did not write: give "
            f"--{key} {str(path)!r} on the command line to replace it."
        )

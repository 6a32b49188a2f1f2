"""Runs on disk: NetCDF, written atomically, read without running anything; checkpoints."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrax.errors import BadInput
from retrax.numerics.checks import reason
from retrax.trajectory.files import as_path, require_place, written_whole
from retrax.trajectory.whole import whole_run

if TYPE_CHECKING:
    import xarray as xr

    from retrax.trajectory.trajectory import Trajectory


def save(run: "Trajectory", path: str | Path) -> Path:
    """Write beside `path`, then rename: a crash leaves the old file or the new one."""
    from retrax.trajectory.dataset import dataset

    path = as_path(path)
    require_place(path)
    write_netcdf(dataset(run), path)
    return path


def write_netcdf(data: "xr.Dataset", path: Path, encoding: Any = None) -> None:
    """Put a NetCDF file together in memory, then write it whole.

    HDF5 brings the interpreter down when a disk refuses what it writes, so it never sees the disk.

    **Raises:** as `written_whole`.
    """
    image = io.BytesIO()
    with written_whole(path) as temporary:
        data.to_netcdf(image, engine="h5netcdf", encoding=encoding)
        temporary.write_bytes(image.getbuffer())


def load(path: str | Path) -> "Trajectory":
    """The run that `Trajectory.save` wrote to `path`, or a checkpoint, as far as it is committed.

    A file is data: nothing that it names outside retrax is imported or called, no other file is
    read, and no more is read than the file holds.
    """
    import xarray as xr

    from retrax.trajectory.checkpoint_read import load_checkpoint
    from retrax.trajectory.dataset import from_dataset
    from retrax.trajectory.netcdf_checks import require_plain

    path = as_path(path)
    if path.is_dir():
        return load_checkpoint(path)
    if not path.is_file():
        raise BadInput(f"path = {str(path)!r}: there is no such file.")
    try:
        require_plain(path)
        with xr.open_dataset(path, engine="h5netcdf") as ds:
            ds.load()
    except BadInput:
        raise
    except Exception as cause:  # whatever the libraries below make of bytes that are no run
        raise BadInput(
            f"path = {str(path)!r} is not a readable NetCDF file: {reason(cause)}."
        ) from cause
    return whole_run(path, lambda: from_dataset(ds))

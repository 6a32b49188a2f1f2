"""Runs on disk: NetCDF, written atomically, read without running anything; checkpoints."""

from pathlib import Path
from typing import TYPE_CHECKING

from retrax.errors import BadInput
from retrax.numerics.checks import reason
from retrax.trajectory.files import as_path, written_whole
from retrax.trajectory.whole import whole_run

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory


def save(run: "Trajectory", path: str | Path) -> Path:
    """Write beside `path`, then rename: a crash leaves the old file or the new one."""
    from retrax.trajectory.dataset import dataset

    path = as_path(path)
    with written_whole(path) as temporary:
        dataset(run).to_netcdf(temporary, engine="h5netcdf")
    return path


def load(path: str | Path) -> "Trajectory":
    """The run that `Trajectory.save` wrote to `path`, or a checkpoint, as far as it is committed.

    A file is data: nothing that it names outside retrax is imported or called.
    """
    import xarray as xr

    from retrax.trajectory.checkpoint_read import load_checkpoint
    from retrax.trajectory.dataset import from_dataset

    path = as_path(path)
    if path.is_dir():
        return load_checkpoint(path)
    if not path.is_file():
        raise BadInput(f"path = {str(path)!r}: there is no such file.")
    try:
        with xr.open_dataset(path, engine="h5netcdf") as ds:
            ds.load()
    except Exception as cause:  # whatever the libraries below make of bytes that are no run
        raise BadInput(
            f"path = {str(path)!r} is not a readable NetCDF file: {reason(cause)}."
        ) from cause
    return whole_run(path, lambda: from_dataset(ds))

"""Runs in NetCDF files: written whole, read without running anything."""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from retrax.errors import BadInput, warn
from retrax.files import as_path, require_place, write_whole
from retrax.numerics.checks import reason, require_finite
from retrax.store.checkpoint_read import load_checkpoint
from retrax.store.checksum import CHECKSUM, checksum_of, require_whole
from retrax.store.measured import require_measured
from retrax.store.objects import Data, Modules, Trust, read_trusted
from retrax.store.run_objects import encode_run, read_objects, require_begun, with_kept
from retrax.store.whole import require_even, whole_run
from retrax.trajectory.dataset import Contents, contents, from_dataset
from retrax.trajectory.trajectory import Trajectory

if TYPE_CHECKING:
    import xarray as xr

# The run as JSON in bytes: an attribute of NetCDF holds 64 kB at the most.
OBJECTS = "run"
# What a file with a plan in it says that it is.
PLAN = "retrax plan"


def save(run: Trajectory, path: str | Path) -> Path:
    """Write a run to a NetCDF file; a crash leaves the old file or the new one.

    **Raises:** `BadInput` where its states are not equally many steps apart, or not finite: `load`
    would refuse them.
    """
    path = as_path(path)
    require_place(path)
    require_even(run)
    require_finite("the states of the run to save", run.states)
    text = np.frombuffer(json.dumps(encode_run(run), allow_nan=False).encode(), np.uint8)
    about = {"long_name": "system, integrator, start and plan, as JSON"}
    found = contents(run)
    found.variables[OBJECTS] = ((f"{OBJECTS}_bytes",), text, about)
    found.attributes[CHECKSUM] = checksum_of(found.variables | found.coordinates, found.attributes)
    with write_whole(path) as temporary:
        temporary.write_bytes(_image(found))
    return path


def _image(found: Contents) -> memoryview:
    """Put the bytes of a NetCDF file together in memory.

    HDF5 brings the interpreter down when a disk refuses what it writes, so it never sees the disk.
    This is the file that `xarray.Dataset.to_netcdf` writes, without loading xarray.
    """
    import h5netcdf

    image = io.BytesIO()
    with h5netcdf.File(image, "w") as file:
        for key, value in found.attributes.items():
            file.attrs[key] = value
        for name, (dims, values, attributes) in (found.variables | found.coordinates).items():
            dims, array = ((dims,) if isinstance(dims, str) else dims), np.asarray(values)
            for axis, length in zip(dims, array.shape, strict=True):
                if axis not in file.dimensions:
                    file.dimensions[axis] = length
            truths, packed = array.dtype.kind == "b", name == OBJECTS
            variable = file.create_variable(
                name,
                dims,
                np.dtype("i1") if truths else array.dtype,
                fillvalue=np.nan if array.dtype.kind == "f" else None,
                compression="gzip" if packed else None,
            )
            variable[...] = array
            for key, value in (attributes | ({"dtype": "bool"} if truths else {})).items():
                variable.attrs[key] = value
    return image.getbuffer()


def write_netcdf(
    data: "xr.Dataset", path: Path, encoding: Mapping[Any, dict[str, Any]] | None = None
) -> None:
    """Put a NetCDF file together in memory, then write it whole.

    HDF5 brings the interpreter down when a disk refuses what it writes, so it never sees the disk.

    **Raises:** as `write_whole`.
    """
    image = io.BytesIO()
    with write_whole(path) as temporary:
        data.to_netcdf(image, engine="h5netcdf", encoding=encoding)
        temporary.write_bytes(image.getbuffer())


def load(path: str | Path, *, trust: Modules | None = None) -> Trajectory:
    """Read a run from the NetCDF file that `Trajectory.save` wrote, or from a checkpoint.

    A checkpoint is read as far as it is committed. The run has its system and its integrator, so
    that it can be measured, drawn and continued: `simulate(run.system, run.integrator, run.final,
    ...)`. Where the system holds functions of yours, `run.system` knows its group and its numbers;
    to continue, give the system yourself.

    A file is data: nothing that it names outside retrax is imported or called, no other file is
    read, and no more is read than the file holds.

    **Arguments:**

    - `path`: of the file or of the folder.
    - `trust`: the module, or a list of modules, whose functions marked with `factory` the file may
        name. They are imported, which runs them.
    """
    place, modules = as_path(path), read_trusted(trust)
    if place.is_dir():
        return load_checkpoint(place, modules)
    if not place.is_file():
        raise BadInput(f"path = {str(place)!r}: there is no such file.")
    if place.suffix.lower() in (".html", ".htm"):
        raise BadInput(
            f"path = {str(place)!r} is a page to look at; rx.load reads the NetCDF file that "
            "run.save(path) writes, and the folder of a checkpoint."
        )
    ds = read_whole(place)
    if ds.attrs.get("kind") == PLAN:
        raise BadInput(f"path = {str(place)!r} holds a plan; rx.load_plan reads it.")
    return whole_run(place, lambda: _trajectory(place, ds, modules))


def read_whole(path: Path) -> "xr.Dataset":
    """Read all of a file, after a look at what it is made of."""
    import xarray as xr

    from retrax.store.netcdf_checks import require_plain

    try:
        require_plain(path)
        with xr.open_dataset(path, engine="h5netcdf") as ds:
            return ds.load()
    except BadInput:
        raise
    except Exception as cause:  # whatever the libraries below make of bytes that hold no run
        raise BadInput(
            f"path = {str(path)!r} is not a readable NetCDF file: {reason(cause)}."
        ) from cause


def _trajectory(path: Path, ds: "xr.Dataset", trust: Trust) -> Trajectory:
    run, objects = from_dataset(ds), _objects(ds)
    require_whole(path, ds)
    if objects and objects["system"] is None and "remembered" not in objects:
        warn(
            f"the system of the run in {str(path)!r} is not in it, so what it tells beside its "
            "states cannot be measured anew."
        )
    found = read_objects(path, objects, run.states, trust)
    run.system, run.integrator = found
    run.take_events(objects.get("events"))
    run.states = with_kept(run.states, run.integrator)
    require_begun(run, objects)
    require_measured(run)
    return run


def _objects(ds: "xr.Dataset") -> dict[str, Data]:
    """Read the data of the system and the integrator."""
    if OBJECTS not in ds:
        if CHECKSUM in ds.attrs:
            raise BadInput(f"it has no variable {OBJECTS!r}.")
        return {}
    text = ds[OBJECTS].values
    try:
        if text.dtype != np.uint8 or text.ndim != 1:
            raise ValueError("it is not made of bytes")
        data = json.loads(text.tobytes())
    except (ValueError, RecursionError) as cause:
        raise BadInput(f"its variable {OBJECTS!r} cannot be read: {reason(cause)}.") from cause
    if not isinstance(data, dict):
        raise BadInput(f"its variable {OBJECTS!r} does not describe a run.")
    lacking = [name for name in ("system", "integrator", "state", "plan") if name not in data]
    if lacking:
        raise BadInput(f"its variable {OBJECTS!r} does not tell the {lacking[0]} of the run.")
    return data

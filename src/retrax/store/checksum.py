"""A checksum over the arrays and the description of a run, or of a plan, in a NetCDF file.

It shows that a file is as it was written, not that retrax wrote it.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from retrax.errors import BadInput, warn
from retrax.trajectory.dataset import describes

if TYPE_CHECKING:
    import xarray as xr

CHECKSUM = "checksum"


def variables_of(ds: "xr.Dataset") -> dict[str, Any]:
    """Return the variables of a file, coordinates included, as `Contents` holds them."""
    return {str(name): (v.dims, v.values, v.attrs) for name, v in ds.variables.items()}


def require_whole(
    path: Path, ds: "xr.Dataset", own: Callable[[str], bool] = describes, what: str = "run"
) -> None:
    """Reject a file that is not as it was written; warn of one that has no checksum."""
    claimed = ds.attrs.get(CHECKSUM)
    if claimed is None:
        warn(
            f"path = {str(path)!r} has no checksum: an earlier retrax wrote it, or somebody "
            f"changed it. What can be measured anew is compared; save the {what} again to have one."
        )
    elif claimed != checksum_of(variables_of(ds), ds.attrs, own):
        raise BadInput(
            "it is not as retrax wrote it: its arrays and its description do not fit their "
            "checksum."
        )


def checksum_of(
    variables: Mapping[str, Any],
    attributes: Mapping[Any, Any],
    own: Callable[[str], bool] = describes,
) -> str:
    """Return the checksum of variables, coordinates included, and of attributes that are `own`."""
    whole = hashlib.sha256()
    for name in sorted(variables):
        dims, values, about = variables[name]
        array = np.ascontiguousarray(values)
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        named = [dims] if isinstance(dims, str) else list(dims)
        form = [name, named, array.dtype.str, list(array.shape), _plain(about)]
        whole.update(json.dumps(form).encode())
        whole.update(array.tobytes())
    told = {key: value for key, value in attributes.items() if own(str(key))}
    whole.update(json.dumps(_plain(told)).encode())
    return whole.hexdigest()


def _plain(attributes: Mapping[Any, Any]) -> list[tuple[str, str]]:
    """Return attributes as text; a number is one, whatever its type."""
    return sorted(
        (str(key), value if isinstance(value, str) else repr(np.asarray(value, float).tolist()))
        for key, value in attributes.items()
    )

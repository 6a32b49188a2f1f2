"""Read the corners and triangles of STL and OBJ files; other formats where trimesh is installed."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from retrax.errors import BadInput
from retrax.files import require_readable
from retrax.numerics.checks import reason

_SMALLEST, _LARGEST = 1e-30, 1e30
_HEADER, _FACET = 84, np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("more", "<u2")])

Surface = tuple[Float[np.ndarray, "corners 3"], Int[np.ndarray, "triangles 3"]]


def read_mesh(path: Path) -> Surface:
    """Return corners and triangles of a file.

    **Raises:** `BadInput` where there is no such file, or no triangles in it.
    """
    readers = {".stl": _stl, ".obj": _obj}
    try:
        corners, triangles = readers.get(path.suffix.lower(), _other)(require_readable(path))
    except OSError as cause:
        raise BadInput(f"the mesh {str(path)!r} cannot be read: {reason(cause)}.") from cause
    except (ValueError, IndexError, OverflowError) as cause:
        raise BadInput(f"the mesh {str(path)!r} is damaged: {reason(cause)}.") from cause
    if not len(triangles) or np.min(triangles) < 0 or np.max(triangles) >= len(corners):
        raise BadInput(f"the mesh {str(path)!r} has no triangles, or some without corners.")
    require_size(f"the mesh {str(path)!r}", corners)
    return corners, triangles


def require_size(mesh: str, corners: Float[np.ndarray, "corners 3"]) -> None:
    """Reject corners that are not finite, or whose volumes and inertias are no numbers."""
    if not np.all(np.isfinite(corners)):
        raise BadInput(f"{mesh} has corners that are not finite.")
    far, size = float(np.max(np.abs(corners))), float(np.max(np.ptp(corners, axis=0)))
    if far > _LARGEST:
        raise BadInput(f"{mesh} reaches to {far:.3g} m: at most {_LARGEST:g} m can be drawn.")
    if size < _SMALLEST:
        raise BadInput(f"{mesh} is {size:.3g} m large: it takes at least {_SMALLEST:g} m.")


def _stl(path: Path) -> Surface:
    raw = path.read_bytes()
    count = int.from_bytes(raw[80:84], "little")
    if len(raw) == _HEADER + count * _FACET.itemsize:
        corners = np.frombuffer(raw, _FACET, count, _HEADER)["corners"].reshape(-1, 3)
    else:  # in words
        lines = raw.decode(errors="replace").splitlines()
        rows = [line.split()[1:4] for line in lines if line.split()[:1] == ["vertex"]]
        corners = np.array(rows, dtype=float).reshape(-1, 3)
    return corners.astype(float), np.arange(len(corners)).reshape(-1, 3)


def _obj(path: Path) -> Surface:
    corners, triangles = [], []
    for words in map(str.split, path.read_text(errors="replace").splitlines()):
        if words[:1] == ["v"]:
            corners.append([float(x) for x in words[1:4]])
        elif words[:1] == ["f"]:
            numbers = [int(word.split("/")[0]) for word in words[1:]]
            # Negative numbers count from the corner that was read last.
            face = [n - 1 if n > 0 else len(corners) + n for n in numbers]
            triangles += [[face[0], *face[k : k + 2]] for k in range(1, len(face) - 1)]
    return np.array(corners, dtype=float).reshape(-1, 3), np.array(triangles).reshape(-1, 3).astype(
        int
    )


def _other(path: Path) -> Surface:
    if find_spec("trimesh") is None:
        raise BadInput(
            f"the mesh {str(path)!r} is neither STL nor OBJ: other formats need trimesh."
        )
    try:
        found = import_module("trimesh").load(path, force="mesh")
    except OSError:
        raise
    except Exception as cause:  # whatever a reader of some format stumbles over
        raise ValueError(reason(cause)) from cause
    return np.asarray(found.vertices, dtype=float), np.asarray(found.faces, dtype=int)

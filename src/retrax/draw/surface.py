"""Meshes of triangles, made small: near corners merged, places in 65,536 levels, text.

A mesh in a shape lies in the unit cube, and the matrix of the shape makes it as large as it was.
"""

import base64
import os
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from retrax.draw.mesh_file import read_mesh, require_size
from retrax.errors import BadInput
from retrax.mechanics.shape import Shape, require_colour
from retrax.numerics.checks import (
    ArrayLike,
    host_float64,
    quote,
    reason,
    require_whole,
)
from retrax.numerics.meant import explain_keywords

# Triangles of a mesh unless told: about 100 kB on a page.
MOST = 6000
_LEVELS = 65535
_FINEST, _COARSEST = 4096, 2
# Three numbers of corners fit into one whole number.
_CORNERS = 2**21

Corners = Float[np.ndarray, "corners 3"]
Triangles = Int[np.ndarray, "triangles 3"]


@explain_keywords
def mesh(
    vertices: ArrayLike | str | Path,
    faces: ArrayLike | None = None,
    colour: str = "",
    most: int = MOST,
) -> Shape:
    """Return a surface of triangles, given by its corners or read from a file.

    **Arguments:**

    - `vertices`: the corners, one a row; or the path of an STL or OBJ file, and with trimesh of any
        that it reads.
    - `faces`: the numbers of the corners of each triangle; left out where a file is read.
    - `colour`: a name of the palette, or `#rrggbb`.
    - `most`: triangles to keep at most. A finer surface becomes coarser: corners that lie near each
        other are merged.

    **Raises:** `BadInput` for a file that cannot be read, and for triangles without corners.
    """
    if isinstance(vertices, str | os.PathLike):
        if faces is not None:
            raise BadInput("faces are in the file of a mesh already: leave them out.")
        corners, triangles = read_mesh(Path(vertices))
    else:
        corners, triangles = _check(vertices, faces)
    corners, triangles = coarser(corners, triangles, require_whole("most", most, 4))
    low, size = np.min(corners, axis=0), np.ptp(corners, axis=0)
    # A flat mesh has no size along one axis; its matrix stays one that can be inverted.
    size = np.where(size > 0, size, 1e-6 * float(np.max(size)) or 1.0)
    levels = np.round((corners - low) / size * _LEVELS).astype("<u2")
    return Shape(
        "mesh",
        tuple(np.diag(size).ravel().tolist()),
        tuple(low.tolist()),
        require_colour(colour),
        data=f"{_text(levels)} {_text(triangles.astype(_width(len(corners))))}",
    )


def pack_mesh(shape: Shape) -> tuple[str, str]:
    """Return the texts of the corners and of the triangles of a mesh."""
    corners, _, triangles = shape.data.partition(" ")
    return corners, triangles


def unpack_mesh(corners: str, triangles: str) -> tuple[Corners, Triangles]:
    """Return the corners of a packed mesh, in the unit cube, and its triangles.

    **Raises:** `BadInput` for texts that are not those of a mesh.
    """
    try:
        levels = np.frombuffer(base64.b64decode(corners), "<u2").reshape(-1, 3)
        faces = np.frombuffer(base64.b64decode(triangles), _width(len(levels))).reshape(-1, 3)
    except ValueError as cause:
        raise BadInput(f"the mesh of a shape is damaged: {reason(cause)}.") from cause
    if faces.size == 0 or np.max(faces) >= len(levels):
        raise BadInput("the mesh of a shape is damaged: it names corners that it does not have.")
    return levels / _LEVELS, faces.astype(np.int64)


def coarser(corners: Corners, triangles: Triangles, most: int) -> tuple[Corners, Triangles]:
    """Merge equal corners, and then near ones until at most this number of triangles is left."""
    corners, triangles = _merge(corners, triangles, np.round(_inside(corners) * _LEVELS))
    if len(triangles) <= most:
        return corners, triangles
    cube = corners - np.min(corners, axis=0)
    cube = cube / float(np.max(cube))
    few, many = _COARSEST, _FINEST
    while many - few > 1:  # as many cells along the longest side as the limit allows
        cells = (few + many) // 2
        _, left = _merge(corners, triangles, np.floor(cube * cells))
        few, many = (cells, many) if len(left) <= most else (few, cells)
    return _merge(corners, triangles, np.floor(cube * few))


def _merge(corners: Corners, triangles: Triangles, cells: np.ndarray) -> tuple[Corners, Triangles]:
    """Merge the corners in each cell to their mean; keep triangles that have three corners left."""
    _, inverse = np.unique(_single(cells.astype(np.int64)), return_inverse=True)
    count = np.bincount(inverse)
    if len(count) > _CORNERS:
        raise BadInput(
            f"a mesh of {len(count):,} corners is too fine to be drawn: make it coarser."
        )
    means = np.stack([np.bincount(inverse, corners[:, k]) / count for k in range(3)], axis=1)
    faces = inverse[triangles]
    a, b, c = faces.T
    faces = faces[(a != b) & (b != c) & (c != a)]
    used, faces = np.unique(faces, return_inverse=True)
    faces = faces.reshape(-1, 3)
    first = np.argmin(faces, axis=1)  # each triangle begins with its lowest corner
    faces = np.take_along_axis(faces, (first[:, None] + np.arange(3)) % 3, axis=1)
    return means[used], faces[np.unique(_single(faces), return_index=True)[1]]


def _single(rows: Int[np.ndarray, "n 3"]) -> Int[np.ndarray, " n"]:
    """Return one whole number for three that are not negative and below two millions."""
    a, b, c = rows.T
    return (a << 42) | (b << 21) | c


def _inside(corners: Corners) -> Corners:
    size = np.ptp(corners, axis=0)
    return (corners - np.min(corners, axis=0)) / np.where(size > 0, size, 1.0)


def _check(vertices: ArrayLike, faces: ArrayLike | None) -> tuple[Corners, Triangles]:
    corners = host_float64("vertices", vertices)
    if corners.ndim != 2 or corners.shape[1] != 3:
        raise BadInput(f"vertices has shape {corners.shape}; it has three numbers a row.")
    if faces is None:
        raise BadInput("a mesh of vertices needs faces: the numbers of three corners a row.")
    require_size("the mesh of vertices", corners)
    triangles = np.asarray(faces)
    if triangles.ndim != 2 or triangles.shape[1] != 3 or triangles.dtype.kind not in "iu":
        raise BadInput(f"faces = {quote(faces)} must have three whole numbers a row.")
    if not len(triangles) or np.min(triangles) < 0 or np.max(triangles) >= len(corners):
        raise BadInput(f"faces must name corners between 0 and {len(corners) - 1}.")
    return corners, triangles.astype(np.int64)


def _width(corners: int) -> str:
    return "<u2" if corners <= _LEVELS + 1 else "<u4"


def _text(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()

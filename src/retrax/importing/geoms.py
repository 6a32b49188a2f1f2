"""The geoms of a MuJoCo model as shapes to draw."""

import numpy as np

from retrax.draw import solids
from retrax.draw.surface import mesh
from retrax.importing.compiled import Model
from retrax.importing.placement import from_quaternion
from retrax.mechanics.shape import Shape

_UP = (0.0, 0.0, 1.0)


def shapes_of(model: Model, body: int) -> tuple[Shape, ...]:
    """Return how a body looks, in its frame; planes and height fields are left out."""
    first, count = int(model.body_geomadr[body]), int(model.body_geomnum[body])
    found = []
    for k in range(first, first + count):
        R, x = from_quaternion(model.geom_quat[k]), np.array(model.geom_pos[k])
        found += [shape.turned(R).at(x) for shape in _shapes(model, k)]
    return tuple(found)


def _shapes(model: Model, k: int) -> list[Shape]:
    kind = int(model.geom_type[k])
    a, b, c = (float(x) for x in model.geom_size[k])
    colour = "#" + "".join(
        f"{round(255 * float(x)):02x}" for x in np.clip(model.geom_rgba[k][:3], 0, 1)
    )
    match kind:  # by the numbers of mjtGeom
        case 2:
            return [solids.sphere(a, colour)]
        case 3:
            ends = [solids.sphere(a, colour).at((0, 0, z)) for z in (-b, b)]
            return [solids.cylinder(a, _UP, 2 * b, colour), *ends]
        case 4:
            return [solids.ellipsoid((a, b, c), colour)]
        case 5:
            return [solids.cylinder(a, _UP, 2 * b, colour)]
        case 6:
            return [solids.box((2 * a, 2 * b, 2 * c), colour)]
        case 7:
            return [_mesh(model, int(model.geom_dataid[k]), colour)]
    return []


def _mesh(model: Model, m: int, colour: str) -> Shape:
    v, n = int(model.mesh_vertadr[m]), int(model.mesh_vertnum[m])
    f, t = int(model.mesh_faceadr[m]), int(model.mesh_facenum[m])
    corners = np.array(model.mesh_vert[v : v + n], dtype=float)
    return mesh(corners, np.array(model.mesh_face[f : f + t], dtype=int), colour)

"""The solids of a picture as corners and faces: box, ball, disk, table and bar.

Faces go round counter-clockwise as seen from outside.
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from retrax.draw.surface import coarser, unpack_mesh
from retrax.show.bodies import CORNERS
from retrax.show.paint import Colour, Look, Mesh, colour_of, mix

# Corner 4i + 2j + k of a box is at the i-th x, j-th y and k-th z.
_BOX = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
_ROUND = 24
# A mesh is painted with at most so many triangles.
_TRIANGLES = 1500


def meshes(part: dict[str, Any], look: Look) -> list[Mesh]:
    """Return the solids of one part of a body."""
    own = colour_of(look, part["colour"]) if "colour" in part else look.body
    if "line" in part:
        return []
    if "solid" in part:
        return [_place(mesh, np.asarray(part["pose"])) for mesh in _unit(part, own, look)]
    if "box" in part:
        return [box(np.asarray(part["box"]), own)]
    if "ball" in part:
        plain = own if "colour" in part else None
        return [_ball(part["ball"], np.asarray(part["at"]), plain, look)]
    if "disk" in part:
        return _disk(part["disk"], part["thickness"], look.body, look)
    if "table" in part:
        return [_table(part["table"], look)]
    start, end = (np.asarray(x, float) for x in part["bar"])
    return [bar(start, end, part["radius"], own)]


def _unit(part: dict[str, Any], own: Colour, look: Look) -> list[Mesh]:
    """Return a solid of size 1 about the origin, as `retrax.draw` has them."""
    kind, low, high = part["solid"], np.array([0.0, 0.0, -0.5]), np.array([0.0, 0.0, 0.5])
    if kind == "box":
        return [box(CORNERS, own)]
    if kind == "ball":
        return [_ball(1.0, np.zeros(3), own if "colour" in part else None, look)]
    if kind == "mesh":
        corners, triangles = coarser(
            *unpack_mesh(part["mesh"]["corners"], part["mesh"]["triangles"]), _TRIANGLES
        )
        return [Mesh(corners, triangles.tolist(), [own] * len(triangles))]
    if kind == "cone":
        return [cone(low, high, 1.0, own)]
    if kind == "wheel":
        upright = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
        disk = _disk(1.0, 1.0, own, look)
        return [mesh._replace(corners=mesh.corners @ upright.T) for mesh in disk]
    return [_cylinder(low, high, 1.0, [own] * 3, _ROUND)]


def _place(mesh: Mesh, pose: Float[np.ndarray, "12"]) -> Mesh:
    return mesh._replace(corners=mesh.corners @ pose[:9].reshape(3, 3).T + pose[9:])


def cone(base: np.ndarray, tip: np.ndarray, radius: float, colour: Colour) -> Mesh:
    """Return a cone from the middle of its base to its tip."""
    found = bar(base, tip, radius, colour)
    corners = found.corners.copy()
    half = len(corners) // 2
    corners[half:] = tip + 1e-3 * (corners[half:] - tip)
    return found._replace(corners=corners)


def box(corners: Float[np.ndarray, "8 3"], colour: Colour) -> Mesh:
    """Return six faces, whichever way the corners are laid out."""
    x, y, z = corners[[4, 2, 1]] - corners[0]
    faces = _BOX if float(np.cross(x, y) @ z) > 0 else [face[::-1] for face in _BOX]
    return Mesh(corners, faces, [colour] * 6)


def bar(start: np.ndarray, end: np.ndarray, radius: float, colour: Colour) -> Mesh:
    """Return a round bar from one point to another."""
    return _cylinder(start, end, radius, [colour] * 3, 12)


def _cylinder(
    start: np.ndarray, end: np.ndarray, radius: float, colours: list[Colour], sides: int
) -> Mesh:
    """Return a cylinder: colours of its mantle and of both ends."""
    along = end - start
    length = np.linalg.norm(along)
    along = along / length if length > 0 else np.array([0.0, 0.0, 1.0])
    across = np.cross(along, np.eye(3)[np.argmin(np.abs(along))])
    across /= np.linalg.norm(across)
    third = np.cross(along, across)
    angles = np.linspace(0, 2 * np.pi, sides, endpoint=False)
    ring = radius * (np.outer(np.cos(angles), across) + np.outer(np.sin(angles), third))
    corners = np.concatenate([start + ring, end + ring])
    mantle = [[k, (k + 1) % sides, sides + (k + 1) % sides, sides + k] for k in range(sides)]
    ends = [list(range(sides))[::-1], list(range(sides, 2 * sides))]
    return Mesh(corners, mantle + ends, [colours[0]] * sides + colours[1:])


def _ball(radius: float, at: np.ndarray, plain: Colour | None, look: Look) -> Mesh:
    """Return a ball; without a colour its octants have two, so that it is seen to turn."""
    rows, sides = _ROUND // 2, _ROUND
    polar = np.linspace(0, np.pi, rows + 1)
    around = np.linspace(0, 2 * np.pi, sides, endpoint=False)
    grid = np.array(
        [[np.sin(p) * np.cos(a), np.sin(p) * np.sin(a), np.cos(p)] for p in polar for a in around]
    )
    faces, colours = [], []
    for i in range(rows):
        for j in range(sides):
            k = (j + 1) % sides
            face = [i * sides + j, (i + 1) * sides + j, (i + 1) * sides + k, i * sides + k]
            if i == 0:
                face = [face[0], face[1], face[2]]
            elif i == rows - 1:
                face = [face[0], face[1], face[3]]
            faces.append(face)
            x, y, z = np.mean(grid[face], axis=0)
            shown = look.body if x * y * z > 0 else look.body_light
            colours.append(plain or shown)
    return Mesh(at + radius * grid, faces, colours)


def _disk(radius: float, thickness: float, own: Colour, look: Look) -> list[Mesh]:
    """Return a disk, its axle along the second axis, with spokes that show how far it rolled."""
    half = np.array([0.0, thickness / 2, 0.0])
    found = [_cylinder(-half, half, radius, [own] * 3, 2 * _ROUND)]
    for k, colour in enumerate((look.cycle[1], look.ink, look.ink)):
        x, z = 0.98 * radius, (0.045 if k == 0 else 0.02) * radius
        y = 0.58 * thickness
        corners = np.array([[i, j, m] for i in (-x, x) for j in (-y, y) for m in (-z, z)])
        angle = k * np.pi / 3
        c, s = np.cos(angle), np.sin(angle)
        found.append(box(corners @ np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]]), colour))
    return found


def _table(radius: float, look: Look) -> Mesh:
    """Return a round table in sectors of two colours."""
    sides = 4 * _ROUND
    angles = np.linspace(0, 2 * np.pi, sides, endpoint=False)
    ring = radius * np.stack([np.cos(angles), np.sin(angles), np.zeros(sides)], axis=1)
    corners = np.concatenate([ring, [[0.0, 0.0, 0.0]]])
    faces = [[k, (k + 1) % sides, sides] for k in range(sides)]
    shades = (mix(look.paper, look.body, 0.25), mix(look.paper, look.body, 0.12))
    return Mesh(corners, faces, [shades[k * 12 // sides % 2] for k in range(sides)])

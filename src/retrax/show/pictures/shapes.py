"""Shapes of `rx.draw` as things of a picture."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from retrax.draw.surface import pack_mesh, unpack_mesh
from retrax.mechanics.shape import COLOURS, SOLIDS, Shape
from retrax.show.bodies import CORNERS
from retrax.show.pictures.things import Thing, Track, body, path, strand

Rotations = Float[np.ndarray, "time 3 3"]
Places = Float[np.ndarray, "time 3"]


def paint(shape: Shape) -> int | str | None:
    """Return the number of a colour in the palette, or itself; `None` for that of bodies."""
    if not shape.colour:
        return None
    return COLOURS.index(shape.colour) if shape.colour in COLOURS else shape.colour


def part(shape: Shape) -> dict[str, Any]:
    """Return a solid or a line that a body carries."""
    own = {} if paint(shape) is None else {"colour": paint(shape)}
    if shape.kind == "line":
        return {"line": ends(shape), **own}
    pose = [*shape.matrix, *shape.place]
    found = {"solid": shape.kind, "pose": np.array(pose), **own}
    return found | ({"mesh": _triangles(shape)} if shape.kind == "mesh" else {})


def ends(shape: Shape) -> Float[np.ndarray, "n 3"]:
    """Return the points of a line, an arrow or a trail at rest."""
    return np.array(shape.points) @ shape.linear.T + np.array(shape.place)


def body_of_shapes(
    label: str, shapes: Sequence[Shape], rotation: Rotations | None, position: Places
) -> list[Thing]:
    """Return a body made of shapes, and beside it the arrows and trails among them."""
    turns = np.tile(np.eye(3), (len(position), 1, 1)) if rotation is None else rotation
    rigid = [part(shape) for shape in shapes if shape.kind in (*SOLIDS, "line")]
    things = [body(label, turns, position, rigid)]
    for shape in shapes:
        if shape.kind in ("arrow", "trail"):
            nodes = ends(shape) @ np.swapaxes(turns, 1, 2) + position[:, None]
            things.append(through(shape, nodes))
    return things


def through(shape: Shape, nodes: Float[np.ndarray, "time n 3"]) -> Thing:
    """Return a line, an arrow or a trail whose points are known at all times."""
    own = paint(shape)
    if shape.kind == "line":
        return strand("", nodes, own)
    if shape.kind == "trail":
        return path("", nodes[:, 0], 4 if own is None else own)
    start, end = nodes[:, 0], nodes[:, 1]
    colour = 1 if own is None else own
    tracks = {"start": Track(start), "vector": Track(end - start)}
    return {"kind": "arrow", "label": "", **tracks, "colour": colour}


def reach(shape: Shape) -> Float[np.ndarray, "n 3"]:
    """Return points whose hull holds a shape at rest."""
    if shape.kind not in SOLIDS:
        return ends(shape)
    cube = CORNERS + 0.5 if shape.kind == "mesh" else CORNERS
    if shape.kind == "ball":
        cube = np.concatenate([np.eye(3), -np.eye(3)])
    elif shape.kind in ("cylinder", "cone", "wheel"):
        cube = CORNERS * [2.0, 2.0, 1.0]
    return cube @ shape.linear.T + np.array(shape.place)


def _triangles(shape: Shape) -> dict[str, Any]:
    corners, triangles = pack_mesh(shape)
    found, _ = unpack_mesh(corners, triangles)  # what is damaged is told here, not in a browser
    return {"corners": corners, "triangles": triangles, "wide": len(found) > 65536}

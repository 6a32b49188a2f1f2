"""Shapes of links: to draw, and to weigh."""

from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from retrax.draw import solids as drawn
from retrax.draw.mesh_file import Surface, read_mesh, require_size
from retrax.draw.surface import mesh
from retrax.errors import BadInput
from retrax.importing import solid as weighed
from retrax.importing.mesh_path import Packages, find_mesh
from retrax.importing.placement import Placement, roll_pitch_yaw
from retrax.importing.solid import Solid
from retrax.importing.xml_file import numbers, only, text
from retrax.mechanics.shape import Shape


class Files(NamedTuple):
    """Where meshes are.

    **Attributes:** `description`: the file that names them; `packages`: folders by name; `read`:
    whether meshes are read at all.
    """

    description: Path
    packages: Packages
    read: bool


def origin(element: Element, where: str) -> Placement:
    """Return the `<origin>` of an element."""
    found = only(element, "origin", where)
    if found is None:
        return Placement(np.eye(3), np.zeros(3))
    place = numbers(found, "xyz", where, 3, (0.0, 0.0, 0.0))
    return Placement(roll_pitch_yaw(numbers(found, "rpy", where, 3, (0.0, 0.0, 0.0))), place)


def shape(element: Element, where: str, files: Files, colour: str) -> Shape | None:
    """Return what a `<visual>` shows, in the frame of its link."""
    kind = _kind(element, where)
    match kind.tag:
        case "mesh":
            if not files.read:
                return None
            found = mesh(*_surface(kind, where, files), colour)
        case "box":
            found = drawn.box(_lengths(kind, "size", where, 3), colour)
        case "sphere":
            found = drawn.sphere(_length(kind, "radius", where), colour)
        case "cylinder":
            sizes = _length(kind, "radius", where), _length(kind, "length", where)
            found = drawn.cylinder(sizes[0], (0.0, 0.0, 1.0), sizes[1], colour)
        case _:  # named among what is not understood
            return None
    place = origin(element, where)
    return found.turned(place.R).at(place.x)


def weight(element: Element, where: str, files: Files, density: float) -> Solid:
    """Return what a `<collision>` or `<visual>` weighs if it is full, in the frame of its link."""
    kind = _kind(element, where)
    match kind.tag:
        case "box":
            found = weighed.box(_lengths(kind, "size", where, 3), density)
        case "sphere":
            found = weighed.sphere(_length(kind, "radius", where), density)
        case "cylinder":
            sizes = _length(kind, "radius", where), _length(kind, "length", where)
            found = weighed.cylinder(*sizes, density)
        case "mesh":
            corners, triangles = _surface(kind, where, files)
            found = weighed.integrate_surface(corners, triangles, density, f"of {where}")
        case _:
            raise BadInput(f"{where} has a <{kind.tag}> for a shape, whose inertia is not known.")
    return found.transform(origin(element, where))


def _kind(element: Element, where: str) -> Element:
    geometry = only(element, "geometry", where)
    kinds = [] if geometry is None else list(geometry)
    if len(kinds) != 1:
        raise BadInput(
            f"a <{element.tag}> of {where} has {len(kinds)} shapes; it has one: a box, cylinder, "
            "sphere or mesh."
        )
    return kinds[0]


def _surface(kind: Element, where: str, files: Files) -> Surface:
    path = find_mesh(text(kind, "filename", where), files.description, files.packages)
    corners, triangles = read_mesh(path)
    scale = numbers(kind, "scale", where, 3, (1.0, 1.0, 1.0))
    # A mirrored surface has its triangles the other way round.
    with np.errstate(over="ignore"):
        corners = corners * scale
    require_size(f"the mesh of {where}", corners)
    return corners, triangles if np.prod(np.sign(scale)) > 0 else triangles[:, ::-1]


def _lengths(kind: Element, name: str, where: str, count: int) -> np.ndarray:
    sizes = numbers(kind, name, where, count)
    if not np.all(sizes > 0):
        raise BadInput(f"{name}= in <{kind.tag}> of {where} must be positive.")
    return sizes


def _length(kind: Element, name: str, where: str) -> float:
    return float(_lengths(kind, name, where, 1)[0])

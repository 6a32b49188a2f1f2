"""How shapes that touch look: as shapes of `rx.draw`, and planes by their numbers."""

from collections.abc import Iterable

import numpy as np

from retrax.contact.shapes import AbstractSurface, Ball, Box, Capsule, Cylinder, Plane
from retrax.draw.solids import box, cylinder, sphere
from retrax.mechanics.contact import Seen
from retrax.mechanics.shape import Shape, triple

_GROUND = "ground"


def picture(pairs: Iterable[tuple[AbstractSurface, AbstractSurface]]) -> Seen:
    """Return what to draw for the shapes of pairs, each once."""
    return draw_surfaces({id(shape): shape for pair in pairs for shape in pair}.values())


def draw_surfaces(surfaces: Iterable[AbstractSurface]) -> Seen:
    """Return what to draw for surfaces."""
    shapes, planes = [], []
    for one in surfaces:
        body, at = _GROUND if one.body is None else one.body, np.asarray(one.at)
        if isinstance(one, Plane):
            planes.append((triple("normal", np.asarray(one.normal)), triple("at", at), body))
        else:
            shapes += [solid.at(at).on(body) for solid in _solids(one)]
    return Seen(tuple(shapes), tuple(planes))


def _solids(shape: AbstractSurface) -> list[Shape]:
    """Return the solids that make a shape, about its place."""
    if isinstance(shape, Ball):
        return [sphere(float(shape.radius))]
    if isinstance(shape, Box):
        return [box(np.asarray(shape.size)).turned(np.asarray(shape.turned))]
    assert isinstance(shape, Cylinder | Capsule)
    axis, radius, length = np.asarray(shape.axis), float(shape.radius), float(shape.length)
    round_ends = [-length / 2, length / 2] if isinstance(shape, Capsule) else []
    ends = [sphere(radius, "blue").at(along * axis) for along in round_ends]
    return [cylinder(radius, axis, length, "blue" if ends else ""), *ends]

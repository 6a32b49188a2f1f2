"""How shapes that touch look: as shapes of `rx.draw`."""

from collections.abc import Iterable

import numpy as np

from retrax.contact.shapes import AbstractSurface, Ball, Box, Capsule, Cylinder, Plane
from retrax.draw.solids import box, cylinder, sphere
from retrax.mechanics.shape import Shape

# A plane has no end: so many sizes of the largest other shape are drawn of it, and so thick.
_WIDE, _THIN = 8.0, 0.02


def picture(pairs: Iterable[tuple[AbstractSurface, AbstractSurface]]) -> tuple[Shape, ...]:
    """Return what to draw for the shapes of pairs, each once."""
    each = list({id(shape): shape for pair in pairs for shape in pair}.values())
    largest = max((_size(shape) for shape in each if not isinstance(shape, Plane)), default=1.0)
    found = []
    for shape in each:
        for drawn in _solids(shape, largest):
            placed = drawn.at(np.asarray(shape.at))
            found.append(placed if shape.body is None else placed.on(shape.body))
    return tuple(found)


def _size(shape: AbstractSurface) -> float:
    if isinstance(shape, Ball):
        return 2 * float(shape.radius)
    if isinstance(shape, Capsule | Cylinder):
        return float(shape.length) + 2 * float(shape.radius)
    return float(np.max(np.asarray(shape.size))) if isinstance(shape, Box) else 0.0


def _solids(shape: AbstractSurface, largest: float) -> list[Shape]:
    """Return the solids that make a shape, about its place."""
    if isinstance(shape, Ball):
        return [sphere(float(shape.radius))]
    if isinstance(shape, Cylinder):
        return [cylinder(float(shape.radius), np.asarray(shape.axis), float(shape.length))]
    if isinstance(shape, Capsule):
        axis, radius = np.asarray(shape.axis), float(shape.radius)
        end = float(shape.length) / 2 * axis
        ends = [sphere(radius, "blue").at(place) for place in (-end, end)]
        return [cylinder(radius, axis, float(shape.length), "blue"), *ends]
    if isinstance(shape, Box):
        return [box(np.asarray(shape.size)).turned(np.asarray(shape.turned))]
    return []

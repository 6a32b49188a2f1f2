r"""Where two shapes come closest: gap, normal and points, in closed form.

The normal points from the second shape to the first. Moving bodies change the gap by the speed of
the two nearest points along it, because these minimise the distance.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from retrax.contact.bodies import Placed
from retrax.contact.shapes import AbstractSurface, Ball, Plane
from retrax.errors import BadInput

Vectors = Float[Array, "k 3"]


class Meeting(NamedTuple):
    """The candidates of a pair: gaps, normals, and the nearest points of both in space."""

    gap: Float[Array, " k"]
    normal: Vectors
    first: Vectors
    second: Vectors

    @property
    def swapped(self) -> "Meeting":
        return Meeting(self.gap, -self.normal, self.second, self.first)


def count(a: AbstractSurface, b: AbstractSurface) -> int:
    """Return how many candidates a pair has."""
    if isinstance(a, Ball) and isinstance(b, Ball | Plane):
        return 1
    if isinstance(a, Plane) and isinstance(b, Ball):
        return 1
    raise BadInput(f"{a.name} and {b.name} cannot touch.")


def meeting(a: AbstractSurface, b: AbstractSurface, at: Placed, on: Placed) -> Meeting:
    """Return where two shapes on bodies come closest."""
    if isinstance(a, Plane):
        return meeting(b, a, on, at).swapped
    assert isinstance(a, Ball)
    centre = at.x + at.R @ a.at
    if isinstance(b, Plane):
        n = on.R @ b.normal
        height = n @ (centre - on.x - on.R @ b.at)
        gap = height - a.radius
        return Meeting(
            gap[None], n[None], (centre - a.radius * n)[None], (centre - height * n)[None]
        )
    assert isinstance(b, Ball)
    other = on.x + on.R @ b.at
    d = centre - other
    far = jnp.sqrt(d @ d)
    n = d / far
    gap = far - a.radius - b.radius
    return Meeting(
        gap[None], n[None], (centre - a.radius * n)[None], (other + b.radius * n)[None]
    )

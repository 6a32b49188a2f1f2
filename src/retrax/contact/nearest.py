"""Nearest points of points, segments, boxes and cylinders, in closed form.

Every case is computed and one is chosen, so that a step has no branches; where a direction has no
meaning some other one stands in for it, so that derivatives stay finite.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

Scalar = Float[Array, ""]
Vector = Float[Array, "3"]
Scalars = Float[Array, " k"]
Points = Float[Array, "k 3"]
# Points closer than this, in m, have no direction from one to the other.
_SAME = 1e-12
# Segments are parallel where the sine of their angle, squared, is far below this.
_PARALLEL = 1e-12


class Segment(NamedTuple):
    """Segments: their middles, unit directions and half lengths."""

    middle: Points
    way: Points
    half: Scalars


class Nearest(NamedTuple):
    """Signed distances from solids, directions away from them, and their nearest points."""

    distance: Scalars
    normal: Points
    point: Points


def dot(a: Points, b: Points) -> Scalars:
    """Return the products of rows."""
    return jnp.sum(a * b, axis=-1)


def length_and_way(d: Points, otherwise: Points) -> tuple[Scalars, Points]:
    """Return lengths and unit vectors; `otherwise` where a vector is too short to have one."""
    square = dot(d, d)
    short = square < _SAME**2
    size = jnp.sqrt(jnp.where(short, 1.0, square))
    return jnp.where(short, 0.0, size), jnp.where(short[:, None], otherwise, d / size[:, None])


def across(n: Vector) -> Float[Array, "2 3"]:
    """Return two unit vectors at right angles to a unit vector and to each other.

    References: [DuffEtAl2017].
    """
    sign = jnp.where(n[2] >= 0, 1.0, -1.0)
    a = -1 / (sign + n[2])
    b = n[0] * n[1] * a
    first = jnp.stack([1 + sign * n[0] * n[0] * a, sign * b, -sign * n[0]])
    second = jnp.stack([b, sign + n[1] * n[1] * a, -n[1]])
    return jnp.stack([first, second])


def on_segment(p: Points, segment: Segment) -> Points:
    """Return the points of segments that are nearest to points."""
    along = jnp.clip(dot(p - segment.middle, segment.way), -segment.half, segment.half)
    return segment.middle + along[:, None] * segment.way


def between_segments(a: Segment, b: Segment) -> tuple[Points, Points]:
    r"""Return the nearest points of pairs of segments.

    With $P(s) = p + su$, $Q(t) = q + tv$ and $w = p - q$ the distance of the lines is least at
    $s = -(u - (u\cdot v)v)\cdot w/|u\times v|^2$. Of parallel lines it is the same all along, and
    the middle of the first segment is tried; segments end, so that $s$, then $t$ and $s$ again are
    brought inside.

    References: [Ericson2005].
    """
    w, c = a.middle - b.middle, dot(a.way, b.way)
    off = a.way - c[:, None] * b.way
    s = jnp.clip(-dot(off, w) / (dot(off, off) + _PARALLEL), -a.half, a.half)
    t = jnp.clip(dot(b.way, w) + c * s, -b.half, b.half)
    s = jnp.clip(c * t - dot(a.way, w), -a.half, a.half)
    return a.middle + s[:, None] * a.way, b.middle + t[:, None] * b.way


def from_box(p: Points, centre: Vector, axes: Float[Array, "3 3"], half: Vector) -> Nearest:
    """Return how far points are from a box, below zero inside, where the nearest face counts."""
    y = (p - centre[None]) @ axes
    over = jnp.abs(y) - half[None]
    a, b, c = over[:, 0], over[:, 1], over[:, 2]
    first = (a >= b) & (a >= c)
    second = ~first & (b >= c)
    chosen = jnp.stack([first, second, ~first & ~second], axis=1)
    face = jnp.where(chosen, jnp.where(y >= 0, 1.0, -1.0), 0.0)
    size, way = length_and_way(y - jnp.clip(y, -half[None], half[None]), face)
    depth = jnp.maximum(jnp.maximum(a, b), c)
    inside = depth <= 0
    distance = jnp.where(inside, depth, size)
    normal = jnp.where(inside[:, None], face, way)
    nearest = y - distance[:, None] * normal
    return Nearest(distance, normal @ axes.T, centre[None] + nearest @ axes.T)


def from_cylinder(p: Points, centre: Vector, axis: Vector, half: Scalar, radius: Scalar) -> Nearest:
    """Return how far points are from a cylinder, below zero inside; the nearest of side and end."""
    y = p - centre[None]
    z = y @ axis
    aside = y - z[:, None] * axis[None]
    rho, out = length_and_way(aside, jnp.broadcast_to(across(axis)[:1], y.shape))
    up = jnp.where(z >= 0, 1.0, -1.0)
    side, end = rho - radius, jnp.abs(z) - half
    corner = (side > 0) & (end > 0)
    # Beside the rim both count, elsewhere the larger.
    size = jnp.sqrt(jnp.where(corner, side * side + end * end, 1.0))
    more = side >= end
    distance = jnp.where(corner, size, jnp.where(more, side, end))
    x = jnp.where(corner, side / size, jnp.where(more, 1.0, 0.0))
    h = jnp.where(corner, end / size, jnp.where(more, 0.0, 1.0))
    normal = x[:, None] * out + (h * up)[:, None] * axis[None]
    return Nearest(distance, normal, p - distance[:, None] * normal)

r"""What touches a plane: balls, capsules, cylinders, boxes."""

import itertools

import jax.numpy as jnp
import numpy as np

from retrax.contact.bodies import Placed
from retrax.contact.meeting import Meeting, centre_of, core_of, ends_of
from retrax.contact.nearest import Points, Scalar, Vector, across, length_and_way
from retrax.contact.shapes import Ball, Box, Capsule, Cylinder, Plane
from retrax.numerics.small_matrices import cross

# Far below this angle in rad between its axis and the normal a cylinder stands.
_STANDS = 1e-6
# Cosines of 67.5 and 45 degrees.
_NEAR, _HALF = np.cos(3 * np.pi / 8), np.sqrt(0.5)
CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))


def ball_on_plane(ball: Ball, plane: Plane, at: Placed, on: Placed) -> Meeting:
    """Return where a ball meets a plane."""
    return _round(centre_of(ball, at), ball.radius, plane, on)


def capsule_on_plane(capsule: Capsule, plane: Plane, at: Placed, on: Placed) -> Meeting:
    """Return where both ends of a capsule meet a plane."""
    return _round(ends_of(core_of(capsule, at)), capsule.radius, plane, on)


def box_on_plane(box: Box, plane: Plane, at: Placed, on: Placed) -> Meeting:
    """Return where the corners of a box meet a plane."""
    corners = (jnp.asarray(CORNERS) * box.half[None]) @ box.turned.T + box.at[None]
    return _round(corners @ at.R.T + at.x[None], box.radius, plane, on)


def cylinder_on_plane(
    cylinder: Cylinder,
    plane: Plane,
    at: Placed,
    on: Placed,
    before: Points | None = None,
    held: bool = False,
) -> Meeting:
    r"""Return where the rims of a cylinder meet a plane: four points of each, a quarter turn apart.

    The first is the lowest of its rim, in the direction $e \propto -w$ with $w$ the part of the
    normal across the axis: a cylinder leans and rolls on it, and two of them carry one that lies.
    One that stands has no lowest point, and all four carry it; $e$ is then some direction of the
    body. Within a step the four stand for the quarters of the rim around them: where the lowest
    point has come to a quarter, that is its point, and from there it goes back to the middle, so
    that gaps are continuous and the least of them is that of the rim. A cylinder that rocks from
    one side of its rim to another leaves one point and lands on another. Points that are neither
    lowest nor highest touch only where it stands, and there alone are their rows the derivatives of
    their gaps.

    **Arguments:** `before`: the tangents of the rim at the first points; `held`: whether the four
    stay there.
    """
    n, origin = on.R @ plane.normal, on.point(plane.at)
    axis, middle = at.R @ cylinder.axis, at.point(cylinder.at)
    # The tangent of the rim at its lowest point, times the sine of the angle that the axis makes.
    turn = cross(n, axis)
    if before is None:
        ahead = at.R @ across(cylinder.axis)[0]
    else:
        flat = before[:1] - (before[0] @ axis) * axis[None]
        ahead = length_and_way(flat, before[:1])[1][0]
    square = turn @ turn
    little = _STANDS**5 / (square * square + _STANDS**4)
    tangent = length_and_way((turn + little * ahead)[None], ahead[None])[1][0]
    side = tangent if before is None else ahead
    first = cross(side, axis)
    quarters = jnp.stack([first, side, -first, -side])
    if before is not None and not held:
        quarters = _lowest_of_quarters(quarters, cross(tangent, axis))
    ends = [middle + sign * (cylinder.length / 2) * axis for sign in (-1, 1)]
    points = jnp.concatenate([end[None] + cylinder.radius * quarters for end in ends])
    _, way = length_and_way((side - (side @ n) * n)[None], side[None])
    above = _above(points, jnp.zeros(()), n, origin)
    return above._replace(way=jnp.broadcast_to(way, points.shape))


def _lowest_of_quarters(middles: Points, lowest: Vector) -> Points:
    """Return directions of a rim: the lowest in its own quarter, else back to the middle.

    At an angle of 45 degrees from the middle it turns back twice as fast as the lowest goes on.
    """
    following = jnp.concatenate([middles[1:], middles[:1]])
    c, s = middles @ lowest, following @ lowest
    inside, near = c >= jnp.abs(s), c > _NEAR
    double, twice = c * c - s * s, 2 * c * jnp.abs(s)
    back, up = (twice - double) * _HALF, (twice + double) * _HALF
    along = jnp.where(inside, c, jnp.where(near, back, 1.0))
    aside = jnp.where(inside, s, jnp.where(near, jnp.where(s > 0, up, -up), 0.0))
    return along[:, None] * middles + aside[:, None] * following


def _round(p: Points, r: Scalar, plane: Plane, on: Placed) -> Meeting:
    return _above(p, r, on.R @ plane.normal, on.point(plane.at))


def _above(p: Points, r: Scalar, n: Vector, origin: Vector) -> Meeting:
    height = (p - origin[None]) @ n
    normal = jnp.broadcast_to(n[None], p.shape)
    return Meeting(height - r, normal, p - r * normal, p - height[:, None] * normal)

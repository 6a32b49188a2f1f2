r"""What touches a plane: balls, capsules, cylinders, boxes."""

import itertools

import jax.numpy as jnp
import numpy as np

from retrax.contact.bodies import Placed
from retrax.contact.meeting import Meeting, centre_of, core_of, ends_of, joined
from retrax.contact.nearest import Points, Scalar, Vector, across
from retrax.contact.shapes import Ball, Box, Capsule, Cylinder, Plane

# Below this angle in rad between its axis and the normal a cylinder stands.
_STANDS = 1e-8
CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
# Points of a rim that support a cylinder which stands.
FEET = 4


def ball_on_plane(ball: Ball, plane: Plane, at: Placed, on: Placed) -> Meeting:
    """Return where a ball meets a plane."""
    return _round(centre_of(ball, at), ball.radius, plane, on)


def capsule_on_plane(capsule: Capsule, plane: Plane, at: Placed, on: Placed) -> Meeting:
    """Return where both ends of a capsule meet a plane."""
    return _round(ends_of(core_of(capsule, at)), capsule.radius, plane, on)


def box_on_plane(box: Box, plane: Plane, at: Placed, on: Placed) -> Meeting:
    """Return where the corners of a box meet a plane."""
    corners = (CORNERS * box.half[None]) @ box.turned.T + box.at[None]
    return _round(corners @ at.R.T + at.x[None], box.radius, plane, on)


def cylinder_on_plane(cylinder: Cylinder, plane: Plane, at: Placed, on: Placed) -> Meeting:
    r"""Return where the rims of a cylinder meet a plane.

    Of each rim there is its lowest point, on which a cylinder leans and rolls: two of them carry
    one that lies. With $w$ the part of the normal across the axis and $s = |w|$, its gap and its
    arm are

    $$ \gamma = h - a\frac{s^3}{s^2 + \epsilon^2}, \qquad
        -a\frac{s(s^2 + 3\epsilon^2)}{(s^2 + \epsilon^2)^2}\,w $$

    with the height $h$ of the middle of the rim and its radius $a$. Where the cylinder stands, no
    point is lowest, and the arm goes to zero with $s/\epsilon$; elsewhere the gap is exact to
    $a\epsilon^2/s$. Four feet that are fixed to each rim carry a cylinder that stands.
    """
    n, origin = on.R @ plane.normal, on.point(plane.at)
    axis, middle = at.R @ cylinder.axis, at.point(cylinder.at)
    w = n - (n @ axis) * axis
    square, small = w @ w, _STANDS**2
    s = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)
    drop = cylinder.radius * s * square / (square + small)
    arm = -cylinder.radius * s * (square + 3 * small) / (square + small) ** 2 * w
    turned = across(cylinder.axis) @ at.R.T
    feet = cylinder.radius * jnp.concatenate([turned, -turned])
    found = []
    for side in (-1, 1):
        end = middle + side * (cylinder.length / 2) * axis
        lowest = end + arm
        gap = n @ (end - origin) - drop
        under = lowest - (n @ (lowest - origin)) * n
        found.append(Meeting(gap[None], n[None], lowest[None], under[None]))
        found.append(_above(end[None] + feet, jnp.zeros(()), n, origin))
    return joined(*found)


def _round(p: Points, r: Scalar, plane: Plane, on: Placed) -> Meeting:
    return _above(p, r, on.R @ plane.normal, on.point(plane.at))


def _above(p: Points, r: Scalar, n: Vector, origin: Vector) -> Meeting:
    height = (p - origin[None]) @ n
    normal = jnp.broadcast_to(n[None], p.shape)
    return Meeting(height - r, normal, p - r * normal, p - height[:, None] * normal)

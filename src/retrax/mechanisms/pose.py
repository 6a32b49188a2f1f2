r"""Where one body of a mechanism is, and what its velocity does to its points and directions.

A body has a rotation $R$, from body axes to space axes, and a centre of mass $x$; its velocity is
$(\Omega, v)$, the angular velocity in body axes and the velocity of the centre of mass in space
axes. In the plane $R$ has two rows and $\Omega$ is one number.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from retrax.groups.so3 import SO3

Vector = Float[Array, " d"]
Matrix = Float[Array, "d d"]


class Pose(NamedTuple):
    """Rotation and centre of mass of a body."""

    R: Matrix
    x: Vector


def ground(d: int) -> Pose:
    """Return the pose of what does not move."""
    return Pose(jnp.eye(d), jnp.zeros(d))


def point(pose: Pose, s: Vector) -> Vector:
    """Return where in space the point `s` of a body is."""
    return pose.x + pose.R @ s


def turning(R: Matrix, s: Vector) -> Float[Array, "d turns"]:
    r"""Return $\partial(Rs)/\partial\Omega$: $-R\,\hat s$, or $R\,Js$ in the plane."""
    if R.shape[0] == 2:
        return (R @ jnp.stack([-s[1], s[0]]))[:, None]
    return -R @ SO3().hat(s)


def tangent(pose: Pose, xi: Float[Array, " dim"]) -> Pose:
    """Return how a pose changes at the velocity `xi`."""
    d = pose.x.shape[0]
    if d == 2:
        return Pose(pose.R @ jnp.stack([jnp.stack([0 * xi[0], -xi[0]]), jnp.stack([xi[0], 0 * xi[0]])]), xi[1:])
    return Pose(pose.R @ SO3().hat(xi[:3]), xi[3:])


def across(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two unit vectors that make a right-handed triple with a unit `axis`, on the host."""
    smallest = np.eye(3)[int(np.argmin(np.abs(axis)))]
    first = np.cross(axis, smallest)
    first = first / np.linalg.norm(first)
    return first, np.cross(axis, first)

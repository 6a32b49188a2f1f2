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
from retrax.numerics.small_matrices import cross

Vector = Float[Array, " d"]
Matrix = Float[Array, "d d"]
# The velocity (Omega, v) of a body, or a row that acts on it.
Row = Float[Array, " dim"]
# Rotation and centre of mass of a body as the mechanism is drawn, on the host.
Place = tuple[np.ndarray, np.ndarray]


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


def moment(s: Vector, u: Vector) -> Float[Array, " turns"]:
    r"""Return $s\times u$, the derivative of $Rs\cdot Ru$ by the $\Omega$ that turns $s$ alone."""
    if s.shape[0] == 2:
        return jnp.stack([s[0] * u[1] - s[1] * u[0]])
    return cross(s, u)


def tangent(pose: Pose, xi: Row) -> Pose:
    """Return how a pose changes at the velocity `xi`."""
    if pose.x.shape[0] == 2:
        quarter = jnp.array([[0.0, -1.0], [1.0, 0.0]])
        return Pose(xi[0] * (pose.R @ quarter), xi[1:])
    return Pose(pose.R @ SO3().hat(xi[:3]), xi[3:])


def across(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two unit vectors that make a right-handed triple with a unit `axis`, on the host.

    Of $e_3$ they are $e_1$ and $e_2$.
    """
    aside = np.eye(3)[int(np.argmin(np.abs(axis)))]
    first = aside - (aside @ axis) * axis
    first = first / np.linalg.norm(first)
    return first, np.cross(axis, first)

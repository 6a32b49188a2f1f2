"""Where one frame stands in another, on the host."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

Vector = Float[np.ndarray, "3"]
Matrix = Float[np.ndarray, "3 3"]


class Placement(NamedTuple):
    """A rotation and a place: points $p$ of the frame are at $Rp + x$."""

    R: Matrix
    x: Vector

    def then(self, inner: "Placement") -> "Placement":
        """Return the placement, in the outer frame, of a frame at `inner` in this one."""
        return Placement(self.R @ inner.R, self.R @ inner.x + self.x)

    def inverse(self) -> "Placement":
        """Return the placement of the outer frame in this one."""
        return Placement(self.R.T, -self.R.T @ self.x)

    def point(self, p: Vector) -> Vector:
        """Return a point of the frame in the outer one."""
        return self.R @ p + self.x


HERE = Placement(np.eye(3), np.zeros(3))


def roll_pitch_yaw(angles: Vector) -> Matrix:
    """Return the rotation by three angles about the fixed axes x, y and z, in this order."""
    (ca, cb, cc), (sa, sb, sc) = np.cos(angles), np.sin(angles)
    X = np.array([[1, 0, 0], [0, ca, -sa], [0, sa, ca]])
    Y = np.array([[cb, 0, sb], [0, 1, 0], [-sb, 0, cb]])
    Z = np.array([[cc, -sc, 0], [sc, cc, 0], [0, 0, 1]])
    return Z @ Y @ X


def from_quaternion(q: Float[np.ndarray, "4"]) -> Matrix:
    """Return the rotation of a quaternion, its real part first."""
    w, x, y, z = q / np.linalg.norm(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def along_z(axis: Vector) -> Matrix:
    """Return a rotation that takes e3 to a unit vector."""
    smallest = np.eye(3)[int(np.argmin(np.abs(axis)))]
    first = np.cross(smallest, axis)
    first = first / np.linalg.norm(first)
    return np.stack([first, np.cross(axis, first), axis], axis=1)

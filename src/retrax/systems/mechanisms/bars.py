"""The moments of inertia of bars, and how they lie between two points."""

import numpy as np
from jaxtyping import Float

from retrax.errors import BadInput

# Kilograms and metres whose moments of inertia, and sums of them, are numbers.
_LARGEST = 1e100

Point = Float[np.ndarray, "3"]


def bar(mass: float, length: float, width: float) -> Float[np.ndarray, "3"]:
    """Return the principal moments of a bar of square section, about its own axis first."""
    if max(mass, width, length) > _LARGEST:
        raise BadInput(
            f"a bar of {mass:.3g} kg, {length:.3g} m long and {width:.3g} m wide is too large: its "
            "moments of inertia overflow."
        )
    across = mass * (width**2 + length**2) / 12
    return np.array([mass * width**2 / 6, across, across])


def lying(a: Point, b: Point) -> Float[np.ndarray, "3 3"]:
    """Return a rotation that takes the first axis into the direction from `a` to `b`."""
    along = (b - a) / np.linalg.norm(b - a)
    other = np.eye(3)[int(np.argmin(np.abs(along)))]
    second = np.cross(other, along) / np.linalg.norm(np.cross(other, along))
    return np.stack([along, second, np.cross(along, second)], axis=1)

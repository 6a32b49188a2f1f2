r"""The box to draw for a body: the one with its inertia, as far as the run tells.

A run holds angular velocities and momenta in body axes. Where $\mu = \mathbb I\,\Omega$ with one
constant matrix, the matrix follows from them, and a homogeneous box of sides $a_i$ has its
principal moments if

$$ a_i^2 \propto I_j + I_k - I_i. \tag{1} $$
"""

import numpy as np
from jaxtyping import Float

# What is drawn when the run does not tell: three different sides.
_ANY_BODY = np.array([1.0, 0.7, 0.4])
_THINNEST = 0.08
_TOLERANCE = 1e-6
_CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])


def box(
    velocity: Float[np.ndarray, "time 3"], momentum: Float[np.ndarray, "time 3"]
) -> tuple[Float[np.ndarray, "8 3"], bool]:
    """The eight corners in body axes, longest side 1, and whether they come from the inertia."""
    inertia = fitted_inertia(velocity, momentum)
    if inertia is None:
        return _CORNERS * _ANY_BODY, False
    return box_of(inertia), True


def box_of(inertia: Float[np.ndarray, "3 3"]) -> Float[np.ndarray, "8 3"]:
    """The corners in body axes of the box with this inertia, longest side 1."""
    moments, axes = np.linalg.eigh(inertia)
    axes[:, 0] *= np.sign(np.linalg.det(axes))  # right-handed: no mirrored box
    squares = np.maximum(np.sum(moments) - 2 * moments, 0.0)  # (1)
    sides = np.maximum(np.sqrt(squares / np.max(squares)), _THINNEST)
    return (_CORNERS * sides) @ axes.T


def fitted_inertia(
    velocity: Float[np.ndarray, "time 3"], momentum: Float[np.ndarray, "time 3"]
) -> Float[np.ndarray, "3 3"] | None:
    """The inertia that makes all momenta of the velocities; `None` where none does."""
    fit, _, rank, _ = np.linalg.lstsq(velocity, momentum, rcond=_TOLERANCE)
    misfit = np.max(np.abs(velocity @ fit - momentum))
    inertia = (fit + fit.T) / 2
    symmetric = np.max(np.abs(fit - inertia)) <= _TOLERANCE * np.max(np.abs(fit))
    if rank < 3 or misfit > _TOLERANCE * np.max(np.abs(momentum)) or not symmetric:
        return None
    return inertia if np.linalg.eigvalsh(inertia)[0] > 0 else None

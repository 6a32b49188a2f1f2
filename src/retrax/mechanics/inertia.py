"""What an inertia must satisfy to belong to a body."""

import numpy as np

from retrax.errors import BadInput
from retrax.groups.base import AbstractLieGroup
from retrax.groups.power import Power
from retrax.groups.product import Product
from retrax.groups.se3 import SE3
from retrax.groups.so3 import SO3

# A flat body meets the triangle inequality with equality, so rounding may miss it by this much.
_ROUNDING = 1e-12


def require_positive(inertia: np.ndarray) -> None:
    """Reject an inertia, vector or matrix, that is not symmetric and positive definite."""
    if inertia.ndim == 1:
        if not np.all(inertia > 0):
            raise BadInput(
                f"inertia = {inertia.tolist()} is not positive: every moment must be > 0."
            )
        return
    size = float(np.max(np.abs(inertia)))
    scaled = inertia / (size or 1.0)  # nothing that is computed from it can overflow
    skew = size * float(np.max(np.abs(scaled - scaled.T)))
    if skew > _ROUNDING * size:
        raise BadInput(f"inertia is not symmetric: max |I - I^T| = {skew:.3g}, but it must be 0.")
    smallest = size * float(np.linalg.eigvalsh(scaled)[0])
    if smallest <= 0:
        raise BadInput(
            f"inertia is not positive definite: its smallest eigenvalue is {smallest:.6g}, "
            "but it must be > 0."
        )


def plainly_a_body(group: AbstractLieGroup, inertia: np.ndarray) -> np.ndarray:
    """Tell of each member whether its inertia is seen at once to be that of a body.

    Decides on SO(3) and on groups that ask for no more than positive moments; all others are to be
    looked at one by one.
    """
    if inertia.ndim not in (2, 3) or isinstance(group, SE3 | Product | Power):
        return np.zeros(len(inertia), bool)
    moments, fine = (inertia, np.ones(len(inertia), bool))
    if inertia.ndim == 3:
        moments, fine = _moments(inertia)
    fine = fine & (moments > 0).all(axis=1)
    if isinstance(group, SO3):
        largest = moments.max(axis=1)
        fine &= moments.sum(axis=1) - largest >= largest
    return np.asarray(fine)


def _moments(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return principal moments of many matrices, and which of these are finite and symmetric."""
    size = np.abs(matrices).max(axis=(1, 2))
    skew = np.abs(matrices - matrices.transpose(0, 2, 1)).max(axis=(1, 2))
    fine = np.isfinite(size) & (skew <= _ROUNDING * size)
    moments = np.zeros(matrices.shape[:2])
    moments[fine] = np.linalg.eigvalsh(matrices[fine])
    return moments, fine


def require_body(group: AbstractLieGroup, inertia: np.ndarray) -> None:
    """Reject an inertia that no distribution of mass has, naming the inequality that fails."""
    matrix = np.diag(inertia) if inertia.ndim == 1 else inertia
    if isinstance(group, SO3):
        _require_triangle(matrix, "")
    elif isinstance(group, SE3):
        _require_rigid(matrix)
    elif isinstance(group, Product):
        start = 0
        for factor in group.groups:
            block = slice(start, start + factor.dim)
            require_body(factor, matrix[block, block])
            start += factor.dim
    elif isinstance(group, Power):
        for k in range(group.n):
            block = slice(k * group.group.dim, (k + 1) * group.group.dim)
            require_body(group.group, matrix[block, block])


def _require_rigid(matrix: np.ndarray) -> None:
    """Check the moments of a rigid body's matrix on SE(3) about the centre of mass.

    A translational block other than a multiple of 1 is an added mass (a body in a fluid): for it
    positive definiteness is all that physics asks.
    """
    rotation, coupling, translation = matrix[:3, :3], matrix[:3, 3:], matrix[3:, 3:]
    mass = translation[0, 0]
    rounding = _ROUNDING * float(np.max(np.abs(matrix)))
    rigid = np.max(np.abs(translation - mass * np.eye(3))) <= rounding
    if not rigid or np.max(np.abs(coupling + coupling.T)) > rounding:
        return
    arm = np.array([coupling[2, 1], coupling[0, 2], coupling[1, 0]]) / mass
    about_centre = rotation - mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    _require_triangle(about_centre, " about the centre of mass")


def _require_triangle(matrix: np.ndarray, where: str) -> None:
    size = float(np.max(np.abs(matrix)))
    a, b, c = (size * float(x) for x in np.linalg.eigvalsh(matrix / size))
    if a + b < c * (1 - _ROUNDING):
        raise BadInput(
            f"inertia with principal moments ({a:.6g}, {b:.6g}, {c:.6g}){where} is not that of a "
            f"rigid body: the largest may not exceed the sum of the others, but {a:.6g} + {b:.6g} "
            f"< {c:.6g} (for a mathematical test problem pass physical=False)."
        )

"""Measured attitudes as rotation matrices: from matrices, quaternions and rotation vectors."""

import math
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from retrax.errors import BadInput
from retrax.groups.so3 import SO3
from retrax.numerics.checks import require_choice
from retrax.numerics.evaluate import evaluate

_SO3 = SO3()
ORDERS = ("wxyz", "xyzw")
# Files keep some six digits: a quaternion or a matrix that is further off was never one.
_ALLOWED = 1e-3
# What rounding leaves; a larger defect is taken away with a note.
_ROUNDED = 1e-9

Rotations = Float[np.ndarray, "time 3 3"]


class Attitudes(NamedTuple):
    """Rotation matrices, body axes to space axes, and sentences about what was mended."""

    rotations: Rotations
    notes: tuple[str, ...]


def attitudes(values: np.ndarray, order: str | None, degrees: bool, trusted: bool) -> Attitudes:
    """Turn measured attitudes into rotation matrices.

    **Arguments:**

    - `values`: `(time, 3, 3)` matrices, `(time, 4)` quaternions or `(time, 3)` rotation vectors.
    - `order`: of the quaternions, `"wxyz"` or `"xyzw"`.
    - `degrees`: whether rotation vectors are in degrees; `trusted`: whether the user said so.
    """
    if values.shape[1:] == (3, 3):
        _refuse_order(order, "rotation matrices")
        _refuse_unit(trusted, "rotation matrices")
        return _from_matrices(values)
    if values.shape[1:] == (4,):
        _refuse_unit(trusted, "quaternions")
        return _from_quaternions(values, order)
    if values.shape[1:] == (3,):
        _refuse_order(order, "rotation vectors")
        return _from_vectors(np.deg2rad(values) if degrees else values, trusted)
    raise BadInput(
        f"values has shape {values.shape}, but attitudes are (time, 3, 3) rotation matrices, "
        "(time, 4) quaternions or (time, 3) rotation vectors."
    )


def _refuse_order(order: str | None, kind: str) -> None:
    if order is not None:
        raise BadInput(f"order = {order!r} is that of quaternions, but these are {kind}.")


def _refuse_unit(given: bool, kind: str) -> None:
    if given:
        raise BadInput(f"unit is for rotation vectors, but these are {kind}, which have none.")


def _from_matrices(values: np.ndarray) -> Attitudes:
    defects = np.max(np.abs(np.swapaxes(values, 1, 2) @ values - np.eye(3)), axis=(1, 2))
    worst = int(np.argmax(defects))
    if not defects[worst] <= _ALLOWED:
        raise BadInput(
            f"row {worst} of values is not a rotation: R^T R differs from 1 by "
            f"{defects[worst]:.2g}, allowed {_ALLOWED:.0e}."
        )
    mirrored = np.flatnonzero(np.linalg.det(values) < 0)
    if len(mirrored):
        raise BadInput(
            f"row {mirrored[0]} of values is a reflection (det R = -1), not a rotation: one of its "
            "axes points the other way, so the axes are left-handed."
        )
    left, _, right = np.linalg.svd(values)
    notes = ()
    if defects[worst] > _ROUNDED:
        notes = (f"rotation matrices were off the group by up to {defects[worst]:.1e}: projected",)
    return Attitudes(left @ right, notes)


def _from_quaternions(values: np.ndarray, order: str | None) -> Attitudes:
    if order is None:
        raise BadInput(
            'quaternions need their order: order="wxyz" where the real part comes first, '
            'order="xyzw" where it comes last; the numbers do not tell which.'
        )
    require_choice("order", order, ORDERS)
    q = values if order == "wxyz" else np.roll(values, 1, axis=1)
    lengths = np.linalg.norm(q, axis=1)
    worst = int(np.argmax(np.abs(lengths - 1)))
    if not abs(lengths[worst] - 1) <= _ALLOWED:
        raise BadInput(
            f"row {worst} of values has length {lengths[worst]:.4g}, but the quaternion of a "
            "rotation has length 1: these four columns are none."
        )
    q = q / lengths[:, None]
    flips = int(np.sum(np.einsum("ki,ki->k", q[1:], q[:-1]) < 0))
    notes = ()
    if flips:
        times = "once" if flips == 1 else f"{flips} times"
        notes = (f"quaternions change sign {times} between neighbours: q and -q are one attitude",)
    return Attitudes(_from_unit(q), notes)


def _from_vectors(values: np.ndarray, trusted: bool) -> Attitudes:
    angles = np.linalg.norm(values, axis=1)
    worst = int(np.argmax(angles))
    if not trusted and angles[worst] > 2 * math.pi:
        raise BadInput(
            f"row {worst} of values turns by {angles[worst]:.4g} rad, more than a full turn: are "
            'these rotation vectors in degrees? Give unit="deg", or unit="rad" if they are not.'
        )
    return Attitudes(from_vectors(values), ())


def from_vectors(v: Float[np.ndarray, "time 3"]) -> Rotations:
    """Return the rotations by |v| about v."""
    return np.asarray(evaluate(lambda v: jax.vmap(_SO3.exp)(v), v))


def _from_unit(q: np.ndarray) -> np.ndarray:
    turned = evaluate(lambda q: jax.vmap(lambda x: _SO3.from_quaternion(x, order="wxyz"))(q), q)
    return np.asarray(turned)

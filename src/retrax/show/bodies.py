"""What to draw of a run: rigid bodies and points in space, whatever the group."""

from typing import TYPE_CHECKING, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from retrax.show.factors import Factor, factors

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory


class Body(NamedTuple):
    """Something that moves in space.

    **Attributes:**

    - `label`: which of several it is.
    - `rotation`: body axes to space axes, exactly as computed; `None` for a point.
    - `position`: where it is; `None` for a body that only turns.
    - `coordinates`: where its angular velocity and momentum stand in body coordinates; `None` for
        a point and for a body in the plane.
    - `corners`: of the box to draw, in metres, where the system says so.
    - `arrow`: a vector to draw from it in place of its angular momentum.
    """

    label: str
    rotation: Float[np.ndarray, "time 3 3"] | None
    position: Float[np.ndarray, "time 3"] | None
    coordinates: np.ndarray | None
    corners: Float[np.ndarray, "8 3"] | None = None
    arrow: Float[np.ndarray, "time 3"] | None = None

    def momentum(self, run: "Trajectory") -> Float[np.ndarray, "time 3"] | None:
        """The angular momentum about the origin of the body in space axes, or its arrow."""
        if self.arrow is not None:
            return self.arrow
        if self.rotation is None or self.coordinates is None:
            return None
        return np.einsum("tij,tj->ti", self.rotation, run.momentum[:, self.coordinates])


def bodies(run: "Trajectory") -> list[Body]:
    """The bodies of a run.

    A rotation that is followed by a translation of at most three dimensions is one body that turns
    and travels. Of a translation in more than three dimensions the first three are drawn.
    """
    found = factors(run.provenance["group"])
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(run.g)]
    if sum(2 if f.kind.startswith("SE") else 1 for f in found) != len(leaves):
        return []
    parts: list[Body] = []
    while found:
        factor, *found = found
        places = None
        turns = None if factor.kind == "R" else _rotations(leaves.pop(0), factor)
        if factor.kind != "SO(2)" and factor.kind != "SO(3)":
            places = _positions(leaves.pop(0), factor)
        elif found and _carries(factor, found[0]):
            places = _positions(leaves.pop(0), found.pop(0))
        parts += _copies(factor, turns, places)
    if len(parts) == 1:
        return parts
    return [body._replace(label=f"body {k + 1}") for k, body in enumerate(parts)]


def _carries(rotation: Factor, other: Factor) -> bool:
    copies, dim = other.coordinates.shape
    return other.kind == "R" and dim <= 3 and copies == len(rotation.coordinates)


def _rotations(leaf: np.ndarray, factor: Factor) -> np.ndarray:
    """All copies as (time, copies, 3, 3); plane rotations turn about the third axis of space."""
    n = leaf.shape[-1]
    full = np.zeros((len(leaf), len(factor.coordinates), 3, 3))
    full[..., 2, 2] = 1.0
    full[..., :n, :n] = leaf.reshape(len(leaf), -1, n, n)
    return full


def _positions(leaf: np.ndarray, factor: Factor) -> np.ndarray:
    """All copies as (time, copies, 3): filled up with zeros, or cut to three."""
    n = min(leaf.shape[-1], 3)
    full = np.zeros((len(leaf), len(factor.coordinates), 3))
    full[..., :n] = leaf.reshape(len(leaf), -1, leaf.shape[-1])[..., :n]
    return full


def _copies(factor: Factor, turns: np.ndarray | None, places: np.ndarray | None) -> list[Body]:
    spatial = factor.kind in ("SO(3)", "SE(3)")
    return [
        Body(
            "body",
            None if turns is None else turns[:, k],
            None if places is None else places[:, k],
            rows[:3] if spatial else None,
        )
        for k, rows in enumerate(factor.coordinates)
    ]

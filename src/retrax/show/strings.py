"""A string in a picture: its bodies where they hang, and the line between them by its tension."""

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from retrax.show.bodies import Body

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory

# A longer string is drawn through this many of its nodes at most.
_DRAWN_NODES = 40
_CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])


def drawing(run: "Trajectory") -> dict[str, Any] | None:
    """What the system said about its picture, where it is a string."""
    told = json.loads(run.provenance.get("drawing", "{}"))
    return told if "string" in told else None


def string_bodies(run: "Trajectory", told: dict[str, Any]) -> list[Body]:
    """The bodies on a string, each a box about its centre of mass, in metres."""
    r, *turns = (np.asarray(leaf) for leaf in run.g)
    first = 3 * r.shape[1]
    found = []
    rows = zip(told["string"], turns, told["arms"], strict=True)
    for k, (node, R, arm) in enumerate(rows):
        found.append(
            Body(
                "body" if len(turns) == 1 else f"body {k + 1}",
                R,
                r[:, node - 1] + R @ np.array(arm),
                np.arange(first + 3 * k, first + 3 * k + 3),
                _box(told["masses"][k], np.array(told["inertia"][k])),
            )
        )
    return found


def _box(mass: float, inertia: np.ndarray) -> np.ndarray:
    """The corners of the homogeneous box with this mass and these moments, in metres."""
    moments, axes = np.linalg.eigh(inertia)
    axes[:, 0] *= np.sign(np.linalg.det(axes))  # right-handed: no mirrored box
    sides = np.sqrt(6 / mass * np.maximum(np.sum(moments) - 2 * moments, 0.0))
    return (_CORNERS * np.maximum(sides, 0.08 * np.max(sides))) @ axes.T


def string_line(run: "Trajectory", played: np.ndarray) -> dict[str, Any] | None:
    """The string at the played times: its nodes, pivot first, and the tension between them."""
    if drawing(run) is None:
        return None
    r, tension = np.asarray(run.g[0])[played], run.observables()["tension"][played]
    stride = math.ceil(r.shape[1] / _DRAWN_NODES)
    kept = np.arange(r.shape[1] - 1, -1, -stride)[::-1]
    points = np.concatenate([np.zeros((len(r), 1, 3)), r[:, kept]], axis=1)
    low, high = float(np.min(tension)), float(np.max(tension))
    scaled = (tension[:, kept] - low) / (high - low if high > low else 1.0)
    return {
        "nodes": len(kept) + 1,
        "points": np.round(points, 4).ravel().tolist(),
        "tension": np.round(scaled, 3).ravel().tolist(),
        "range": [low, high],
    }

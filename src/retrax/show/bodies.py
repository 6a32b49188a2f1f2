"""What to draw of a run: rigid bodies and points in space, whatever the group."""

from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from retrax.groups.base import AbstractLieGroup
from retrax.groups.power import Power
from retrax.groups.product import Product
from retrax.groups.se2 import SE2
from retrax.groups.se3 import SE3
from retrax.groups.so2 import SO2
from retrax.groups.so3 import SO3
from retrax.groups.so_n import SO
from retrax.groups.translation import Translation
from retrax.mechanics.mechanical import AbstractMechanicalSystem, inertia_at_identity
from retrax.mechanics.remembered import RememberedSystem
from retrax.spaces.group_itself import GroupItself
from retrax.trajectory.trajectory import Trajectory

# What is drawn when the inertia is not known: three different sides.
_ANY_BODY = np.array([1.0, 0.7, 0.4])
_THINNEST = 0.08
# Corner 4i + 2j + k lies at the i-th x, j-th y and k-th z.
CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])


class Factor(NamedTuple):
    """Equal copies of a simple group.

    **Attributes:** `kind`: `SO(2)`, `SO(3)`, `SE(2)`, `SE(3)`, `R`, or `SO(n)` for rotations whose
    coordinates are planes and not axes; `coordinates`: the indices of each copy in a body velocity
    or momentum, one copy a row.
    """

    kind: str
    coordinates: Int[np.ndarray, "copies dim"]


def factors(group: AbstractLieGroup | None) -> list[Factor]:
    """List the simple groups of a group in order; the list is empty where one cannot be drawn."""
    if isinstance(group, Product):
        found: list[Factor] = []
        behind = 0
        for part in group.groups:
            inner = factors(part)
            if not inner:
                return []
            found += [Factor(kind, rows + behind) for kind, rows in inner]
            behind += part.dim
        return found
    if isinstance(group, Power):
        starts = group.group.dim * np.arange(group.n)
        return [
            Factor(kind, (starts[:, None, None] + rows).reshape(-1, rows.shape[1]))
            for kind, rows in factors(group.group)
        ]
    kind = _kind(group)
    return [] if group is None or kind is None else [Factor(kind, np.arange(group.dim)[None])]


def _kind(group: AbstractLieGroup | None) -> str | None:
    if isinstance(group, SO):
        return "SO(2)" if group.n == 2 else "SO(n)" if group.n == 3 else None
    if isinstance(group, Translation):
        return "R"
    return group.name if isinstance(group, SO2 | SO3 | SE2 | SE3) else None


def factors_of(run: Trajectory) -> list[Factor]:
    """List the simple groups that the bodies of a run move on."""
    space = None if run.system is None else run.system.configuration_space
    return factors(space.group) if isinstance(space, GroupItself) else []


def unit(run: Trajectory, name: str) -> str:
    """Return the SI unit of an invariant, a `velocity` or a `momentum`; `SI` if mixed."""
    if name == "energy":
        return "J"
    if name != "velocity" and "momentum" not in name:
        return "SI"
    kinds = {"rotation" if f.kind.startswith("SO") else f.kind for f in factors_of(run)}
    units = {
        frozenset({"rotation"}): {"velocity": "rad/s", "momentum": "kg m²/s"},
        frozenset({"R"}): {"velocity": "m/s", "momentum": "kg m/s"},
    }.get(frozenset(kinds), {})
    return units.get("velocity" if name == "velocity" else "momentum", "SI")


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
        """Return the angular momentum about the origin of the body in space axes, or its arrow."""
        if self.arrow is not None:
            return self.arrow
        if self.rotation is None or self.coordinates is None:
            return None
        return np.einsum("tij,tj->ti", self.rotation, run.momentum[:, self.coordinates])


def bodies(run: "Trajectory") -> list[Body]:
    """Return the bodies of a run.

    A rotation that is followed by a translation of at most three dimensions is one body that turns
    and travels. Of a translation in more than three dimensions the first three are drawn.
    """
    found = factors_of(run)
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(run.g)]
    if sum(2 if f.kind.startswith("SE") else 1 for f in found) != len(leaves):
        return []
    parts: list[Body] = []
    while found:
        factor, *found = found
        places = None
        turns = None if factor.kind == "R" else _rotations(leaves.pop(0), factor)
        if not factor.kind.startswith("SO"):
            places = _positions(leaves.pop(0), factor)
        elif found and _carries(factor, found[0]):
            places = _positions(leaves.pop(0), found.pop(0))
        parts += _copies(factor, turns, places)
    return [
        body._replace(label=name) for body, name in zip(parts, _names(run, len(parts)), strict=True)
    ]


def _names(run: Trajectory, count: int) -> list[str]:
    """Return what bodies are called: by their names in a mechanism, else by their numbers."""
    said = (getattr(run.system, "drawing", None) or {}).get("mechanism")
    if said is not None:
        return said["names"]
    return ["body"] if count == 1 else [f"body {k + 1}" for k in range(count)]


def _carries(rotation: Factor, other: Factor) -> bool:
    copies, dim = other.coordinates.shape
    return other.kind == "R" and dim <= 3 and copies == len(rotation.coordinates)


def _rotations(leaf: np.ndarray, factor: Factor) -> np.ndarray:
    """Stack all copies as (time, copies, 3, 3); plane rotations turn about the third axis."""
    n = leaf.shape[-1]
    full = np.zeros((len(leaf), len(factor.coordinates), 3, 3))
    full[..., 2, 2] = 1.0
    full[..., :n, :n] = leaf.reshape(len(leaf), -1, n, n)
    return full


def _positions(leaf: np.ndarray, factor: Factor) -> np.ndarray:
    """Return all copies as (time, copies, 3): filled up with zeros, or cut to three."""
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


# Boxes


def box(run: Trajectory, rows: np.ndarray) -> tuple[Float[np.ndarray, "8 3"], bool]:
    """Return the corners of a body's box in body axes, and whether it has the body's inertia.

    **Arguments:** `rows`: where the angular velocity of the body stands in body coordinates.
    """
    inertia = inertia_of(run.system, rows)
    return (CORNERS * _ANY_BODY, False) if inertia is None else (box_of(inertia), True)


def inertia_of(system: Any, rows: np.ndarray) -> Float[np.ndarray, "3 3"] | None:
    """Return the constant inertia of one body of a system; `None` where it has none of its own."""
    inertia = None
    if isinstance(system, RememberedSystem):
        inertia = system.inertia
    elif isinstance(system, AbstractMechanicalSystem) and system.invariant_inertia:
        inertia = inertia_at_identity(system)
    if inertia is None:
        return None
    whole = np.asarray(inertia)
    whole = np.diag(whole) if whole.ndim == 1 else whole
    if whole.shape != (system.group.dim,) * 2:
        return None
    own = whole[np.ix_(rows, rows)]
    coupled = np.any(np.delete(whole[rows], rows, axis=1))
    return None if coupled or not np.linalg.eigvalsh(own)[0] > 0 else own


def box_of(inertia: Float[np.ndarray, "3 3"]) -> Float[np.ndarray, "8 3"]:
    """Return the corners in body axes of the box with this inertia, longest side 1."""
    moments, axes = np.linalg.eigh(inertia)
    axes[:, 0] *= np.sign(np.linalg.det(axes))  # right-handed: no mirrored box
    squares = np.maximum(np.sum(moments) - 2 * moments, 0.0)  # (1)
    sides = np.maximum(np.sqrt(squares / np.max(squares)), _THINNEST)
    return (CORNERS * sides) @ axes.T


def solid_box(mass: float, inertia: np.ndarray) -> tuple[Float[np.ndarray, "8 3"], float]:
    """Return corners and longest side, in metres, of a homogeneous box by mass and moments.

    A body that is thinner than a box can be drawn is drawn a little thicker.
    """
    moments, axes = np.linalg.eigh(inertia)
    axes[:, 0] *= np.sign(np.linalg.det(axes))  # right-handed: no mirrored box
    sides = np.sqrt(6 / mass * np.maximum(np.sum(moments) - 2 * moments, 0.0))
    longest = float(np.max(sides)) or 1.0
    return (CORNERS * np.maximum(sides, _THINNEST * longest)) @ axes.T, longest

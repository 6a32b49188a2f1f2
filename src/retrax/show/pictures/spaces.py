"""Points of R^n and of homogeneous spaces: orbits, momenta, spheres, tori, frames, bars."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from retrax.groups.se3 import SE3
from retrax.groups.so3 import SO3
from retrax.show.pictures.things import (
    Picture,
    Thing,
    Track,
    arrow,
    ball_around,
    frame,
    path,
    point,
)
from retrax.spaces.coadjoint_orbit import CoadjointOrbit
from retrax.spaces.embedded import Embedded
from retrax.spaces.grassmann import Grassmann
from retrax.spaces.sphere import Sphere
from retrax.spaces.stiefel import Stiefel
from retrax.spaces.torus import Torus
from retrax.trajectory.trajectory import Trajectory

_CONSTANT = 0.05  # a length that changes by less than this part is that of a sphere
_SHOWN_BARS = 400

_ANGLES = np.linspace(0.0, 2 * np.pi, 73)


def field(run: Trajectory, told: dict[str, Any]) -> Picture:
    """Return the orbit of a quadratic field, as its coordinates are meant."""
    y = np.asarray(run.y)
    if "vectors" in told:
        return vectors(y, told["vectors"])
    if told.get("canonical") and y.shape[1] == 4:
        return _canonical(y)
    return _orbit(y) if y.shape[1] <= 3 else bars(run)


def vectors(y: Float[np.ndarray, "time n"], names: list[str]) -> Picture:
    """Return vectors in space from the origin, each with the path of its tip; one of constant
    length moves on its sphere.
    """
    things: list[Thing] = []
    longest = 0.0
    for k, (name, colour) in enumerate(zip(names, (1, 0), strict=False)):
        tip = y[:, 3 * k : 3 * k + 3]
        length = np.linalg.norm(tip, axis=1)
        most = float(np.max(length)) or 1.0
        things.append(arrow(name, np.zeros_like(tip), tip, most, "", colour))
        things.append(path(f"path of {name}", tip, colour))
        longest = max(longest, most)
    first = np.linalg.norm(y[:, :3], axis=1)
    sphere = float(first[0]) if np.ptp(first) < _CONSTANT * np.max(first) else longest
    return Picture(things, {"sphere": sphere}, np.zeros(3), 1.35 * longest)


def _orbit(y: Float[np.ndarray, "time n"]) -> Picture:
    """Return a point in two or three dimensions; the axes carry the names of the components."""
    n = y.shape[1]
    places = np.concatenate([y, np.zeros((len(y), 3 - n))], axis=1)
    things = [point("y", places, 1), path("orbit", places)]
    centre, radius = ball_around(places, 0.0)
    names = [f"y{k + 1}" if k < n else "" for k in range(3)]
    return Picture(things, {"frame": frame(places, names), "flat": n < 3}, centre, 1.15 * radius)


def _canonical(y: Float[np.ndarray, "time 4"]) -> Picture:
    """Return two positions in the plane, and the momenta as an arrow."""
    q, p = (np.concatenate([y[:, k : k + 2], np.zeros((len(y), 1))], axis=1) for k in (0, 2))
    centre, radius = ball_around(q, 0.0)
    things = [point("q", q), path("orbit of q", q), arrow("p", q, p, 0.5 * radius, "")]
    around = {"frame": frame(q, ["q1", "q2", ""]), "flat": True}
    return Picture(things, around, centre, 1.3 * radius)


def bars(run: Trajectory) -> Picture:
    """Draw every number of a configuration as a bar, a matrix as rows and columns."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(run.g)]
    flat = np.concatenate([leaf.reshape(len(leaf), -1) for leaf in leaves], axis=1)
    square = len(leaves) == 1 and leaves[0].ndim == 3
    rows, columns = leaves[0].shape[1:] if square else (1, flat.shape[1])
    notes: tuple[str, ...] = ("The bars are the numbers of the configuration.",)
    if flat.shape[1] > _SHOWN_BARS:
        rows, columns, square = 1, _SHOWN_BARS, False
        notes = (f"The bars are the first {_SHOWN_BARS} of {flat.shape[1]} numbers.",)
    shown = flat[:, : rows * columns]
    strongest = float(np.max(np.abs(shown))) or 1.0
    reach = max(rows, columns)
    height = 0.45 * reach / strongest
    thing = {
        "kind": "bars",
        "label": f"entries, between {np.min(shown):.3g} and {np.max(shown):.3g}",
        "rows": rows,
        "columns": columns,
        "values": Track(height * shown, leads=True),
    }
    return Picture([thing], {}, np.zeros(3), 0.75 * reach, notes)


def of_space(run: Trajectory) -> Picture | None:
    """Return the picture of the space that a run moves on; `None` if the space has no picture."""
    space = None if run.system is None else run.system.configuration_space
    if isinstance(space, Embedded) and all(_is_drawn(factor) for factor in space.factors):
        return _on_spheres([_in_space(np.asarray(part)) for part in space.split(run.y)])
    if isinstance(run.y, tuple):
        return None
    y = np.asarray(run.y)
    if _is_drawn(space):
        return _on_spheres([_in_space(y)])
    if isinstance(space, Torus):
        return _on_circle(y)
    if isinstance(space, Stiefel) and space.n in (2, 3):
        return _frame(_in_space(np.swapaxes(y, 1, 2)))
    if isinstance(space, Grassmann) and space.n == 3 and space.k < 3:
        return _subspace(y, space.k)
    if isinstance(space, CoadjointOrbit) and isinstance(space.group, SO3 | SE3):
        return vectors(y, ["m"] if isinstance(space.group, SO3) else ["m", "p"])
    return bars(run)


def _in_space(y: np.ndarray) -> np.ndarray:
    """Return vectors of the plane with a third component of zero."""
    return np.concatenate([y, np.zeros((*y.shape[:-1], 3 - y.shape[-1]))], axis=-1)


def _is_drawn(space: object) -> bool:
    return isinstance(space, Sphere) and space.n <= 3


def _on_spheres(points: list[Float[np.ndarray, "time 3"]]) -> Picture:
    """Return unit vectors, all from the origin."""
    things: list[Thing] = []
    for k, y in enumerate(points):
        name = f"point {k + 1}" if len(points) > 1 else "point y"
        things.append(arrow(name, np.zeros_like(y), y, 1.0, "", colour=k % 6))
        of = f" of {name}" if len(points) > 1 else ""
        things += [point("", y, k % 6), path(f"path{of}", y, k % 6)]
    return Picture(things, {"sphere": 1.0}, np.zeros(3), 1.25)


def _on_circle(y: Float[np.ndarray, "time n 2"]) -> Picture:
    """Return each phase as a point of the circle, and the mean of all."""
    circle = np.stack([np.cos(_ANGLES), np.sin(_ANGLES), 0 * _ANGLES], axis=1)
    places = _in_space(y)
    things: list[Thing] = [{"kind": "curve", "label": "", "points": circle}]
    count = y.shape[1]
    things += [point(f"y{k + 1}" if count <= 6 else "", places[:, k], k % 6) for k in range(count)]
    mean = np.mean(places, axis=1)
    longest = float(np.max(np.linalg.norm(mean, axis=1)))
    things.append(arrow("mean of the points", np.zeros_like(mean), mean, longest, ""))
    return Picture(things, {"flat": True}, np.zeros(3), 1.15)


def _frame(columns: Float[np.ndarray, "time k 3"]) -> Picture:
    """Return the columns of an orthonormal frame as arrows, and the paths of their tips."""
    things: list[Thing] = []
    for k, colour in zip(range(columns.shape[1]), (2, 3, 0), strict=False):
        tip = columns[:, k]
        things.append(arrow(f"column {k + 1}", np.zeros_like(tip), tip, 1.0, "", colour))
        things.append(path("", tip, colour))
    return Picture(things, {"sphere": 1.0}, np.zeros(3), 1.25)


def _subspace(projector: Float[np.ndarray, "time 3 3"], k: int) -> Picture:
    """Return a line, or a plane by its normal; either is an eigenvector of the projector."""
    _, basis = np.linalg.eigh((projector + np.swapaxes(projector, 1, 2)) / 2)
    along = basis[:, :, 2 if k == 1 else 0]
    # Eigenvectors have no sign of their own: each is chosen to continue the one before it.
    turns = np.sign(np.einsum("ti,ti->t", along[1:], along[:-1]))
    along[1:] *= np.cumprod(np.where(turns == 0, 1.0, turns))[:, None]
    start = np.zeros_like(along)
    label = "direction of the line" if k == 1 else "normal of the plane"
    things: list[Thing] = [arrow(label, start, along, 1.0, ""), path("path of its tip", along, 1)]
    if k == 2:
        plane = {"kind": "plane", "label": "plane", "normal": Track(along, leads=True)}
        things.append(plane)
    return Picture(things, {"sphere": 1.0}, np.zeros(3), 1.25)

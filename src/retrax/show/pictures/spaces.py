"""Points of homogeneous spaces: spheres, tori, frames, subspaces, matrices, momenta."""

import numpy as np
from jaxtyping import Float

from retrax.groups.se3 import SE3
from retrax.groups.so3 import SO3
from retrax.show.pictures.fields import bars, vectors
from retrax.show.pictures.things import Picture, Thing, Track, arrow, path, point
from retrax.spaces.coadjoint_orbit import CoadjointOrbit
from retrax.spaces.grassmann import Grassmann
from retrax.spaces.sphere import Sphere
from retrax.spaces.stiefel import Stiefel
from retrax.spaces.torus import Torus
from retrax.trajectory.trajectory import Trajectory

_ANGLES = np.linspace(0.0, 2 * np.pi, 73)


def of_space(run: Trajectory) -> Picture | None:
    """The picture of the space that a run moves on; `None` where the space has none of its own."""
    space = None if run.system is None else run.system.configuration_space
    if isinstance(run.y, tuple):
        return None
    y = np.asarray(run.y)
    if isinstance(space, Sphere) and space.n <= 3:
        return _on_sphere(_in_space(y))
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
    """Vectors of the plane with a third component of zero."""
    return np.concatenate([y, np.zeros((*y.shape[:-1], 3 - y.shape[-1]))], axis=-1)


def _on_sphere(y: Float[np.ndarray, "time 3"]) -> Picture:
    start = np.zeros_like(y)
    things = [arrow("point y", start, y, 1.0, "", colour=0), point("", y), path("path", y)]
    return Picture(things, {"sphere": 1.0}, np.zeros(3), 1.25)


def _on_circle(y: Float[np.ndarray, "time n 2"]) -> Picture:
    """Each phase as a point of the circle, and the mean of all."""
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
    """The columns of an orthonormal frame as arrows, and the paths of their tips."""
    things: list[Thing] = []
    for k, colour in zip(range(columns.shape[1]), (2, 3, 0), strict=False):
        tip = columns[:, k]
        things.append(arrow(f"column {k + 1}", np.zeros_like(tip), tip, 1.0, "", colour))
        things.append(path("", tip, colour))
    return Picture(things, {"sphere": 1.0}, np.zeros(3), 1.25)


def _subspace(projector: Float[np.ndarray, "time 3 3"], k: int) -> Picture:
    """A line, or a plane by its normal; either is an eigenvector of the projector."""
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

"""Points of R^n that follow a field: orbits, momenta, numbers as bars."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Float

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
from retrax.trajectory.trajectory import Trajectory

_CONSTANT = 0.05  # a length that changes by less than this part is that of a sphere
_SHOWN_BARS = 400


def field(run: Trajectory, told: dict[str, Any]) -> Picture:
    """The orbit of a quadratic field, as its coordinates are meant."""
    y = np.asarray(run.y)
    if "vectors" in told:
        return vectors(y, told["vectors"])
    if told.get("canonical") and y.shape[1] == 4:
        return _canonical(y)
    return _orbit(y) if y.shape[1] <= 3 else bars(run)


def vectors(y: Float[np.ndarray, "time n"], names: list[str]) -> Picture:
    """Vectors in space from the origin, each with the path of its tip; one of constant length
    moves on its sphere."""
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
    """A point in two or three dimensions; the axes carry the names of the components."""
    n = y.shape[1]
    places = np.concatenate([y, np.zeros((len(y), 3 - n))], axis=1)
    things = [point("y", places, 1), path("orbit", places)]
    centre, radius = ball_around(places, 0.0)
    names = [f"y{k + 1}" if k < n else "" for k in range(3)]
    return Picture(things, {"frame": frame(places, names), "flat": n < 3}, centre, 1.15 * radius)


def _canonical(y: Float[np.ndarray, "time 4"]) -> Picture:
    """Two positions in the plane, and the momenta as an arrow."""
    q, p = (np.concatenate([y[:, k : k + 2], np.zeros((len(y), 1))], axis=1) for k in (0, 2))
    centre, radius = ball_around(q, 0.0)
    things = [point("q", q), path("orbit of q", q), arrow("p", q, p, 0.5 * radius, "")]
    around = {"frame": frame(q, ["q1", "q2", ""]), "flat": True}
    return Picture(things, around, centre, 1.3 * radius)


def bars(run: Trajectory) -> Picture:
    """Every number of a configuration as a bar, a matrix as rows and columns: never nothing."""
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

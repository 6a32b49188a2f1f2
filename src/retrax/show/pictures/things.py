"""The things a picture is made of, and where each is at every saved state.

A thing is a dictionary with its `kind`, its `label` for the legend, numbers that stay and tracks
that move. The page has one drawing for each kind: `body`, `arrow`, `point`, `path`, `line`,
`strand`, `plane`, `bars`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

# The path of a whole run is drawn through this many of its points at most.
_PATH_POINTS = 4000
# Points further apart than this part of the path are drawn as dots: the way between is unknown.
_FAR_APART = 0.35

# Names of the axes of space.
METRES = ["x1 (m)", "x2 (m)", "x3 (m)"]

Thing = dict[str, Any]
Vectors = Float[np.ndarray, "time 3"]


class Track(NamedTuple):
    """Numbers along time. Those that `lead` decide how many states it takes to see them move."""

    values: Float[np.ndarray, "time width"]
    leads: bool = False


class Picture(NamedTuple):
    """Things, and what is around them.

    **Attributes:** `things`; `around`: the surroundings, one of `sphere` (a radius), `ground` (the
    side of a square in the plane of the first two axes) and `frame` (axes with their names), `flat`
    if it is seen from above, `front` if from exactly above; `centre` and `radius`: a ball that
    holds everything; `notes`: sentences that a viewer has to know; `follow`: the size of the first
    body if it is small beside its path, so that the camera may go with it, and `followed`, whether
    it does so from the start; `stride`: its tracks
    are those of every so many saved states; `toggles`: what a reader may hide, and whether it is
    shown at first.
    """

    things: list[Thing]
    around: dict[str, Any]
    centre: Float[np.ndarray, "3"]
    radius: float
    notes: tuple[str, ...] = ()
    follow: float = 0.0
    followed: bool = False
    stride: int = 1
    toggles: Mapping[str, bool] = MappingProxyType({})


def body(
    label: str,
    rotation: Float[np.ndarray, "time 3 3"] | None,
    position: Vectors,
    parts: list[dict[str, Any]],
    axes: float = 0.0,
) -> Thing:
    """Make a body of solid parts in body axes; axes of the length `axes` are drawn unless it is 0.

    A pose is the rotation row by row, then the position. Rotations are those that were computed:
    what has left the group looks like it.
    """
    count = len(position)
    turns = np.tile(np.eye(3), (count, 1, 1)) if rotation is None else rotation
    poses = np.concatenate([turns.reshape(count, 9), position], axis=1)
    return {
        "kind": "body",
        "label": label,
        "poses": Track(poses, leads=True),
        "parts": parts,
        "axes": axes,
    }


def arrow(
    label: str, start: Vectors, vector: Vectors, longest: float, unit: str, colour: int = 1
) -> Thing:
    """Make an arrow from `start`; the strongest of all times has the length `longest`."""
    strongest = float(np.max(np.linalg.norm(vector, axis=1), initial=0.0))
    scale = longest / strongest if strongest > 0 else 0.0
    of = f" ({strongest:.3g} {unit} where it is longest)" if unit else ""
    return {
        "kind": "arrow",
        "label": label + of,
        "start": Track(start),
        "vector": Track(scale * vector),
        "colour": colour,
    }


def point(label: str, places: Vectors, colour: int = 0, *, inside: bool = False) -> Thing:
    """Return a dot; one that lies inside something solid is seen all the same."""
    moving = {"places": Track(places, leads=True), "colour": colour, "inside": inside}
    return {"kind": "point", "label": label, **moving}


def path(label: str, places: Vectors, colour: int | str = 0) -> Thing:
    """Return the whole path of a point, thin, and the last part of it up to the present, bright."""
    count = len(places)
    kept = np.unique(np.linspace(0, count - 1, min(count, _PATH_POINTS)).round().astype(int))
    shown = places[kept]
    steps = np.linalg.norm(np.diff(shown, axis=0), axis=1)
    joined = bool(np.max(steps, initial=0.0) <= _FAR_APART * np.max(np.ptp(places, axis=0)))
    return {
        "kind": "path",
        "label": label,
        "points": shown,
        "joined": joined,
        "trail": Track(places),
        "colour": colour,
    }


def line(
    label: str,
    nodes: Float[np.ndarray, "time nodes 3"],
    values: Float[np.ndarray, "time pieces"],
    scale: tuple[str, float, float, str],
    radius: float = 0.0,
) -> Thing:
    """Return a string, or with a `radius` a tube, each piece coloured by its value.

    `scale` is the name of the quantity, the values at both ends of the colours, and the unit.
    """
    _, low, high, _ = scale
    parts = (values - low) / (high - low if high > low else 1.0)
    return {
        "kind": "line",
        "label": label,
        "nodes": nodes.shape[1],
        "points": Track(nodes.reshape(len(nodes), -1)),
        "values": Track(parts),
        "scale": scale,
        "radius": radius,
    }


def strand(label: str, nodes: Float[np.ndarray, "time nodes 3"], colour: int | str | None) -> Thing:
    """Return a line whose points move, all of one colour."""
    track = Track(nodes.reshape(len(nodes), -1), leads=True)
    own = {} if colour is None else {"colour": colour}
    return {"kind": "strand", "label": label, "nodes": nodes.shape[1], "points": track, **own}


def frame(places: np.ndarray, names: list[str]) -> dict[str, Any]:
    """Return axes along the edges of the box that holds some points."""
    flat = places.reshape(-1, 3)
    return {"names": names, "low": np.min(flat, axis=0), "high": np.max(flat, axis=0)}


def ball_around(places: np.ndarray, margin: float) -> tuple[Float[np.ndarray, "3"], float]:
    """Return centre and radius of a ball that holds some points and a margin about each."""
    flat = places.reshape(-1, 3)
    low, high = np.min(flat, axis=0), np.max(flat, axis=0)
    centre = (low + high) / 2
    return centre, float(np.max(np.linalg.norm(flat - centre, axis=1)) + margin) or 1.0


def about_second(angle: Float[np.ndarray, " time"]) -> Float[np.ndarray, "time 3 3"]:
    """Return rotations about e2, the axle of a disk."""
    c, s, o, e = np.cos(angle), np.sin(angle), np.zeros(len(angle)), np.ones(len(angle))
    return np.stack([np.stack([c, o, s], 1), np.stack([o, e, o], 1), np.stack([-s, o, c], 1)], 1)

"""Rods as tubes by their stretch, where they touch, and the force there."""

from typing import Any

import numpy as np

from retrax.show.pictures.things import (
    METRES,
    Picture,
    Thing,
    arrow,
    ball_around,
    frame,
    line,
    path,
    point,
)
from retrax.show.rods import centrelines, rod_bodies
from retrax.trajectory.trajectory import Trajectory

# A finer rod is drawn through this many of its nodes at most.
_DRAWN_NODES = 40


def rods(run: Trajectory, told: dict[str, Any]) -> Picture:
    """One rod with the path of its end, or two with their contact and the force on the first."""
    drawn = []
    for places, rod in zip(centrelines(run, told), told["rods"], strict=True):
        last = places.shape[1] - 1
        kept = np.linspace(0, last, min(last, _DRAWN_NODES) + 1).round().astype(int)
        points = places[:, kept]
        lengths = np.linalg.norm(np.diff(points, axis=1), axis=2)
        drawn.append((points, lengths / (rod["spacing"] * np.diff(kept)), rod["radius"]))
    low = min(float(np.min(stretch)) for _, stretch, _ in drawn)
    high = max(float(np.max(stretch)) for _, stretch, _ in drawn)
    names = ["rod"] if len(drawn) == 1 else ["first rod", "second rod"]
    things: list[Thing] = [
        line(name, points, stretch, ("stretch", low, high, "1"), radius)
        for name, (points, stretch, radius) in zip(names, drawn, strict=True)
    ]
    (followed,) = rod_bodies(run, told)
    assert followed.position is not None
    every = np.concatenate([points for points, _, _ in drawn], axis=1)
    centre, radius = ball_around(every, max(r for _, _, r in drawn))
    if followed.arrow is None:
        things.append(path("path of the end", followed.position, colour=4))
    else:
        label, at = "force on the first rod", followed.position
        force = arrow(label, at, followed.arrow, 0.5 * radius, "N")
        things += [point("contact", at, 2, inside=True), force]
    return Picture(things, {"frame": frame(every, METRES)}, centre, 1.15 * radius)

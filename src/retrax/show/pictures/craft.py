"""Craft: spacecraft with their wheels, and flyers with their rotors."""

from typing import Any

import numpy as np
from jaxtyping import Float

from retrax.show.bodies import box_of, solid_box
from retrax.show.pictures.things import (
    METRES,
    Picture,
    about_second,
    arrow,
    ball_around,
    body,
    frame,
    path,
)
from retrax.trajectory.trajectory import Trajectory

_WHEEL, _THICKNESS = 0.22, 0.05
_ROTOR = 0.45


def spacecraft(run: Trajectory, said: dict[str, Any]) -> Picture:
    """Return the box of the craft, and outside it each wheel on its axis, turning as it turns."""
    attitude, *angles = run.g if isinstance(run.g, tuple) else (run.g,)
    turns = np.asarray(attitude)
    inertia, axes = np.array(said["inertia"]), np.array(said["axes"]).reshape(-1, 3)
    corners = box_of(inertia)
    centre = np.zeros((len(run.t), 3))
    things = [body("craft", turns, centre, [{"box": corners}], 0.85)]
    for k, axis in enumerate(axes):
        out = float(np.max(corners @ axis)) + 2 * _THICKNESS
        wheel = turns @ _onto(axis) @ about_second(np.asarray(angles[0])[:, k])
        disk = [{"disk": _WHEEL, "thickness": _THICKNESS, "colour": 1}]
        thing = body(f"wheel {k + 1}", wheel, turns @ (out * axis), disk)
        thing["poses"] = thing["poses"]._replace(leads=False)
        things.append(thing)
    momentum = np.einsum("tij,tj->ti", turns, np.asarray(run.momentum)[:, :3])
    if np.any(momentum):
        things.append(arrow("angular momentum of all", centre, momentum, 1.15, "kg m²/s"))
    things.append(path("path of the tip of e1", turns[:, :, 0]))
    return Picture(things, {"sphere": 1.0}, np.zeros(3), 1.3)


def flyer(run: Trajectory, said: dict[str, Any]) -> Picture:
    """Return the body, with arms and rotors if it has some, and its path."""
    turns, places = (np.asarray(x) for x in run.g)
    rotors = np.array(said["rotors"]).reshape(-1, 3)
    corners, side = solid_box(said["mass"], np.array(said["inertia"]))
    parts: list[dict[str, Any]] = [{"box": corners}]
    size = side
    things = []
    if len(rotors):
        reach = float(np.max(np.linalg.norm(rotors, axis=1)))
        size = 2 * reach
        parts = [{"box": corners * (0.5 * reach / side)}]
        parts += [{"bar": [np.zeros(3), place], "radius": 0.04 * reach} for place in rotors]
    things.append(body("body", turns, places, parts, 0.7 * size))
    upright = _onto(np.array([0.0, 0.0, 1.0]))
    for k, rotor in enumerate(rotors):
        disk = [{"disk": _ROTOR * size / 2, "thickness": 0.02 * size, "colour": 1}]
        thing = body(f"rotor {k + 1}", turns @ upright, places + turns @ rotor, disk)
        thing["poses"] = thing["poses"]._replace(leads=False)
        things.append(thing)
    things.append(path("path of the centre of mass", places))
    centre, radius = ball_around(places, size)
    small = size if radius > 4 * size else 0.0
    around = {"frame": frame(places, METRES)}
    return Picture(things, around, centre, radius, follow=small)


def _onto(axis: Float[np.ndarray, "3"]) -> Float[np.ndarray, "3 3"]:
    """Return a rotation that takes e2, the axle of a disk, to `axis`."""
    beside = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    first = beside / np.linalg.norm(beside)
    return np.stack([first, axis, np.cross(first, axis)], axis=1)

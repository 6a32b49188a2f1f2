"""Rigid bodies and points in space, whatever the group."""

from typing import Any

import numpy as np
from jaxtyping import Float

from retrax.show.bodies import CORNERS, Body, bodies, box, solid_box
from retrax.show.pictures.things import (
    METRES,
    Picture,
    Thing,
    arrow,
    ball_around,
    body,
    frame,
    path,
    point,
)
from retrax.trajectory.trajectory import Trajectory

_SHOWN_BODIES = 8
_SPACING = 2.8
_SHAPE_UNKNOWN = "The shape of the box is not that of the body."


def of_group(run: Trajectory) -> Picture | None:
    """Draw all that turns as a box with its axes and angular momentum, all else as a dot.

    `None` if the group of the run has no such parts.
    """
    found = bodies(run)
    shown = found[:_SHOWN_BODIES]
    if not shown:
        return None
    places = [_place(run, one, k) for k, one in enumerate(shown)]
    travels = any(one.position is not None for one in shown)
    size = 0.25 * float(max(np.max(np.ptp(p, axis=0)) for p in places)) if travels else 1.0
    size = size or 1.0
    things: list[Thing] = []
    notes = set()
    for one, place in zip(shown, places, strict=True):
        added, known = _things(run, one, place, size, len(shown) > 1)
        things += added
        notes |= set() if known else {_SHAPE_UNKNOWN}
    if len(found) > len(shown):
        notes.add(f"Shown are the first {len(shown)} of {len(found)} bodies.")
    single = len(shown) == 1 and not travels
    if single:
        return Picture(things, {"sphere": 1.0}, np.zeros(3), 1.3, tuple(sorted(notes)))
    every = np.stack(places, axis=1)
    centre, radius = ball_around(every, 1.2 * size)
    around = {"frame": frame(every, METRES)} if travels else {}
    return Picture(things, around, centre, radius, tuple(sorted(notes)))


def _place(run: Trajectory, one: Body, k: int) -> Float[np.ndarray, "time 3"]:
    """Return where it is; what only turns stands beside the others."""
    if one.position is not None:
        return one.position
    return np.tile([_SPACING * k, 0.0, 0.0], (len(run.t), 1))


def _things(
    run: Trajectory, one: Body, place: np.ndarray, size: float, several: bool
) -> tuple[list[Thing], bool]:
    """Return the drawing of one body, and whether its shape is that of its inertia."""
    of = f" of {one.label}" if several else ""
    if one.rotation is None:
        return [point(one.label, place), path(f"path{of}", place)], True
    if one.coordinates is None:  # a body in the plane
        corners, known = CORNERS * [1.0, 0.5, 0.15], True
    else:
        corners, known = box(run, one.coordinates)
    things = [body(one.label, one.rotation, place, [{"box": size * corners}], 0.85 * size)]
    momentum = one.momentum(run)
    if momentum is not None and np.any(momentum):
        label = f"angular momentum{of}"
        things.append(arrow(label, place, momentum, 1.15 * size, "kg m²/s"))
    tip = place if one.position is not None else place + one.rotation[:, :, 0] * size
    label = f"path{of}" if one.position is not None else f"path of the tip of e1{of}"
    return [*things, path(label, tip, 4 if one.position is not None else 2)], known


def with_mass(run: Trajectory, said: dict[str, Any]) -> Picture:
    """Draw a body of known mass, inertia and centre of mass: about a fixed point, or free."""
    arm, inertia = np.array(said["arm"]), np.array(said["inertia"])
    corners, side = solid_box(said["mass"], inertia)
    travels = isinstance(run.g, tuple)
    rotation, position = run.g if travels else (run.g, np.zeros((len(run.t), 3)))
    turns, place = np.asarray(rotation), np.asarray(position)
    size = float(np.linalg.norm(arm)) or side
    notes = ()
    if travels:
        size = max(size, side)
    elif side > 0.6 * size:  # a box that would hide the arm
        corners, side = corners * (0.6 * size / side), 0.6 * size
        notes = ("The box has the proportions of the body and is drawn smaller than it.",)
    parts: list[dict[str, Any]] = [{"box": corners + arm}]
    if np.any(arm):
        parts += [{"bar": [np.zeros(3), arm], "radius": 0.02 * size}]
    things = [body("body", turns, place, parts, 0.7 * size)]
    momentum = np.einsum("tij,tj->ti", turns, np.asarray(run.momentum)[:, :3])
    about = "its origin" if travels else "the fixed point"
    things.append(arrow(f"angular momentum about {about}", place, momentum, size, "kg m²/s"))
    if travels:
        things.append(path("path of its origin", place, 4))
        middle, radius = ball_around(place, 1.2 * size)
        small = size if radius > 4 * size else 0.0
        return Picture(things, {"frame": frame(place, METRES)}, middle, radius, notes, small)
    things.append(path("path of the centre of mass", turns @ arm, 4))
    sphere = {"sphere": float(np.linalg.norm(arm))}
    return Picture(things, sphere, np.zeros(3), 1.7 * size, notes)

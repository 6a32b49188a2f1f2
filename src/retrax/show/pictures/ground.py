"""Bodies on a plane: the rolling disk, the sleigh, balls; each with the track it leaves."""

from typing import Any

import numpy as np
from jaxtyping import Float

from retrax.show.pictures.things import (
    Picture,
    Thing,
    about_second,
    arrow,
    ball_around,
    body,
    path,
)
from retrax.trajectory.trajectory import Trajectory


def rolling_disk(run: Trajectory, told: dict[str, Any]) -> Picture:
    """Draw an upright disk with spokes; heading turns it about e3, rolling about its axle e2."""
    heading, place, rolled = (np.asarray(x) for x in (*run.g[0], run.g[1]))
    radius = told["radius"]
    roll = about_second(rolled[:, 0])
    disk = [{"disk": radius, "thickness": 0.08 * radius}]
    rim = _upright(heading) @ roll
    things = [
        body("disk", rim, _above(place, radius), disk, 1.2 * radius),
        path("track on the plane", _above(place, 0.0), colour=1),
    ]
    return _on_plane(things, place, 2 * radius)


def sleigh(run: Trajectory, told: dict[str, Any]) -> Picture:
    """Draw a board on its skate, the centre of mass `arm` ahead of where the skate touches."""
    heading, place = (np.asarray(x) for x in run.g)
    arm, size = told["arm"], told["size"]
    ahead, behind = max(arm, 0.0) + 0.5 * size, min(arm, 0.0) - 0.5 * size
    board = _slab([behind, ahead], [-0.3 * size, 0.3 * size], [0.18 * size, 0.26 * size])
    skate = _slab([-0.3 * size, 0.3 * size], [-0.02 * size, 0.02 * size], [0.0, 0.18 * size])
    parts = [
        {"box": board},
        {"box": skate, "colour": 1},
        {"ball": 0.09 * size, "at": np.array([arm, 0.0, 0.3 * size]), "colour": 2},
    ]
    things = [
        body("sleigh", _upright(heading), _above(place, 0.0), parts),
        path("track of the skate", _above(place, 0.0), colour=1),
    ]
    picture = _on_plane(things, place, 1.5 * size)
    return picture._replace(notes=("The green ball marks the centre of mass.",))


def ball(run: Trajectory, told: dict[str, Any]) -> Picture:
    """Draw a ball with a pattern that shows how it turns, and its table or turntable."""
    rotation, place = (np.asarray(x) for x in run.g)
    radius, rate = told["radius"], told.get("rate", 0.0)
    centre = _above(place, radius)
    things = [
        body("ball", rotation, centre, [{"ball": radius, "at": np.zeros(3)}], 1.3 * radius),
        path("track on the table", _above(place, 0.0), colour=0),
    ]
    momentum = np.einsum("tij,tj->ti", rotation, np.asarray(run.momentum)[:, :3])
    label = "angular momentum about the centre"
    things.append(arrow(label, centre, momentum, 2 * radius, "kg m²/s"))
    if not rate:
        return _on_plane(things, place, 2 * radius)
    reach = float(np.max(np.linalg.norm(place, axis=1))) + radius
    turned = _about_third(rate * np.asarray(run.t))
    middle = np.tile([0.0, 0.0, -0.01 * radius], (len(place), 1))
    table = body("turntable", turned, middle, [{"table": reach}])
    table["poses"] = table["poses"]._replace(leads=False)
    return Picture([table, *things], {}, np.array([0.0, 0.0, radius / 2]), 1.1 * reach)


def _on_plane(things: list[Thing], place: np.ndarray, size: float) -> Picture:
    centre, radius = ball_around(_above(place, size / 2), size)
    small = size if radius > 4 * size else 0.0
    return Picture(things, {"ground": 2.4 * radius}, centre, radius, follow=small)


def _above(place: Float[np.ndarray, "time 2"], height: float) -> Float[np.ndarray, "time 3"]:
    return np.concatenate([place, np.full((len(place), 1), height)], axis=1)


def _upright(plane: Float[np.ndarray, "time 2 2"]) -> Float[np.ndarray, "time 3 3"]:
    """Return a rotation of the plane as one of space, about the third axis."""
    out = np.zeros((len(plane), 3, 3))
    out[:, :2, :2], out[:, 2, 2] = plane, 1.0
    return out


def _about_third(angle: Float[np.ndarray, " time"]) -> Float[np.ndarray, "time 3 3"]:
    c, s = np.cos(angle), np.sin(angle)
    return _upright(np.stack([np.stack([c, -s], 1), np.stack([s, c], 1)], 1))


def _slab(x: list[float], y: list[float], z: list[float]) -> Float[np.ndarray, "8 3"]:
    return np.array([[a, b, c] for a in x for b in y for c in z])

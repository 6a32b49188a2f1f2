"""Strings by their tension and rods by their stretch, with bodies, contacts and forces."""

import math
from typing import Any

import numpy as np

from retrax.show.bodies import CORNERS
from retrax.show.drawn import centrelines, pivots, rod_bodies, string_bodies
from retrax.show.pictures.own import GREY, corners, slab
from retrax.show.pictures.shapes import body_of_shapes, paint
from retrax.show.pictures.things import (
    METRES,
    Picture,
    Thing,
    arrow,
    ball_around,
    body,
    frame,
    line,
    path,
    point,
)
from retrax.trajectory.trajectory import Trajectory

# A finer string is drawn through about this many of its nodes.
_DRAWN_NODES = 60
_SIDE_BY_SIDE = 0.25  # the distance of two strings that touch, in lengths of a string

# A finer rod is drawn through this many of its nodes at most.
_ROD_NODES = 40


def string_pendulum(run: Trajectory, told: dict[str, Any]) -> Picture:
    """Draw the string from the pivot through its nodes, its bodies as boxes at their centres.

    The pivot of a crane is its trolley, on a line that is its rail.
    """
    r, tension = np.asarray(run.g[0]), run.observations.observables["tension"]
    stride = math.ceil(r.shape[1] / _DRAWN_NODES)
    kept = np.arange(r.shape[1] - 1, -1, -stride)[::-1]
    pivot = pivots(run, told)
    nodes = np.concatenate([pivot[:, None], pivot[:, None] + r[:, kept]], axis=1)
    scale = ("tension", float(np.min(tension)), float(np.max(tension)), "N")
    things: list[Thing] = [line("string", nodes, tension[:, kept], scale)]
    found = string_bodies(run, told)
    length = float(np.max(np.linalg.norm(r[:, -1], axis=1)))
    if "trolley" in told:
        side = 0.06 * length
        parts = [{"box": side * CORNERS * [2.0, 1.5, 0.6] - [0.0, 0.0, 0.3 * side]}]
        things += [body("trolley", None, pivot, parts), path("path of the trolley", pivot)]
    for one in found:
        assert one.position is not None and one.corners is not None
        of = f" of {one.label}" if len(found) > 1 else ""
        size = float(np.max(np.ptp(one.corners, axis=0)))
        parts = [{"box": one.corners}]
        things.append(body(one.label, one.rotation, one.position, parts, size))
        momentum = one.momentum(run)
        assert momentum is not None
        label = f"angular momentum{of} about its node"
        things.append(arrow(label, one.position, momentum, 0.25 * length, "kg m²/s"))
        things.append(path(f"path{of}", one.position, colour=4))
    every = np.concatenate([nodes, _places(found)], axis=1)
    centre, radius = ball_around(every, 0.1 * length)
    return Picture(things, {"frame": frame(every, METRES)}, centre, radius)


def _places(found: list) -> np.ndarray:
    return np.stack([one.position for one in found], axis=1)


def strings_in_contact(run: Trajectory, told: dict[str, Any]) -> Picture:
    """Draw two strings side by side, their displacement upwards, and the points that touch."""
    u, v, s = (np.asarray(x) for x in run.g)
    length, fixed = told["length"], told["ends"] == "fixed"
    first, second = (_nodes(x, length, fixed) for x in (u, v))
    across = _SIDE_BY_SIDE * length
    second[..., 1] = across
    slopes = [_slopes(x) for x in (first, second)]
    scale = ("slope", 0.0, float(max(np.max(x) for x in slopes)) or 1.0, "1")
    things: list[Thing] = [
        line("first string", first, slopes[0], scale),
        line("second string", second, slopes[1], scale),
    ]
    touching = [_at(x, s[:, k] % length) for k, x in enumerate((first, second))]
    things += [point(f"point of the {n} string that touches", x, 2) for n, x in _both(touching)]
    force = np.asarray(run.multipliers)[:, 0]
    up = np.stack([0 * force, 0 * force, -force], axis=1)
    height = max(float(np.max(np.abs(first[..., 2]))), float(np.max(np.abs(second[..., 2]))))
    things.append(arrow("force λ on the first string", touching[0], up, 0.2 * length, "m/s²"))
    every = np.concatenate([first, second], axis=1)
    centre, radius = ball_around(every, 0.2 * height)
    note = (
        "The second string stands beside the first; in the model they touch at the marked points."
    )
    axes = {"frame": frame(every, ["x (m)", "", "u, v (m)"])}
    return Picture(things, axes, centre, radius, (note,))


def _both(touching: list[np.ndarray]) -> list[tuple[str, np.ndarray]]:
    return list(zip(("first", "second"), touching, strict=True))


def _nodes(u: np.ndarray, length: float, fixed: bool) -> np.ndarray:
    """Return the nodes that are drawn, both ends among them, as places in space."""
    before, after = (0 * u[:, :1], 0 * u[:, :1]) if fixed else (u[:, :0], u[:, :1])
    whole = np.concatenate([before, u, after], axis=1)
    last = whole.shape[1] - 1
    kept = np.linspace(0, last, min(last, _DRAWN_NODES) + 1).round().astype(int)
    out = np.zeros((len(u), len(kept), 3))
    out[..., 0], out[..., 2] = length * kept / last, whole[:, kept]
    return out


def _slopes(nodes: np.ndarray) -> np.ndarray:
    steps = np.diff(nodes, axis=1)
    return np.abs(steps[..., 2] / steps[..., 0])


def _at(nodes: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Return the points at x = s, on the straight pieces between drawn nodes."""
    x = nodes[0, :, 0]
    k = np.clip(np.searchsorted(x, s) - 1, 0, len(x) - 2)
    rows = np.arange(len(s))
    part = ((s - x[k]) / (x[k + 1] - x[k]))[:, None]
    return (1 - part) * nodes[rows, k] + part * nodes[rows, k + 1]


def rods(run: Trajectory, told: dict[str, Any]) -> Picture:
    """Draw rods with the path of the last end, or two with their contact and its force."""
    drawn = []
    for places, rod in zip(centrelines(run, told), told["rods"], strict=True):
        last = places.shape[1] - 1
        kept = np.linspace(0, last, min(last, _ROD_NODES) + 1).round().astype(int)
        points = places[:, kept]
        lengths = np.linalg.norm(np.diff(points, axis=1), axis=2)
        drawn.append((points, lengths / (rod["spacing"] * np.diff(kept)), rod["radius"]))
    low = min(float(np.min(stretch)) for _, stretch, _ in drawn)
    high = max(float(np.max(stretch)) for _, stretch, _ in drawn)
    names = ["rod"] if len(drawn) == 1 else ["first rod", "second rod"]
    names += [f"rod {k + 1}" for k in range(2, len(drawn))]
    things: list[Thing] = [
        line(name, points, stretch, ("stretch", low, high, "1"), radius)
        for name, (points, stretch, radius) in zip(names, drawn, strict=True)
    ]
    (followed,) = rod_bodies(run, told)
    assert followed.position is not None
    every = np.concatenate([points for points, _, _ in drawn], axis=1)
    standing, every, level = _standing(run, told, every)
    things += standing
    centre, radius = ball_around(every, max(r for _, _, r in drawn))
    if followed.arrow is None:
        things.append(path("path of the end", followed.position, colour=4))
    else:
        label, at = "force on the first rod", followed.position
        force = arrow(label, at, followed.arrow, 0.5 * radius, "N")
        things += [point("contact", at, 2, inside=True), force]
    axes = {"frame": frame(every, METRES)} if level is None else {"ground": 3.2 * radius} | level
    return Picture(things, axes, centre, 1.15 * radius)


def _standing(
    run: Trajectory, told: dict[str, Any], every: np.ndarray
) -> tuple[list[Thing], np.ndarray, dict[str, float] | None]:
    """Return what rods may touch in space, all places that are seen with it, and a level floor."""
    shapes, planes = told.get("still", ()), told.get("planes", ())
    still, things = np.zeros((len(run.t), 3)), []
    if shapes:
        things += body_of_shapes("what stands in space", shapes, None, still)
        things[-1]["colour"] = paint(shapes[0]) or 0
        held = corners(shapes, None, still[:1])
        every = np.concatenate([every, np.repeat(held, len(every), axis=0)], axis=1)
    slabs = [slab(normal, at, [every]) for normal, at, _ in planes if abs(normal[2]) < 1.0]
    if slabs:
        things += body_of_shapes("plane", slabs, None, still)
        things[-1] |= {"still": True, "colour": GREY}
        return things, every, None
    heights = [at[2] for _, at, _ in planes]
    return things, every, {"height": heights[0]} if heights else None

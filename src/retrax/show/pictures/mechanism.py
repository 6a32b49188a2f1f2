"""Mechanisms: bodies with their shapes, joints, wheels on the ground, and the forces in joints."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from retrax.draw.solids import cone, cylinder, ellipsoid, rod, sphere, wheel
from retrax.mechanics.shape import COLOURS, SOLIDS, Shape, triple
from retrax.show.bodies import Body, bodies
from retrax.show.drawn import joint_forces
from retrax.show.pictures.own import corners, slab
from retrax.show.pictures.shapes import body_of_shapes, paint, part
from retrax.show.pictures.things import METRES, Picture, Thing, Track, frame, path, strand
from retrax.trajectory.trajectory import Trajectory

# The thickness of rods that are drawn where no shape is given, in sizes of the mechanism.
_ROD, _BALL, _PIN = 0.022, 0.035, 0.03
_JOINT, _GROUND, _FORCE = "#5d6873", "#8a949e", "#e5263e"
# More bodies make the legend unreadable, and more forces make the page too large.
_FORCES, _LISTED = 40, 10
# A body whose joints are nearer to its centre of mass than this part of the size is an ellipsoid.
_NEAR = 0.02
# A spring in parts of its length and of its width.
_ZIGZAG = [
    (0.0, 0.0),
    (0.1, 0.0),
    *((0.15 + 0.1 * k, (-1.0) ** k) for k in range(8)),
    (0.9, 0.0),
    (1.0, 0.0),
]
# The longest force is drawn this long, in radii of the picture.
_LONGEST = 0.4


def mechanism(run: Trajectory, said: dict[str, Any]) -> Picture:
    """Return the bodies of a mechanism, its joints and their forces; up is against gravity."""
    found = bodies(run)
    flat = len(said["gravity"]) == 2
    turn = _upright(said["gravity"])
    size = _size(said)
    things: list[Thing] = []
    places = []
    for k, one in enumerate(found):
        shapes = said["shapes"][k] or default_shapes(said, k, size)
        moved = _look(one, turn)
        own = body_of_shapes(one.label if len(found) <= _LISTED else "", shapes, *moved)
        own[0]["parts"] += [part(shape) for shape in _pins(said, k, size)]
        own[0]["name"] = one.label
        own[0] |= _swatch(shapes)
        things += own
        places.append(corners([s for s in shapes if s.kind in SOLIDS] or [sphere(size)], *moved))
    fixed = _feet(said, size, turn) + [shape.turned(turn) for shape in said.get("still", ())]
    slabs = [
        slab(triple("normal", turn @ normal), triple("at", turn @ at), places)
        for normal, at, _ in said.get("planes", ())
    ]
    still = np.zeros((len(run.t), 3))
    for label, own in (("ground", fixed), ("plane", slabs)):
        if own:
            things += body_of_shapes(label, own, None, still)
            things[-1] |= _swatch(own) | {"still": own is slabs}
            places.append(corners(own, None, still))
    things += _lines(found, said, turn, size)
    if not any(shape.kind == "trail" for own in said["shapes"] for shape in own):
        _, position = _look(found[-1], turn)
        things.append(path(f"path of {found[-1].label}", position, colour=4))
    every = np.concatenate(places, axis=1)
    every = every[np.all(np.isfinite(every), axis=(1, 2))]
    axes = frame(every, _names(turn, flat))
    across = float(np.linalg.norm(axes["high"] - axes["low"])) or 1.0
    radius, centre = (0.58 if flat else 0.52) * across, (axes["low"] + axes["high"]) / 2
    grounded = any(-1 in joint["bodies"] for joint in said["joints"])
    followed = not grounded and 4 * size < radius
    follow = size if followed else 0.0
    forces, notes = _forces(run, said, turn, 2 * size if followed else radius)
    around = _around(said, axes, across, turn, flat)
    toggles = {"names": False} | ({"forces": True} if forces else {})
    return Picture(
        [*things, *forces], around, centre, radius, notes, follow, followed, toggles=toggles
    )


def default_shapes(said: dict[str, Any], k: int, size: float) -> tuple[Shape, ...]:
    """Return the shapes of a body that was given none.

    Its wheels; rods from its centre of mass to its joints; or, where there are none, the ellipsoid
    that has its inertia.
    """
    colour = COLOURS[k % len(COLOURS)]
    found = [_rolling(one, colour) for one in said["wheels"] if one["body"] == k]
    ends = [triple("a joint", p) for joint in said["joints"] for p in _on(joint, k)]
    arms = [p for p in ends if np.linalg.norm(p) > _NEAR * size]
    if arms:
        found += [rod((0.0, 0.0, 0.0), p, _ROD * size, colour) for p in arms]
        found.append(sphere(_BALL * size, colour))
    return tuple(found) or (_of_inertia(said["mass"][k], np.array(said["inertia"][k]), colour),)


def _rolling(one: dict[str, Any], colour: str) -> Shape:
    """Return a wheel, or a ball."""
    centre, radius = triple("centre", one["centre"]), one["radius"]
    if len(one["centre"]) == 2:
        return wheel(radius, (0.0, 0.0, 1.0), colour=colour).at(centre)
    if one["axle"] is None:
        return sphere(radius).at(centre)
    return wheel(radius, one["axle"], colour=colour).at(centre)


def _of_inertia(mass: float, inertia: np.ndarray, colour: str) -> Shape:
    """Return the homogeneous ellipsoid with this mass and inertia; in the plane the disk."""
    if inertia.shape == (1, 1):
        radius = float(np.sqrt(2 * inertia[0, 0] / mass))
        return cylinder(radius, (0.0, 0.0, 1.0), 0.1 * radius, colour)
    moments, axes = np.linalg.eigh(inertia)
    axes[:, 0] *= np.sign(np.linalg.det(axes))
    squares = 2.5 / mass * np.maximum(np.sum(moments) - 2 * moments, 0.0)
    semiaxes = np.sqrt(np.maximum(squares, 1e-4 * np.max(squares)))
    return ellipsoid(semiaxes, colour).turned(axes)


def _pins(said: dict[str, Any], k: int, size: float) -> list[Shape]:
    """Return a mark for each joint that a body carries as the first of those that move."""
    found = []
    for joint in said["joints"]:
        n = next(n for n, body in enumerate(joint["bodies"]) if body >= 0)
        if joint["bodies"][n] != k:
            continue
        mark = sphere(1.2 * _PIN * size, _JOINT)
        flat = len(said["gravity"]) == 2
        if flat or joint["axes"] is not None:
            axis = (0.0, 0.0, 1.0) if flat else joint["axes"][n]
            mark = cylinder(_PIN * size, axis, 4 * _PIN * size, _JOINT)
        found.append(mark.at(joint["points"][n]))
    return found


def _feet(said: dict[str, Any], size: float, turn: np.ndarray) -> list[Shape]:
    """Return a foot under each joint with the ground, as seen in the picture."""
    down = np.array([0.0, 1.0, 0.0]) if len(said["gravity"]) == 2 else np.array([0.0, 0.0, 1.0])
    down = down * (1.0 if _along(said["gravity"]) > 0 else -1.0)
    feet = []
    for joint in said["joints"]:
        for p in _on(joint, -1):
            at = turn @ np.array(triple("a joint", p))
            feet.append(cone(at + 3 * _PIN * size * down, at, 1.8 * _PIN * size, _GROUND))
    return feet


def _lines(found: list[Body], said: dict[str, Any], turn: np.ndarray, size: float) -> list[Thing]:
    """Return springs as zigzags, dampers and bars without mass as straight lines."""
    things = []
    for one in said["lines"]:
        ends = [
            _point(found, body, np.array(triple("an end", p)), turn)
            for body, p in zip(one["bodies"], one["points"], strict=True)
        ]
        zigzag = _ZIGZAG if one["kind"] == "spring" else [(0.0, 0.0), (1.0, 0.0)]
        along = ends[1] - ends[0]
        aside = np.cross(along, [0.0, 0.0, 1.0])
        flat = np.linalg.norm(aside, axis=1, keepdims=True) < 1e-6
        aside = np.where(flat, [1.0, 0.0, 0.0], aside)
        aside = 1.5 * _PIN * size * aside / np.linalg.norm(aside, axis=1, keepdims=True)
        nodes = np.stack([ends[0] + u * along + v * aside for u, v in zigzag], axis=1)
        colour = {"spring": 2, "damper": 3, "distance": None}[one["kind"]]
        first = all(thing["label"] != one["kind"] for thing in things)
        things.append(strand(one["kind"] if first else "", nodes, colour))
    return things


def _point(found: list[Body], body: int, p: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Return where a point of a body is in the picture, at all times."""
    count = len(found[0].position if found[0].position is not None else ())
    if body < 0:
        return np.tile(turn @ p, (count, 1))
    rotation, position = _look(found[body], turn)
    return position if rotation is None else position + rotation @ p


def _forces(
    run: Trajectory, said: dict[str, Any], turn: np.ndarray, radius: float
) -> tuple[list[Thing], tuple[str, ...]]:
    """Return the force of each joint on its second body, all on one scale."""
    found = joint_forces(run)
    if not found:
        return [], ()
    notes: tuple[str, ...] = ()
    if len(found) > _FORCES:
        notes = (f"Forces are drawn for the first {_FORCES} of {len(found)} joints.",)
    shown = list(found.values())[:_FORCES]
    sizes = [np.linalg.norm(force, axis=1) for _, force in shown]
    strongest = float(max(np.nanmax(x, initial=0.0) for x in sizes))
    if not strongest > 0:
        return [], notes
    scale = _LONGEST * radius / strongest
    things = []
    for at, force in shown:
        tracks = {"start": Track(at @ turn.T), "vector": Track(scale * force @ turn.T)}
        label = f"forces of joints (the longest is {strongest:.3g} N)" if not things else ""
        look = {"colour": _FORCE, "thin": 0.6, "toggle": "forces"}
        things.append({"kind": "arrow", "label": label, **tracks, **look})
    return things, notes


def _around(
    said: dict[str, Any], axes: dict[str, Any], across: float, turn: np.ndarray, flat: bool
) -> dict[str, Any]:
    """Return the ground, where something rolls on a level one; else axes."""
    normals = [turn @ np.array(triple("normal", one["normal"])) for one in said["wheels"]]
    if normals and not flat and all(abs(n[2]) > 1 - 1e-9 for n in normals):
        return {"ground": 1.6 * across}
    return {"frame": axes} | ({"front": True} if flat else {})


def _look(one: Body, turn: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
    assert one.position is not None
    rotation = None if one.rotation is None else turn @ one.rotation
    return rotation, one.position @ turn.T


def _upright(gravity: Sequence[float]) -> Float[np.ndarray, "3 3"]:
    """Return the turn that takes the axis that gravity is nearest to, to the third."""
    if len(gravity) == 2 or not any(gravity):
        return np.eye(3)
    return np.roll(np.eye(3), 2 - int(np.argmax(np.abs(gravity))), axis=0)


def _along(gravity: Sequence[float]) -> float:
    """Return gravity along the axis that is upright in the picture."""
    return gravity[1] if len(gravity) == 2 else max(gravity, key=abs)


def _names(turn: np.ndarray, flat: bool) -> list[str]:
    names = [METRES[int(np.argmax(row))] for row in turn]
    return [*names[:2], ""] if flat else names


def _size(said: dict[str, Any]) -> float:
    """Estimate the size of bodies: twice the distance of joints from centres, or the radius."""
    arms = [
        float(np.linalg.norm(p))
        for joint in said["joints"]
        for body, p in zip(joint["bodies"], joint["points"], strict=True)
        if body >= 0
    ]
    arms = [2 * x for x in arms if x > 0] + [one["radius"] for one in said["wheels"]]
    if arms:
        return float(np.mean(arms))
    ratios = [np.trace(np.array(J)) / m for J, m in zip(said["inertia"], said["mass"], strict=True)]
    return float(np.sqrt(max(ratios))) or 1.0


def _on(joint: dict[str, Any], k: int) -> list[list[float]]:
    pairs = zip(joint["bodies"], joint["points"], strict=True)
    return [p for body, p in pairs if body == k]


def _swatch(shapes: Sequence[Shape]) -> dict[str, Any]:
    """Return the colour of a body in the legend: that of its first shape."""
    colour = paint(shapes[0]) if shapes else None
    return {} if colour is None else {"colour": colour}

"""The picture of a system as its user draws it: `draw=`."""

import inspect
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from retrax.draw.solids import box
from retrax.errors import BadInput
from retrax.mechanics.shape import SOLIDS, Shape, Triple, shapes_of
from retrax.numerics.checks import reason
from retrax.show.bodies import Body, bodies
from retrax.show.pictures.shapes import body_of_shapes, ends, part, reach, through
from retrax.show.pictures.things import METRES, Picture, Thing, Track, frame, path
from retrax.trajectory.trajectory import Trajectory

Draw = Callable[..., Any] | Shape | Sequence[Shape]
"""Shapes that bodies carry, or a function of the configuration, `draw(g)` or `draw(g, t)`."""

# A function is asked at so many states at most, and so many places decide how much is seen.
_ASKED, _LOOKED_AT = 3000, 200
# A plate that stands for a plane is so thick, in its sides.
_THICK, GREY = 0.01, "#b7c0c9"
# A single body whose path is so many times as long as it is large is followed.
_SMALL = 8.0
# Of more bodies than this none has a name or a path.
_MANY = 12
# Planes that are steeper than this are walls; walls around all that moves would hide it.
_STEEP, _WALLS = 0.1, 2

Plane = tuple[Triple, Triple, int | str]


def draw_for_user(run: Trajectory, draw: Draw, planes: Sequence[Plane] = ()) -> Picture:
    """Return the picture that `draw` describes, instead of the one that retrax would make."""
    return of_function(run, draw) if callable(draw) else of_bodies(run, draw, planes)


def of_bodies(run: Trajectory, draw: Any, planes: Sequence[Plane] = ()) -> Picture:
    """Return shapes on the bodies of a run; those that name no body belong to the first.

    Planes that stand still are drawn under all that moves.
    """
    found = bodies(run)
    if not found:
        raise BadInput(
            f"the {run.provenance['system']} has no bodies to draw shapes on: give draw a function "
            "of the configuration that returns shapes."
        )
    shapes: dict[int, list[Shape]] = {}
    for shape in shapes_of("draw", draw):
        shapes.setdefault(which(shape, found), []).append(shape)
    still = Body("", None, np.zeros((len(run.t), 3)), None)
    things: list[Thing] = []
    places = []
    for k, own in shapes.items():
        one = still if k < 0 else found[k]
        place = still.position if one.position is None else one.position
        assert place is not None
        many = len(found) > _MANY
        things += body_of_shapes("" if many and k >= 0 else one.label, own, one.rotation, place)
        places.append(corners(own, one.rotation, place))
        if k >= 0 and one.position is not None and not many:
            things.append(path(f"path of {one.label}" if len(found) > 1 else "path", place))
    flat = all(one.position is not None and _in_plane(one) for one in found)
    grounds = {(normal, at) for normal, at, body in planes if body == "ground"}
    if len(grounds) > _WALLS:
        grounds = {one for one in grounds if abs(one[0][2]) > _STEEP}
    level = [at[2] for normal, at in grounds if abs(normal[2]) == 1.0]
    slabs = [slab(normal, at, places) for normal, at in grounds if abs(normal[2]) < 1.0]
    if slabs:
        unmoved = np.zeros((len(run.t), 3))
        things += body_of_shapes("plane", slabs, None, unmoved)
        things[-1] |= {"still": True, "colour": GREY}
        places.append(corners(slabs, None, unmoved))
    shown = frame_axes(things, np.concatenate(places, axis=1), flat)
    if level and not slabs and not flat:
        shown = shown._replace(around={"ground": 3.2 * shown.radius, "height": level[0]})
    moving = [own for k, own in shapes.items() if k >= 0]
    size = max(float(np.max(np.linalg.norm(reach(one), axis=1))) for own in moving for one in own)
    if len(moving) == 1 and shown.radius > _SMALL * size:
        shown = shown._replace(follow=size, followed=True)
    return shown


def slab(normal: Triple, at: Triple, places: Sequence[np.ndarray]) -> Shape:
    """Return a plate below a plane, under all places that are seen."""
    seen = np.concatenate([place.reshape(-1, 3) for place in places])
    seen = seen[np.all(np.isfinite(seen), axis=1)]
    n, origin = np.array(normal), np.array(at)
    on = seen - ((seen - origin) @ n)[:, None] * n
    first = np.cross(n, np.eye(3)[int(np.argmin(np.abs(n)))])
    first = first / np.linalg.norm(first)
    turn = np.stack([first, np.cross(n, first), n], axis=1)
    low, high = np.min(on @ turn, axis=0), np.max(on @ turn, axis=0)
    longest = float(np.max(high - low)) or 1.0
    first_side, second_side = np.maximum(1.2 * (high - low)[:2], 0.6 * longest)
    thick = _THICK * longest
    middle = turn @ ((low + high) / 2)
    return box([first_side, second_side, thick], GREY).turned(turn).at(middle - thick / 2 * n)


def _in_plane(one: Body) -> bool:
    """Return whether a body stays in the plane of the first two axes."""
    assert one.position is not None
    turns = one.rotation is not None and np.any(one.rotation[:, 2, :2])
    return not turns and not np.any(one.position[:, 2])


def which(shape: Shape, found: list[Body]) -> int:
    """Return the number of the body that carries a shape; -1 for the ground."""
    names = [one.label for one in found]
    if shape.body is None or shape.body == "ground":
        return 0 if shape.body is None else -1
    if isinstance(shape.body, int) and 0 <= shape.body < len(found):
        return shape.body
    if shape.body in names:
        return names.index(shape.body)
    raise BadInput(
        f"a shape is on the body {shape.body!r}; the bodies are "
        f"{', '.join(map(repr, names[:12]))}, or their numbers from 0, or 'ground'."
    )


def of_function(run: Trajectory, draw: Callable[..., Any]) -> Picture:
    """Draw shapes that a function returns, in space axes, at every saved state or every few."""
    stride = -(-len(run.t) // _ASKED)
    t = np.asarray(run.t)[::stride]
    g = jax.tree.map(lambda x: np.asarray(x)[::stride], run.y)
    timed = _takes_time(draw)
    asked = []
    for k, time in enumerate(t):
        here = jax.tree.map(lambda x, k=k: x[k], g)
        try:
            said = draw(here, time) if timed else draw(here)
        except BadInput:
            raise
        except Exception as cause:
            raise BadInput(f"draw failed at t = {time:.6g} s: {reason(cause)}.") from cause
        asked.append(shapes_of(f"what draw returns at t = {time:.6g} s", said))
    things = [_moving(t, track) for track in zip_longest(*asked)]
    seen = np.linspace(0, len(t) - 1, min(len(t), _LOOKED_AT)).astype(int)
    places = np.stack([np.concatenate([reach(shape) for shape in asked[k]]) for k in seen])
    heights = [x[2] for shapes in asked for shape in shapes for x in (shape.place, *shape.points)]
    return frame_axes(things, places, not any(heights))._replace(stride=stride)


def _takes_time(draw: Callable[..., Any]) -> bool:
    needed = [
        p
        for p in inspect.signature(draw).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if not 1 <= len(needed) <= 2:
        raise BadInput("draw must be a function of the configuration, draw(g), or draw(g, t).")
    return len(needed) == 2


def _moving(t: np.ndarray, shapes: Sequence[Shape | None]) -> Thing:
    """Return the n-th shape that the function returned, along time."""
    kept = [shape for shape in shapes if shape is not None]
    first = kept[0]
    same = all(shape is not None and _staying(shape) == _staying(first) for shape in shapes)
    if not same:
        at = next(k for k, s in enumerate(shapes) if s is None or _staying(s) != _staying(first))
        raise BadInput(
            f"draw returns other shapes at t = {t[at]:.6g} s than at the start: it must return as "
            "many of the same kinds, in the same order, at all times."
        )
    if first.kind in SOLIDS:
        poses = np.array([[*shape.matrix, *shape.place] for shape in kept])
        unit = part(first) | {"pose": np.array([1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0], float)}
        track = Track(poses, leads=True)
        return {"kind": "body", "label": "", "poses": track, "parts": [unit], "axes": 0.0}
    return through(first, np.array([ends(shape) for shape in kept]))


def _staying(shape: Shape) -> tuple[str, str, str, int]:
    """Return what of a shape may not change along time."""
    return shape.kind, shape.colour, shape.data, len(shape.points)


def corners(
    shapes: Sequence[Shape], rotation: np.ndarray | None, position: np.ndarray
) -> Float[np.ndarray, "time n 3"]:
    """Return points that hold the shapes of a body between them, at a few times."""
    seen = np.linspace(0, len(position) - 1, min(len(position), _LOOKED_AT)).astype(int)
    points = np.concatenate([reach(shape) for shape in shapes])
    turns = np.eye(3)[None] if rotation is None else rotation[seen]
    return points @ np.swapaxes(turns, 1, 2) + position[seen][:, None]


def frame_axes(things: list[Thing], places: Float[np.ndarray, "time n 3"], flat: bool) -> Picture:
    """Put axes around a picture; what is flat, in the first two, is seen from the front."""
    places = places[np.all(np.isfinite(places), axis=(1, 2))]
    if not len(places):
        raise BadInput("there is nothing to draw: no state of the run is finite.")
    axes = frame(places, [*METRES[:2], ""] if flat else METRES)
    around: dict[str, Any] = {"frame": axes} | ({"front": True} if flat else {})
    across = float(np.linalg.norm(axes["high"] - axes["low"])) or 1.0
    return Picture(
        things, around, (axes["low"] + axes["high"]) / 2, (0.58 if flat else 0.52) * across
    )

"""The states that a page plays: enough for smooth motion, few enough to open at once.

Numbers are packed into as few characters as the eye needs.
"""

import base64
import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from retrax.show.drawn import e3_points_up
from retrax.show.pictures.things import Picture, Track
from retrax.trajectory.trajectory import Trajectory

# Rotations further apart than this (rad) are not joined, nor places further apart than this part
# of all places.
_FAR_TURN, _FAR_STEP = 1.0, 0.6
# What moves by less than this part of its distance from the origin, or of a millimetre, stands.
_STILL, _SMALL = 1e-9, 1e-3
# Numbers in all frames together, and frames: what a page of a few megabytes holds.
_NUMBERS, _FRAMES = 1_000_000, 50_000
# Where smooth motion needs more, this part of the frames shows the beginning smoothly.
_SMOOTH_PART = 0.75
_POSE = 12

_LEVELS = 65535


class Played(NamedTuple):
    """Which states are played; the first `joined` steps between them are smooth, the rest jump."""

    states: Int[np.ndarray, " frames"]
    joined: int


def scene(run: Trajectory, shown: Picture) -> dict[str, Any]:
    """Return the things of a picture at the played times, and notes on what is shown of them."""
    tracks = [value for thing in shown.things for value in thing.values() if _moves(value)]
    times = np.asarray(run.t)[:: shown.stride]
    frames = choose_frames(len(times), tracks)

    def draw(value: Any) -> Any:
        return pack(value.values[frames.states]) if _moves(value) else value

    return {
        "t": single(times[frames.states]),
        "joined": frames.joined,
        "up": 1 if e3_points_up(run) else -1,
        "things": [{key: draw(value) for key, value in thing.items()} for thing in shown.things],
        "around": shown.around,
        "centre": shown.centre,
        "floor": floor(shown, 1 if e3_points_up(run) else -1),
        "radius": shown.radius,
        "follow": shown.follow,
        "followed": shown.followed,
        "toggles": dict(shown.toggles),
        "notes": [*shown.notes, *_notes(times, frames)],
    }


def floor(shown: Picture, up: int) -> float | None:
    """Return the height of what takes the shadows: below all that moves.

    It is `None` for what is no body, and where a thing that stands still takes them.

    A picture says how large its bodies are by the ball that holds everything: its radius exceeds
    the distance of the farthest place by as much.
    """
    if "ground" in shown.around:
        return float(shown.around.get("height", 0.0))
    if shown.around.get("flat") or shown.around.get("front"):
        return None
    if any(thing.get("still") for thing in shown.things):
        return None
    places = [_places(thing) for thing in shown.things if thing["kind"] in ("body", "line")]
    if not places:
        return None
    every = np.concatenate(places)
    size = shown.radius - float(np.max(np.linalg.norm(every - shown.centre, axis=1)))
    lowest = float(np.min(up * every[:, 2])) - max(size, 0.0)
    return up * max(lowest, up * float(shown.centre[2]) - shown.radius)


def _places(thing: dict[str, Any]) -> Float[np.ndarray, "places 3"]:
    track = thing["poses"].values[:, 9:] if thing["kind"] == "body" else thing["points"].values
    return track.reshape(-1, 3)


def choose_frames(count: int, tracks: list[Track]) -> Played:
    """Return all states if they are few; else evenly spread ones, if these are not too far apart;
    else the beginning smoothly, and the rest at a few instants.
    """
    limit = max(4, min(_FRAMES, _NUMBERS // max(1, sum(t.values.shape[1] for t in tracks))))
    far = farthest(tracks)
    stride = math.ceil(max(count - 1, 1) / (limit - 1))
    smooth = count if far == 0 else math.floor(1 / far)
    if stride <= max(smooth, 1):
        states = _spread(0, count - 1, stride)
        return Played(states, len(states) - 1 if far * stride <= 1 else 0)
    if smooth == 0:
        return Played(_spread(0, count - 1, stride), 0)
    first = _spread(0, int(_SMOOTH_PART * limit) * smooth, smooth)
    rest = np.linspace(first[-1], count - 1, limit - len(first) + 1).round().astype(int)
    return Played(np.concatenate([first, rest[1:]]), len(first) - 1)


def farthest(tracks: list[Track]) -> float:
    """Return the largest step between neighbours, in units of the largest one to be joined."""
    return max((_apart(track) for track in tracks if track.leads), default=0.0)


def _spread(first: int, last: int, stride: int) -> Int[np.ndarray, " frames"]:
    states = np.arange(first, last + 1, stride)
    return states if states[-1] == last else np.append(states, last)


def _moves(value: Any) -> bool:
    return isinstance(value, Track)


def _apart(track: Track) -> float:
    values = track.values
    if len(values) < 2:
        return 0.0
    if values.shape[1] != _POSE:
        return _largest_step(values)
    return max(_largest_turn(values[:, :9]) / _FAR_TURN, _largest_step(values[:, 9:]))


def _largest_turn(matrices: Float[np.ndarray, "time 9"]) -> float:
    """Return the largest angle between neighbours; of stretching matrices, the change in all."""
    apart = np.linalg.norm(np.diff(matrices, axis=0), axis=1)
    size = np.linalg.norm(matrices, axis=1)[:-1] / math.sqrt(3)
    part = apart / np.where(size > 0, size, 1.0) / (2 * math.sqrt(2))
    return float(2 * np.arcsin(np.clip(np.nanmax(part), 0, 1)))


def _largest_step(places: np.ndarray) -> float:
    span = float(np.max(np.ptp(places, axis=0)))
    if not span > _STILL * max(float(np.nanmax(np.abs(places))), _SMALL):
        return 0.0
    longest = float(np.max(np.linalg.norm(np.diff(places, axis=0), axis=1)))
    return longest / (_FAR_STEP * span * math.sqrt(places.shape[1] / 3))


def _notes(times: np.ndarray, frames: Played) -> list[str]:
    """Return what a viewer has to know about the motion, one sentence each."""
    if len(times) < 2 or frames.joined == len(frames.states) - 1:
        return []
    if frames.joined == 0:
        return [
            "The saved states are too far apart to be joined: the picture jumps from one to the "
            "next. Save more often to see it move."
        ]
    end, rest = times[frames.states[frames.joined]], len(frames.states) - 1 - frames.joined
    return [
        f"Up to t = {end:.6g} s the motion is smooth; the run is too long to show all of it so, "
        f"and after that the picture jumps between {rest:,} instants."
    ]


def pack(values: Float[np.ndarray, "frames width"]) -> dict[str, Any]:
    """Return columns in 65,536 levels between the least and the largest value of each.

    A value that is not finite is shown as the last finite one of its column.
    """
    whole = np.asarray(values, dtype=float)
    if not np.all(np.isfinite(whole)):
        whole = _hold(whole)
    low, high = np.min(whole, axis=0), np.max(whole, axis=0)
    step = (high - low) / _LEVELS
    levels = np.round((whole - low) / np.where(step > 0, step, 1.0)).astype("<u2")
    return {
        "width": whole.shape[1],
        "low": _short(low),
        "step": _short(step),
        "data": base64.b64encode(levels.tobytes()).decode(),
    }


def unpack(track: dict[str, Any]) -> Float[np.ndarray, "frames width"]:
    """Return what the page reads from `pack`."""
    levels = np.frombuffer(base64.b64decode(track["data"]), "<u2").reshape(-1, track["width"])
    return np.array(track["low"]) + np.array(track["step"]) * levels


def single(values: np.ndarray) -> str:
    """Return numbers in single precision: seven digits, any size, NaN among them."""
    return base64.b64encode(np.asarray(values, dtype="<f4").tobytes()).decode()


def read_single(text: str) -> np.ndarray:
    """Return what the page reads from `single`."""
    return np.frombuffer(base64.b64decode(text), "<f4")


def plain(value: Any) -> Any:
    """Return an array as nested lists of six digits, for JSON."""
    if isinstance(value, np.ndarray):
        return _short(value) if value.ndim == 1 else [plain(row) for row in value]
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no place on a page.")


def _short(values: np.ndarray) -> list[float]:
    return [float(f"{x:.6g}") for x in values]


def _hold(values: np.ndarray) -> np.ndarray:
    finite = np.isfinite(values)
    last = np.where(finite, np.arange(len(values))[:, None], 0)
    out = np.take_along_axis(values, np.maximum.accumulate(last, axis=0), axis=0)
    return np.where(np.isfinite(out), out, 0.0)

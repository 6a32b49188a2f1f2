"""The states that a page plays: enough for smooth motion, few enough to open at once."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from retrax.show.bodies import Body
from retrax.show.drawn import told
from retrax.show.rods import rod_lines
from retrax.show.shape import box
from retrax.show.strings import string_line

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory

# Between states that are turned further than this (rad) from each other nothing is interpolated.
_FAR_APART = 1.0
_POSES = 6000
_SHOWN_BODIES = 8
_SPACING = 2.6


def scene(run: "Trajectory", found: list[Body]) -> dict[str, Any]:
    """Bodies, their poses and momenta at the played times, and notes on what is shown of them.

    A pose is the rotation row by row, then the position: twelve numbers, body after body, frame
    after frame. Rotations are those that were computed: what has left the group looks like it.
    """
    shown = found[:_SHOWN_BODIES]
    said = told(run)
    played, smooth = _played(run.t, shown, len(said.get("rods", ())))
    rods = rod_lines(run, said, played) if "rods" in said else []
    span = max((float(np.ptp(b.position)) for b in shown if b.position is not None), default=0.0)
    span = max([span, *(float(np.ptp(rod["points"])) for rod in rods)])
    size = 0.25 * span if span > 0 else 1.0
    drawn = [_Drawn(run, body, played, k, size) for k, body in enumerate(shown)]
    strongest = max((d.strongest for d in drawn), default=0.0)
    decimals = 4 - math.floor(math.log10(max(span, 1.0)))
    momenta = np.stack([d.momentum for d in drawn], axis=1) * (1.2 * size / (strongest or 1.0))
    return {
        "t": [float(f"{t:.8g}") for t in run.t[played]],
        "smooth": smooth,
        "up": -1 if run.provenance.get("up") == "-e3" else 1,
        "travels": span > 0,
        "bodies": [d.body for d in drawn],
        "poses": _rounded(np.stack([d.poses for d in drawn], axis=1), decimals),
        "momenta": _rounded(momenta, decimals) if strongest > 0 else None,
        "string": string_line(run, played),
        "rods": rods,
        "notes": _notes(run, found, drawn, played, smooth),
    }


class _Drawn:
    """One body with all that the page needs of it."""

    def __init__(self, run: "Trajectory", body: Body, played: np.ndarray, k: int, size: float):
        count = len(played)
        turns = (
            np.tile(np.eye(3), (count, 1, 1)) if body.rotation is None else body.rotation[played]
        )
        aside = np.tile([_SPACING * k, 0.0, 0.0], (count, 1))
        places = aside if body.position is None else body.position[played]
        momentum = body.momentum(run)
        self.poses = np.concatenate([turns.reshape(count, 9), places], axis=1)
        self.momentum = np.zeros((count, 3)) if momentum is None else momentum[played]
        self.strongest = float(np.max(np.linalg.norm(self.momentum, axis=1)))
        self.from_inertia = True
        corners = None
        if body.corners is not None:
            size = float(np.max(np.ptp(body.corners, axis=0)))
            corners = body.corners / size
        elif body.rotation is not None:
            corners, self.from_inertia = _corners(run, body)
        if body.position is not None:
            tip = [0.0, 0.0, 0.0]
        else:
            tip = [0.0, 0.0, 1.0] if body.coordinates is not None else [1.0, 0.0, 0.0]
        self.body = {
            "label": body.label,
            "size": size,
            "corners": None if corners is None else np.round(corners * size, 4).tolist(),
            "tip": tip,
        }


def _corners(run: "Trajectory", body: Body) -> tuple[np.ndarray, bool]:
    if body.coordinates is None:
        nothing = np.zeros((1, 3))
        return box(nothing, nothing)
    rows = body.coordinates
    return box(np.asarray(run.velocity)[:, rows], np.asarray(run.momentum)[:, rows])


def _played(t: np.ndarray, shown: list[Body], rods: int) -> tuple[Int[np.ndarray, " frames"], bool]:
    """Indices of the states to play: spread over the run unless they would be too far apart."""
    # Strings and rods have many points to play.
    drawn = len(shown) + 4 * sum(body.corners is not None for body in shown) + 5 * rods
    count, limit = len(t), _POSES // drawn
    turn = max((_largest_turn(b.rotation) for b in shown if b.rotation is not None), default=0.0)
    at_most = count if turn == 0 else max(1, math.floor(_FAR_APART / turn))
    stride = min(math.ceil(count / limit), at_most)
    played = np.arange(0, count, stride)
    if played[-1] != count - 1 and len(played) < limit:
        played = np.append(played, count - 1)
    return played[:limit], turn * stride <= _FAR_APART


def _largest_turn(rotation: Float[np.ndarray, "time 3 3"]) -> float:
    """The largest angle between neighbouring states, in rad."""
    if len(rotation) < 2:
        return 0.0
    cosines = (np.einsum("tij,tij->t", rotation[1:], rotation[:-1]) - 1) / 2
    return float(np.arccos(np.clip(np.min(cosines), -1, 1)))


def _rounded(values: np.ndarray, decimals: int) -> list[float]:
    return (np.round(values, decimals) + 0.0).ravel().tolist()


def _notes(
    run, found: list[Body], drawn: list[_Drawn], played: np.ndarray, smooth: bool
) -> list[str]:
    """What a viewer has to know about the picture, one sentence each."""
    notes = []
    if len(found) > len(drawn):
        notes.append(f"Shown are the first {len(drawn)} of {len(found)} bodies.")
    if played[-1] < len(run.t) - 1:
        end, whole = run.t[played[-1]], run.t[-1]
        notes.append(f"The animation covers the time up to {end:.6g} s of {whole:.6g} s.")
    if not smooth:
        notes.append(
            "The saved states are too far apart to be joined: the body jumps from one to the next. "
            "Save more often to see it move."
        )
    if not all(d.from_inertia for d in drawn):
        notes.append("The shape of the box is not that of the body.")
    return notes

"""What is around a picture in a movie: a sphere, the ground, axes with their names."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from retrax.show.meshes import bar
from retrax.show.paint import Look, Mesh
from retrax.show.pictures.things import Picture

# The side of what lies below everything, in radii of the picture.
_FLOOR = 3.2


def thin_lines(
    around: dict[str, Any], drawn: Picture, floor: float | None
) -> Iterator[tuple[Float[np.ndarray, "n 3"], str]]:
    """Draw the lines of what is around; return the names of those that are axes."""
    if "sphere" in around:
        a = np.linspace(0, 2 * np.pi, 73)
        for polar in np.radians([-60, -30, 0, 30, 60]):
            c, s = np.cos(polar), np.sin(polar)
            yield around["sphere"] * np.stack([c * np.cos(a), c * np.sin(a), s + 0 * a], 1), ""
        for turn in np.radians([0, 30, 60, 90, 120, 150]):
            c, s = np.cos(turn), np.sin(turn)
            circle = np.stack([c * np.cos(a), s * np.cos(a), np.sin(a)], 1)
            yield around["sphere"] * circle, ""
    if "sphere" not in around and floor is not None:
        side = around.get("ground", _FLOOR * drawn.radius)
        step = _square(max(16 * drawn.follow, side / 10) if drawn.followed else side)
        count = int(np.ceil(side / 2 / step))
        left, low = (round(x / step) * step for x in drawn.centre[:2])
        ends = count * step * np.array([-1, 1])
        for k in range(-count, count + 1):
            yield np.stack([[left + k * step] * 2, low + ends, [floor, floor]], 1), ""
            yield np.stack([left + ends, [low + k * step] * 2, [floor, floor]], 1), ""
    if "frame" in around:
        low, high = (np.asarray(around["frame"][end], float) for end in ("low", "high"))
        for k, name in enumerate(around["frame"]["names"]):
            if name and high[k] > low[k]:
                end = low.copy()
                end[k] = high[k]
                word, _, unit = name.partition(" (")
                text = f"{word} = {high[k]:.3g}"
                yield np.stack([low, end]), f"{text} {unit[:-1]}" if unit else text


def _square(side: float) -> float:
    """Return the side of the squares on the ground: 1, 2 or 5 times a power of ten."""
    ten = 10 ** np.floor(np.log10(side / 8))
    return float(ten * next(k for k in (5, 2, 1) if k * ten <= side / 8))


def direction(points: Float[np.ndarray, "2 3"]) -> Float[np.ndarray, "3"]:
    along = points[1] - points[0]
    return along / np.linalg.norm(along)


def axes_of(length: float, radius: float, look: Look) -> list[Mesh]:
    """Return the axes of a body, as bars."""
    if not length:
        return []
    thick = min(0.012 * radius, 0.03 * length)
    ends = zip(np.eye(3), (2, 3, 0), strict=True)
    return [bar(np.zeros(3), length * axis, thick, look.cycle[k]) for axis, k in ends]

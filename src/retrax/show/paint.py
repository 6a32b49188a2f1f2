"""Paint a picture of solids and lines: far things first, near ones over them.

A page leaves this to the browser. A movie and a still are painted here, by Pillow, which comes with
matplotlib: every face of a solid is a polygon, shaded by how it stands to the lamp.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from PIL import Image, ImageDraw, ImageFont

# Everything is painted so much larger and then made smaller: edges become smooth.
_FINER = 2
# The angle of view, in degrees, and where the camera stands: about the vertical, above the ground.
_VIEW = 32.0
_VIEWS = {"home": (-0.9, 0.38), "flat": (-math.pi / 2, 1.45), "front": (-math.pi / 2, 1.5705)}
_LAMP = np.array([-0.6, 0.9, 1.0]) / math.sqrt(2.17)
_AMBIENT = 0.52
# Thin lines of the surroundings lie behind everything.
_BEHIND = math.inf
# Then come what stands still below everything, and shadows.
_BELOW, _SHADOWS = 1e9, 1e8
# Where the sun stands, with the third axis up, and how dark its shadows are.
_SUN, _DARK = np.array([-0.5, 0.35, 1.6]), 0.16

Points = Float[np.ndarray, "n 3"]
Colour = tuple[int, int, int]


class Look(NamedTuple):
    """The colours of a painting, and how much of colours that are written out is left of them."""

    paper: Colour
    ink: Colour
    quiet: Colour
    grid: Colour
    shadow: Colour
    body: Colour
    body_light: Colour
    cycle: tuple[Colour, ...]
    strength: float = 1.0

    def fade(self, strength: float) -> "Look":
        """Return the same look, with every colour blended towards the paper by `strength`."""

        def pale(colour: Colour) -> Colour:
            return _mix(self.paper, colour, strength)

        return Look(
            self.paper,
            pale(self.ink),
            pale(self.quiet),
            pale(self.grid),
            pale(self.shadow),
            pale(self.body),
            pale(self.body_light),
            tuple(map(pale, self.cycle)),
            strength,
        )


class Mesh(NamedTuple):
    """A solid: corners, faces by the numbers of their corners, and a colour for each face."""

    corners: Points
    faces: list[list[int]]
    colours: list[Colour]


class Camera:
    """Where a painter stands, and how far points are from there.

    Where the third axis points down (`up` is -1), space is shown turned by half a turn about the
    first.
    """

    def __init__(self, centre: np.ndarray, radius: float, up: int, view: str, size: tuple):
        self._turned = np.array([1.0, up, up])
        azimuth, elevation = _VIEWS[view]
        ce, se = math.cos(elevation), math.sin(elevation)
        towards = np.array([ce * math.cos(azimuth), ce * math.sin(azimuth), se])
        right = np.cross([0.0, 0.0, 1.0], towards)
        right /= np.linalg.norm(right)
        self.axes = np.array([right, np.cross(towards, right), towards])
        half = math.radians(_VIEW / 2)
        self.size = (_FINER * size[0], _FINER * size[1])
        self._distance = radius / (math.sin(half) * min(1.0, size[0] / size[1]))
        self._scale = self.size[1] / 2 / math.tan(half)
        self.centre = centre * self._turned

    def to_camera(self, points: Points) -> Points:
        """Return the coordinates right, up and towards the camera, from what it looks at."""
        return (points * self._turned - self.centre) @ self.axes.T

    def project(self, seen: Points) -> tuple[Float[np.ndarray, "n 2"], Float[np.ndarray, " n"]]:
        """Project to pixels from the top left corner, and distances from the camera."""
        depth = np.maximum(self._distance - seen[:, 2], 1e-3 * self._distance)
        on_paper = seen[:, :2] * (self._scale / depth)[:, None] * [1, -1]
        return on_paper + np.array(self.size) / 2, depth

    def pixels(self, length: float) -> float:
        """Return the size of a length at the centre, in pixels."""
        return length * self._scale / self._distance


class Painting:
    """One frame. What is added is sorted by its distance and painted at the end."""

    def __init__(self, camera: Camera, look: Look):
        self._camera, self.look = camera, look
        self._strokes: list[tuple[float, str, list, Colour, float]] = []
        self._words: list[tuple[str, tuple[float, float], str]] = []

    def solid(self, mesh: Mesh, turn: np.ndarray, place: np.ndarray, behind: bool = False) -> None:
        """Paint a closed body, turned and placed; faces that look away are left out.

        What is `behind` lies below all other bodies.
        """
        seen = self._camera.to_camera(mesh.corners @ turn.T + place)
        at, depth = self._camera.project(seen)
        a, b, c = np.array([face[:3] for face in mesh.faces]).T
        normals = np.cross(seen[b] - seen[a], seen[c] - seen[a])
        lengths = np.linalg.norm(normals, axis=1)
        light = np.maximum(normals @ _LAMP / np.where(lengths > 0, lengths, 1.0), 0.0)
        shades = np.minimum(1.0, _AMBIENT + 0.62 * light)
        (ux, uy), (vx, vy) = (at[b] - at[a]).T, (at[c] - at[a]).T
        for k in np.flatnonzero((lengths > 0) & (ux * vy - uy * vx < 0)):
            face, shade = mesh.faces[k], _mix((0, 0, 0), mesh.colours[k], float(shades[k]))
            far = _BELOW * behind + float(np.mean(depth[face]))
            self._add(far, "face", at[face], shade, 0.0)

    def shadow(
        self, corners: Points, faces: Sequence[Sequence[int]], height: float, up: int
    ) -> None:
        """Paint what faces throw on the level ground at a height; all shadows are of one colour."""
        sun = _SUN * [1, up, up]
        fallen = corners - ((corners[:, 2] - height) / sun[2])[:, None] * sun
        at, _ = self._camera.project(self._camera.to_camera(fallen))
        colour = _mix(self.look.paper, self.look.shadow, _DARK)
        for face in faces:
            self._add(_SHADOWS, "face", at[list(face)], colour, 0.0)

    def place_solid(self, mesh: Mesh) -> None:
        """Paint a closed body that is given where it is."""
        self.solid(mesh, np.eye(3), np.zeros(3))

    def sheet(self, corners: Points, colour: Colour) -> None:
        """Paint a flat thing, seen from both sides."""
        at, depth = self._camera.project(self._camera.to_camera(corners))
        self._add(float(np.mean(depth)), "face", at, colour, 0.0)

    def line(
        self, points: Points, colours: list[Colour], width: float, behind: bool = False
    ) -> None:
        """Paint a line through points, `width` pixels wide, a colour for each piece."""
        at, depth = self._camera.project(self._camera.to_camera(points))
        for k, colour in enumerate(colours):
            far = _BEHIND if behind else float(depth[k] + depth[k + 1]) / 2
            self._add(far, "line", at[k : k + 2], colour, width)

    def dot(self, place: np.ndarray, radius: float, colour: Colour, over: bool = False) -> None:
        """Paint a ball seen as a disk; `over` everything, if it lies inside something solid."""
        at, depth = self._camera.project(self._camera.to_camera(place[None]))
        self._add(0.0 if over else float(depth[0]), "dot", at, colour, self._camera.pixels(radius))

    def words(self, text: str, x: float, y: float) -> None:
        """Write text at a part of the width and of the height."""
        width, height = self._camera.size
        self._words.append((text, (x * width, y * height), "la"))

    def label(self, text: str, place: np.ndarray) -> None:
        """Write text whose middle is at a point of space."""
        at, _ = self._camera.project(self._camera.to_camera(place[None]))
        x, y = at[0].tolist()
        self._words.append((text, (x, y), "mm"))

    def _add(self, depth: float, kind: str, at: np.ndarray, colour: Colour, size: float) -> None:
        if np.all(np.isfinite(at)):
            self._strokes.append((depth, kind, [tuple(xy) for xy in at.tolist()], colour, size))

    def image(self) -> Image.Image:
        """Paint."""
        image = Image.new("RGB", self._camera.size, self.look.paper)
        pen = ImageDraw.Draw(image)
        for _, kind, at, colour, size in sorted(self._strokes, key=lambda one: -one[0]):
            if kind == "face":
                pen.polygon(at, fill=colour)
            elif kind == "line":
                wide = max(1, round(_FINER * size))
                pen.line(at, fill=colour, width=wide, joint="curve")
            else:
                (x, y), r = at[0], size
                pen.ellipse((x - r, y - r, x + r, y + r), fill=colour)
        font = ImageFont.load_default(_FINER * 13)
        for text, at, anchor in self._words:
            pen.text(at, text, fill=self.look.quiet, font=font, anchor=anchor)
        return image.reduce(_FINER)


def rgb(text: str) -> Colour:
    """Return a colour from its hexadecimal digits."""
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


def colour_of(look: Look, colour: int | str) -> Colour:
    """Return a colour by its number in the palette, or written out."""
    if isinstance(colour, str):
        return _mix(look.paper, rgb(colour), look.strength)
    return look.cycle[colour % len(look.cycle)]


def _mix(a: Colour, b: Colour, part: float) -> Colour:
    r, g, c = (round(x + part * (y - x)) for x, y in zip(a, b, strict=True))
    return r, g, c


def mix(a: Colour, b: Colour, part: float) -> Colour:
    """Mix two colours: return the one that lies this part of the way from one to the other."""
    return _mix(a, b, min(max(part, 0.0), 1.0))

"""The motion of a run as a file: a GIF or an MP4 that moves, a PNG that stands still.

It shows what the page of the run shows, from where the page looks at first.
"""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from PIL import Image

from retrax.cases.makers import did_you_mean
from retrax.errors import BadInput, RetraxError
from retrax.files import as_path, require_place, write_whole
from retrax.numerics.checks import quote, require_number, require_whole
from retrax.numerics.meant import explain_keywords
from retrax.show.drawn import drawable, e3_points_up
from retrax.show.meshes import bar, box, cone, meshes
from retrax.show.paint import Camera, Colour, Look, Painting, colour_of, mix, rgb
from retrax.show.pictures.choose import picture
from retrax.show.pictures.own import Draw
from retrax.show.pictures.things import Picture, Thing, Track
from retrax.show.scene import farthest, floor
from retrax.show.style import CYCLE, CYCLE_ON_DARK
from retrax.show.surroundings import axes_of, direction, thin_lines
from retrax.trajectory.trajectory import Trajectory

SUFFIXES = (".gif", ".mp4", ".png")
# The bright end of a path is the last part of the movie, this long in seconds of its own time.
_TRAIL = 1.5
_LARGEST = 4096
# The way since the start of the movie is drawn through this many points.
_PASSED = 400
# Of the earliest of several instants this much colour is left.
_PALEST = 0.25
# A body that is followed is seen with so much around it, in sizes of its own.
_NEAR = 2.0
_MOST_FRAMES = 100_000

LIGHT = Look(
    (255, 255, 255), rgb("#1d2329"), rgb("#55606b"), rgb("#d3d9df"), rgb("#1d2329"), rgb("#7d8fa3"),
    rgb("#d4dce5"), tuple(map(rgb, CYCLE)),
)  # fmt: skip
DARK = Look(
    rgb("#12171c"), rgb("#e6eaee"), rgb("#a3afbb"), rgb("#3c4853"), rgb("#000000"), rgb("#8497ab"),
    rgb("#44515f"), tuple(map(rgb, CYCLE_ON_DARK)),
)  # fmt: skip


@explain_keywords
def write_movie(
    run: Trajectory,
    path: str | Path,
    *,
    seconds: float = 8.0,
    speed: float | None = None,
    fps: int = 25,
    size: tuple[int, int] = (640, 480),
    dark: bool = False,
    draw: Draw | None = None,
) -> Path:
    """Write the motion of a run from its start on.

    **Arguments:**

    - `path`: ends in `.gif`, `.mp4`, which needs the program ffmpeg, or `.png`, which is the last
        frame of the movie.
    - `seconds`: how long the movie is, unless the run ends before.
    - `speed`: seconds of the run in a second of the movie. Without it a run that is shorter than
        the movie is stretched to fill it, and a longer one goes at its own speed.
    - `fps`: frames in a second.
    - `size`: width and height in pixels.
    - `dark`: on a dark ground.
    - `draw`: what to draw, shapes of `rx.draw` or a function that returns them.

    **Raises:** `BadInput` for another suffix or impossible settings, or if the saved states of the
    run are too far apart to show it move; `RetraxError` where ffmpeg is missing or fails.
    """
    path = as_path(path)
    suffix = _require_suffix(path)
    require_place(path)
    seconds = require_number("seconds", seconds, "> 0")
    fps = require_whole("fps", fps, 1, 120)
    width, height = (require_whole("size", n, 16, _LARGEST) for n in _pair(size))
    if suffix == ".mp4" and shutil.which("ffmpeg") is None:
        raise RetraxError("An .mp4 takes the program ffmpeg, which is not here; a .gif does not.")
    span = float(run.t[-1] - run.t[0])
    if speed is None:
        speed = span / seconds if abs(span) < seconds else float(np.sign(span))
    else:
        speed = require_number("speed", speed, "> 0") * float(np.sign(span))
    with drawable():
        film = _Film(run, picture(run, draw), DARK if dark else LIGHT, (width, height))
        film.require_smooth()
    length = min(seconds, span / speed) if span else 0.0
    if length * fps > _MOST_FRAMES:
        raise BadInput(
            f"seconds = {seconds:g} at fps = {fps} are {length * fps:.3g} frames, but a movie has "
            f"at most {_MOST_FRAMES}: make it shorter, or the run faster with speed=."
        )
    times = run.t[0] + speed * np.arange(max(1, round(length * fps)) + 1) / fps
    with write_whole(path) as temporary:
        if suffix == ".png":
            film.frame(times[-1], times[0], speed).save(temporary, format="png")
        else:
            frames = (film.frame(t, times[0], speed) for t in times)
            (_write_gif if suffix == ".gif" else _write_mp4)(temporary, frames, fps)
    return path


def instants(
    run: Trajectory, times: np.ndarray, size: tuple[int, int], draw: Draw | None = None
) -> Image.Image:
    """Paint a run at several instants in one picture, earlier ones paler, on light paper."""
    shown = picture(run, draw)
    films = [
        _Film(run, shown, LIGHT.fade(float(part)), size)
        for part in np.linspace(_PALEST, 1.0, len(times))
    ]
    films[-1].look_at(times)
    painting = films[-1].blank()
    for film, time in zip(films, times, strict=True):
        film.add(painting, float(time))
    return painting.image()


class _Film:
    """A picture that is painted at any time of its run."""

    def __init__(self, run: Trajectory, drawn: Picture, look: Look, size: tuple[int, int]):
        self._t = np.asarray(run.t, float)[:: drawn.stride]
        self._picture, self._look = drawn, look
        self._up, self._size = 1 if e3_points_up(run) else -1, size
        self._floor = floor(drawn, self._up)
        # Arrows and dots are as large as what is seen of the picture at first.
        self._unit = _NEAR * drawn.follow if drawn.followed else drawn.radius
        self._camera = self._looking(np.asarray(drawn.centre, float), drawn.radius or 1.0)
        self._solids = {
            id(thing): [mesh for part in thing["parts"] for mesh in meshes(part, look)]
            + axes_of(thing["axes"], drawn.radius, look)
            for thing in drawn.things
            if thing["kind"] == "body"
        }

    def require_smooth(self) -> None:
        """Reject a run whose saved states are too far apart to show it move."""
        things = self._picture.things
        if farthest([x for thing in things for x in thing.values() if _moves(x)]) > 1:
            apart = abs(self._t[1] - self._t[0])
            raise BadInput(
                f"the saved states of the run are {apart:.3g} s apart, too far to show it move: "
                "run it again with a smaller save_every."
            )

    def _looking(self, centre: np.ndarray, radius: float) -> Camera:
        around = self._picture.around
        view = next((view for view in ("front", "flat") if around.get(view)), "home")
        return Camera(centre, radius, self._up, view, self._size)

    def look_at(self, times: np.ndarray) -> None:
        """Turn the camera to where the first body is at some times, if it is followed."""
        if not self._picture.followed:
            return
        first = next(thing for thing in self._picture.things if thing["kind"] == "body")
        places = np.array([self._at(first["poses"], float(time))[9:] for time in times])
        low, high = np.min(places, axis=0), np.max(places, axis=0)
        near = _NEAR * self._picture.follow + float(np.linalg.norm(high - low)) / 2
        self._camera = self._looking((low + high) / 2, near)

    def frame(self, time: float, start: float, speed: float) -> Image.Image:
        """Paint the instant `time` of a movie that began at `start`."""
        self.look_at(np.array([time]))
        painting = self.blank()
        for thing in self._picture.things:
            _KINDS[thing["kind"]](self, painting, thing, time, start, speed)
        painting.words(f"t = {time:.2f} s", 0.03, 0.93)
        return painting.image()

    def blank(self) -> Painting:
        """Return a painting of what does not move."""
        painting = Painting(self._camera, self._look)
        self._surroundings(painting)
        return painting

    def add(self, painting: Painting, time: float) -> None:
        """Paint what is solid at one instant."""
        for thing in self._picture.things:
            if thing["kind"] in ("body", "line", "strand"):
                _KINDS[thing["kind"]](self, painting, thing, time)

    def _at(self, track: Track, time: float) -> Float[np.ndarray, " width"]:
        """Interpolate numbers between saved states: cubic (Catmull-Rom)."""
        t, values = self._t, track.values
        sign = 1.0 if len(t) < 2 or t[-1] >= t[0] else -1.0
        k = int(np.clip(np.searchsorted(sign * t, sign * time, "right") - 1, 0, max(len(t) - 2, 0)))
        last = len(t) - 1
        if last == 0:
            return values[0]
        u = float(np.clip((time - t[k]) / (t[k + 1] - t[k]), 0, 1))
        p, q, r, s = (values[min(max(n, 0), last)] for n in range(k - 1, k + 3))
        return q + 0.5 * u * (r - p + u * (2 * p - 5 * q + 4 * r - s + u * (3 * (q - r) + s - p)))

    def _surroundings(self, painting: Painting) -> None:
        around, look = self._picture.around, self._look
        for points, name in thin_lines(around, self._picture, self._floor):
            colour = look.quiet if name else look.grid
            painting.line(points, [colour] * (len(points) - 1), 1.6 if name else 1.0, behind=True)
            if name:
                beyond = points[-1] + 0.12 * self._picture.radius * direction(points)
                painting.label(name, beyond)

    def _body(self, painting: Painting, thing: Thing, time: float, *_: float) -> None:
        pose = self._at(thing["poses"], time)
        turn = pose[:9].reshape(3, 3)
        for mesh in self._solids[id(thing)]:
            painting.solid(mesh, turn, pose[9:], behind=thing.get("still", False))
            if self._floor is not None:
                painting.shadow(mesh.corners @ turn.T + pose[9:], mesh.faces, self._floor, self._up)
        for part in thing["parts"]:
            if "line" in part:
                points = np.asarray(part["line"], float) @ turn.T + pose[9:]
                own = _colour(self._look, part)
                painting.line(points, [own] * (len(points) - 1), 2.0)

    def _strand(self, painting: Painting, thing: Thing, time: float, *_: float) -> None:
        points = self._at(thing["points"], time).reshape(-1, 3)
        painting.line(points, [_colour(self._look, thing)] * (len(points) - 1), 2.0)

    def _arrow(self, painting: Painting, thing: Thing, time: float, *_: float) -> None:
        start, way = self._at(thing["start"], time), self._at(thing["vector"], time)
        length, size = float(np.linalg.norm(way)), self._unit
        if length > 0:
            colour = _colour(self._look, thing)
            size = size * thing.get("thin", 1.0)
            neck = start + way * max(0.5, 1 - 0.11 * size / length)
            size = min(size, length / 0.2)  # a short arrow is thinner
            painting.place_solid(bar(start, neck, 0.014 * size, colour))
            painting.place_solid(cone(neck, start + way, 0.04 * size, colour))

    def _point(self, painting: Painting, thing: Thing, time: float, *_: float) -> None:
        place, radius = self._at(thing["places"], time), 0.03 * self._unit
        painting.dot(place, radius, _colour(self._look, thing), over=bool(thing["inside"]))

    def _path(
        self, painting: Painting, thing: Thing, time: float, start: float, speed: float
    ) -> None:
        colour, paper = _colour(self._look, thing), self._look.paper
        passed = np.linspace(start, time, _PASSED + 1)
        way = np.array([self._at(thing["trail"], t) for t in passed])
        painting.line(way, [mix(paper, colour, 0.35)] * _PASSED, 1.0)
        back = [time - speed * _TRAIL * (1 - k / 60) for k in range(61)]
        since = max if speed > 0 else min
        points = np.array([self._at(thing["trail"], since(t, start)) for t in back])
        fading = [mix(paper, colour, (k + 1) / 60) for k in range(60)]
        painting.line(points, fading, 2.2)

    def _line(self, painting: Painting, thing: Thing, time: float, *_: float) -> None:
        points = self._at(thing["points"], time).reshape(-1, 3)
        low, high = self._look.cycle[:2]
        colours = [mix(low, high, float(x)) for x in self._at(thing["values"], time)]
        radius = thing["radius"]
        if not radius:
            painting.line(points, colours, 3.5)
            return
        for k, colour in enumerate(colours):
            piece = bar(points[k], points[k + 1], radius, colour)
            painting.place_solid(piece)
            if self._floor is not None:
                painting.shadow(piece.corners, piece.faces, self._floor, self._up)

    def _plane(self, painting: Painting, thing: Thing, time: float, *_: float) -> None:
        normal = self._at(thing["normal"], time)
        flat = bar(np.zeros(3), 1e-3 * normal / np.linalg.norm(normal), 1.0, self._look.body)
        painting.sheet(flat.corners[: len(flat.corners) // 2], self._look.body_light)

    def _bars(self, painting: Painting, thing: Thing, time: float, *_: float) -> None:
        rows, columns = thing["rows"], thing["columns"]
        for n, height in enumerate(self._at(thing["values"], time)):
            i, j = divmod(n, columns)
            x, y = j - (columns - 1) / 2, (rows - 1) / 2 - i
            low, high = min(height, 0.0), max(height, 0.0, 1e-3)
            wide = (-0.35, 0.35)
            corners = [[x + a, y + b, z] for a in wide for b in wide for z in (low, high)]
            painting.place_solid(box(np.array(corners), self._look.cycle[int(height < 0)]))

    def _curve(self, painting: Painting, thing: Thing, *_: float) -> None:
        points = np.asarray(thing["points"], float)
        painting.line(points, [self._look.quiet] * (len(points) - 1), 1.5)


_KINDS: dict[str, Callable[..., None]] = {
    "body": _Film._body,
    "arrow": _Film._arrow,
    "point": _Film._point,
    "path": _Film._path,
    "line": _Film._line,
    "strand": _Film._strand,
    "plane": _Film._plane,
    "bars": _Film._bars,
    "curve": _Film._curve,
}


def _moves(value: Any) -> bool:
    return isinstance(value, Track)


def _colour(look: Look, thing: Thing) -> Colour:
    return colour_of(look, thing["colour"]) if "colour" in thing else look.ink


def _write_gif(path: Path, frames: Iterator[Image.Image], fps: int) -> None:
    first, *rest = frames
    # One palette for all frames: colours do not flicker.
    palette = first.quantize(128, dither=Image.Dither.NONE)
    small = [f.quantize(palette=palette, dither=Image.Dither.NONE) for f in (first, *rest)]
    settings = {"duration": round(1000 / fps), "loop": 0, "optimize": True, "disposal": 1}
    small[0].save(path, format="gif", save_all=True, append_images=small[1:], **settings)


def _write_mp4(path: Path, frames: Iterator[Image.Image], fps: int) -> None:
    first = next(frames)
    size = f"{first.width}x{first.height}"
    command = [
        "ffmpeg", "-loglevel", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size,
        "-r", f"{fps}", "-i", "-", "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p",
        "-f", "mp4", str(path),
    ]  # fmt: skip
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as ffmpeg:
        assert ffmpeg.stdin is not None and ffmpeg.stderr is not None
        try:
            ffmpeg.stdin.write(first.tobytes())
            for frame in frames:
                ffmpeg.stdin.write(frame.tobytes())
            ffmpeg.stdin.close()
        except BrokenPipeError:
            pass
        said = ffmpeg.stderr.read().decode(errors="replace").strip()
    if ffmpeg.returncode:
        raise RetraxError(f"ffmpeg could not write the movie: {said or 'it does not say why'}.")


def _require_suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise BadInput(
            f"path = {str(path)!r} must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}."
            f"{did_you_mean(suffix, SUFFIXES) if suffix else ''}"
        )
    return suffix


def _pair(size: object) -> tuple[object, object]:
    if not isinstance(size, tuple | list) or len(size) != 2:
        raise BadInput(f"size = {quote(size)} must be a width and a height in pixels.")
    return size[0], size[1]

"""Movies and stills: every kind of picture, what is in front, and what cannot be shown."""

import numpy as np
import pytest
from page_kinds import KINDS
from PIL import Image

import retrax as rx
from retrax.show import movie
from retrax.show.meshes import bar, box
from retrax.show.movie import DARK, LIGHT
from retrax.show.paint import Camera, Painting


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_picture_has_a_still(kind, tmp_path):
    path = KINDS[kind]().movie(tmp_path / "still.png", size=(200, 160))
    pixels = np.asarray(Image.open(path))
    assert pixels.shape == (160, 200, 3)
    painted = np.any(pixels != np.array(LIGHT.paper), axis=2)
    assert 0.01 < painted.mean() < 0.6
    # Nothing but the words lies at the rim: the camera sees all of it.
    assert painted[:4, 30:-30].mean() < 0.1 or kind in ("disk", "sleigh", "mechanism")


def test_a_gif_moves_and_lasts_as_long_as_it_says(tmp_path):
    run = KINDS["top"]()  # 4 s
    with Image.open(run.movie(tmp_path / "a.gif", fps=10, size=(120, 90))) as film:
        assert (film.n_frames, film.info["duration"], film.info["loop"]) == (
            81,
            100,
            0,
        )  # stretched
        first = np.asarray(film.convert("RGB")).astype(int)
        film.seek(40)
        assert np.abs(np.asarray(film.convert("RGB")) - first).max() > 50
    with Image.open(run.movie(tmp_path / "b.gif", fps=10, speed=2.0, size=(120, 90))) as film:
        assert film.n_frames == 21
    with Image.open(
        run.movie(tmp_path / "c.gif", fps=10, speed=1.0, seconds=1.0, size=(120, 90))
    ) as film:
        assert film.n_frames == 11


def test_a_dark_still(tmp_path):
    pixels = np.asarray(Image.open(KINDS["rods"]().movie(tmp_path / "a.png", dark=True)))
    assert tuple(pixels[2, 2]) == DARK.paper and pixels.shape == (480, 640, 3)


def cube(at, size, colour):
    ends = (-size, size)
    return box(np.array([[x, y, z] for x in ends for y in ends for z in ends]) + at, colour)


def painted(*meshes, up=1):
    camera = Camera(np.zeros(3), 2.0, up, "home", (100, 100))
    painting = Painting(camera, LIGHT)
    for mesh in meshes:
        painting.place_solid(mesh)
    return np.asarray(painting.image()).astype(int), camera


@pytest.mark.parametrize("nearer", [1, -1])
def test_near_things_hide_far_ones(nearer):
    towards = np.array([np.cos(-0.9) * np.cos(0.38), np.sin(-0.9) * np.cos(0.38), np.sin(0.38)])
    red, blue = (255, 0, 0), (0, 0, 255)
    meshes = cube(nearer * towards, 0.3, red), cube(-nearer * towards, 0.3, blue)
    for order in (meshes, meshes[::-1]):
        pixels, _ = painted(*order)
        middle = pixels[50, 50]
        assert (middle[0] > 50) == (nearer > 0) and (middle[2] > 50) == (nearer < 0)


@pytest.mark.parametrize("handed", [1, -1])
def test_a_solid_shows_the_faces_that_look_here(handed):
    """The face that is lit is on the side of the lamp, however the corners are laid out."""
    solid = cube(np.zeros(3), 1.0, (200, 200, 200))
    mirrored = solid.corners * [handed, 1, 1]
    pixels, camera = painted(box(mirrored, (200, 200, 200)))
    at, _ = camera.project(camera.to_camera(np.array([[0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])))
    top, side = (pixels[int(y) // 2, int(x) // 2, 0] for x, y in at)
    assert top > side + 20  # the lamp stands above the camera


def test_what_points_down_is_drawn_below():
    red = (255, 0, 0)
    rod = bar(np.zeros(3), np.array([0.0, 0.0, 1.5]), 0.1, red)
    for up in (1, -1):
        pixels, _ = painted(rod, up=up)
        rows = np.nonzero(pixels[:, :, 1] < 100)[0]
        assert (rows.mean() < 50) == (up == 1)


def test_the_way_between_states_is_smooth(tmp_path):
    """Between states the picture is where the cubic through them is, near the formula."""
    run = KINDS["top"]()
    film = movie._Film(run, movie.picture(run), LIGHT, (64, 64))
    track = next(t["poses"] for t in film._picture.things if t["kind"] == "body")
    times = np.linspace(0, 4, 301)
    found = np.array([film._at(track, t)[:9].reshape(3, 3) for t in times])
    defect = np.abs(np.einsum("tij,tik->tjk", found, found) - np.eye(3)).max()
    assert defect < 5e-3  # measured 2.5e-3
    assert np.array_equal(film._at(track, run.t[7]), track.values[7])


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"seconds": 0.0}, "seconds = 0.0 must be"),
        ({"speed": -1.0}, "speed = -1.0 must be"),
        ({"fps": 0}, "fps = 0 must be"),
        ({"size": (640, 10**6)}, "size = 1000000 must be"),
    ],
)
def test_impossible_settings(settings, sentence, tmp_path):
    with pytest.raises(rx.BadInput, match=sentence):
        KINDS["body"]().movie(tmp_path / "a.gif", **settings)
    assert not list(tmp_path.iterdir())


def test_files_that_cannot_be_written(tmp_path, monkeypatch):
    run = KINDS["body"]()
    with pytest.raises(rx.BadInput, match=r"must end in \.gif, \.mp4 or \.png"):
        run.movie(tmp_path / "a.avi")
    monkeypatch.setattr(movie.shutil, "which", lambda name: None)
    with pytest.raises(rx.RetraxError, match=r"takes the program ffmpeg, which is not here"):
        run.movie(tmp_path / "a.mp4")


def test_states_that_are_too_far_apart(tmp_path):
    body = rx.systems.FreeRigidBody([1.0, 2.0, 2.5])
    state = body.state(np.eye(3), velocity=[0.1, 3.0, 0.2])
    run = rx.simulate(body, rx.LieVerlet(), state, h=0.05, steps=200, save_every=20)
    with pytest.raises(rx.BadInput, match=r"are 1 s apart, too far to show it move"):
        run.movie(tmp_path / "a.gif")

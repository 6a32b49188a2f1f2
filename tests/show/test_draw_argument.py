"""`draw=`: a system looks as its user says, on pages, in notebooks, figures and movies."""

import jax.numpy as jnp
import numpy as np
import pytest
from page_kinds import TURNING, WAVE, T, turned, written
from PIL import Image

import retrax as rx
from retrax.mechanics.shape import shapes_of
from retrax.show.page import page_data
from retrax.show.pictures.choose import picture
from retrax.show.scene import farthest, scene

ASIDE = np.array([2.0, 0.0, 0.0])
BOX = rx.draw.box([0.4, 0.2, 0.1], colour="green")


def top(**more):
    body = rx.MechanicalSystem(rx.SO3(), [1.2, 1.6, 0.8], lambda R: 5 * R[2, 2], **more)
    state = body.state(np.eye(3), velocity=[0.6, 0.2, 4.0])
    return rx.simulate(body, rx.LieVerlet(), state, h=0.02, steps=40)


@pytest.fixture(scope="module")
def drawn():
    return top(draw=[BOX, rx.draw.rod([0, 0, 0], [0, 0, 1]), rx.draw.arrow([0, 0, 1], [0, 1, 0])])


def swinging(R):
    tip = R @ np.array([0.0, 0.0, 1.0 + 0.3 * R[0, 0]])
    return [rx.draw.rod([0, 0, 0], tip, radius=0.02), rx.draw.line([[0, 0, 0], [0, 0, 1], tip]),
            rx.draw.arrow(tip, [0, 0, -0.5]), rx.draw.trail(tip)]  # fmt: skip


def free_body():
    return written("SO(3)", TURNING, momentum=WAVE)


def two_points():
    return written("R^3 x R^3", (WAVE, WAVE + ASIDE), momentum=np.ones((len(T), 6)))


def kinds(shown):
    return [thing["kind"] for thing in shown.things]


def test_shapes_on_a_body_are_its_picture(drawn):
    shown = picture(drawn)
    assert kinds(shown) == ["body", "arrow"]
    body, arrow = shown.things
    assert [part["solid"] for part in body["parts"]] == ["box", "cylinder"]
    assert np.allclose(body["poses"].values[:, :9].reshape(-1, 3, 3), drawn.g)
    assert np.allclose(arrow["start"].values, np.asarray(drawn.g)[:, :, 2])
    assert np.allclose(arrow["vector"].values, np.asarray(drawn.g)[:, :, 1])


def test_a_file_keeps_shapes_though_not_the_potential(drawn, tmp_path):
    drawn.save(tmp_path / "run.nc")
    loaded = rx.load(tmp_path / "run.nc")
    assert isinstance(loaded.system.drawing, dict)
    one, other = page_data(drawn)["scene"], page_data(loaded)["scene"]
    assert one["things"][0]["poses"] == other["things"][0]["poses"]
    assert one["things"][1] == other["things"][1]


def test_a_loaded_run_is_drawn_by_the_draw_of_the_call(drawn, tmp_path):
    drawn.save(tmp_path / "run.nc")
    loaded = rx.load(tmp_path / "run.nc")
    assert kinds(picture(loaded, swinging)) == ["body", "strand", "arrow", "path"]
    assert loaded.report(tmp_path / "run.html", draw=swinging).stat().st_size > 100_000
    assert "strand" in loaded.animate(draw=swinging).page


def test_a_function_that_draws_does_not_keep_a_system_out_of_its_file(tmp_path):
    body = rx.MechanicalSystem(rx.SO3(), [1.2, 1.6, 0.8], draw=swinging)
    state = body.state(np.eye(3), velocity=[0.6, 0.2, 4.0])
    run = rx.simulate(body, rx.LieVerlet(), state, h=0.02, steps=10)
    assert kinds(picture(run)) == ["body", "strand", "arrow", "path"]
    run.save(tmp_path / "run.nc")
    loaded = rx.load(tmp_path / "run.nc")
    assert isinstance(loaded.system, rx.MechanicalSystem) and loaded.system.draw is None
    assert kinds(picture(loaded)) == ["body", "arrow", "path"]


def test_a_file_of_before_there_were_drawings_is_read():
    from retrax.store.objects import decode, encode

    body = rx.MechanicalSystem(rx.SO3(), [1.2, 1.6, 0.8])
    data = encode(body, "system")
    del data["fields"]["draw"]
    assert decode(data, None).draw is None


def test_a_function_says_where_everything_is():
    run = free_body()
    rod, line, arrow, trail = picture(run, swinging).things
    tips = np.array([R @ [0, 0, 1 + 0.3 * R[0, 0]] for R in TURNING])
    poses = rod["poses"].values
    tip = np.einsum("tij,j->ti", poses[:, :9].reshape(-1, 3, 3), [0, 0, 0.5]) + poses[:, 9:]
    assert np.allclose(tip, tips)
    assert np.allclose(line["points"].values[:, 6:], tips)
    assert np.allclose(arrow["vector"].values, [0, 0, -0.5])
    assert np.allclose(trail["trail"].values, tips)


def test_a_function_may_depend_on_time_and_on_nested_configurations():
    def draw(g, t):
        a, b = g
        return rx.draw.rod(a, b).at([0, 0, t])

    (rod,) = picture(two_points(), draw).things
    assert np.allclose(rod["poses"].values[:, 9:], WAVE + ASIDE / 2 + np.outer(T, [0, 0, 1]))


def test_a_function_in_jax_works():
    def draw(g):
        return rx.draw.sphere(0.1).at(g @ jnp.array([0.0, 0.0, 1.0]))

    (ball,) = picture(free_body(), draw).things
    assert np.allclose(ball["poses"].values[:, 9:], TURNING[:, :, 2])


def test_shapes_name_their_body_by_name_number_or_ground():
    draw = [
        BOX.on(1),
        rx.draw.sphere(0.3).on("body 1"),
        rx.draw.box(3.0).on("ground").at([0, 0, -1]),
    ]
    shown = picture(two_points(), draw)
    bodies = {thing["label"]: thing for thing in shown.things if thing["kind"] == "body"}
    assert np.allclose(bodies["body 2"]["poses"].values[:, 9:], WAVE + ASIDE)
    assert np.allclose(bodies["body 1"]["poses"].values[:, 9:], WAVE)
    assert np.allclose(bodies[""]["poses"].values[:, 9:], 0.0)


def test_what_moves_in_the_plane_is_seen_from_the_front():
    g = (turned((0.0, 0.0, 1.0), T)[:, :2, :2], WAVE[:, :2])
    run = written("SE(2)", g, momentum=np.ones((len(T), 3)))
    assert picture(run, [BOX]).around["front"]
    assert "front" not in picture(two_points(), [BOX]).around

    def pendulum(g):
        return rx.draw.rod([0, 0], g[1])

    assert picture(run, pendulum).around["front"]


def test_everything_drawn_lies_in_the_ball_that_is_shown():
    shown = picture(two_points(), [rx.draw.rod([0, 0, 0], [0, 0, 4]).on(1), BOX])
    for point in ([0.0, 0, 4], [0.0, 0, 0]):
        away = np.linalg.norm(WAVE + ASIDE + point - shown.centre, axis=1)
        assert np.all(away < shown.radius)


def test_a_function_is_asked_at_every_few_states_of_a_long_run():
    count = 10_001
    t = 0.001 * np.arange(count)
    run = free_body()
    run.t = t
    run.states = run.states.__class__(turned((0.0, 0.6, 0.8), t), np.zeros((count, 3)), t)
    calls = []

    def draw(g):
        calls.append(g)
        return rx.draw.sphere(0.1).at(g[:, 0])

    shown = picture(run, draw)
    assert len(calls) <= 3000
    assert len(shown.things[0]["poses"].values) == len(t[:: shown.stride])
    played = scene(run, shown)
    assert played["joined"] > 0 and not played["notes"]


def test_fast_turns_of_stretched_solids_are_seen_as_jumps():
    quick = written("SO(3)", turned((1.0, 0.0, 0.0), 30 * T), momentum=WAVE)
    shown = picture(quick, lambda R: rx.draw.ellipsoid([0.1, 0.2, 2.0]).turned(R))
    assert farthest([shown.things[0]["poses"]]) > 1


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda R: 1.0, "must be a shape of rx.draw"),
        (lambda R: [BOX] if R[0, 0] > 0.5 else [BOX, BOX], "other shapes at t = "),
        (lambda R: BOX if R[0, 0] > 0.5 else rx.draw.sphere(1.0), "other shapes at t = "),
        (lambda R: 1 / 0, "ZeroDivisionError"),
        (lambda: BOX, "draw\\(g\\)"),
        (lambda a, b, c: BOX, "draw\\(g\\)"),
        ([BOX.on("leg")], "the bodies are 'body'"),
        ([BOX.on(1)], "the bodies are 'body'"),
        ([BOX._replace(kind="dragon")], "unknown kind 'dragon'"),
    ],
)
def test_a_wrong_draw_is_told(draw, said):
    with pytest.raises(rx.BadInput, match=said):
        page_data(free_body(), draw)


def test_a_run_without_bodies_takes_a_function():
    run = written("S^2", TURNING[:, :, 1])
    with pytest.raises(rx.BadInput, match="function"):
        picture(run, [BOX])
    (ball,) = picture(run, lambda y: rx.draw.sphere(0.1).at(y)).things
    assert np.allclose(ball["poses"].values[:, 9:], TURNING[:, :, 1])


@pytest.mark.parametrize("said", ["box", [BOX, "box"], 3.0, {"box": BOX}])
def test_what_is_no_shape_is_rejected(said):
    with pytest.raises(rx.BadInput, match=r"draw = .* must be a shape of rx.draw"):
        shapes_of("draw", said)


def test_movies_paint_every_kind_of_shape(tmp_path):
    mesh = rx.draw.mesh([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]],
                        [[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]], colour="#102030")  # fmt: skip
    shapes = {
        (0x10, 0x20, 0x30): mesh,
        (0, 158, 115): rx.draw.wheel(0.6, colour="green"),
        (213, 94, 0): rx.draw.cone([0, 0, 0], [0, 0, 1], 0.4, colour="orange"),
        (0, 114, 178): rx.draw.ellipsoid([0.5, 0.2, 0.1], colour="blue"),
        (204, 121, 167): rx.draw.cylinder(0.2, [0, 1, 0], 0.5, colour="purple"),
        (86, 180, 233): rx.draw.line([[0, 0, 0], [1, 1, 1]], colour="sky"),
    }
    for colour, shape in shapes.items():
        path = free_body().movie(tmp_path / "a.png", draw=shape, size=(160, 120))
        pixels = np.asarray(Image.open(path), float).reshape(-1, 3)
        size = np.linalg.norm(pixels, axis=1)
        cosine = pixels @ colour / np.maximum(size * np.linalg.norm(colour), 1e-9)
        # A shaded face has the colour of its shape, made darker.
        assert np.sum((cosine > 0.9995) & (size < np.linalg.norm(colour) + 2)) > 20, shape.kind


def test_a_figure_shows_the_drawing_at_a_few_instants():
    with_picture = free_body().plot(draw=swinging)
    assert any(axes.images for axes in with_picture.axes)
    assert not any(axes.images for axes in free_body().plot().axes)

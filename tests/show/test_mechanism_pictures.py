"""Mechanisms are drawn as they are: bodies where they are, joints, wheels and forces on them."""

import numpy as np
import pytest
from page_kinds import COUNT, TURNING, WAVE, turned, wheeled, written

import retrax as rx
from retrax.mechanics.remembered import RememberedSystem
from retrax.show.bodies import bodies
from retrax.show.curves import panels
from retrax.show.page import page, page_data
from retrax.show.pictures.choose import picture
from retrax.show.pictures.mechanism import default_shapes
from retrax.show.pictures.shapes import reach
from retrax.show.scene import choose_frames

SHOWN = rx.draw.box([0.9, 0.2, 0.1], colour="green")


@pytest.fixture(scope="module")
def swinging():
    """A double pendulum in the plane, of which the lower bar has a shape of its own."""
    pendulum = rx.Mechanism(gravity=[0.0, -9.81])
    upper = pendulum.body("upper", 1.0, 0.1, at=[0.5, 0.0])
    lower = pendulum.body("lower", 2.0, 0.2, at=[1.5, 0.0], shape=SHOWN)
    pendulum.join(
        rx.Revolute(pendulum.ground, upper, at=[0.0, 0.0], name="shoulder"),
        rx.Revolute(upper, lower, at=[1.0, 0.0], name="elbow"),
    )
    pendulum.add(rx.Spring("ground", upper, [[0.0, 1.0], [0.5, 0.0]], stiffness=3.0))
    system = pendulum.system()
    start = system.assemble(joint_rates={"shoulder": 0.3, "elbow": -1.0})
    return rx.simulate(system, rx.LieVerlet(), start, h=0.01, steps=60)


def things(run, kind):
    return [thing for thing in picture(run).things if thing["kind"] == kind]


def named(run):
    return {thing["name"]: thing for thing in things(run, "body") if thing.get("name")}


def test_bodies_have_their_names_and_their_places(swinging):
    found = bodies(swinging)
    assert [one.label for one in found] == ["upper", "lower"]
    R, x = (np.asarray(part) for part in swinging.g)
    for k, name in enumerate(("upper", "lower")):
        poses = named(swinging)[name]["poses"].values
        assert np.array_equal(poses[:, 9:11], x[:, k])
        assert np.array_equal(poses[:, [0, 1, 3, 4]], R[:, k].reshape(-1, 4))


def test_a_body_with_a_shape_has_it_and_one_without_has_rods_to_its_joints(swinging):
    upper, lower = (named(swinging)[name]["parts"] for name in ("upper", "lower"))
    assert [part["solid"] for part in lower] == ["box"]
    assert np.allclose(lower[0]["pose"][:9].reshape(3, 3), np.diag([0.9, 0.2, 0.1]))
    rods = [part["pose"] for part in upper if part["solid"] == "cylinder"]
    tips = {tuple(np.round(rod[:9].reshape(3, 3) @ [0, 0, 0.5] + rod[9:], 12)) for rod in rods}
    assert {(-0.5, 0.0, 0.0), (0.5, 0.0, 0.0)} <= tips


def test_joints_are_marked_once_and_the_ground_has_feet(swinging):
    upper = named(swinging)["upper"]["parts"]
    marks = [p["pose"][9:] for p in upper if p.get("colour") == "#5d6873"]
    assert np.allclose(sorted(map(tuple, marks)), [[-0.5, 0, 0], [0.5, 0, 0]])
    (ground,) = [thing for thing in things(swinging, "body") if thing["label"] == "ground"]
    (foot,) = ground["parts"]
    assert foot["solid"] == "cone"
    assert np.allclose(foot["pose"][:9].reshape(3, 3) @ [0, 0, 0.5] + foot["pose"][9:], 0.0)


def test_springs_go_from_point_to_point(swinging):
    (spring,) = things(swinging, "strand")
    nodes = spring["points"].values.reshape(len(swinging.t), -1, 3)
    assert np.allclose(nodes[:, 0], [0.0, 1.0, 0.0])
    assert np.allclose(nodes[:, -1, :2], np.asarray(swinging.g[1])[:, 0])


def test_forces_are_those_of_the_joints_on_one_scale_and_can_be_hidden(swinging):
    arrows = things(swinging, "arrow")
    assert [arrow["toggle"] for arrow in arrows] == ["forces", "forces"]
    assert picture(swinging).toggles == {"names": False, "forces": True}
    forces = [swinging.joints[name].force for name in ("shoulder", "elbow")]
    strongest = max(np.max(np.linalg.norm(force, axis=1)) for force in forces)
    assert f"{strongest:.3g} N" in arrows[0]["label"]
    scale = np.linalg.norm(arrows[0]["vector"].values, axis=1) / np.linalg.norm(forces[0], axis=1)
    for arrow, force in zip(arrows, forces, strict=True):
        assert np.allclose(arrow["vector"].values[:, :2], scale[0] * force)
    R, x = (np.asarray(part) for part in swinging.g)
    assert np.allclose(arrows[0]["start"].values, 0.0, atol=1e-12)
    assert np.allclose(arrows[1]["start"].values[:, :2], x[:, 0] + 0.5 * R[:, 0, :, 0])


def test_the_plane_is_seen_from_the_front_and_everything_lies_in_it(swinging):
    shown = picture(swinging)
    assert shown.around["front"] and shown.around["frame"]["names"][2] == ""
    x = np.asarray(swinging.g[1])
    away = np.linalg.norm(x - shown.centre[:2], axis=-1)
    assert np.all(away < shown.radius)


def test_curves_are_angles_and_forces_of_joints(swinging):
    found = {panel.title: panel for panel in panels(swinging)}
    assert "multipliers of the constraint" not in found and "body velocity" not in found
    assert np.allclose(found["angles of joints"].values["elbow"], swinging.joints["elbow"].angle)
    wanted = np.linalg.norm(swinging.joints["shoulder"].force, axis=1)
    assert np.allclose(found["forces of joints"].values["shoulder"], wanted)
    assert not [title for title in found if title.startswith(("angle of", "rate of"))]


def test_a_file_keeps_the_mechanism_and_its_shapes(swinging, tmp_path):
    swinging.save(tmp_path / "run.nc")
    loaded = rx.load(tmp_path / "run.nc")
    assert loaded.system.shapes == swinging.system.shapes == ((), (SHOWN,))
    one, other = page_data(swinging)["scene"]["things"], page_data(loaded)["scene"]["things"]
    assert [thing.get("poses") for thing in one] == [thing.get("poses") for thing in other]


def test_a_mechanism_with_a_function_of_the_user_is_drawn_from_its_file(swinging, tmp_path):
    pendulum = rx.Mechanism()
    bob = pendulum.body("bob", 1.0, [0.1, 0.1, 0.1], at=[1.0, 0, 0], shape=rx.draw.sphere(0.2))
    pendulum.join(rx.Spherical(pendulum.ground, bob, at=[0.0, 0.0, 0.0], name="ball"))
    system = pendulum.system(potential=lambda g: 0.1 * g[1][0, 0] ** 2)
    run = rx.simulate(system, rx.LieVerlet(), system.assemble(), h=0.01, steps=20)
    run.save(tmp_path / "run.nc")
    loaded = rx.load(tmp_path / "run.nc")
    assert isinstance(loaded.system, RememberedSystem)
    assert named(loaded)["bob"]["parts"][0]["solid"] == "ball"
    assert len(page(loaded)) > 100_000


def test_figures_movies_and_notebooks_show_it(swinging, tmp_path):
    figure = swinging.plot()
    assert any(axes.images for axes in figure.axes)
    assert any("angles of joints" in axes.get_title("left") for axes in figure.axes)
    assert swinging.movie(tmp_path / "a.gif", seconds=0.3, fps=10).stat().st_size > 1000
    assert "upper" in swinging.animate().page


def test_draw_of_a_call_replaces_the_picture(swinging):
    shown = picture(swinging, [rx.draw.sphere(0.1).on("lower"), rx.draw.box(2.0).on("ground")])
    bodies = [thing for thing in shown.things if thing["kind"] == "body"]
    assert [thing["label"] for thing in bodies] == ["lower", ""]


def test_wheels_roll_on_the_ground_and_the_camera_may_follow():
    run = wheeled()
    shown = picture(run)
    assert shown.around["ground"] > 4.0 and shown.follow > 0
    (wheel,) = [p for p in named(run)["wheel"]["parts"] if p["solid"] == "wheel"]
    matrix = wheel["pose"][:9].reshape(3, 3)
    assert np.allclose(np.linalg.norm(matrix[:, :2], axis=0), 0.5)
    assert np.allclose(np.abs(matrix[:, 2] / np.linalg.norm(matrix[:, 2])), [0, 1, 0])
    assert page_data(run)["scene"]["up"] == -1


def test_up_is_against_gravity_whatever_its_axis():
    pendulum = rx.Mechanism(gravity=[0.0, -9.81, 0.0])
    bar = pendulum.body("bar", 1.0, [0.1, 0.2, 0.25], at=[0.5, 0.0, 0.0])
    pendulum.join(rx.Revolute(pendulum.ground, bar, at=[0.0, 0.0, 0.0], axis=[0.0, 0.0, 1.0]))
    system = pendulum.system()
    assert system.e3_points_up
    g = (TURNING[:, None], WAVE[:, None])
    run = written(
        "(SO(3) x R^3)^1", g, momentum=np.zeros((COUNT, 6)), drawing=system.drawing, up=True
    )
    poses = named(run)["bar"]["poses"].values
    assert np.array_equal(poses[:, 9:], WAVE[:, [2, 0, 1]])
    assert np.array_equal(poses[:, :9].reshape(-1, 3, 3), TURNING[:, [2, 0, 1]])
    names = picture(run).around["frame"]["names"]
    assert [name[:2] for name in names] == ["x3", "x1", "x2"]
    (foot,) = next(t for t in picture(run).things if t["label"] == "ground")["parts"]
    base = foot["pose"][:9].reshape(3, 3) @ [0, 0, -0.5] + foot["pose"][9:]
    assert base[2] < 0 and np.allclose(base[:2], 0.0)


def test_a_body_without_joints_is_the_ellipsoid_of_its_inertia():
    semiaxes = np.array([0.3, 0.5, 0.8])
    mass = 2.0
    squares = semiaxes**2
    inertia = mass / 5 * (np.sum(squares) - squares)
    R = turned((0.0, 0.6, 0.8), [0.7])[0]
    free = rx.Mechanism(gravity=[0.0, 0.0, 0.0])
    free.body("stone", mass, R @ np.diag(inertia) @ R.T, at=[0.0, 0.0, 0.0])
    said = free.system().drawing["mechanism"]
    (shape,) = default_shapes(said, 0, 1.0)
    spread = np.sort(np.linalg.norm(shape.linear, axis=0))
    assert np.allclose(spread, semiaxes)
    assert np.allclose(shape.linear @ shape.linear.T, R @ np.diag(squares) @ R.T)
    assert np.all(np.isfinite(reach(shape)))


def test_a_wrong_shape_is_told_with_its_body():
    free = rx.Mechanism()
    with pytest.raises(rx.BadInput, match="shape of 'stone'"):
        free.body("stone", 1.0, [1, 1, 1], at=[0, 0, 0], shape=[SHOWN._replace(kind="dragon")])


def test_numerical_noise_of_what_stands_is_no_jump():
    still = 1e-17 * np.random.default_rng(1).standard_normal((30, 12)) + [
        *np.eye(3).ravel(),
        0,
        0,
        0.1,
    ]
    from retrax.show.pictures.things import Track

    assert choose_frames(30, [Track(still, leads=True)]).joined == 29


def test_a_mesh_of_a_robot_makes_no_enormous_page():
    n = 90
    polar, around = np.meshgrid(np.linspace(0, np.pi, n), np.linspace(0, 2 * np.pi, n))
    corners = np.stack(
        [np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around), np.cos(polar)], axis=-1
    ).reshape(-1, 3)
    i, j = (x.ravel() for x in np.meshgrid(np.arange(n - 1), np.arange(n - 1)))
    a, b, c = i * n + j, (i + 1) * n + j, (i + 1) * n + j + 1
    faces = np.concatenate([np.stack([a, c, b], 1), np.stack([a, a + 1, c], 1)])
    assert len(faces) > 15_000
    one = rx.draw.mesh(corners, faces)
    run = written("SO(3)", TURNING, momentum=WAVE)
    ten = [one.at([3.0 * k, 0, 0]) for k in range(10)]
    assert len(page(run, draw=ten)) - len(page(run)) < 10 * 110_000

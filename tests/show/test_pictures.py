"""Every system has the picture that is meant for it, and nothing in it is made up."""

from dataclasses import replace

import equinox as eqx
import numpy as np
import pytest
from page_kinds import COUNT, KINDS, TURNING, T, million, written

import retrax as rx
from retrax.show.page import page, page_data
from retrax.show.pictures.choose import picture
from retrax.show.pictures.things import Track
from retrax.show.scene import choose_frames, pack, read_single, single, unpack
from retrax.spaces.embedded import Embedded

DRAWN = {
    "body": {"body", "arrow", "path"},
    "failed": {"body", "arrow", "path"},
    "top": {"body", "arrow", "path"},
    "disk": {"body", "path"},
    "sleigh": {"body", "path"},
    "ball": {"body", "arrow", "path"},
    "string": {"line", "body", "arrow", "path"},
    "rods": {"line", "point", "arrow"},
    "strings": {"line", "point", "arrow"},
    "momentum": {"arrow", "path"},
    "orbit": {"point", "path"},
    "canonical": {"point", "path", "arrow"},
    "sphere": {"arrow", "point", "path"},
    "torus": {"curve", "point", "arrow"},
    "frame": {"arrow", "path"},
    "plane": {"arrow", "path", "plane"},
    "matrix": {"bars"},
    "mechanism": {"body", "path"},
    "shapes": {"body", "arrow", "path"},
    "two vectors": {"arrow", "path"},
}


@pytest.fixture(scope="module")
def drawn():
    return {kind: picture(make()) for kind, make in KINDS.items()}


def thing(shown, kind):
    return next(one for one in shown.things if one["kind"] == kind)


def test_points_of_several_spheres_are_told_apart():
    run = written("S^2", (TURNING[:, :, 0], TURNING[:, :, 1]))
    run.system = replace(run.system, space=Embedded(rx.Sphere(3), rx.Sphere(3)))
    labels = [one["label"] for one in picture(run).things if one["label"]]
    assert labels == ["point 1", "path of point 1", "point 2", "path of point 2"]


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_its_things(drawn, kind):
    assert {one["kind"] for one in drawn[kind].things} == DRAWN[kind]
    assert drawn[kind].radius > 0


def test_the_disk_touches_the_plane_where_it_is_at_rest(drawn):
    """The lowest point of a disk that rolls has no velocity: seen from the poses alone."""
    poses = thing(drawn["disk"], "body")["poses"].values
    R, x = poses[:, :9].reshape(-1, 3, 3), poses[:, 9:]
    assert np.max(np.abs(x[:, 2] - 0.7)) == 0
    middle = COUNT // 2
    foot = np.array([x[middle, 0], x[middle, 1], 0.0])
    in_body = R[middle].T @ (foot - x[middle])
    steps = [R[k] @ in_body + x[k] - foot for k in (middle - 1, middle + 1)]
    # In a time of 0.1 s its centre goes 0.1 m, the point of contact 0.003 m.
    assert max(np.linalg.norm(step) for step in steps) < 0.01
    assert np.linalg.norm(x[middle + 1] - x[middle]) > 0.09


def test_the_centre_of_mass_of_a_top_is_where_the_path_runs(drawn):
    poses = thing(drawn["top"], "body")["poses"].values
    centre = poses[:, :9].reshape(-1, 3, 3) @ [0.0, 0.0, 0.6]
    np.testing.assert_allclose(thing(drawn["top"], "path")["trail"].values, centre, atol=1e-15)
    box = thing(drawn["top"], "body")["parts"][0]["box"]
    np.testing.assert_allclose(np.mean(box, axis=0), [0.0, 0.0, 0.6], atol=1e-15)


def test_the_plane_has_its_normal_without_a_jump(drawn):
    normal = thing(drawn["plane"], "plane")["normal"].values
    assert np.max(np.linalg.norm(np.diff(normal, axis=0), axis=1)) < 0.3


def test_the_marked_points_of_two_strings_lie_on_them(drawn):
    points = [one for one in drawn["strings"].things if one["kind"] == "point"]
    for point, s, part in zip(points, (2.0, 2.6), (1.0, 0.5), strict=True):
        x, _, u = point["places"].values.T
        np.testing.assert_allclose(x, s + 0.3 * np.sin(T), atol=1e-12)
        # Straight pieces between 33 nodes: within h^2/8 of the sine.
        assert np.max(np.abs(u - part * np.cos(T) * np.sin(x))) < (2 * np.pi / 32) ** 2 / 8


def test_systems_tell_what_their_picture_needs():
    """No system is shown as what it is not: inertia, vectors and fields are told, not guessed."""
    told = {
        "body": rx.systems.Blade([1.0, 1.3, 0.9], 1.4, [0.2, -0.1, 0.3]),
        "field": rx.systems.clebsch([1.0, 2.0, 3.0], 0.5, 0.25),
    }
    for kind, system in told.items():
        assert list(system.drawing) == [kind]
    assert told["field"].drawing["field"] == {"vectors": ["m", "p"]}


def test_many_systems_at_once_tell_nothing():
    disks = rx.systems.RollingDisk(2.0, 0.25, 0.5, 0.7)
    many = eqx.tree_at(lambda d: d.radius, disks, np.linspace(0.5, 0.9, 4))
    assert disks.drawing == {"disk": {"radius": 0.7}} and many.drawing is None


def test_packed_numbers_are_those_that_were_given():
    values = np.stack([np.sin(T), 1e3 + 5 * T, 0 * T - 2], axis=1)
    error = np.max(np.abs(unpack(pack(values)) - values), axis=0)
    assert np.all(error <= np.array([2.0, 20.0, 0.0]) / 65535 / 2 + 1e-5 * np.array([0, 1e3, 0]))
    values[5] = np.nan
    np.testing.assert_allclose(unpack(pack(values))[5], unpack(pack(values))[4])
    np.testing.assert_array_equal(
        read_single(single(np.array([np.nan, 1e-16])))[1], np.float32(1e-16)
    )


def test_frames_cover_the_run_whatever_its_length():
    turn = np.zeros((100_000, 12))
    angle = 0.3 * np.arange(len(turn))
    turn[:, 0] = turn[:, 4] = np.cos(angle)
    turn[:, 1], turn[:, 3], turn[:, 8] = -np.sin(angle), np.sin(angle), 1.0
    states, joined = choose_frames(len(turn), [Track(turn, leads=True)])
    assert states[0] == 0 and states[-1] == len(turn) - 1 and len(states) <= 50_000
    assert np.all(np.diff(states)[:joined] <= 3)  # 3 x 0.3 rad
    few, all_joined = choose_frames(50, [Track(turn[:50], leads=True)])
    assert len(few) == 50 and all_joined == 49


def test_a_page_of_a_million_states_is_small():
    run = million()
    data = page_data(run)
    assert len(page(run)) < 8_000_000
    # The one state that stands out is not lost among a million.
    assert np.max(read_single(data["panels"][0]["curves"][0]["y"])) > 9e-7
    assert read_single(data["scene"]["t"])[-1] == np.float32(run.t[-1])

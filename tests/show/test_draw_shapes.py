"""Shapes are plain data: what is made is where it was put, and what cannot be drawn is told."""

import struct

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.draw.surface import coarser, pack_mesh, unpack_mesh
from retrax.mechanics.shape import Shape
from retrax.show.pictures.shapes import ends, reach

R = np.array([[0.36, 0.48, -0.8], [-0.8, 0.6, 0.0], [0.48, 0.64, 0.6]])
TETRAHEDRON = np.array([[0.0, 0, 0], [2, 0, 0], [0, 3, 0], [0, 0, -5]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])


def moved(shape, points):
    return np.asarray(points, float) @ shape.linear.T + shape.place


def surface(shape):
    return (lambda found: (moved(shape, found[0]), found[1]))(unpack_mesh(*pack_mesh(shape)))


def test_a_rod_ends_where_it_is_told_and_is_as_thick():
    rod = rx.draw.rod([1.0, 2.0, -1.0], [0.0, 0.5, 2.0], radius=0.25)
    assert np.allclose(moved(rod, [[0, 0, -0.5], [0, 0, 0.5]]), [[1, 2, -1], [0, 0.5, 2]])
    across = moved(rod, [[1, 0, 0], [0, 1, 0]]) - moved(rod, [[0, 0, 0]])
    assert np.allclose(np.linalg.norm(across, axis=1), 0.25)
    assert np.allclose(across @ np.array([-1.0, -1.5, 3.0]), 0.0, atol=1e-14)
    assert np.linalg.det(rod.linear) > 0


def test_a_cone_has_its_tip_at_its_second_point():
    cone = rx.draw.cone([0.0, 0.0], [3.0, 4.0], radius=1.0)
    assert np.allclose(moved(cone, [[0, 0, 0.5]]), [[3, 4, 0]])


@pytest.mark.parametrize("kind", [rx.draw.cylinder, rx.draw.wheel])
def test_round_things_lie_along_their_axis(kind):
    shape = kind(0.5, [0.0, 3.0, 4.0], 0.2)
    assert np.allclose(moved(shape, [[0, 0, 0.5]]), [[0, 0.06, 0.08]])


def test_placement_is_turned_then_moved():
    box = rx.draw.box([1.0, 2.0, 3.0]).at([1.0, 0.0, 0.0]).turned(R).at([0.0, 5.0, 0.0])
    corner = np.array([0.5, -0.5, 0.5])
    wanted = R @ (corner * [1, 2, 3] + [1, 0, 0]) + [0, 5, 0]
    assert np.allclose(moved(box, corner), wanted)


@pytest.mark.parametrize(
    ("said", "matrix"),
    [
        (R, R),
        ([0.0, 0.0, np.pi / 2], [[0, -1, 0], [1, 0, 0], [0, 0, 1]]),
        ([np.pi / 2, 0.0, 0.0], [[1, 0, 0], [0, 0, -1], [0, 1, 0]]),
        (np.pi / 2, [[0, -1, 0], [1, 0, 0], [0, 0, 1]]),
        ([[0.0, -1.0], [1.0, 0.0]], [[0, -1, 0], [1, 0, 0], [0, 0, 1]]),
        ([0.0, 0.0, 0.0], np.eye(3)),
    ],
)
def test_rotations_come_as_matrix_vector_and_angle(said, matrix):
    assert np.allclose(rx.draw.box(1.0).turned(said).linear, matrix, atol=1e-15)


def test_lines_and_arrows_turn_with_their_shape():
    line = rx.draw.line([[0.0, 0.0], [1.0, 2.0]]).turned(np.pi / 2).at([0, 0, 1])
    assert np.allclose(ends(line), [[0, 0, 1], [-2, 1, 1]])
    arrow = rx.draw.arrow([1.0, 0.0, 0.0], [0.0, 0.0, 2.0])
    assert np.allclose(ends(arrow), [[1, 0, 0], [1, 0, 2]])
    assert np.allclose(ends(rx.draw.trail([1.0, 2.0]).scaled(2.0)), [[2, 4, 0]])


@pytest.mark.parametrize(
    ("shape", "low", "high"),
    [
        (rx.draw.box([1.0, 2.0, 3.0]), [-0.5, -1, -1.5], [0.5, 1, 1.5]),
        (rx.draw.ellipsoid([1.0, 2.0, 3.0]), [-1, -2, -3], [1, 2, 3]),
        (rx.draw.sphere(0.5).at([1, 0, 0]), [0.5, -0.5, -0.5], [1.5, 0.5, 0.5]),
        (rx.draw.mesh(TETRAHEDRON, FACES), [0, 0, -5], [2, 3, 0]),
        (rx.draw.wheel(1.0, [0.0, 0.0, 1.0], 0.5), [-1, -1, -0.25], [1, 1, 0.25]),
    ],
)
def test_the_reach_of_a_shape_holds_it(shape, low, high):
    points = reach(shape)
    assert np.allclose(np.min(points, axis=0), low, atol=1e-12)
    assert np.allclose(np.max(points, axis=0), high, atol=1e-12)


def test_shapes_are_hashable_and_have_no_leaves_but_numbers_and_text():
    shape = rx.draw.mesh(TETRAHEDRON, FACES, colour="green").on("leg")
    assert hash(shape) == hash(rx.draw.mesh(TETRAHEDRON, FACES, colour="green").on("leg"))
    assert all(isinstance(x, float | str | None) for x in jax.tree.leaves(shape))
    assert rx.draw.Shape is Shape


# Meshes


def test_a_mesh_keeps_its_corners_and_its_orientation():
    corners, triangles = surface(rx.draw.mesh(TETRAHEDRON, FACES))
    assert len(corners) == 4 and len(triangles) == 4
    assert np.allclose(volume(corners, triangles), volume(TETRAHEDRON, FACES), rtol=1e-4)
    assert volume(corners, triangles) < 0  # the faces above go round clockwise


def volume(corners, triangles):
    a, b, c = (corners[triangles[:, k]] for k in range(3))
    return float(np.sum(np.einsum("ni,ni->n", a, np.cross(b, c)))) / 6


def ball(n):
    polar, around = np.meshgrid(np.linspace(0, np.pi, n), np.linspace(0, 2 * np.pi, n))
    corners = np.stack(
        [np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around), np.cos(polar)], axis=-1
    ).reshape(-1, 3)
    i, j = (x.ravel() for x in np.meshgrid(np.arange(n - 1), np.arange(n - 1)))
    a, b, c, d = i * n + j, (i + 1) * n + j, (i + 1) * n + j + 1, i * n + j + 1
    return corners, np.concatenate([np.stack([a, c, b], 1), np.stack([a, d, c], 1)])


def test_a_fine_mesh_becomes_coarser_and_stays_a_closed_ball():
    corners, triangles = ball(200)
    shape = rx.draw.mesh(corners, triangles, most=2000)
    small, few = surface(shape)
    assert 800 < len(few) <= 2000
    # Measured: 0.0020 from the sphere, and 1.2 % of its volume.
    assert np.max(np.abs(np.linalg.norm(small, axis=1) - 1)) < 0.01
    whole = volume(corners, triangles)
    assert abs(volume(small, few) / whole - 1) < 0.05
    edges = np.sort(np.concatenate([few[:, [0, 1]], few[:, [1, 2]], few[:, [2, 0]]]), axis=1)
    _, count = np.unique(edges, axis=0, return_counts=True)
    assert np.mean(count == 2) > 0.99
    assert len(shape.data) < 30_000


def test_equal_corners_are_merged_and_flat_meshes_drawn():
    square = np.array([[0.0, 0, 1], [1, 0, 1], [1, 1, 1], [0.0, 0, 1], [1, 1, 1], [0, 1, 1]])
    corners, triangles = surface(rx.draw.mesh(square, np.arange(6).reshape(2, 3)))
    assert len(corners) == 4 and len(triangles) == 2
    assert np.allclose(corners[:, 2], 1.0, atol=1e-5)


def test_stl_and_obj_files_are_read(tmp_path):
    words = tmp_path / "words.stl"
    facets = "".join(
        "facet normal 0 0 0\nouter loop\n"
        + "".join(f"vertex {x} {y} {z}\n" for x, y, z in TETRAHEDRON[face])
        + "endloop\nendfacet\n"
        for face in FACES
    )
    words.write_text(f"solid a\n{facets}endsolid a\n")
    binary = tmp_path / "binary.STL"
    rows = [struct.pack("<12fH", 0, 0, 0, *TETRAHEDRON[face].ravel(), 0) for face in FACES]
    binary.write_bytes(b"solid in name only".ljust(80) + struct.pack("<I", 4) + b"".join(rows))
    text = tmp_path / "a.obj"
    lines = [f"v {x} {y} {z}" for x, y, z in TETRAHEDRON] + ["# a comment", "f 1/1/1 3/2/1 2//3"]
    text.write_text("\n".join([*lines, "f 1 2 4", "f -3 -2 -1", "f 3 1 4"]))
    found = [rx.draw.mesh(path) for path in (words, str(binary), text)]
    for shape in found:
        corners, triangles = surface(shape)
        assert volume(corners, triangles) == pytest.approx(volume(TETRAHEDRON, FACES), rel=1e-4)
        assert len(corners) == len(triangles) == 4


def test_a_polygon_of_an_obj_file_becomes_triangles(tmp_path):
    path = tmp_path / "square.obj"
    path.write_text("v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3 4\n")
    assert len(surface(rx.draw.mesh(path))[1]) == 2


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("none.stl", None, "cannot be read"),
        ("empty.stl", "solid a\nendsolid\n", "no triangles"),
        ("bad.obj", "v 0 0 zero\n", "damaged"),
        ("lost.obj", "v 0 0 0\nf 1 2 3\n", "without corners"),
        ("nan.obj", "v 0 0 nan\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "not finite"),
        ("robot.dae", "", "STL nor OBJ"),
    ],
)
def test_files_that_are_no_meshes_are_told(tmp_path, monkeypatch, name, text, said):
    monkeypatch.setattr("retrax.draw.mesh_file.find_spec", lambda _: None)
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(rx.BadInput, match=said):
        rx.draw.mesh(tmp_path / name)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: rx.draw.box([1.0, 0.0, 1.0]), "three positive numbers"),
        (lambda: rx.draw.sphere(-1.0), "radius"),
        (lambda: rx.draw.rod([0, 0, 0], [0, 0, 0]), "the same point"),
        (lambda: rx.draw.wheel(1.0, [0, 0, 0]), "no direction"),
        (lambda: rx.draw.line([[0, 0, 0]]), "two points"),
        (lambda: rx.draw.box(1.0, colour="pinkish"), "blue, orange"),
        (lambda: rx.draw.box(1.0).turned(2 * np.eye(3)), "not a rotation"),
        (lambda: rx.draw.box(1.0).turned(-np.eye(3)), "not a rotation"),
        (lambda: rx.draw.box(1.0).turned([1.0, 2.0]), "axis times angle"),
        (lambda: rx.draw.box(1.0).at([1.0]), "three numbers, or two"),
        (lambda: rx.draw.box(1.0).at([1.0, np.nan, 0.0]), "place"),
        (lambda: rx.draw.box(1.0).scaled(-1.0), "positive"),
        (lambda: rx.draw.mesh(TETRAHEDRON), "needs faces"),
        (lambda: rx.draw.mesh(TETRAHEDRON, [[0, 1, 4]]), "between 0 and 3"),
        (lambda: rx.draw.mesh(TETRAHEDRON, FACES + 0.5), "whole numbers"),
        (lambda: rx.draw.mesh("a.stl", FACES), "in the file"),
    ],
)
def test_what_cannot_be_drawn_is_told(make, said):
    with pytest.raises(rx.BadInput, match=said):
        make()


def test_a_damaged_mesh_is_told():
    shape = rx.draw.mesh(TETRAHEDRON, FACES)
    for data in ("", shape.data[:-4], shape.data.replace(" ", ""), "AAAA AAAA"):
        with pytest.raises(rx.BadInput, match="damaged"):
            unpack_mesh(*pack_mesh(shape._replace(data=data)))


def test_jax_arrays_place_shapes_too():
    shape = rx.draw.rod(jnp.zeros(3), jnp.array([0.0, 0.0, 2.0])).at(jnp.ones(3))
    assert np.allclose(moved(shape, [[0, 0, 0.5]]), [[1, 1, 3]])


def test_coarser_keeps_a_mesh_that_is_coarse_enough():
    corners, triangles = coarser(TETRAHEDRON, FACES, 4)
    assert sorted(map(tuple, corners.tolist())) == sorted(map(tuple, TETRAHEDRON.tolist()))
    assert len(triangles) == 4

"""Meshes too large, too small or without extent are refused, from files and from arrays."""

import numpy as np
import pytest

import retrax as rx

FACET = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("more", "<u2")])
CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)
FACES = np.array([[0, 2, 1], [0, 3, 2], [0, 1, 3], [1, 2, 3]])
ROBOT = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial><visual><geometry>
<mesh filename="m.stl" scale="{0} {0} {0}"/></geometry></visual></link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint>
</robot>"""


def _write(path, size):
    facets = np.zeros(4, FACET)
    facets["corners"] = CORNERS[FACES] * size
    path.write_bytes(b" " * 80 + (4).to_bytes(4, "little") + facets.tobytes())
    return path


@pytest.mark.parametrize(("size", "words"), [(3e38, "reaches to"), (1e-44, "large"), (0, "large")])
def test_a_file_of_impossible_size(tmp_path, size, words):
    path = _write(tmp_path / "m.stl", size)
    with pytest.raises(rx.BadInput, match=words):
        rx.draw.mesh(path)
    (tmp_path / "r.urdf").write_text(ROBOT.format(1))
    with pytest.raises(rx.BadInput, match=words):
        rx.load_urdf(tmp_path / "r.urdf")


@pytest.mark.parametrize("scale", ["1e300", "1e-320"])
def test_a_scale_that_makes_a_mesh_impossible(tmp_path, scale):
    _write(tmp_path / "m.stl", 1.0)
    (tmp_path / "r.urdf").write_text(ROBOT.format(scale))
    with pytest.raises(rx.BadInput, match=r"the mesh of .*link 'b'"):
        rx.load_urdf(tmp_path / "r.urdf")


@pytest.mark.parametrize("size", [1e308, 1e200, 1e-320, 0.0, np.nan])
def test_corners_of_impossible_size(size):
    with pytest.raises(rx.BadInput, match="the mesh of vertices"):
        rx.draw.mesh(CORNERS * size, FACES)

"""What URDF files may hold beside joints: shapes, meshes, errors. Each error is a sentence."""

import struct
import warnings

import numpy as np
import pytest

import retrax as rx

SOLID = """<inertial><mass value="1"/>
  <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>"""
HINGE = """<joint name="j" type="continuous"><parent link="a"/><child link="b"/>
  <axis xyz="0 1 0"/></joint>"""


def robot(tmp_path, body, name="robot.urdf"):
    """Write a URDF with this inside."""
    path = tmp_path / name
    path.write_text(f'<robot name="test">{body}</robot>')
    return path


def pair(inside=SOLID, joint=HINGE, more=""):
    """Return two links and a joint."""
    return f'<link name="a"/><link name="b">{inside}</link>{joint}{more}'


def limited(attributes):
    """Return the hinge with limits."""
    return HINGE.replace("continuous", "revolute").replace(
        "</joint>", f"<limit {attributes}/></joint>"
    )


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("", "has no links"),
        (pair(joint=""), "has 2 first links, 'a', 'b'"),
        (pair(joint=HINGE.replace('"b"', '"c"')), "there is no link 'c'"),
        (pair(more='<link name="b"/>'), "two links of the name 'b'"),
        (pair(more=HINGE), "two joints of the name 'j'"),
        (
            pair(joint=HINGE.replace("continuous", "hinge")),
            "of the type 'hinge', which URDF does not",
        ),
        (pair(joint=HINGE.replace("0 1 0", "0 0 0")), "has no direction"),
        (pair(joint=HINGE.replace("0 1 0", "0 1")), "must be 3 finite numbers"),
        (pair(joint=HINGE.replace("0 1 0", "0 nan 0")), "must be 3 finite numbers"),
        (pair(joint=HINGE.replace('<child link="b"/>', "")), "needs a <parent> and a <child>"),
        (pair(joint=HINGE.replace('name="j"', "")), "<joint> of a joint has no name="),
        (
            pair(joint=HINGE.replace('child link="b"', 'child link="a"')),
            "joint 'j' has the link 'a' as <parent> and as <child>",
        ),
        (
            pair(joint=limited('lower="1" upper="-1"')),
            "joint 'j' has the limits lower = 1 and upper = -1",
        ),
        (pair(joint=limited('effort="-2"')), "the effort -2 in <limit>; it is not negative"),
        (pair(inside=SOLID.replace('value="1"', 'value="-1"')), "a mass is not negative"),
        (pair(inside=SOLID.replace('iyy="0.1"', 'iyy="-0.1"')), "none may be negative"),
        (pair(inside=SOLID.replace('ixx="0.1"', 'ixx="0"')), "a body needs positive ones"),
        (pair(inside=SOLID.replace('<mass value="1"/>', "")), "has no <mass>"),
        (pair(inside='<inertial><mass value="1"/></inertial>'), "nor a shape from which"),
        (pair(inside=""), "moves and has no mass, and nothing heavy hangs on it"),
        (pair(inside=SOLID + SOLID), "has 2 elements <inertial>"),
        (
            pair(joint=HINGE.replace("</joint>", '<mimic joint="x"/></joint>')),
            "mimics 'x', which is not another joint",
        ),
        (
            pair(joint=HINGE.replace("</joint>", '<dynamics damping="-1"/></joint>')),
            "is not negative",
        ),
        (
            pair(SOLID + '<visual><geometry><mesh filename="none.stl"/></geometry></visual>'),
            "the mesh 'none.stl' is missing",
        ),
        (
            pair(
                SOLID + '<visual><geometry><mesh filename="package://p/m.stl"/></geometry></visual>'
            ),
            r"Pass packages=\{name: folder\}, or meshes=False",
        ),
        (
            pair(
                SOLID + '<visual><geometry><mesh filename="https://x/m.stl"/></geometry></visual>'
            ),
            "retrax fetches none",
        ),
        (
            pair(SOLID + '<visual><geometry><box size="1 -1 1"/></geometry></visual>'),
            "must be positive",
        ),
        (pair(SOLID + "<visual/>"), "has 0 shapes"),
    ],
)
def test_bad_robots_are_told_in_a_sentence(tmp_path, body, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        rx.load_urdf(robot(tmp_path, body))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("<robot", "is not XML"),
        ("", "is not XML"),
        ("<sdf/>", "begins with <sdf>, not with <robot>"),
        (
            '<!DOCTYPE r [<!ENTITY e SYSTEM "file:///etc/hostname">]><robot>&e;</robot>',
            "<!DOCTYPE>",
        ),
        ('<?xml version="1.0" encoding="klingon"?><robot/>', "is not XML"),
    ],
)
def test_files_that_are_no_robots_are_told(tmp_path, text, sentence):
    path = tmp_path / "bad.urdf"
    path.write_text(text)
    with pytest.raises(rx.BadInput, match=sentence):
        rx.load_urdf(path)
    with pytest.raises(rx.BadInput, match="cannot be read"):
        rx.load_urdf(tmp_path / "missing.urdf")


def test_an_effort_of_zero_is_no_bound_and_told(tmp_path):
    path = robot(tmp_path, pair(joint=limited('effort="0"')))
    with pytest.warns(UserWarning, match="the effort 0 in <limit> of j: the motor there has no"):
        mechanism = rx.load_urdf(path, motors=["j"])
    assert mechanism.plant().actuators.lower is None
    bounded = rx.load_urdf(robot(tmp_path, pair(joint=limited('effort="2"'))), motors=["j"])
    assert np.array_equal(bounded.plant().actuators.lower, [-2.0])


def test_an_inertia_that_no_body_has_is_taken_and_told(tmp_path):
    path = robot(tmp_path, pair(inside=SOLID.replace('izz="0.1"', 'izz="0.3"')))
    with pytest.warns(UserWarning, match=r"taken as it is: the inertia of link 'b'") as caught:
        rx.load_urdf(path)
    assert "do not act" not in str(caught[0].message)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"path": None}, "path = None must be the path of a URDF"),
        ({"gravity": (0, -9.81)}, r"gravity has shape \(2,\)"),
    ],
)
def test_bad_arguments_are_told_in_a_sentence(tmp_path, arguments, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        rx.load_urdf(**{"path": robot(tmp_path, pair())} | arguments)


@pytest.mark.parametrize(
    ("loops", "sentence"),
    [
        ("j", "must be a list"),
        (["k"], "names the joint 'k', which the file does not have"),
        ([("a", "b")], r"neither the name of a joint nor \(link, link, kind, at\)"),
        ([("a", "b", "glue", [0, 0, 0])], "of no kind among fixed, spherical"),
        ([("a", "b", "revolute", [0, 0, 0])], "needs an axis"),
        ([("a", "b", "spherical", [0, 0, 0], [0, 0, 1])], "has no axis"),
        ([("a", "c", "spherical", [0, 0, 0])], "names the link 'c'"),
        ([("a", "a", "spherical", [0, 0, 0])], "lies within one body"),
        ([("a", "b", "fixed", [[0, 0, 0], [0, 0, 0]])], "points of both links are not enough"),
    ],
)
def test_bad_loops_are_told_in_a_sentence(tmp_path, loops, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        rx.load_urdf(robot(tmp_path, pair()), loops=loops)


def test_what_is_not_understood_is_named_once(tmp_path):
    body = pair(
        SOLID + '<sensor name="s"/><visual><geometry><capsule radius="1"/></geometry></visual>',
        HINGE.replace("</joint>", '<safety_controller k="1"/><dynamics friction="2"/></joint>'),
        '<gazebo/><gazebo reference="b"/>',
    )
    with pytest.warns(UserWarning) as caught:
        rx.load_urdf(robot(tmp_path, body))
    (warning,) = caught
    for words in (
        "<sensor> in <link>",
        "<safety_controller> in <joint>",
        "<gazebo> in <robot> (2 times)",
        "<capsule> in <geometry>",
        "dry friction of the joints j",
    ):
        assert words in str(warning.message)


def cube(path, size, outwards=True):
    """Write a box as an STL of twelve triangles."""
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)]) * size
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = [f for a, b, c, d in quads for f in ((a, b, c), (a, c, d))]
    facets = [struct.pack("<12fH", 0, 0, 0, *corners[list(f)].ravel(), 0) for f in faces]
    facets = facets if outwards else facets[:-1]
    path.write_bytes(b" " * 80 + struct.pack("<I", len(facets)) + b"".join(facets))


def test_a_mesh_weighs_what_its_volume_does(tmp_path):
    """A box as a mesh, scaled, mirrored and moved, against the same box in closed form."""
    (tmp_path / "meshes").mkdir()
    cube(tmp_path / "meshes" / "box.stl", [0.5, 0.25, 0.125])
    shape = """<collision><origin xyz="0.1 0.2 0.3" rpy="0.3 0.2 0.1"/>
        <geometry>{}</geometry></collision>"""
    mesh = shape.format('<mesh filename="package://robots/meshes/box.stl" scale="2 2 -2"/>')
    path = robot(tmp_path, pair(mesh))
    system = rx.load_urdf(path, density=1000.0, packages={"robots": tmp_path}).system()
    assert abs(float(system.mass[0]) - 125.0) < 1e-10
    expected = rx.solids.box(125.0, [1.0, 0.5, 0.25])
    found = np.linalg.eigvalsh(system.inertia[0])
    assert np.allclose(found, sorted(np.diag(expected)), rtol=1e-12)
    weighed = mesh + '<inertial><mass value="2.5"/></inertial>'
    other = rx.load_urdf(
        robot(tmp_path, pair(weighed), "other.urdf"), packages={"robots": tmp_path}
    )
    assert np.allclose(other.system().inertia[0], system.inertia[0] / 50, rtol=1e-12)


def test_a_mesh_with_a_hole_has_no_inertia(tmp_path):
    cube(tmp_path / "box.stl", [1.0, 1.0, 1.0], outwards=False)
    mesh = '<collision><geometry><mesh filename="box.stl"/></geometry></collision>'
    with pytest.raises(rx.BadInput, match="is not closed"):
        rx.load_urdf(robot(tmp_path, pair(mesh)), density=1.0)


def test_packages_are_found_above_the_file(tmp_path):
    folder = tmp_path / "my_robot"
    (folder / "urdf").mkdir(parents=True)
    cube(folder / "box.stl", [1.0, 1.0, 1.0])
    visual = '<visual><geometry><mesh filename="package://my_robot/box.stl"/></geometry></visual>'
    mechanism = rx.load_urdf(robot(folder / "urdf", pair(SOLID + visual)))
    assert [shape.kind for shape in mechanism.system().shapes[0]] == ["mesh"]
    (folder / "box.stl").unlink()
    unseen = rx.load_urdf(robot(folder / "urdf", pair(SOLID + visual)), meshes=False)
    assert unseen.system().shapes == ((),)


def test_solids_that_a_body_cannot_have_are_named_and_kept(tmp_path):
    odd = pair(SOLID.replace('izz="0.1"', 'izz="0.3"'))
    with pytest.warns(UserWarning, match="which no rigid body has"):
        mechanism = rx.load_urdf(robot(tmp_path, odd))
    assert np.array_equal(mechanism.system().inertia[0], np.diag([0.1, 0.1, 0.3]))


def test_a_link_that_is_called_ground_moves_all_the_same(tmp_path):
    text = pair().replace('"b"', '"ground"')
    mechanism = rx.load_urdf(robot(tmp_path, text))
    system = mechanism.system()
    assert system.names == ("the link ground",)
    assert system.constraint.connections[0].bodies == (-1, 0)


def test_a_planar_joint_leaves_three_freedoms(tmp_path):
    joint = HINGE.replace("continuous", "planar").replace("0 1 0", "1 2 2")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        system = rx.load_urdf(robot(tmp_path, pair(joint=joint))).system()
    assert system.freedoms(system.assemble()) == 3

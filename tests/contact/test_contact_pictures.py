"""Shapes that touch are what a picture shows, and a file keeps them."""

import json

import numpy as np

import retrax as rx
from retrax.show.pictures.choose import picture
from retrax.store.objects import decode, encode


def test_a_system_without_shapes_shows_those_that_touch():
    ball, crate = rx.Ball(0.1, [0.1, 0, 0], body=0), rx.Box([0.3, 0.2, 0.1], body=1)
    rod = rx.Capsule(0.02, 1.0, [1, 0, 0], [0, 0, 2])
    group = rx.Power(rx.Product(rx.SO3(), rx.Translation(3)), 2)
    contact = rx.Contacts([(ball, rx.Plane()), (crate, rx.Plane()), (ball, crate), (ball, rod)])
    system = rx.MechanicalSystem(group, np.ones(12), contact=contact)
    shapes = system.drawing["shapes"]
    assert [(one.kind, one.body) for one in shapes] == [
        ("ball", 0),
        ("box", 1),
        ("cylinder", "ground"),
        ("ball", "ground"),
        ("ball", "ground"),
    ]
    assert shapes[0].place == (0.1, 0.0, 0.0)
    np.testing.assert_allclose([one.place for one in shapes[3:]], [[-0.5, 0, 2], [0.5, 0, 2]])
    assert system.drawing["planes"] == ((((0.0, 0.0, 1.0), (0.0, 0.0, 0.0), "ground")),) * 2
    drawn = rx.MechanicalSystem(group, np.ones(12), contact=contact, draw=rx.draw.sphere(1.0).on(0))
    assert [one.kind for one in drawn.drawing["shapes"]] == ["ball"]


def test_a_mechanism_shows_its_contacts_and_a_file_keeps_them():
    swing = rx.Mechanism()
    swing.body("rod", mass=1.0, inertia=[0.1, 0.1, 0.01], at=[0.0, 0.0, -0.5])
    hinge = rx.Revolute("ground", "rod", [0, 0, 0], [0, 1, 0], "hinge", limits=(-1.0, 1.0))
    swing.join(hinge)
    rod, post = rx.Capsule(0.02, 0.9, body="rod"), rx.Ball(0.1, [-0.5, 0, -0.9], name="post")
    floor = rx.Plane(at=[0, 0, -2.0])
    contact = rx.Contacts([(rod, post), (rod, floor)], friction=0.3, restitution=[0.2, 0.0])
    system = swing.system(contact=contact)
    said = system.drawing["mechanism"]
    assert [one.kind for one in said["shapes"][0]] == ["cylinder", "ball", "ball"]
    assert [one.kind for one in said["still"]] == ["ball"]
    assert len(said["planes"]) == 1
    loaded = decode(json.loads(json.dumps(encode(system, "system"))), None)
    assert loaded.contact.names == system.contact.names
    g = system.assemble(joints={"hinge": 0.2}).g
    np.testing.assert_array_equal(loaded.contact.gaps(g), system.contact.gaps(g))
    np.testing.assert_array_equal(loaded.contact.friction, [0.3] * 3 + [0.0] * 2)


def test_rods_show_what_stands_in_space_and_a_file_keeps_it():
    post = rx.Capsule(0.05, 0.2, [0, 1, 0], [0.2, 0, -0.06], name="post")
    slope = rx.Plane([0.6, 0.0, 0.8], [0, 0, -1.0])
    contact = rx.SelfContact(0.01, against=[post, slope, rx.Ball(0.1, [0, 0, -0.3])], itself=False)
    round_rod = {"young": 1e6, "poisson": 0.5, "density": 1000.0, "radius": 0.01}
    rod = rx.systems.Rod.from_material(4, 0.4, **round_rod, contact=contact)
    alone = rx.systems.Rod.from_material(4, 0.4, **round_rod)
    both = rx.systems.Rods([alone, alone], contact=contact)
    for system in (rod, both):
        said = system.drawing
        assert [one.kind for one in said["still"]] == ["cylinder", "ball", "ball", "ball"]
        assert said["planes"] == (((0.6, 0.0, 0.8), (0.0, 0.0, -1.0), "ground"),)
    assert "still" not in alone.drawing
    loaded = decode(json.loads(json.dumps(encode(rod, "system"))), None)
    assert loaded.drawing == rod.drawing
    state = rod.state(rod.straight((1.0, 0.0, 0.0)), velocity=rod.velocity_of())
    run = rx.simulate(rod, rx.NonsmoothRattle(), state, h=1e-4, steps=2)
    things = {thing["label"]: thing for thing in picture(run).things}
    assert len(things["what stands in space"]["parts"]) == 4
    assert things["plane"]["still"] and things["rod"]["kind"] == "line"

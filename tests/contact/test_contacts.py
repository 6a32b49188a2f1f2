"""Contacts as users write them: what is rejected, what things are called, numbers that vary."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx

FREE = rx.Product(rx.SO3(), rx.Translation(3))
FLOOR = rx.Plane(name="floor")
BALL = rx.Ball(0.1, body=0)


def world(contact, group=FREE):
    return rx.MechanicalSystem(group, np.ones(group.dim), contact=contact)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: rx.Ball(-0.1), r"radius = -0.1 must be positive"),
        (lambda: rx.Plane([0, 0, 0]), r"normal = \[0.0, 0.0, 0.0\] has no direction"),
        (lambda: rx.Plane([0, 0, 1e-320]), r"normal = \[0.0, 0.0, 1e-320\] has no direction"),
        (lambda: rx.Plane([0, 1e200, 0]), r"normal = .* has no direction"),
        (lambda: rx.Capsule(0.1, 1, axis=[0, 0, 1e-320], body=0), r"axis = .* has no direction"),
        (lambda: rx.draw.wheel(1.0, axis=[0, 0, 1e200]), r"axis = .* has no direction"),
        (lambda: rx.Reach(axis=[1e200, 0, 0]), r"axis = .* has no direction"),
        (lambda: rx.systems.Wheels([[0, 0, 1.0], [1e-200, 0, 0]], 0.1), r"axes\[1\] = .* no dir"),
        (lambda: rx.Capsule(0.1, 1.0, axis=[1.0]), r"axis has shape \(1,\)"),
        (lambda: rx.Cylinder(0.1, 0.0), r"length = 0.0 must be positive"),
        (lambda: rx.Box([1, 2, 3], radius=0.6), r"from 0 to half of its shortest side"),
        (lambda: rx.Box([1, -2, 3]), r"size = .* must be positive"),
        (lambda: rx.Ball(0.1, at=[1.0]), r"at has shape \(1,\)"),
        (lambda: rx.Ball(0.1, body=-1), r"body = -1 must be the number of a body"),
        (lambda: rx.Ball(0.1, body=1.5), r"body = 1.5 must be the number of a body"),
        (lambda: rx.Ball(0.1, name=""), r"name = '' must be a text"),
        (lambda: rx.Contacts([]), r"must be a list of pairs"),
        (lambda: rx.Contacts([BALL]), r"is not a pair of shapes"),
        (lambda: rx.Contacts([(BALL, "floor")]), r"'floor' is not a shape that can touch"),
        (lambda: rx.Contacts([(BALL, BALL)]), r"in a pair with itself"),
        (lambda: rx.Contacts([(rx.Ball(1.0), FLOOR)]), r"'ball' and 'floor' both stand still"),
        (lambda: rx.Contacts([(BALL, FLOOR), (FLOOR, BALL)]), r"is given twice"),
        (lambda: rx.Contacts([(BALL, FLOOR), (rx.Ball(0.1, body=0), FLOOR)]), r"is given twice"),
        (
            lambda: rx.systems.Balls(0.1, 1.0, against=[FLOOR, rx.Plane(name="floor")]),
            r"floor twice",
        ),
        (lambda: rx.SelfContact(0.1, against=[FLOOR, FLOOR]), r"against has the floor twice"),
        (lambda: rx.Contacts([(BALL, FLOOR)], friction=-0.1), r"friction = -0.1 must be 0 or more"),
        (lambda: rx.Contacts([(BALL, FLOOR)], restitution=1.2), r"must be from 0 to 1"),
        (lambda: rx.Contacts([(BALL, FLOOR)], friction=[0.1, 0.2]), r"one for each of the 1 pairs"),
        (
            lambda: rx.Contacts([(rx.Cylinder(0.1, 1.0, body=0), rx.Box(1.0))]),
            r"no formula for a Cylinder that touches a Box. Pairs that can touch: Ball and Plane",
        ),
        (lambda: world(rx.Contacts([(rx.Ball(0.1, body=1), FLOOR)])), r"has one body, which has"),
        (lambda: world(rx.Contacts([(rx.Ball(0.1, body="a"), FLOOR)])), r"on the body 'a', but"),
        (lambda: world(rx.Contacts([(BALL, rx.Box(1.0, body=0))])), r"are on the same body, 0"),
    ],
)
def test_what_cannot_touch_is_a_sentence(make, words):
    with pytest.raises(rx.BadInput, match=words):
        make()


def test_contacts_of_shapes_with_the_same_names_are_told_apart():
    slopes = [rx.Plane([x, 0, 1]) for x in (-0.5, 0.5)]
    contact = rx.Contacts([(BALL, slope) for slope in slopes])
    assert contact.names == ("ball on plane 1", "ball on plane 2")
    system = rx.MechanicalSystem(
        FREE, [0.008] * 3 + [2.0] * 3, lambda g: 2 * 9.81 * g[1][2], contact=contact
    )
    start = system.state((np.eye(3), [0, 0, 0.1 * np.sqrt(1.25)]), velocity=np.zeros(6))
    run = rx.simulate(system, rx.NonsmoothRattle(), start, h=0.01, steps=5)
    held = sum(motion.force[-1] for motion in run.contacts.values()) / np.sqrt(1.25)
    assert len(run.contacts) == 2 and held == pytest.approx(2 * 9.81)


def test_candidates_are_named_after_shapes_and_their_parts():
    box = rx.Box([0.3, 0.2, 0.1], body=0, name="crate")
    names = rx.Contacts([(FLOOR, box)]).names
    assert len(names) == 8
    assert names[2] == "crate corner 3 on floor"
    capsules = rx.Contacts([(rx.Capsule(0.1, 1.0, body=0), rx.Capsule(0.1, 1.0, body=1))]).names
    assert capsules == (
        "capsule of body 0 end 1 on capsule of body 1",
        "capsule of body 0 end 2 on capsule of body 1",
        "capsule of body 1 end 1 on capsule of body 0",
        "capsule of body 1 end 2 on capsule of body 0",
        "capsule of body 0 on capsule of body 1",
    )


def test_each_pair_has_its_friction_and_restitution():
    box = rx.Box(0.2, body=1)
    contact = rx.Contacts([(BALL, FLOOR), (box, FLOOR)], friction=[0.1, 0.5], restitution=[1.0, 0])
    np.testing.assert_array_equal(contact.friction, [0.1, *[0.5] * 8])
    np.testing.assert_array_equal(contact.restitution, [1.0, *[0.0] * 8])


def test_the_order_of_a_pair_turns_normals_and_rows_around():
    g = (jnp.eye(3), jnp.array([0.2, -0.1, 0.4]))
    one, two = (world(rx.Contacts([pair])).contact for pair in ((BALL, FLOOR), (FLOOR, BALL)))
    a, b = one.look(g), two.look(g)
    np.testing.assert_array_equal(a.gap, b.gap)
    np.testing.assert_array_equal(a.frame[:, 0], -b.frame[:, 0])
    np.testing.assert_array_equal(a.rows[:, 0], b.rows[:, 0])


def test_a_start_that_overlaps_is_rejected_with_the_depth():
    system = world(rx.Contacts([(rx.Box(0.2, body=0, name="crate"), FLOOR)]))
    still = np.zeros(6)
    with pytest.raises(rx.BadInput, match=r"crate corner 1 on floor: they overlap by 0.01 m"):
        system.state((np.eye(3), [0.0, 0.0, 0.09]), velocity=still)
    system.state((np.eye(3), [0.0, 0.0, 0.1 - 1e-14]), velocity=still)

    def start(height):
        return system.state((jnp.eye(3), jnp.stack([0.0, 0.0, height])), velocity=jnp.zeros(6))

    with pytest.raises(rx.BadInput, match=r"member 1: crate corner 1 on floor"):
        jax.vmap(start)(jnp.array([0.1, 0.05]))


def test_friction_is_a_number_that_can_vary():
    def gap_and_friction(f):
        system = world(rx.Contacts([(BALL, FLOOR)], friction=f))
        return system.contact.friction[0]

    assert float(jax.grad(gap_and_friction)(0.3)) == 1.0
    np.testing.assert_array_equal(jax.vmap(gap_and_friction)(jnp.array([0.1, 0.2])), [0.1, 0.2])
    with pytest.raises(rx.BadInput, match=r"member 1: friction = -0.2 must be 0 or more"):
        jax.vmap(gap_and_friction)(jnp.array([0.1, -0.2]))


def test_other_integrators_do_not_pass_over_contacts():
    system = world(rx.Contacts([(BALL, FLOOR)]))
    start = system.state((np.eye(3), [0.0, 0.0, 1.0]), velocity=np.zeros(6))
    with pytest.raises(rx.BadInput, match="use NonsmoothRattle"):
        rx.simulate(system, rx.LieVerlet(), start, h=0.01, steps=1)

"""What joints ask of poses: rows in closed form, sides, and forms that can be stacked."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.mechanisms import laws, rolling
from retrax.mechanisms.measures import Travel, Turn
from retrax.mechanisms.pose import Pose
from retrax.numerics.evaluate import evaluate

rng = np.random.default_rng(1)


def vector(d=3):
    return jnp.asarray(rng.normal(size=d))


def direction():
    v = rng.normal(size=3)
    return jnp.asarray(v / np.linalg.norm(v))


def number():
    return jnp.asarray(rng.uniform(0.5, 2))


def rotation(d=3):
    Q, _ = np.linalg.qr(rng.normal(size=(d, d)))
    Q[:, 0] *= np.linalg.det(Q)
    return jnp.asarray(Q)


def turn(d=3):
    return Turn(vector(d), vector(d), vector(d))


def travel(d=3):
    return Travel(vector(d), vector(d), vector(d))


def wheel():
    ways = jnp.asarray(np.eye(3)[:2])
    return rolling.WheelContact(vector(), direction(), number(), direction(), ways)


# For how many bodies, and the law with random numbers.
LAWS = {
    "coincidence": (2, lambda d: laws.Coincidence(vector(d), vector(d))),
    "unturned": (2, lambda d: laws.Unturned(rotation(d))),
    "in a plane": (2, lambda d: laws.InPlanes(vector(d)[None], vector(d), vector(d))),
    "apart": (2, lambda d: laws.Apart(vector(d), vector(d), number())),
    "threaded": (4, lambda d: laws.Threaded(turn(d), travel(d), number())),
    "screwed": (2, lambda d: laws.Screwed(laws.Threaded(turn(d), travel(d), number()))),
    "geared": (4, lambda d: laws.Geared(turn(d), turn(d), jnp.array([3.0, -2.0]))),
}
IN_SPACE = {
    "perpendicular": (2, lambda d: laws.Perpendicular(vector(), vector())),
    "aligned": (2, lambda d: laws.Aligned(jnp.stack([vector(), vector()]), vector())),
    "in two planes": (
        2,
        lambda d: laws.InPlanes(jnp.stack([vector(), vector()]), vector(), vector()),
    ),
    "wheel height": (1, lambda d: rolling.WheelHeight(wheel(), number())),
    "several": (
        2,
        lambda d: laws.Several(
            (laws.Coincidence(vector(), vector()), laws.Perpendicular(vector(), vector()))
        ),
    ),
}
CASES = [(name, d) for d in (2, 3) for name in LAWS] + [(name, 3) for name in IN_SPACE]


@pytest.mark.parametrize(("name", "d"), CASES)
def test_rows_are_the_derivatives_of_the_residual(name, d):
    bodies, make = (LAWS | IN_SPACE)[name]
    law, poses = make(d), [Pose(rotation(d), vector(d)) for _ in range(bodies)]
    rows = evaluate(lambda law, poses: law.rows(*poses), law, poses)
    slopes = evaluate(lambda law, poses: laws.differentiate(law, *poses), law, poses)
    residual = evaluate(lambda law, poses: law.residual(*poses), law, poses)
    assert residual.shape == (law.count,)
    for row, slope in zip(rows, slopes, strict=True):
        assert row.shape == (law.count, d * (d + 1) // 2)
        np.testing.assert_allclose(row, slope, rtol=0, atol=1e-14 * max(1, np.max(np.abs(slope))))


def test_contacts_say_how_the_point_of_contact_moves():
    """A wheel's lowest point, found by search, and the velocity of the matter there."""
    contact, R, x = wheel(), rotation(), vector()
    pose, xi = Pose(R, x), rng.normal(size=6)
    n, a = np.asarray(contact.normal), np.asarray(R @ contact.axle)
    e = np.cross(a, n) / np.linalg.norm(np.cross(a, n))
    f = np.cross(a, e)
    angles = np.linspace(0, 2 * np.pi, 1_000_001)
    circle = np.outer(np.cos(angles), e) + np.outer(np.sin(angles), f)
    low = circle[np.argmin(circle @ n)] * float(contact.radius) + np.asarray(R @ contact.centre)
    velocity = xi[3:] + np.cross(np.asarray(R) @ xi[:3], low)
    found = evaluate(lambda c, p: c.rows(p), contact, pose) @ xi
    np.testing.assert_allclose(found, velocity[:2], atol=1e-5)


def half_turn(axis):
    axis = np.asarray(axis) / np.linalg.norm(axis)
    return 2 * np.outer(axis, axis) - np.eye(3)


@pytest.mark.parametrize(
    ("joint", "wrong"),
    [
        (lambda b: rx.Revolute("ground", b, at=[0, 0, 0], axis=[0, 0, 1]), half_turn([1, 2, 0])),
        (lambda b: rx.Fixed("ground", b), half_turn([0, 1, 0])),
        (lambda b: rx.Fixed("ground", b), np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])),
        (lambda b: rx.Planar("ground", b, at=[0, 0, 0], normal=[0, 0, 1]), half_turn([1, 0, 0])),
        (
            lambda b: rx.Screw("ground", b, at=[0, 0, 0], axis=[0, 0, 1], pitch=1.0),
            half_turn([0, 0, 1]),
        ),
    ],
)
def test_a_joint_the_wrong_way_round_is_rejected_although_its_equations_hold(joint, wrong):
    m = rx.Mechanism()
    m.join(joint(m.body("b", 1.0, [0.1, 0.2, 0.25], at=[0, 0, 0])))
    system = m.system()
    g = (wrong[None], np.zeros((1, 3)))
    assert evaluate(lambda s, g: s.constraint.gap(g, jnp.zeros(())), system, g) < 1e-15
    with pytest.raises(rx.BadInput, match=r"'joint 1'.*wrong way round"):
        system.state(g, velocity=np.zeros(6))
    system.state((np.eye(3)[None], np.zeros((1, 3))), velocity=np.zeros(6))


def test_equal_joints_have_laws_of_one_form():
    m = rx.Mechanism()
    one = m.body("one", 1.0, [0.1, 0.2, 0.25], at=[0, 0, 0])
    two = m.body("two", 2.0, [0.1, 0.2, 0.25], at=[1, 0, 0], turned=half_turn([1, 2, 3]))
    m.join(
        rx.Revolute("ground", one, at=[0, 0, 1], axis=[0, 0, 1]),
        rx.Revolute(one, two, at=[1, 0, 1], axis=[1, 2, 1], name="second"),
    )
    first, second = (c.law for c in m.system().constraint.connections)
    assert jax.tree.structure(first) == jax.tree.structure(second)
    both = jax.tree.map(lambda *x: jnp.stack(x), first, second)
    assert all(leaf.shape[0] == 2 for leaf in jax.tree.leaves(both))

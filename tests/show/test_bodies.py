import numpy as np
import pytest
from page_kinds import KINDS

import retrax as rx
from retrax.show.bodies import bodies, box, factors, inertia_of


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (rx.SO3(), [("SO(3)", [[0, 1, 2]])]),
        (rx.Translation(1), [("R", [[0]])]),
        (rx.Translation(3), [("R", [[0, 1, 2]])]),
        (rx.Product(rx.SO2(), rx.Translation(2)), [("SO(2)", [[0]]), ("R", [[1, 2]])]),
        (rx.Power(rx.SO3(), 2), [("SO(3)", [[0, 1, 2], [3, 4, 5]])]),
        (rx.Power(rx.Translation(2), 2), [("R", [[0, 1], [2, 3]])]),
        (
            rx.Product(rx.Power(rx.Product(rx.SO2(), rx.Translation(2)), 2), rx.SE2()),
            [("SO(2)", [[0], [3]]), ("R", [[1, 2], [4, 5]]), ("SE(2)", [[6, 7, 8]])],
        ),
        (rx.Power(rx.Power(rx.SO3(), 2), 2), [("SO(3)", np.arange(12).reshape(4, 3).tolist())]),
        (rx.SO(4), []),
        (rx.Product(rx.SO3(), rx.SO(5)), []),
        (None, []),
    ],
)
def test_factors_of_a_group(group, expected):
    found = factors(group)
    assert [(f.kind, f.coordinates.tolist()) for f in found] == expected


def test_a_turning_body_has_its_momentum(runs):
    run = runs("SO(3)")
    (body,) = bodies(run)
    assert body.position is None
    spatial = body.momentum(run)
    np.testing.assert_allclose(spatial[:, 2], run.invariants()["spatial momentum e3"], atol=1e-14)


def test_a_rigid_motion_turns_and_travels(runs):
    run = runs("SE(3)")
    (body,) = bodies(run)
    np.testing.assert_array_equal(body.rotation, np.asarray(run.g[0]))
    np.testing.assert_array_equal(body.position, np.asarray(run.g[1]))
    assert body.coordinates.tolist() == [0, 1, 2]


def test_a_point_in_the_plane_stays_in_it(runs):
    (body,) = bodies(runs("R^2"))
    assert body.rotation is None and body.coordinates is None
    np.testing.assert_array_equal(body.position[:, 2], 0)


def test_every_factor_is_a_body(runs):
    run = runs("SO(3) x SO(2)^2")
    found = bodies(run)
    assert [body.label for body in found] == ["body 1", "body 2", "body 3"]
    np.testing.assert_array_equal(found[2].rotation[:, :2, :2], np.asarray(run.g[1])[:, 1])
    np.testing.assert_array_equal(found[2].rotation[:, 2], np.tile([0.0, 0.0, 1.0], (len(run), 1)))


def test_a_group_without_a_picture_has_no_bodies(runs):
    assert bodies(runs("SO(4)")) == []


def test_the_box_has_the_inertia_of_the_body(runs):
    run = runs("SO(3)")
    inertia = inertia_of(run.system, np.arange(3))
    np.testing.assert_array_equal(inertia, np.diag([1.2, 1.6, 0.8]))
    corners, from_inertia = box(run, np.arange(3))
    assert from_inertia
    second = corners.T @ corners
    moments = np.trace(second) * np.eye(3) - second  # the inertia of eight equal corner masses
    np.testing.assert_allclose(moments / moments[0, 0], np.diag([1.2, 1.6, 0.8]) / 1.2, atol=1e-9)
    # Corners 0, 1, 2, 4 span the box right-handedly: its faces look outwards.
    sides = corners[[4, 2, 1]] - corners[0]
    assert np.linalg.det(sides) > 0


def test_the_inertia_of_one_of_several_bodies_is_its_own_block():
    group = rx.Product(rx.SO3(), rx.Translation(2))
    whole = np.diag([1.0, 2.0, 2.5, 0.7, 0.7])
    body = rx.MechanicalSystem(group, whole, lambda g: g[0][2, 2])
    np.testing.assert_array_equal(inertia_of(body, np.arange(3)), np.diag([1.0, 2.0, 2.5]))
    whole[0, 3] = whole[3, 0] = 0.1
    coupled = rx.MechanicalSystem(group, whole, lambda g: g[0][2, 2])
    assert inertia_of(coupled, np.arange(3)) is None


def test_a_run_without_an_inertia_gets_some_box():
    run = KINDS["body"]()
    corners, from_inertia = box(run, np.arange(3))
    assert not from_inertia and corners.shape == (8, 3)

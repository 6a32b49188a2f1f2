import numpy as np
import pytest

from retrax.show.bodies import bodies
from retrax.show.factors import factors
from retrax.show.shape import box, fitted_inertia


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("SO(3)", [("SO(3)", [[0, 1, 2]])]),
        ("R", [("R", [[0]])]),
        ("R^3", [("R", [[0, 1, 2]])]),
        ("SO(2) x R^2", [("SO(2)", [[0]]), ("R", [[1, 2]])]),
        ("SO(3)^2", [("SO(3)", [[0, 1, 2], [3, 4, 5]])]),
        ("(R^2)^2", [("R", [[0, 1], [2, 3]])]),
        (
            "(SO(2) x R^2)^2 x SE(2)",
            [("SO(2)", [[0], [3]]), ("R", [[1, 2], [4, 5]]), ("SE(2)", [[6, 7, 8]])],
        ),
        ("((SO(2)^2)^2) x R", []),
        ("subgroup of GL(4) of dimension 6", []),
    ],
)
def test_factors_of_a_name(name, expected):
    found = factors(name)
    assert [(f.kind, f.coordinates.tolist()) for f in found] == expected


def test_names_that_groups_give_are_read():
    import retrax as rx

    group = rx.Product(rx.SE3(), rx.Power(rx.Product(rx.SO3(), rx.Translation(2)), 3), rx.SO2())
    found = factors(group.name)
    assert sum(f.coordinates.size for f in found) == group.dim
    nested = rx.Power(rx.Power(rx.SO3(), 2), 2)
    assert factors(nested.name)[0].coordinates.shape == (4, 3)


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
    assert bodies(runs("SL(3)")) == []


def test_the_box_has_the_inertia_of_the_body(runs):
    run = runs("SO(3)")
    inertia = fitted_inertia(np.asarray(run.velocity), np.asarray(run.momentum))
    np.testing.assert_allclose(inertia, np.diag([1.2, 1.6, 0.8]), atol=1e-10)
    corners, from_inertia = box(np.asarray(run.velocity), np.asarray(run.momentum))
    assert from_inertia
    second = corners.T @ corners
    moments = np.trace(second) * np.eye(3) - second  # the inertia of eight equal corner masses
    np.testing.assert_allclose(moments / moments[0, 0], np.diag([1.2, 1.6, 0.8]) / 1.2, atol=1e-9)
    # Corners 0, 1, 2, 4 span the box right-handedly: its faces look outwards.
    sides = corners[[4, 2, 1]] - corners[0]
    assert np.linalg.det(sides) > 0


def test_a_run_that_does_not_tell_gets_some_box():
    spin = np.tile([0.0, 0.0, 1.0], (5, 1))
    corners, from_inertia = box(spin, 2 * spin)
    assert not from_inertia and corners.shape == (8, 3)

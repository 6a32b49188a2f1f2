"""Inertias of solids against sums over many points of mass, and the parallel-axis rule."""

import numpy as np
import pytest

import retrax as rx
from retrax import solids

ARM = np.array([0.3, -0.2, 0.5])
GRID = (np.arange(60) + 0.5) / 60 - 0.5  # midpoints of cells that fill (-1/2, 1/2)


def points(inside, sides):
    """The cells of a block that lie in a solid."""
    x = np.stack(np.meshgrid(*[s * GRID for s in sides], indexing="ij"), axis=-1).reshape(-1, 3)
    return x[inside(x)]


def summed(x, mass):
    """The inertia about the origin of equal points at `x`, their cells taken for points."""
    square = np.sum(x * x, axis=1)
    return mass / len(x) * (np.sum(square) * np.eye(3) - x.T @ x)


SOLIDS = {
    "box": (solids.box(2.0, (0.4, 0.6, 0.8), ARM), lambda x: x[:, 0] < 9, (0.4, 0.6, 0.8)),
    "ellipsoid": (
        solids.ellipsoid(2.0, (0.2, 0.3, 0.4), ARM),
        lambda x: np.sum((x / [0.2, 0.3, 0.4]) ** 2, axis=1) < 1,
        (0.4, 0.6, 0.8),
    ),
    "elliptic cylinder": (
        solids.elliptic_cylinder(2.0, (0.2, 0.3), 0.8, ARM),
        lambda x: np.sum((x[:, :2] / [0.2, 0.3]) ** 2, axis=1) < 1,
        (0.4, 0.6, 0.8),
    ),
    "sphere": (
        solids.sphere(2.0, 0.3, ARM),
        lambda x: np.sum(x * x, axis=1) < 0.09,
        (0.6, 0.6, 0.6),
    ),
    "cylinder": (
        solids.cylinder(2.0, 0.3, 0.8, ARM),
        lambda x: np.sum(x[:, :2] ** 2, axis=1) < 0.09,
        (0.6, 0.6, 0.8),
    ),
}


@pytest.mark.parametrize("name", SOLIDS)
def test_the_inertia_is_the_sum_over_the_mass(name):
    inertia, inside, sides = SOLIDS[name]
    expected = summed(points(inside, sides) + ARM, 2.0)
    # Cells of a sixtieth: 5e-4 for the box, whose cells are all inside; 2e-3 at curved faces.
    assert np.max(np.abs(inertia - expected)) < 2e-3 * np.max(inertia)


def test_a_rod_is_a_thin_cylinder_and_the_rule_goes_both_ways():
    thin = solids.cylinder(1.5, 0.01, 2.0, ARM)
    assert np.max(np.abs(solids.rod(1.5, 2.0, ARM, thickness=0.01) - thin)) < 1e-15
    there = solids.about(np.diag([1.0, 2.0, 2.5]), 1.5, ARM)
    assert np.max(np.abs(solids.about_centre(there, 1.5, ARM) - np.diag([1, 2, 2.5]))) < 1e-15
    assert abs(there[0, 1] + 1.5 * ARM[0] * ARM[1]) < 1e-16


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: solids.box(-1.0, (1, 1, 1)), "mass = -1.0 must be a positive"),
        (lambda: solids.box(1.0, (1, 0, 1)), "edges = .* must be 3 positive lengths"),
        (lambda: solids.ellipsoid(1.0, (1, 1)), "semi_axes = .* must be 3 positive lengths"),
        (lambda: solids.sphere(1.0, 0.5, (1, 2)), r"arm has shape \(2,\), but must have"),
        (lambda: solids.rod(1.0, 1.0, thickness=-0.1), "thickness = -0.1 m must be"),
    ],
)
def test_what_is_no_solid_is_refused(make, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        make()

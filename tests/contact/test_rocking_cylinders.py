"""Cylinders that stand, rock, wobble and fall: no start stops the run."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import retrax as rx

RADIUS, LENGTH, MASS = 0.1, 0.3, 2.0
AXIAL, ACROSS = MASS * RADIUS**2 / 2, MASS * (3 * RADIUS**2 + LENGTH**2) / 12
SYSTEM = rx.MechanicalSystem(
    rx.Product(rx.SO3(), rx.Translation(3)),
    [ACROSS, ACROSS, AXIAL, MASS, MASS, MASS],
    lambda g: 9.81 * MASS * g[1][2],
    contact=rx.Contacts(
        [(rx.Cylinder(RADIUS, LENGTH, body=0), rx.Plane(name="floor"))], friction=0.5
    ),
)


def rocking(tilt, azimuth, turn, spin):
    """A cylinder on its rim that turns about its lowest point."""
    R = (Rotation.from_euler("z", azimuth) * Rotation.from_euler("x", tilt)).as_matrix()
    axis = R[:, 2]
    flat = np.array([0, 0, 1]) - axis[2] * axis
    size = np.linalg.norm(flat)
    low = -LENGTH / 2 * axis - (RADIUS / size * flat if size > 0 else 0)
    w = np.r_[turn, 0.0] + spin * axis
    place = np.array([0, 0, LENGTH / 2 * axis[2] + RADIUS * np.hypot(axis[0], axis[1])])
    return SYSTEM.state((R, place), velocity=np.r_[R.T @ w, -np.cross(w, low)])


STARTS = [
    (1e-3, 0.0, (0.0, 0.0), 0.0),
    (0.0, 0.0, (0.0, 1.0), 0.0),
    (0.0, 0.7, (0.38, 0.32), 2.0),
    (1e-6, 0.7, (0.2, -0.45), 2.0),
    (0.01, 2.5, (1.6, 2.5), 0.0),
    (0.3, 1.57, (0.3, 0.0), 0.0),
]


@pytest.mark.parametrize("start", STARTS)
def test_a_cylinder_that_rocks_goes_on_and_adds_no_energy(start):
    run = rx.simulate(SYSTEM, rx.NonsmoothRattle(), rocking(*start), h=1e-3, steps=600)
    energy = run.energy()
    assert np.max(energy) - energy[0] < 1e-6 * MASS * 9.81 * LENGTH
    assert np.min(SYSTEM.contact.gaps((run.g[0][-1], run.g[1][-1]))) > -1e-12


@pytest.mark.campaign
@pytest.mark.parametrize("spin", [0.0, 2.0])
@pytest.mark.parametrize("tilt", [0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.3, 0.5, 1.0])
def test_no_start_of_a_cylinder_stops_the_run(tilt, spin):
    for azimuth in (0.0, 0.4, 1.1, np.pi / 2, 2.6):
        for turn in ((0.0, 0.0), (0.7, 0.0), (0.0, 1.0), (-1.1, 0.6)):
            start = rocking(tilt, azimuth, turn, spin)
            rx.simulate(SYSTEM, rx.NonsmoothRattle(), start, h=1e-3, steps=600)

"""PyElastica: a rod that touches itself, all steps in a loop in Python.

Its contacts are springs with dashpots and without friction.
"""

import math
from importlib.metadata import version

import elastica
import numpy as np

from benchmarks.loop import DENSITY, LENGTH, POISSON, RADIUS, RATE, SEGMENTS, YOUNG, frames

VERSION = version("pyelastica")


class _Simulator(
    elastica.BaseSystemCollection, elastica.Constraints, elastica.Damping, elastica.Contact
):
    """A collection of rods that are held, damped, and touch."""


class Loop:
    """The rod of `benchmarks.loop`, clamped at its first end.

    **Arguments:** `start`, `rest`: places of the nodes at first, and where no stress acts;
    `stiffness`: of the springs between segments (N/m), damped to give nothing back.
    """

    def __init__(self, start: np.ndarray, rest: np.ndarray, stiffness: float, h: float):
        tangents, directors = _directors(rest)
        rod = elastica.CosseratRod.straight_rod(
            SEGMENTS,
            rest[0],
            tangents[0],
            directors[0, :, 0],
            LENGTH,
            RADIUS,
            DENSITY,
            youngs_modulus=YOUNG,
            shear_modulus=YOUNG / 2 / (1 + POISSON),
            position=rest.T.copy(),
            directors=directors,
        )
        rod.rest_kappa[:] = rod.kappa
        rod.rest_sigma[:] = rod.sigma
        rod.position_collection[:] = start.T
        rod.director_collection[:] = _directors(start)[1]
        self.simulator, self.stepper, self.rod = _Simulator(), elastica.PositionVerlet(), rod
        self.simulator.append(rod)
        self.simulator.constrain(rod).using(
            elastica.FixedConstraint, constrained_position_idx=(0,), constrained_director_idx=(0,)
        )
        self.simulator.dampen(rod).using(
            elastica.AnalyticalLinearDamper, uniform_damping_constant=RATE, time_step=h
        )
        # Two segments on one spring: half the mass of one moves.
        mass = DENSITY * math.pi * RADIUS**2 * LENGTH / SEGMENTS / 2
        self.simulator.detect_contact_between(rod, rod).using(
            elastica.RodSelfContact, k=stiffness, nu=2 * math.sqrt(stiffness * mass)
        )
        self.simulator.finalize()
        self.h, self.t = h, 0.0

    def run(self, steps: int) -> np.ndarray:
        """Go on for so many steps, and return where the tip is."""
        for _ in range(steps):
            self.t = self.stepper.step(self.simulator, self.t, self.h)
        return np.array(self.rod.position_collection[:, -1])


def _directors(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return tangents and directors of segments."""
    along = np.diff(places, axis=0)
    tangents = along / np.linalg.norm(along, axis=1)[:, None]
    return tangents, np.transpose(frames(tangents), (2, 1, 0)).copy()

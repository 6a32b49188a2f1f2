"""Runs of 200,000 steps: rounding walks at random, and the clock is exact.

`benchmarks/long_runs.py` makes the same measurements over 1e8 steps; docs/long-runs.md has them.
"""

from fractions import Fraction

import numpy as np
import pytest

import retrax as rx
from retrax.analysis import bias, growth_exponent
from retrax.testing.problems import asymmetric_top

STEPS, RECORDS, H = 200_000, 1000, 0.02
TOP, START = asymmetric_top()


class Uncorrected(rx.SO3):
    """Rotations without the correction of R that every step makes."""

    def advance(self, g, delta):
        return g + g @ delta


def run(system, integrator, start=START, h=H, steps=STEPS):
    return rx.simulate(
        system, integrator, start,
        h=h, steps=steps, save_every=steps // RECORDS, backend="native", progress=False,
    )  # fmt: skip


# The largest error of the momentum as measured, in 1e-14.
@pytest.mark.parametrize(
    "name, measured", [("lie-verlet", 3.4), ("lie-verlet-exp", 3.0), ("composition-8", 21)]
)
def test_momentum_errors_walk_at_random(name, measured):
    made = run(TOP, rx.INTEGRATORS[name])
    momentum = made.invariants()["spatial momentum e3"]
    errors = momentum[1:] - momentum[0]
    assert np.max(np.abs(errors)) < 5e-14 * measured
    # One standard deviation of the exponent of a walk of 1000 steps is 0.033.
    assert growth_exponent(errors) == pytest.approx(0.5, abs=0.12)
    assert abs(bias(made.t[1:], errors).ratio) < 4
    assert np.max(made.group_defect()) < 1e-15  # measured: 4.4e-16
    if name == "composition-8":  # no truncation is left: the energy walks as well
        energy = made.invariants()["energy"]
        errors = energy[1:] - energy[0]
        assert np.max(np.abs(errors)) < 3e-12  # measured: 4.8e-13
        assert growth_exponent(errors) == pytest.approx(0.5, abs=0.12)
        assert abs(bias(made.t[1:], errors).ratio) < 4


def test_a_method_that_is_not_symplectic_has_a_bias():
    """The same measurements, and the opposite outcome."""
    energy = run(TOP, rx.RKMK("rk4"), h=0.05).invariants()["energy"]
    errors = energy[1:] - energy[0]
    assert growth_exponent(errors) > 0.8
    assert abs(bias(np.arange(1.0, RECORDS + 1), errors).ratio) > 5  # measured: 6.3


def test_without_the_correction_rotations_leave_the_group():
    system = rx.MechanicalSystem(Uncorrected(), TOP.inertia, TOP.potential_energy)
    defect = run(system, rx.LieVerlet()).group_defect()
    assert 1e-14 < np.max(defect) < 5e-13  # measured: 4.8e-14
    assert np.max(defect[:20]) < np.max(defect) / 3  # it grows


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_the_clock_does_not_add_up_rounding_errors(backend):
    """t = t0 + k h to one unit in the last place; 0.1 added 5000 times is off by 1e-10."""
    body = rx.systems.FreeRigidBody([1.0, 2.0, 2.5])
    state = body.state(np.eye(3), velocity=[0.3, 0.1, 0.2], t=0.7)
    made = rx.simulate(
        body, rx.LieVerlet(), state, h=0.1, steps=5000, save_every=50, backend=backend,
        progress=False,
    )  # fmt: skip
    for k, t in zip(range(0, 5001, 50), made.t, strict=True):
        exact = Fraction(0.7) + k * Fraction(0.1)
        assert abs(Fraction(float(t)) - exact) <= Fraction(np.spacing(float(t)))
    assert abs(np.cumsum(np.full(5000, 0.1))[-1] - 500) > 1e-12


def test_the_clock_after_a_million_steps():
    """Steps are counted in whole numbers, over all chunks of a run."""
    field = rx.systems.EulerTop([2.3, 1.7, 1.0])
    steps = 10**6
    made = rx.simulate(
        field, rx.Kahan(), field.at([1.2, -0.8, 2.0]), h=0.001, steps=steps, save_every=steps,
        backend="native", progress=False,
    )  # fmt: skip
    assert made.t[-1] == steps * 0.001

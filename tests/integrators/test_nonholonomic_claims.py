"""Integrators for constraints: their orders, and what they claim to keep, on hard problems."""

import jax
import numpy as np
import pytest

import retrax as rx
from retrax.testing import measurements
from retrax.testing.constrained import (
    CONSTRAINED,
    constrained_problem,
    heavy_suslov_body,
    suslov_body,
)
from retrax.testing.integrators import check_integrator, check_order
from retrax.testing.problems import asymmetric_top

NAMES = [name for name, i in rx.INTEGRATORS.items() if "constraint" in i.preserves]
# The ledger measures every method on every problem; here each problem meets each kind of method.
ORDERS = [
    ("Chaplygin sleigh on SE(2)", "lagrange-d-alembert-s0"),
    ("Chaplygin sleigh on SE(2)", "hamel-midpoint-4"),
    ("Chaplygin sleigh on SE(2)", "projected-lift-s0"),
    ("forced body with a skew plane", "lagrange-d-alembert-4"),
    ("forced body with a skew plane", "discrete-gradient"),
    ("forced body with a skew plane", "projected-lift"),
    ("Veselova's body", "lagrange-d-alembert-cayley"),
    ("Chaplygin's ball", "lagrange-d-alembert-6"),
    ("blade on SE(3)", "hamel-midpoint"),
    pytest.param("blade on SE(3)", "lagrange-d-alembert-cayley", marks=pytest.mark.slow),
    pytest.param("blade on SE(3)", "projected-lift", marks=pytest.mark.slow),
]

pytestmark = pytest.mark.filterwarnings("ignore:.*is of order 1 under a constraint")


@pytest.mark.parametrize("name", NAMES)
def test_claims_on_suslovs_problem(name):
    check_integrator(rx.INTEGRATORS[name])


@pytest.mark.parametrize("title, name", ORDERS)
def test_order(title, name):
    check_order(rx.INTEGRATORS[name], constrained_problem(title))


@pytest.mark.parametrize("title", ["Kharlamova's body", "Veselova's body", "Chaplygin's ball"])
def test_horizontal_momenta_of_the_lagrange_d_alembert_step(title):
    problem = constrained_problem(title)
    count = {"Kharlamova's body": 1, "Veselova's body": 2, "Chaplygin's ball": 3}[title]
    assert sum(map(len, problem.system.symmetries())) == count
    for name in ("lagrange-d-alembert", "lagrange-d-alembert-4"):
        kept = measurements.conservation(rx.INTEGRATORS[name], problem)
        assert kept.momentum < 8e-14  # measured: at most 1.3e-14 over 2,000 steps of h = 0.1


def test_the_measurements_can_fail():
    """RKMK leaves the constraint and loses energy; two others lose Kharlamova's momentum."""
    kept = measurements.constraint_errors(rx.RKMK("rk4"), constrained_problem("Veselova's body"))
    assert kept.constraint > 1e-6 and kept.energy > 1e-6
    heavy = constrained_problem("heavy Suslov body")
    assert measurements.constraint_errors(rx.LagrangeDAlembert(), heavy).energy > 1e-4
    kharlamova = constrained_problem("Kharlamova's body")
    assert measurements.conservation(rx.ProjectedLift(), kharlamova).momentum > 1e-5
    assert measurements.conservation(rx.DiscreteGradient(), kharlamova).momentum > 1e-5


def test_the_discrete_gradient_keeps_energy_without_a_constraint_too():
    problem = measurements.Problem(*asymmetric_top())
    assert (
        measurements.constraint_errors(rx.INTEGRATORS["discrete-gradient-4"], problem).energy
        < 1e-13
    )
    check_order(rx.INTEGRATORS["discrete-gradient-4"], problem)


@jax.jit
def step(integrator, system, state, h):
    return integrator.step(system, state, h)[0]


@pytest.mark.parametrize("retraction, s", [(rx.Exp(), 0.0), (rx.Cayley(), 0.5), (rx.Cayley(), 1.0)])
def test_without_a_constraint_the_lifts_are_the_cotangent_lift(retraction, s):
    system, state = asymmetric_top()
    free = step(rx.CotangentLift(retraction, s), system, state, 0.2)
    for method in (rx.LagrangeDAlembert, rx.ProjectedLift):
        end = step(method(retraction, s), system, state, 0.2)
        assert np.max(np.abs(end.g - free.g)) < 4e-15
        assert np.max(np.abs(end.momentum - free.momentum)) < 4e-15


@pytest.mark.parametrize(
    "method, s", [(rx.LagrangeDAlembert, 0.25), (rx.ProjectedLift, 0.0), (rx.TangentLift, 0.0)]
)
def test_the_adjoint_of_s_is_one_minus_s(method, s):
    system, state = heavy_suslov_body()
    there = step(method(s=s), system, state, 0.2)
    back = step(method(s=1 - s), system, there, -0.2)
    assert np.max(np.abs(back.g - state.g)) < 4e-15
    assert np.max(np.abs(back.momentum - state.momentum)) < 8e-15


def test_with_exp_and_no_potential_all_s_give_one_lagrange_d_alembert_step():
    system, state = suslov_body()
    ends = [
        step(rx.LagrangeDAlembert(rx.Exp(), s), system, state, 0.3).momentum
        for s in (0.0, 0.3, 1.0)
    ]
    assert np.max(np.abs(np.diff(ends, axis=0))) < 3e-15


def test_orders_that_depend_on_the_system_are_said():
    lift = rx.LagrangeDAlembert(s=0.0)
    titles = ("Suslov body", "Veselova's body", "heavy Suslov body")
    assert [lift.order_on(CONSTRAINED[title]()[0]) for title in titles] == [2, 2, 1]
    with pytest.warns(UserWarning, match="order 1 under a constraint, and its momentum drifts"):
        rx.ProjectedLift(s=0.0).check(suslov_body()[0])

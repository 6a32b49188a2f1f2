"""Integrators for constraints: their orders, and what they claim to keep, on hard problems."""

import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.testing import measurements
from retrax.testing.constrained import (
    CONSTRAINED,
    constrained_problem,
    fits,
    heavy_suslov_body,
    suslov_body,
)
from retrax.testing.integrators import check_integrator, check_order
from retrax.testing.problems import asymmetric_top

NAMES = [name for name, i in rx.INTEGRATORS.items() if "constraint" in i.preserves]
# A step of the blade has six unknowns and takes long to compile: one of each kind.
ON_SE3 = ["lagrange-d-alembert-cayley", "hamel-midpoint-4", "discrete-gradient", "projected-lift"]
ORDERS = [
    (title, name)
    for title in ("Chaplygin sleigh on SE(2)", "forced body with a skew plane", "Veselova's body")
    for name in NAMES
    if fits(rx.INTEGRATORS[name], CONSTRAINED[title]()[0])
] + [("blade on SE(3)", name) for name in ON_SE3]

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
    for name in ("lagrange-d-alembert", "lagrange-d-alembert-cayley", "lagrange-d-alembert-6"):
        kept = measurements.conservation(rx.INTEGRATORS[name], problem)
        assert kept.momentum < 8e-14  # measured: at most 1.3e-14 over 2,000 steps of h = 0.1


def test_the_measurements_can_fail():
    """RKMK leaves the constraint, the projected lift loses Kharlamova's momentum, and energies."""
    problem = constrained_problem("heavy Suslov body")
    kept = measurements.kept(rx.RKMK("rk4"), problem)
    assert kept.constraint > 1e-6 and kept.energy > 1e-6
    assert measurements.kept(rx.LagrangeDAlembert(), problem).energy > 1e-4
    kharlamova = constrained_problem("Kharlamova's body")
    assert measurements.conservation(rx.ProjectedLift(), kharlamova).momentum > 1e-5
    assert measurements.conservation(rx.DiscreteGradient(), kharlamova).momentum > 1e-5


def test_the_discrete_gradient_keeps_energy_without_a_constraint_too():
    problem = measurements.Problem(*asymmetric_top())
    for name in ("discrete-gradient", "discrete-gradient-4"):
        assert measurements.kept(rx.INTEGRATORS[name], problem).energy < 1e-13
        check_order(rx.INTEGRATORS[name], problem)


@pytest.mark.parametrize("retraction", [rx.Exp(), rx.Cayley()], ids=repr)
@pytest.mark.parametrize("s", [0.0, 0.5, 1.0])
def test_without_a_constraint_the_lifts_are_the_cotangent_lift(retraction, s):
    system, state = asymmetric_top()
    free, _ = rx.CotangentLift(retraction, s).step(system, state, jnp.asarray(0.2))
    for method in (rx.LagrangeDAlembert, rx.ProjectedLift):
        end, _ = method(retraction, s).step(system, state, jnp.asarray(0.2))
        assert np.max(np.abs(end.g - free.g)) < 4e-15
        assert np.max(np.abs(end.momentum - free.momentum)) < 4e-15


@pytest.mark.parametrize("s", [0.0, 0.25, 0.5])
@pytest.mark.parametrize("method", [rx.LagrangeDAlembert, rx.ProjectedLift, rx.TangentLift])
def test_the_adjoint_of_s_is_one_minus_s(method, s):
    system, state = heavy_suslov_body()
    h = jnp.asarray(0.2)
    there, _ = method(s=s).step(system, state, h)
    back, _ = method(s=1 - s).step(system, there, -h)
    assert np.max(np.abs(back.g - state.g)) < 4e-15
    assert np.max(np.abs(back.momentum - state.momentum)) < 8e-15


def test_with_exp_and_no_potential_all_s_give_one_lagrange_d_alembert_step():
    system, state = suslov_body()
    ends = [
        rx.LagrangeDAlembert(rx.Exp(), s).step(system, state, jnp.asarray(0.3))[0].momentum
        for s in (0.0, 0.3, 1.0)
    ]
    assert np.max(np.abs(np.diff(ends, axis=0))) < 3e-15


def test_orders_that_depend_on_the_system_are_said():
    lift = rx.LagrangeDAlembert(s=0.0)
    orders = {title: lift.order_on(make()[0]) for title, make in CONSTRAINED.items()}
    assert orders["Suslov body"] == orders["Veselova's body"] == 2
    assert orders["heavy Suslov body"] == orders["forced body with a skew plane"] == 1
    with pytest.warns(UserWarning, match="order 1 under a constraint, and its momentum drifts"):
        rx.ProjectedLift(s=0.0).check(suslov_body()[0])

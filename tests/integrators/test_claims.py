"""Every integrator has the order it claims, not less and not more, and keeps what it claims to."""

import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.testing import measurements
from retrax.testing.integrators import check_integrator, check_order
from retrax.testing.ledger import order_problems
from retrax.testing.measurements import Problem, derivative_error
from retrax.testing.outside import OUTSIDE
from retrax.testing.problems import PROBLEMS, asymmetric_free_body, asymmetric_top

TOP = Problem(*asymmetric_top())


WITHOUT_CONSTRAINT = [name for name, i in rx.INTEGRATORS.items() if "constraint" not in i.preserves]


@pytest.mark.parametrize("name", WITHOUT_CONSTRAINT)
def test_claims(name):
    check_integrator(rx.INTEGRATORS[name])


@pytest.mark.parametrize(
    "problem, name",
    [(p, n) for n in WITHOUT_CONSTRAINT for p in order_problems(rx.INTEGRATORS[n])],
)
def test_order(problem, name):
    integrator = rx.INTEGRATORS[name]
    check_order(integrator, order_problems(integrator)[problem])


@pytest.mark.parametrize(
    "problem, allowed",
    [
        ("gyroscopic body", 7e-14),
        ("quartic body", 7e-14),
        ("body on a cart", 7e-14),
        ("top in four dimensions", 4e-12),  # the matrices of a general group are not corrected
    ],
)
def test_momentum_and_group_on_other_kinds_of_systems(problem, allowed):
    kept = measurements.conservation(rx.LieVerlet(), Problem(*PROBLEMS[problem]()))
    assert kept.group < 4e-14  # measured: at most 4e-15
    assert kept.momentum < allowed


def test_the_measurements_can_fail():
    """What the baselines do not claim, they do not have."""
    kept = measurements.conservation(rx.RungeKutta("rk4"), TOP)
    assert kept.group > 1e-4 and kept.momentum > 1e-6
    assert measurements.conservation(rx.RKMK("rk4"), TOP).momentum > 1e-6
    assert measurements.symmetry_defect(rx.RKMK("rk4"), TOP) > 1e-6
    assert measurements.symplectic_defect(rx.RKMK("rk4"), TOP) > 1e-6
    amplitude, drift = measurements.energy(rx.RKMK("rk4"), TOP)
    assert abs(drift) > 0.5 * amplitude
    longer = measurements.energy(rx.RKMK("rk4"), TOP, 10 * measurements.LONG_STEPS)
    assert longer.amplitude > 5 * amplitude  # measured: 10.7; of symplectic methods at most 1.15


class Boastful(rx.RKMK):
    """An integrator that claims too much."""

    def __init__(self, **claims):
        super().__init__("rk4")
        for name, value in claims.items():
            setattr(self, name, value)

    __repr__ = object.__repr__


@pytest.mark.parametrize(
    "claims, sentence",
    [
        ({"order": 5}, "claims order 5"),
        ({"order": 3}, r"claims order 3 on .*, but the measured order is (3\.9|4\.0)"),
        ({"order": 2}, r"claims order 2 on .*, but the measured order is (3\.9|4\.0)"),
        ({"preserves": frozenset({"momentum"})}, "momenta of the symmetries"),
        ({"preserves": frozenset({"symmetric"})}, "symmetry in time"),
        ({"preserves": frozenset({"symplectic"})}, "symplectic form"),
        ({"preserves": frozenset({"everything"})}, "which nothing measures"),
    ],
)
def test_a_false_claim_is_found_out(claims, sentence):
    with pytest.raises(rx.CheckFailed, match=sentence):
        check_integrator(Boastful(**claims), TOP)


@pytest.mark.parametrize("retraction", [rx.Cayley(), rx.Exp()], ids=repr)
@pytest.mark.parametrize("s", [0.0, 0.25, 1.0])
def test_cotangent_lift_has_order_2_for_left_invariant_systems_whatever_s(retraction, s):
    lift = rx.CotangentLift(retraction, s=s)
    free = Problem(*asymmetric_free_body())
    assert (lift.order, lift.order_on(free.system)) == (1, 2)
    check_order(lift, free)


def test_with_exp_and_no_potential_all_s_are_the_same_map():
    system, state = asymmetric_free_body()
    ends = [
        rx.simulate(system, rx.CotangentLift(rx.Exp(), s=s), state, h=0.1, steps=50).momentum[-1]
        for s in (0.0, 0.25, 0.5, 1.0)
    ]
    assert np.max(np.abs(np.diff(ends, axis=0))) < 5e-15


@pytest.mark.parametrize("s", [0.0, 0.25, 0.5])
def test_the_adjoint_of_s_is_one_minus_s(s):
    system, state = asymmetric_top()
    h = jnp.asarray(0.2)
    there, _ = rx.CotangentLift(s=s).step(system, state, h)
    back, _ = rx.CotangentLift(s=1 - s).step(system, there, -h)
    assert np.max(np.abs(back.g - state.g)) < 4e-15
    assert np.max(np.abs(back.momentum - state.momentum)) < 4e-15


@pytest.mark.parametrize("name", ["lie-verlet", "composition-4"])
def test_derivatives_of_a_run(name):
    # Measured: 3e-12, the accuracy of the difference quotient.
    assert derivative_error(rx.INTEGRATORS[name], *asymmetric_top(), h=0.05) < 3e-11


def test_compositions_refuse_what_they_cannot_raise():
    with pytest.raises(rx.BadInput, match="cannot be composed"):
        rx.Composition(rx.RKMK("midpoint"), order=4)
    with pytest.raises(rx.BadInput, match="cannot be composed"):
        rx.Composition(rx.CotangentLift(s=0.0), order=4)
    with pytest.raises(rx.BadInput, match="4, 6 or 8"):
        rx.Composition(rx.LieVerlet(), order=5)
    with pytest.raises(rx.BadInput, match="between 0 and 1"):
        rx.CotangentLift(s=1.5)


@pytest.mark.parametrize("case", OUTSIDE)
def test_order_under_contact_and_laws(case):
    """An order belongs to a problem with one."""
    found = OUTSIDE[case]()
    check_order(found.integrator, found.problem)

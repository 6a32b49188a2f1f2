"""Every kind of system runs with every integrator that takes it, alike on every back end."""

import pytest
from kinds_of_systems import (
    COLLOCATION,
    INTEGRATORS,
    KINDS,
    disagreement,
    integrators_of,
    runs,
)

# Three steps: rounding errors of the stages, measured up to 2e-15.
ALIKE = 1e-13
CAMPAIGN = pytest.mark.campaign
# One stage, two, and four that are kept as a loop.
STAGES = ("collocation-2", "collocation-8", "galerkin-2", "galerkin-4", "magnus-2")
# Of the other kinds some that compile quickly; `make test-all` runs them all.
SAMPLE = {
    "constrained": "discrete-gradient",
    "QuadraticField": "kahan",
    "free rigid body": "kahan-attitude",
}


@pytest.mark.parametrize(
    "name",
    [name if name in STAGES else pytest.param(name, marks=CAMPAIGN) for name in COLLOCATION],
)
def test_a_lagrangian_system_runs_with_every_collocation_method(name):
    """The Legendre transform iterates at each of its stages."""
    ends = runs("double pendulum", name, backends=("native",), members=("native",))
    assert disagreement(ends) < ALIKE


def test_a_quadratic_field_agrees_with_xla():
    ends = runs("QuadraticField", "kahan", backends=("native", "xla"), members=())
    assert disagreement(ends) < ALIKE


@pytest.mark.parametrize("kind", SAMPLE)
def test_a_member_moves_as_the_body_alone(kind):
    ends = runs(kind, SAMPLE[kind], backends=("native",), members=("native",))
    assert disagreement(ends) < ALIKE


@pytest.mark.campaign
@pytest.mark.parametrize("kind", KINDS)
def test_all_back_ends_agree_on_every_system(kind):
    names = integrators_of(kind)
    assert names
    apart = {name: disagreement(runs(kind, name)) for name in names}
    assert not {name: far for name, far in apart.items() if not far < ALIKE}


@pytest.mark.campaign
def test_every_integrator_takes_a_system_of_some_kind():
    taken = {name for kind in KINDS for name in integrators_of(kind)}
    assert taken == set(INTEGRATORS)

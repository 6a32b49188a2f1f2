"""Coordinates of the second kind, and what methods claim with a map that is not symmetric."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.analysis import convergence, reversibility
from retrax.testing import check_retraction
from retrax.testing.constrained import flow, heavy_suslov_body, suslov_body, veselova_body
from retrax.testing.problems import asymmetric_top

KIND = rx.SecondKind()
GROUPS = [
    rx.SE2(),
    pytest.param(rx.SO3(), marks=pytest.mark.campaign),
    pytest.param(rx.SE3(), marks=pytest.mark.campaign),
    pytest.param(rx.Product(rx.SO3(), rx.Translation(2)), marks=pytest.mark.campaign),
]


@pytest.mark.parametrize("group", GROUPS, ids=lambda g: g.name)
def test_the_laws_of_a_retraction(group):
    errors = check_retraction(rx.SecondKind(backwards=True), group)
    assert max(errors.values()) < 4e-15  # measured: 6e-16


def test_on_so3_it_is_a_cardan_joint():
    x = jnp.array([0.3, -0.7, 1.1])

    def about(axis, angle):
        return rx.SO3().exp(angle * jnp.eye(3)[axis])

    expected = about(2, x[2]) @ about(0, x[0]) @ about(1, x[1])
    got = rx.SecondKind([2, 0, 1])(rx.SO3(), x)
    np.testing.assert_allclose(got, expected, atol=4e-16)


def test_the_chart_ends_at_a_right_angle():
    group = rx.SO3()
    covers = jax.jit(lambda x: KIND.covers(group, x))
    assert covers(jnp.array([0.3, 1.5, -1.2])) and not covers(jnp.array([0.3, 1.6, -1.2]))
    # Two gimbals locked at once must not look like none.
    two = rx.Product(group, group)
    locked = jnp.array([0.0, 1.7, 0.0, 0.0, 1.7, 0.0])
    assert not KIND.covers(two, locked) and KIND.covers(two, 0.5 * locked)


# What is measured is the last column: the way missed there and back, in 20 steps of h = 0.1.
METHODS = [
    (rx.LieVerlet(KIND), asymmetric_top, 1),
    (rx.CotangentLift(KIND), asymmetric_top, 2),
    (rx.HamelMidpoint(KIND), veselova_body, 2),
    pytest.param(rx.LagrangeDAlembert(KIND), heavy_suslov_body, 2, marks=pytest.mark.campaign),
    pytest.param(rx.LagrangeDAlembert(KIND, s=0.0), suslov_body, 1, marks=pytest.mark.campaign),
    pytest.param(rx.ProjectedLift(KIND), heavy_suslov_body, 2, marks=pytest.mark.campaign),
    pytest.param(rx.TangentLift(KIND), asymmetric_top, 2, marks=pytest.mark.campaign),
    pytest.param(rx.RetractionFlow(KIND), flow, 2, marks=pytest.mark.campaign),
]


@pytest.mark.parametrize("method, make, order", METHODS)
def test_claims_depend_on_the_retraction(method, make, order):
    system, state = make()
    found = convergence(system, method, state, h=0.05, time=1.0, halvings=3)
    assert method.order_on(system) == order
    assert found.order == pytest.approx(order, abs=0.1)
    missed = reversibility(system, method, state, h=0.1, steps=20)
    assert ("symmetric" in method.preserves) == (order == 2)
    assert missed < 1e-13 if order == 2 else missed > 1e-4


def test_with_a_symmetric_retraction_nothing_has_changed():
    assert rx.LieVerlet().order == rx.LieVerlet(rx.Exp()).order == 2
    assert "symmetric" in rx.LieVerlet(rx.Exp()).preserves
    assert repr(rx.LieVerlet()) == "LieVerlet()"
    assert repr(rx.LieVerlet(rx.Exp())) == "LieVerlet(retraction=Exp())"


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: rx.SecondKind([0, 0, 1]), "names a direction twice"),
        (lambda: rx.SecondKind([0, 1, 3]), "axes = 3 must be a whole number from 0 to 2"),
        (lambda: rx.SecondKind("xyz"), "must be a list of directions"),
        (lambda: rx.SecondKind([0, 1]).check(rx.SO3()), r"names 2 directions, but SO\(3\) has 3"),
        (lambda: KIND.check(rx.Power(rx.SE3(), 10)), "takes at most 32; use Exp"),
        (lambda: rx.Composition(rx.LieVerlet(KIND), 4), "cannot be composed"),
    ],
)
def test_what_cannot_be_is_refused(make, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        make()

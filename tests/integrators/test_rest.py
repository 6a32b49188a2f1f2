"""Bodies that come to rest, start there, or move very fast: every scale is judged alike."""

import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx

# Implicit methods of every kind; the first two stand for Newton's method and for stages.
FIRST = ("lie-verlet", "collocation-4")
IMPLICIT = (
    *FIRST, "lie-verlet-exp", "cotangent-lift", "composition-4", "tangent-lift", "projected-lift",
    "discrete-gradient", "hamel-midpoint", "galerkin-4", "magnus-4", "collocation-centred-4",
    "plain-collocation-4", "lagrange-d-alembert",
)  # fmt: skip


def damped(integrator):
    body = rx.MechanicalSystem(rx.SO3(), [1.0, 2.0, 2.5], force=lambda R, xi, t: -xi)
    return body, body.state(jnp.eye(3), velocity=[0.3, 0.2, 0.4])


@pytest.mark.filterwarnings("ignore:ProjectedLift.* is of order 1")
@pytest.mark.parametrize(
    "name",
    [n if n in FIRST else pytest.param(n, marks=pytest.mark.campaign) for n in IMPLICIT],
)
def test_a_damped_body_comes_to_rest(name):
    """Its momentum leaves the numbers of full precision after some 17,700 steps."""
    body, start = damped(name)
    run = rx.simulate(
        body, rx.INTEGRATORS[name], start, h=0.1, steps=20_000, save_every=10_000, backend="native"
    )
    assert np.max(np.abs(run.momentum[-1])) < np.finfo(float).tiny
    assert np.max(np.abs(run.momentum[1])) > 1e-200


@pytest.mark.parametrize("name", ["lie-verlet", "galerkin-4"])
def test_a_damped_pendulum_comes_to_rest(name):
    """It hangs at t = 568 s with a momentum of 1e-308, and stays."""
    down = jnp.array([0.0, 0.0, -1.0])
    pendulum = rx.MechanicalSystem(
        rx.SO3(), [1.0, 1.2, 0.6], lambda R: -2.0 * (R @ down)[2], lambda R, xi, t: -3.0 * xi
    )
    start = pendulum.state(rx.SO3().exp(jnp.array([0.3, 0.1, 0.0])), velocity=[0.1, 0.2, 0.3])
    run = rx.simulate(
        pendulum, rx.INTEGRATORS[name], start, h=0.1, steps=20_000, save_every=20_000,
        backend="native",
    )  # fmt: skip
    assert np.max(np.abs(run.momentum[-1])) < 1e-15


@pytest.mark.parametrize("name", FIRST)
@pytest.mark.parametrize("size", [0.0, 5e-324, 1e-310, 1e-300, 1e-200, 1e-30])
def test_a_body_may_be_as_slow_as_it_likes(name, size):
    """Where nothing happens in a step, the momentum stays what it is."""
    body = rx.systems.FreeRigidBody([1.0, 2.0, 2.5])
    start = body.state(jnp.eye(3), momentum=size * np.array([1.0, -1.0, 2.0]))
    run = rx.simulate(body, rx.INTEGRATORS[name], start, h=0.1, steps=10, backend="native")
    np.testing.assert_allclose(run.momentum[-1], start.momentum, rtol=1e-13)


@pytest.mark.parametrize("name", FIRST)
def test_a_step_that_overflows_is_said_to_fail(name):
    body = rx.systems.FreeRigidBody([1.0, 2.0, 2.5])
    start = body.state(jnp.eye(3), momentum=[1e200, -1e200, 2e200])
    with pytest.raises((rx.StepFailed, rx.BadInput)):
        rx.simulate(body, rx.INTEGRATORS[name], start, h=0.1, steps=10, backend="native")


def on_a_spring(metre=1.0, kilogram=1.0):
    """A weight on a spring with a damper: at rest two forces cancel up to rounding errors."""
    weight = rx.MechanicalSystem(
        rx.Translation(3),
        [kilogram] * 3,
        lambda x: 10 * kilogram * x @ x + 9.81 * kilogram * metre * x[2],
        lambda x, xi, t: -2 * kilogram * xi,
    )
    start = metre * np.array([0.1, 0.2, -0.3])
    return weight, weight.state(start, velocity=metre * np.array([0.1, 0.2, 0.3]))


@pytest.mark.parametrize(
    ("name", "metre", "kilogram"),
    [
        ("collocation-4", 1.0, 1.0),
        ("tangent-lift", 1e3, 1e3),
        *[
            pytest.param(name, *units, marks=pytest.mark.campaign)
            for name in (*IMPLICIT, "adapted-lift", "composition-6")
            if name != "hamel-midpoint"  # which takes no potential
            for units in ((1.0, 1.0), (1e-6, 1e-9), (1e3, 1e3))
        ],
    ],
)
@pytest.mark.filterwarnings("ignore:ProjectedLift.* is of order 1")
def test_a_weight_comes_to_rest_on_a_spring(name, metre, kilogram):
    weight, start = on_a_spring(metre, kilogram)
    run = rx.simulate(
        weight, rx.INTEGRATORS[name], start, h=0.1, steps=5000, save_every=2500, backend="native"
    )
    assert np.max(np.abs(run.momentum[-1])) < 1e-12 * kilogram * metre


def test_a_pendulum_whose_energy_vanishes_below_comes_to_rest():
    """Its energy is a difference of terms, which a discrete gradient divides by the speed."""
    pendulum = rx.MechanicalSystem(
        rx.SO2(), [[1.0]], lambda R: 4 * (1 - R[0, 0]), lambda R, xi, t: -xi
    )
    start = pendulum.state(rx.SO2().exp(jnp.array([0.3])), velocity=[0.3])
    run = rx.simulate(
        pendulum, rx.INTEGRATORS["discrete-gradient"], start, h=0.1, steps=2000, save_every=1000,
        backend="native",
    )  # fmt: skip
    assert np.max(np.abs(run.momentum[-1])) < 1e-14


@pytest.mark.parametrize("kilogram", [1.0, 1e-9])
def test_a_bead_on_a_sphere_comes_to_rest(kilogram):
    """What is left of its velocity is not asked to be admissible."""
    bead = rx.MechanicalSystem(
        rx.Translation(3), [kilogram] * 3, force=lambda x, xi, t: -2 * kilogram * xi,
        constraint=rx.Holonomic(lambda x: x @ x - 1),
    )  # fmt: skip
    start = bead.state([0.6, 0.0, -0.8], velocity=[0.0, 0.2, 0.0])
    run = rx.simulate(bead, rx.LieVerlet(), start, h=0.1, steps=5000, save_every=2500)
    speed = np.max(np.abs(run.momentum[-1])) / kilogram
    assert speed < 2e-31  # measured: 1.8e-32, which moves it nowhere

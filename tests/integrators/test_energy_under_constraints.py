"""Steps that keep the energy under constraints that depend on the configuration."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.testing import Problem, check_integrator, measurements
from retrax.testing.constrained import FULL, constrained_problem

S = rx.systems


@cache
def lopsided_ball():
    """A rolling body with a full inertia that couples turning to moving, in a skew potential."""
    spread = np.array(
        [
            [1.3, 0.2, -0.3, 0.1, 0.0],
            [0.2, 1.7, 0.25, 0.0, 0.2],
            [-0.3, 0.25, 2.1, -0.1, 0.1],
            [0.1, 0.0, -0.1, 1.2, 0.0],
            [0.0, 0.2, 0.1, 0.0, 1.4],
        ]
    )

    def rows(g):
        R, place = g
        slope = 1 + 0.2 * jnp.sin(place[0])
        return jnp.concatenate([0.8 * slope * jnp.stack([-R[1], R[0]]), jnp.eye(2)], axis=1)

    def potential(g):
        R, place = g
        return R[2] @ jnp.array([0.6, -0.4, 0.9]) + 0.3 * place @ place + 0.2 * place[0] * R[0, 1]

    group = rx.Product(rx.SO3(), rx.Translation(2))
    constraint = rx.VelocityConstraint(rows)
    ball = rx.MechanicalSystem(group, spread, potential, constraint=constraint, physical=False)
    start = (rx.SO3().exp(jnp.array([0.4, -0.3, 0.7])), jnp.array([0.3, -0.2]))
    return ball, ball.state(start, velocity=[0.5, -0.7, 0.9, 0.0, 0.0], project=True)


@cache
def heavy_body():
    """A body with a full inertia and a weight; the axis it may not turn about depends on R."""
    constraint = rx.VelocityConstraint(lambda R: R[2:] + jnp.array([[0.3, 0.0, 0.0]]) * R[0, 1])
    body = rx.MechanicalSystem(
        rx.SO3(), FULL, S.Weight([0.6, -0.4, 1.4]), constraint=constraint, physical=False
    )
    start = rx.SO3().exp(jnp.array([0.4, -0.3, 0.7]))
    return body, body.state(start, velocity=[0.5, -0.7, 0.9], project=True)


def asymmetric() -> Problem:
    return Problem(*lopsided_ball(), spread=100.0)


def test_claims_on_veselovas_body():
    found = check_integrator(rx.HamelMidpoint(), constrained_problem("Veselova's body"))
    assert found["energy"] < 3e-14  # measured: 5e-15 over 2,000 steps of h = 0.1
    assert found["constraint"] < 1e-15
    assert found["symmetric"] < 5e-14


@pytest.mark.campaign
@pytest.mark.parametrize("retraction", [rx.Exp(), rx.Cayley()])
def test_claims_on_a_ball_that_nothing_makes_easy(retraction):
    check_integrator(rx.DiscreteGradient(retraction), asymmetric())


@pytest.mark.campaign
def test_claims_on_chaplygins_ball():
    check_integrator(rx.HamelMidpoint(), constrained_problem("Chaplygin's ball"))


def disk():
    system = S.RollingDisk(1.0, 0.5, 1.0, 0.7)
    return system, system.state(system.group.identity(), velocity=[0.8, 0.7, 0.0, 1.0])


LONG = [
    (lambda: constrained_problem("Veselova's body")[:2], rx.HamelMidpoint()),
    (lambda: constrained_problem("Chaplygin's ball")[:2], rx.HamelMidpoint()),
    (disk, rx.HamelMidpoint()),
    (lopsided_ball, rx.DiscreteGradient()),
]


@pytest.mark.campaign
@pytest.mark.parametrize("make, method", LONG)
def test_energy_and_constraint_hold_to_round_off_over_20_000_steps(make, method):
    system, state = make()
    run = rx.simulate(system, method, state, h=0.05, steps=20_000, save_every=10, progress=False)
    energy = run.invariants()["energy"]
    size = max(1.0, float(np.max(np.abs(energy))))
    assert np.max(np.abs(energy - energy[0])) / size < measurements.roundoff(20_000)
    assert run.constraint_violation().max() < 1e-14


def test_what_holds_in_a_step_exactly_and_what_to_second_order():
    system, state = heavy_body()
    method, group = rx.DiscreteGradient(), system.group

    @jax.jit
    def look(h):
        done = method.full_step(system, state, h)
        forward = rx.Exp().minus_identity(group, h / 2 * done.xi)
        middle = group.advance(state.g, forward)
        return (
            system.energy(done.state) - system.energy(state),
            system.constraint_violation(done.state),
            jnp.max(jnp.abs(system.constraint.violation(middle, done.xi, state.t))),
        )

    steps = (jnp.asarray(0.2), jnp.asarray(0.1))
    gained, broken, between = np.array([look(h) for h in steps]).T
    assert max(map(abs, gained)) < 4e-15
    assert max(broken) < 4e-16
    # The velocity of the increment is admissible at the midpoint to second order only.
    assert np.log2(between[0] / between[1]) == pytest.approx(2, abs=0.15)
    assert between[1] > 1e-5


def test_without_the_change_of_the_rows_the_energy_is_lost(monkeypatch):
    from retrax.integrators import hamel_midpoint

    monkeypatch.setattr(hamel_midpoint, "_mean_rows", lambda c, g, xi, p, t: c.rows(g, t))
    system, state = heavy_body()
    end, _ = jax.jit(rx.DiscreteGradient(rx.Cayley()).step)(system, state, jnp.asarray(0.1))
    assert abs(float(system.energy(end) - system.energy(state))) > 1e-7

"""Regulators about plans and states of rest."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from craft import SO3, rest_to_rest, spacecraft, turned
from scipy.linalg import solve_discrete_are

import retrax as rx
from retrax.integrators.driven import Driven
from retrax.mechanics.controls import Held

H = 0.02


@pytest.fixture(scope="module")
def upright():
    pendulum = rx.MechanicalSystem(SO3, [1.0, 2.8, 2.0], lambda R: 9.81 * 0.5 * R[2, 2])
    plant = rx.Actuated(pendulum, inputs=jnp.eye(3))
    return plant, plant.state(jnp.eye(3), velocity=jnp.zeros(3))


def test_the_sampled_loop_has_the_eigenvalues_of_riccatis_equation(upright):
    plant, rest = upright
    Q, R = np.diag([1.0, 2.0, 1.0, 0.1, 0.3, 0.1]), 0.1 * np.eye(3)
    law = rx.lqr(plant, rx.LieVerlet(), rest, h=H, Q=Q, R=R)
    control = rx.Sampled(law, period=H)

    def after(w):
        state = plant.system.state(SO3.exp(jnp.asarray(w[:3])), momentum=w[3:])
        run = rx.simulate(plant, rx.LieVerlet(), state, h=H, steps=1, control=control)
        return np.concatenate([SO3.log(jnp.asarray(run.g[-1])), np.asarray(run.momentum[-1])])

    e = 1e-4
    loop = np.stack([(after(x) - after(-x)) / (2 * e) for x in e * np.eye(6)], axis=1)
    step = np.stack([_free(plant, x, e) for x in e * np.eye(6)], axis=1)
    pushed = np.stack([_pushed(plant, k, e) for k in range(3)], axis=1)
    P = Q
    for _ in range(20_000):  # Riccati's recursion itself, from differences of the step
        K = np.linalg.solve(R + pushed.T @ P @ pushed, pushed.T @ P @ step)
        P = Q + step.T @ P @ (step - pushed @ K)
    known = np.linalg.eigvals(step - pushed @ K)
    mine = np.array(law.eigenvalues)
    for found in (np.linalg.eigvals(loop), known):
        gaps = [np.abs(found - x).min() for x in mine]
        assert max(gaps) < 1e-7  # of differences; the derivatives themselves are exact
    assert np.abs(mine).max() < 1.0


def test_eigenvalues_are_those_of_exact_derivatives():
    """Of the loop and of the discrete Riccati equation, for a body with three moments."""
    plant = rx.systems.upright_pendulum([1.3, 1.7, 0.8], 2.4, [0.04, -0.06, 0.45], torque=30.0)
    system, rest = plant.system, plant.upright()
    Q, R = np.diag([3.0, 2.0, 1.0, 0.1, 0.3, 0.2]), np.diag([0.1, 0.2, 0.05])
    law = rx.lqr(plant, rx.LieVerlet(), rest, h=H, Q=Q, R=R)
    driven = Driven(rx.LieVerlet(), plant.actuators, Held())

    def after(w, u):
        g, mu = rest.g @ SO3.exp(w[:3]), w[3:]
        u = law(g, system.velocity(g, mu), jnp.zeros(())) if u is None else u
        new, _ = driven.step(system, rx.State(g, mu, jnp.zeros(()), u), jnp.asarray(H))
        return jnp.concatenate([SO3.log(rest.g.T @ new.g), new.momentum])

    at, none = jnp.zeros(6), jnp.zeros(3)
    A, B = map(np.asarray, jax.jit(jax.jacfwd(after, argnums=(0, 1)))(at, none))
    P = solve_discrete_are(A, B, Q, R)
    known = np.linalg.eigvals(A - B @ np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A))
    loop = np.linalg.eigvals(np.asarray(jax.jit(jax.jacfwd(lambda w: after(w, None)))(at)))
    for found in (known, loop):
        assert max(np.abs(found - x).min() for x in law.eigenvalues) < 1e-12


def _free(plant, w, e):
    ends = []
    for sign in (1, -1):
        start = plant.system.state(SO3.exp(jnp.asarray(sign * w[:3])), momentum=sign * w[3:])
        run = rx.simulate(plant.system, rx.LieVerlet(), start, h=H, steps=1)
        ends.append(np.concatenate([SO3.log(jnp.asarray(run.g[-1])), np.asarray(run.momentum[-1])]))
    return (ends[0] - ends[1]) / (2 * e)


def _pushed(plant, k, e):
    ends = []
    for sign in (1, -1):
        u = np.zeros((1, 3))
        u[0, k] = sign * e
        start = plant.system.state(jnp.eye(3), momentum=jnp.zeros(3))
        run = rx.simulate(
            plant, rx.LieVerlet(), start, h=H, steps=1, control=rx.Signal(np.zeros(1), u)
        )
        ends.append(np.concatenate([SO3.log(jnp.asarray(run.g[-1])), np.asarray(run.momentum[-1])]))
    return (ends[0] - ends[1]) / (2 * e)


def test_the_regulator_brings_a_pendulum_upright(upright):
    plant, rest = upright
    law = rx.lqr(plant, rx.LieVerlet(), rest, h=H, Q=1.0, R=0.1)
    start = plant.state(turned(0.3, -0.2, 0.5), velocity=jnp.array([0.1, 0.2, -0.1]))
    run = rx.simulate(
        plant, rx.LieVerlet(), start, h=H, steps=2000, control=rx.Sampled(law, period=H)
    )
    assert np.abs(np.asarray(run.g[-1]) - np.eye(3)).max() < 1e-9
    assert run.provenance["backend"] == "native"


def test_feedback_keeps_a_disturbed_plant_on_its_plan():
    plan = rx.optimise(rest_to_rest(spacecraft(), (0.7, 1.1, -0.8), steps=100))
    plant = plan.problem.plant
    off = plant.state(turned(0.05, -0.04, 0.03), velocity=jnp.array([0.02, 0.0, 0.05]))
    law = plan.feedback(Q=[1e3, 1e3, 1e3, 1.0, 1.0, 1.0], R=1e-3)

    def miss(control):
        run = rx.simulate(plant, rx.LieVerlet(), off, h=plan.h, steps=100, control=control)
        return np.linalg.norm(SO3.log(jnp.asarray(plan.states.g[-1].T @ np.asarray(run.g[-1]))))

    assert miss(rx.Sampled(law, period=plan.h)) < 0.02 * miss(plan.signal())
    on = rx.simulate(
        plant, rx.LieVerlet(), plan.problem.start, h=plan.h, steps=100,
        control=rx.Sampled(law, period=plan.h),
    )  # fmt: skip
    assert np.abs(np.asarray(on.g) - plan.states.g).max() < 1e-11


def test_what_cannot_be_held_is_told(upright):
    plant, _ = upright
    tilted = plant.state(turned(0.3, 0.0, 0.0), velocity=jnp.zeros(3))
    with pytest.raises(rx.BadInput, match="not one of rest"):
        rx.lqr(plant, rx.LieVerlet(), tilted, h=H, Q=1.0, R=1.0)
    weak = rx.Actuated(plant.system, inputs=jnp.eye(3)[:, 2:])
    with pytest.raises(rx.BadInput, match="keeps this state"):
        rest = weak.state(jnp.eye(3), velocity=jnp.zeros(3))
        rx.lqr(weak, rx.LieVerlet(), rest, h=H, Q=1.0, R=1.0)
    rest = plant.state(jnp.eye(3), velocity=jnp.zeros(3))
    with pytest.raises(rx.BadInput, match="Q has shape"):
        rx.lqr(plant, rx.LieVerlet(), rest, h=H, Q=np.ones(4), R=1.0)
    with pytest.raises(rx.BadInput, match="R must be positive"):
        rx.lqr(plant, rx.LieVerlet(), rest, h=H, Q=1.0, R=0.0)

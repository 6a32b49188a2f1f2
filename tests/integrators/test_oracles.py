"""Trajectories against numbers that retrax had no part in."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import retrax as rx
from retrax.testing.problems import forced_top, tethered_body

SO3 = rx.SO3()


def end(system, integrator, state, h, time):
    steps = round(time / h)
    return rx.simulate(system, integrator, state, h=time / steps, steps=steps, save_every=steps)


def test_free_rigid_body_against_jacobi_functions():
    exact = np.array([-0.0748760194209138, -0.2905057343937961, 0.8842334567832016])
    body = rx.systems.FreeRigidBody([1.0, 2.0, 3.0])
    state = body.state(jnp.eye(3), velocity=[0.3, 0.0, 0.9])

    def error(integrator, h):
        return np.max(np.abs(end(body, integrator, state, h, 5.0).velocity[-1] - exact))

    for integrator in (rx.LieVerlet(), rx.LieVerlet(rx.Exp()), rx.CotangentLift()):
        errors = [error(integrator, h) for h in (0.05, 0.025, 0.0125)]
        ratios = np.array(errors[:-1]) / np.array(errors[1:])
        assert np.all(np.abs(ratios - 4) < 0.02), ratios
    assert error(rx.Composition(rx.LieVerlet(), order=8), 0.05) < 1e-12


def test_3d_pendulum_of_the_string_pendulum_paper_with_the_string_removed():
    exact = np.array([3.34976891619, -3.35795332769, 1.30445744132])  # good to 4e-13
    pendulum = rx.systems.Pendulum3D([0.13, 0.28, 0.17], 1.0, [0.0, 0.0, 0.3])
    state = pendulum.state(jnp.eye(3), velocity=[4.14, 4.14, 4.14])

    def run(integrator, h):
        return end(pendulum, integrator, state, h, 2.0)

    errors = [np.max(np.abs(run(rx.LieVerlet(), h).velocity[-1] - exact)) for h in (0.01, 0.005)]
    assert abs(errors[0] / errors[1] - 4) < 0.02
    fine = run(rx.Composition(rx.LieVerlet(), order=8), 0.01)
    assert np.max(np.abs(fine.velocity[-1] - exact)) < 1e-11
    vertical = fine.invariants()["spatial momentum e3"]
    assert np.max(np.abs(vertical - vertical[0])) < 4e-15


def test_3d_pendulum_of_the_pseudospectral_paper():
    """66-digit Taylor solutions at t = 1, 10 and 30: angular velocity and last row of R."""
    exact = {
        1.0: (
            [-0.266767870093943024, 0.176357320660559579, 0.460533029656644652],
            [0.259396727330123945, -0.039670424948417425, 0.964955747811698000],
        ),
        10.0: (
            [0.366433618071884895, -0.493218275473233954, 0.442572651375597419],
            [-0.068392556590203899, 0.041454217867209333, 0.996796873000750188],
        ),
        30.0: (
            [0.012437556988043805, -0.366527836274035993, 0.469573566016283681],
            [-0.181683534831236915, 0.112268546548142764, 0.976927257592495586],
        ),
    }
    system, state, *_ = rx.systems.Pendulum3D.paper()
    for time, (omega, row) in exact.items():
        run = end(system, rx.Composition(rx.LieVerlet(), order=8), state, 0.02, time)
        assert np.max(np.abs(run.velocity[-1] - omega)) < 1e-12
        assert np.max(np.abs(run.g[-1][2] - row)) < 1e-12


def cross(a, b):
    return np.array(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    )


def hat(w):
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def dop853(rhs, y0, t0, t1):
    out = solve_ivp(rhs, (t0, t1), y0, method="DOP853", rtol=1e-13, atol=1e-14)
    return out.y[:, -1]


def test_forced_top_against_an_independent_solver():
    """Euler's equations with gravity, damping, push and steering written out by hand."""
    system, state = forced_top()
    moments, arm = np.array([1.0, 1.7, 2.3]), np.array([0.4, -0.3, 1.1])

    def rhs(t, y):
        R, mu = y[:9].reshape(3, 3), y[9:]
        w = mu / moments
        push = np.array([0.5 * np.cos(2 * t), 0.25 * np.sin(t), 0.15 * np.cos(t)])
        steer = np.array([0.1 * np.cos(t), 0.5 * np.sin(2 * t), -0.2])
        force = R.T @ push + steer - (0.1 + 0.02 * w @ w) * w
        gravity = cross(R[2], arm)  # minus the derivative of V = e3 . R arm along R hat(eta)
        return np.concatenate([(R @ hat(w)).ravel(), cross(mu, w) + gravity + force])

    y0 = np.concatenate([np.ravel(state.g), state.momentum])
    exact = dop853(rhs, y0, 0.3, 2.3)
    run = end(system, rx.Composition(rx.LieVerlet(), order=8), state, 0.02, 2.0)
    ours = np.concatenate([run.g[-1].ravel(), run.momentum[-1]])
    assert run.t[-1] == pytest.approx(2.3)
    assert np.max(np.abs(ours - exact)) < 3e-12


def test_body_on_se3_against_newton_and_euler():
    """The tethered body as a force at its hook and a weight at its centre of mass."""
    system, state = tethered_body()
    mass, centre, hook = 1.3, np.array([0.2, -0.1, 0.3]), np.array([-0.3, 0.4, 0.1])
    about_centre = np.array([[1.2, 0.2, -0.3], [0.2, 1.5, 0.25], [-0.3, 0.25, 2.0]])

    def rhs(t, y):  # position and velocity of the centre of mass in space, R, body rates
        c, v, R, w = y[:3], y[3:6], y[6:15].reshape(3, 3), y[15:]
        stretch = c + R @ (hook - centre)
        pull = -(1.2 + 0.6 * stretch @ stretch) * stretch
        force = pull + np.array([0, 0, -1.1 * mass])
        torque = cross(hook - centre, R.T @ pull)
        rate = np.linalg.solve(about_centre, cross(about_centre @ w, w) + torque)
        return np.concatenate([v, force / mass, (R @ hat(w)).ravel(), rate])

    R, r = (np.asarray(x) for x in state.g)
    xi = np.asarray(system.velocity(state.g, state.momentum))
    c, v = r + R @ centre, R @ (xi[3:] + cross(xi[:3], centre))
    exact = dop853(rhs, np.concatenate([c, v, R.ravel(), xi[:3]]), 0.0, 1.0)
    run = end(system, rx.Composition(rx.LieVerlet(), order=8), state, 0.02, 1.0)
    R1, r1 = run.g[0][-1], run.g[1][-1]
    ours = np.concatenate([r1 + R1 @ centre, R1.ravel(), run.velocity[-1][:3]])
    assert np.max(np.abs(ours - np.concatenate([exact[:3], exact[6:]]))) < 3e-12


def test_lie_verlet_satisfies_the_discrete_euler_lagrange_equations():
    """Its momenta are the derivatives of its discrete Lagrangian, taken by JAX."""
    moments, arm, h = jnp.array([1.0, 1.7, 2.3]), jnp.array([0.4, -0.3, 1.1]), 0.15
    top = rx.MechanicalSystem(SO3, moments, lambda R: R[2] @ arm)
    state = top.state(SO3.exp(jnp.array([0.7, -0.4, 0.2])), momentum=[1.2, -0.8, 2.0])
    for tau in (rx.Cayley(), rx.Exp()):
        after, _ = rx.LieVerlet(tau).step(top, state, jnp.asarray(h))

        def discrete(eta0, eta1, tau=tau, after=after):
            g0, g1 = state.g @ SO3.exp(eta0), after.g @ SO3.exp(eta1)
            xi = tau.inverse(SO3, g0.T @ g1) / h
            return h * (xi @ (moments * xi) / 2 - (g0[2] + g1[2]) @ arm / 2)

        zero = jnp.zeros(3)
        first, second = jax.grad(discrete, argnums=(0, 1))(zero, zero)
        assert np.max(np.abs(-first - state.momentum)) < 1e-14
        assert np.max(np.abs(second - after.momentum)) < 1e-14


def test_lagrangian_and_hamiltonian_forms_give_the_same_run():
    moments, arm = jnp.array([1.0, 1.7, 2.3]), jnp.array([0.4, -0.3, 1.1])
    forms = [
        rx.MechanicalSystem(SO3, moments, lambda R: R[2] @ arm),
        rx.LagrangianSystem(SO3, lambda R, xi: xi @ (moments * xi) / 2 - R[2] @ arm),
        rx.HamiltonianSystem(SO3, lambda R, mu: mu @ (mu / moments) / 2 + R[2] @ arm),
    ]
    start = SO3.exp(jnp.array([0.7, -0.4, 0.2]))
    for integrator in (rx.LieVerlet(), rx.CotangentLift(), rx.RKMK("rk4")):
        ends = [
            end(form, integrator, form.state(start, momentum=[1.2, -0.8, 2.0]), 0.05, 2.0)
            for form in forms
        ]
        for other in ends[1:]:
            assert np.max(np.abs(other.momentum[-1] - ends[0].momentum[-1])) < 1e-13


def test_a_million_steps_of_a_heavy_top():
    top = rx.MechanicalSystem(SO3, [1.0, 2.8, 2.0], lambda R: -9.81 * R[2, 2])
    state = top.state(jnp.eye(3), velocity=[0.5, -0.5, 0.4])
    run = rx.simulate(top, rx.LieVerlet(), state, h=0.01, steps=1_000_000, save_every=100)
    vertical, energy = run.invariants()["spatial momentum e3"], run.invariants()["energy"]
    assert np.max(np.abs(vertical - vertical[0])) < 1e-13
    assert np.max(run.group_defect()) < 1e-15
    error = energy - energy[0]
    first, last = error[: len(error) // 10], error[-len(error) // 10 :]
    assert np.max(np.abs(error)) < 6e-5
    assert abs(np.max(np.abs(first)) / np.max(np.abs(last)) - 1) < 0.02
    assert abs(rx.analysis.drift(run.t, energy)) * run.t[-1] < 0.01 * np.max(np.abs(error))

"""Driven runs: the same on all ways, exact where the step is, and as an independent solver has."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from driven_plants import GAINS, MATRIX, TABLE, TIMES, Gains, Integrating, controls, plant, start
from scipy.integrate import solve_ivp

import retrax as rx

PLANT, START = plant(), start()
EACH = list(controls())


def driven(control, integrator=None, h=0.01, steps=100, state=START, of=PLANT, **options):
    method = rx.LieVerlet() if integrator is None else integrator
    return rx.simulate(of, method, state, h=h, steps=steps, control=control, **options)


@pytest.mark.parametrize("kind", EACH)
def test_all_ways_of_a_run_agree(kind):
    control = controls()[kind]
    run = driven(control, save_every=10)
    other = driven(control, save_every=10, backend="xla")
    assert run.provenance["backend"] == "native"
    np.testing.assert_allclose(run.g, other.g, rtol=0, atol=1e-14)
    np.testing.assert_allclose(run.momentum, other.momentum, rtol=0, atol=2e-14)
    np.testing.assert_allclose(run.inputs, other.inputs, rtol=0, atol=2e-14)

    velocities = jnp.array([[0.1, 0.2, 0.3], [0.3, 1.0, -0.7], [-0.5, 0.4, 0.2]])
    states = jax.vmap(lambda v: PLANT.state(START.g, velocity=v))(velocities)
    many = rx.ensemble(
        PLANT, rx.LieVerlet(), states, h=0.01, steps=100, save_every=10, control=control
    )
    np.testing.assert_allclose(many["g"].values[:, 1], run.g, rtol=0, atol=1e-14)
    np.testing.assert_allclose(many["inputs"].values[:, 1], run.inputs, rtol=0, atol=2e-14)

    ready = rx.prepare(PLANT, rx.LieVerlet(), h=0.01, save_every=10, control=control)
    np.testing.assert_array_equal(ready(START, 100).g, run.g)


@pytest.mark.parametrize("kind", EACH)
def test_a_run_in_two_parts_has_every_bit_of_the_whole(kind):
    control = controls()[kind]
    whole = driven(control)
    for steps in (30, 33):  # at a sample and between two of them
        first = driven(control, steps=steps)
        rest = driven(control, steps=100 - steps, state=first.final)
        if kind in ("signal", "linear", "feedback") or steps == 30:
            np.testing.assert_allclose(rest.final.g, whole.final.g, rtol=0, atol=1e-14)
        for mine, its in zip(
            jax.tree.leaves(rest.final.control), jax.tree.leaves(whole.final.control), strict=True
        ):
            np.testing.assert_allclose(mine, its, rtol=0, atol=1e-13)


def test_the_inputs_change_the_spatial_momentum_by_their_impulse_and_by_nothing_else():
    body = rx.Actuated(rx.systems.FreeRigidBody([1.0, 2.8, 2.0]), MATRIX)
    control = rx.Signal(TIMES, TABLE)
    run = driven(control, of=body, state=start(body), steps=200)
    spatial = np.einsum("tij,tj->ti", run.g, run.momentum)
    push = np.einsum("tij,jk,tk->ti", run.g[:-1], MATRIX, run.inputs[:-1])
    pull = np.einsum("tij,jk,tk->ti", run.g[1:], MATRIX, run.inputs[:-1])
    np.testing.assert_allclose(np.diff(spatial, axis=0), 0.005 * (push + pull), rtol=0, atol=4e-15)


@pytest.mark.parametrize("kind", ["feedback", "linear", "signal"])
def test_an_independent_solver_comes_to_the_same(kind):
    control = controls()[kind]
    inertia = np.array([1.0, 2.8, 2.0])

    def force(R):  # of the potential: -dV in body coordinates, by hand
        slope = np.zeros((3, 3))
        slope[2, 2], slope[0, 1] = 3.0, 0.4
        a = R.T @ slope
        return -np.array([a[2, 1] - a[1, 2], a[0, 2] - a[2, 0], a[1, 0] - a[0, 1]])

    def u(t, R, xi):
        if kind == "feedback":
            first = -float(GAINS[0]) * R[0, 2] - 0.5 * xi[0] + np.sin(t)
            return np.array([first, R[1, 0] - float(GAINS[1]) * xi[1] * xi[2]])
        if kind == "linear":
            return np.array([np.interp(t, TIMES, TABLE[:, k]) for k in range(2)])
        return TABLE[min(int(t / 0.1 + 1e-9), len(TABLE) - 1)]

    def rates(t, x, held=None):
        R, mu = x[:9].reshape(3, 3), x[9:]
        xi = mu / inertia
        turn = np.array([[0, -xi[2], xi[1]], [xi[2], 0, -xi[0]], [-xi[1], xi[0], 0]])
        push = MATRIX @ (u(t, R, xi) if held is None else held)
        return np.concatenate([(R @ turn).ravel(), np.cross(mu, xi) + force(R) + push])

    x = np.concatenate([np.asarray(START.g).ravel(), np.asarray(START.momentum)])
    for k in range(10):  # between jumps and kinks all is smooth
        held = TABLE[k] if kind == "signal" else None
        span = (0.1 * k, 0.1 * (k + 1))
        found = solve_ivp(rates, span, x, args=(held,), rtol=1e-12, atol=1e-13, method="DOP853")
        x = found.y[:, -1]
    run = driven(control, rx.Composition(rx.LieVerlet(), 6), h=0.02, steps=50)
    # Measured: 8e-12 and 3e-11; at h = 0.05 these were 6e-9 and 2e-8, of order 6 and more.
    np.testing.assert_allclose(run.final.g, x[:9].reshape(3, 3), rtol=0, atol=8e-11)
    np.testing.assert_allclose(run.final.momentum, x[9:], rtol=0, atol=3e-10)


@pytest.mark.parametrize(
    ("delay", "period"), [(0.0, 0.04), (0.1, 0.04), (0.08, 0.04), (0.01, 0.04)]
)
def test_a_digital_controller_does_what_a_loop_in_python_does(delay, period):
    law = Integrating(GAINS)
    control = rx.Sampled(law, period=period, state={"sum": jnp.zeros(2)}, delay=delay)
    run = driven(control, steps=42)

    state, own, outputs = START, {"sum": jnp.zeros(2)}, []
    for k in range(42):
        if k % round(period / 0.01) == 0:
            u, own = law(state.g, PLANT.velocity_at(state), state.t, own)
            outputs.append((k + round(delay / 0.01), np.asarray(u)))
        due = [u for since, u in outputs if since <= k]
        acting = due[-1] if due else np.zeros(2)
        np.testing.assert_allclose(run.inputs[k], acting, rtol=0, atol=1e-13)
        held = rx.Signal([0.0], acting[None])
        state = jax.tree.map(jnp.asarray, driven(held, steps=1, state=state).final)
    np.testing.assert_allclose(run.final.momentum, state.momentum, rtol=0, atol=1e-13)
    np.testing.assert_allclose(run.final.control.own["sum"], own["sum"], rtol=0, atol=1e-13)


@pytest.mark.parametrize("kind", EACH)
def test_the_work_of_the_inputs_is_the_change_of_energy_to_the_order_of_the_step(kind):
    control = controls()[kind]
    differences = []
    for h in (0.01, 0.005):
        run = driven(control, h=h, steps=round(1 / h))
        assert "energy" not in run.invariants()
        balance = run.energy_balance()
        assert abs(balance.change[-1]) > 0.05
        differences.append(abs(balance.difference[-1]))
    assert differences[0] < 2e-3
    assert 3.6 < differences[0] / differences[1] < 4.4


def test_inputs_leave_alone_the_momenta_that_they_cannot_change():
    body = rx.systems.FreeRigidBody([1.0, 2.8, 2.0])
    about_e3 = rx.Actuated(body, lambda R: R.T[:, 2:])  # a torque about the third axis of space
    run = driven(rx.Signal([0.0], [0.3]), of=about_e3, state=start(about_e3), steps=50)
    kept = run.invariants()
    assert sorted(kept) == ["spatial momentum e1", "spatial momentum e2"]
    assert all(np.ptp(values) < 4e-15 for values in kept.values())


def test_a_table_does_not_care_how_times_are_rounded():
    times = np.arange(0, 60) * 0.1
    table = np.arange(60.0)[:, None] * [1e-3, 0.0]
    for shift in (-1e-9, 0.0, 1e-9):
        run = driven(rx.Signal(times + shift, table), steps=590, h=0.01)
        np.testing.assert_array_equal(run.inputs[:-1, 0], 1e-3 * (np.arange(590) // 10))
    uneven = np.delete(times, 7)
    run = driven(rx.Signal(uneven, np.delete(table, 7, axis=0)), steps=300, h=0.01)
    which = np.where(np.arange(300) // 10 == 7, 6, np.arange(300) // 10)
    np.testing.assert_array_equal(run.inputs[:-1, 0], 1e-3 * which)


def test_backwards_a_table_acts_in_the_same_steps():
    control = rx.Signal(TIMES, TABLE)
    there = driven(control)
    back = driven(control, h=-0.01, state=there.final)
    np.testing.assert_allclose(back.final.g, START.g, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(back.inputs[:-1], there.inputs[:-1][::-1])


@pytest.mark.parametrize("kind", EACH)
def test_derivatives_are_those_of_the_differences(kind):
    def end(gains, velocity, scale, backend):
        control = controls(gains, jnp.asarray(TABLE) * scale)[kind]
        state = PLANT.state(START.g, velocity=velocity)
        run = driven(control, h=0.01, steps=40, state=state, backend=backend)
        return run.momentum[-1] @ jnp.array([1.0, -2.0, 0.5]) + run.g[10][0, 1]

    given = GAINS, jnp.array([0.3, 1.0, -0.7]), jnp.array(1.1)
    slopes = jax.grad(end, (0, 1, 2))(*given, "native")
    plain = jax.grad(end, (0, 1, 2))(*given, "xla")
    for mine, its in zip(slopes, plain, strict=True):
        np.testing.assert_allclose(mine, its, rtol=0, atol=1e-13)
    for place, x in enumerate(given):
        way = jnp.ones_like(x)
        moved = [(*given[:place], x + e * way, *given[place + 1 :]) for e in (1e-5, -1e-5)]
        difference = (end(*moved[0], "native") - end(*moved[1], "native")) / 2e-5
        np.testing.assert_allclose(jnp.sum(slopes[place]), difference, rtol=0, atol=3e-9)


def test_members_have_gains_plants_and_tables_of_their_own():
    rng = np.random.default_rng(3)
    gains = jnp.asarray(rng.uniform(size=(4, 2)))
    states = jax.vmap(lambda v: PLANT.state(START.g, velocity=v))(
        jnp.asarray(rng.normal(size=(4, 3)))
    )
    scales = [1.0, 1.1, 0.9, 1.2]
    plants = [rx.Actuated(PLANT.system, MATRIX * s) for s in scales]
    for make in (lambda k: rx.Feedback(Gains(k)), lambda k: rx.Signal(TIMES, TABLE * k[None])):
        each = [make(k) for k in gains]
        options = {"h": 0.01, "steps": 40, "save_every": 40}
        listed = rx.ensemble(plants, rx.LieVerlet(), states, control=each, **options)
        stacked = rx.ensemble(
            PLANT, rx.LieVerlet(), states, control=jax.vmap(make)(gains), **options
        )
        for k in range(4):
            state = jax.tree.map(lambda x, k=k: x[k], states)
            for many, of in ((listed, plants[k]), (stacked, PLANT)):
                run = driven(each[k], steps=40, save_every=40, state=state, of=of)
                np.testing.assert_allclose(many["g"].values[:, k], run.g, rtol=0, atol=1e-14)
                np.testing.assert_allclose(many["inputs"].values[:, k], run.inputs, atol=2e-14)


def test_a_loop_that_comes_to_rest_against_gravity_goes_on():
    body = rx.Actuated(rx.systems.Pendulum3D([0.13, 0.28, 0.17], 1.0, [0.0, 0.0, 0.3]), np.eye(3))

    def hold(R, xi, t):
        error = 0.5 * jnp.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
        return -4.0 * (error - jnp.array([0.3, 0.2, 0.1])) - 0.8 * xi

    state = body.state(np.eye(3), velocity=[0.3, 1.0, -0.7])
    for method in (rx.LieVerlet(), rx.CotangentLift(), rx.LagrangeDAlembert(), rx.TangentLift()):
        run = driven(rx.Feedback(hold), method, of=body, state=state, h=0.01, steps=4000)
        assert np.max(np.abs(run.velocity[-1])) < 1e-12
        assert np.sum(run.info.iterations) < 4 * 4000


@pytest.mark.parametrize("kind", ["sampled", "signal"])
def test_inputs_of_a_member_that_failed_are_no_numbers(kind):
    def law(R, xi, t):
        return jnp.where((t > 0.07) & (xi[0] > 0.2), jnp.nan, 0.1) * xi[:2]

    def broken(R):
        return jnp.where(R[2, 1] < 0.06, 1.0, jnp.nan) * R[2, 2]

    body = rx.MechanicalSystem(rx.SO3(), [1.0, 2.8, 2.0], broken if kind == "signal" else None)
    own = rx.Actuated(body, MATRIX)
    control = rx.Sampled(law, 0.04) if kind == "sampled" else rx.Signal([0.0], [[0.1, 0.2]])
    velocities = jnp.array([[0.9, 0.1, 0.0], [-0.9, 0.1, 0.0]])
    states = jax.vmap(lambda v: own.state(jnp.eye(3), velocity=v))(velocities)
    with pytest.warns(UserWarning, match="1 of 2 members failed"):
        runs = rx.ensemble(
            own, "lie-verlet", states, h=0.02, steps=8, control=control, save_every=1
        )
    lost = np.arange(9) >= int(runs["failed_step"][0])
    assert lost.any()
    assert np.isnan(runs["inputs"][lost, 0]).all()
    assert np.isfinite(runs["inputs"][~lost, 0]).all() and np.isfinite(runs["inputs"][:, 1]).all()

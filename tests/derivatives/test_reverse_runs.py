"""Runs that are pulled back piece by piece: memory, bits, duality, exact results."""

import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ellipk

import retrax as rx
from retrax.derivatives import native_runs, problem, stretches
from retrax.derivatives.native_runs import Leaf, Numbers, forward, pull, push
from retrax.derivatives.problem import Problem
from retrax.derivatives.stretches import Schedule
from retrax.derivatives.traced_numbers import take_out
from retrax.engine.derivative_programs import Wanted

BODY = rx.MechanicalSystem(rx.SO3(), jnp.array([1.0, 2.8, 2.0]), lambda R: -9.81 * R[2, 2])
START = BODY.state(rx.SO3().exp(jnp.array([1.0, 0.3, 0.0])), velocity=[0.5, -0.5, 0.4])
# Chaotic: a fast asymmetric top, heavy and off its axis.
TOP = rx.systems.HeavyTop(inertia=[1.0, 1.7, 2.3], mass=1.0, arm=[0.4, -0.3, 1.1], gravity=9.81)
SPUN = TOP.state(rx.SO3().exp(jnp.array([0.7, -0.4, 0.2])), velocity=[3.0, -2.0, 4.0])


def numbers(system, method, state, h, plan):
    state = jax.tree.map(np.asarray, state)
    taken = take_out(system, method, state)
    made = Problem(taken.made_for, plan)
    arrays = [*taken.params, *jax.tree.leaves(state), np.asarray(h)]
    return Numbers(made, [Leaf(np.asarray(x), False) for x in arrays], None)


def cotangents(run, plan, seed=1):
    rng = np.random.default_rng(seed)
    shapes = run.problem.state.shapes[:-1]
    return [Leaf(rng.normal(size=(len(plan.saved), *s)), False) for s in shapes]


def everything(run):
    return Wanted((True,) * len(run.problem.params.shapes), True)


@pytest.mark.parametrize("method", [rx.LieVerlet(), rx.Collocation(rx.gauss(4))])
@pytest.mark.parametrize("every", [1, 7, 5000])
def test_the_gradient_has_the_same_bits_for_every_length_of_the_pieces(monkeypatch, method, every):
    """Of a chaotic motion, over which derivatives grow; collocation remembers its last step."""
    steps = 5000 if every != 7 else 4999
    plan = Schedule(steps, every)
    run = numbers(TOP, method, SPUN, 0.01, plan)
    given, wanted = cotangents(run, plan), everything(run)
    whole = pull(run, wanted, given, None)
    for length in (17, 70, 1024):
        for module in (stretches, native_runs, problem):
            monkeypatch.setattr(module, "is_short", lambda steps, numbers, k=length: steps <= k)
            monkeypatch.setattr(module, "piece_length", lambda steps, numbers, k=length: k)
        outs, kept = forward(run, True)
        assert len(kept) < steps
        for found in (pull(run, wanted, given, kept), pull(run, wanted, given, None)):
            for a, b in zip(found, whole, strict=True):
                np.testing.assert_array_equal(a, b)
    plain = rx.simulate(TOP, method, SPUN, h=0.01, steps=steps, save_every=every)
    np.testing.assert_array_equal(outs[0], plain.g)
    np.testing.assert_array_equal(outs[1], plain.momentum)
    np.testing.assert_array_equal(outs[-4], plain.info.iterations)
    np.testing.assert_array_equal(outs[-2], plain.info.increment)


def test_a_million_steps_need_little_memory():
    """Measured: 3.6 MB beside the result and the cotangents."""
    plan = Schedule(10**6, 10**5)
    run = numbers(BODY, rx.LieVerlet(), START, 1e-3, plan)
    given, wanted = cotangents(run, plan), everything(run)
    few = Schedule(10, 1)
    pull(numbers(BODY, rx.LieVerlet(), START, 1e-3, few), wanted, given, None)  # compile
    tracemalloc.start()
    _, kept = forward(run, True)
    pull(run, wanted, given, kept)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 10e6


def test_tangents_and_cotangents_are_dual_along_the_run():
    """<lambda_k, delta_k> is the same all along: measured 6e-15 of the products it is made of."""
    count, every, h = 1000, 100, 0.01
    states, _ = forward(numbers(BODY, rx.LieVerlet(), START, h, Schedule(10**5, every)), False)
    rows = [
        type(START)(g, mu, np.asarray(k * every * h))
        for k, (g, mu) in enumerate(zip(*states[:2], strict=True))
    ]
    runs = [numbers(BODY, rx.LieVerlet(), x, h, Schedule(every, every)) for x in rows[:count]]
    still = [None] * len(runs[0].problem.params.shapes)
    delta = [np.asarray(BODY.group.tangent(START.g, jnp.array([0.3, -0.2, 0.5]))), np.ones(3)]
    tangents = [delta]
    for run in runs:
        ways = [Leaf(x, False) for x in (*tangents[-1], np.zeros(()))]
        tangents.append([x[-1] for x in push(run, [*still, *ways, None])])
    ends = [[np.random.default_rng(2).normal(size=x.shape) for x in delta]]
    for run in reversed(runs):
        given = [Leaf(np.stack([0 * c, c]), False) for c in ends[-1]]
        ends.append(pull(run, Wanted((False,) * len(still), False), given, None)[:2])
    pairs = list(zip(tangents, reversed(ends), strict=True))
    products = np.array([sum(np.sum(x * y) for x, y in zip(*both, strict=True)) for both in pairs])
    scale = max(sum(np.sum(np.abs(x * y)) for x, y in zip(*both, strict=True)) for both in pairs)
    assert np.max(np.abs(products - products[-1])) < 1e-13 * scale


def test_the_period_of_the_free_top_depends_on_its_moments_as_elliptic_integrals_say():
    r"""$T = 4K(m)/\nu$: the momentum returns after it, and its derivative by the moments is known.

    It follows from $M(T(I), I) = M_0$: $\dot M\,\partial T + \partial M = 0$.
    """
    moments, momentum = np.array([1.0, 1.6, 2.5]), np.array([0.4, 0.3, 1.9])

    def period(inertia):
        (I1, I2, I3), M2 = inertia, momentum @ momentum
        E2 = np.sum(momentum**2 / inertia)
        # Turns about the third axis, where M2 > E2 I2: see Landau and Lifshitz, section 37.
        nu = np.sqrt((I3 - I2) * (M2 - E2 * I1) / (I1 * I2 * I3))
        m = (I2 - I1) * (E2 * I3 - M2) / ((I3 - I2) * (M2 - E2 * I1))
        return 4 * ellipk(m) / nu

    e = 1e-4
    exact = [
        (
            period(moments - 2 * e * d)
            - 8 * period(moments - e * d)
            + 8 * period(moments + e * d)
            - period(moments + 2 * e * d)
        )
        / (12 * e)
        for d in np.eye(3)
    ]
    T, steps = period(moments), 40

    def end(inertia, T):
        body = rx.MechanicalSystem(rx.SO3(), inertia, lambda R: 0.0 * R[2, 2])
        start = body.state(jnp.eye(3), momentum=jnp.asarray(momentum))
        run = rx.simulate(
            body, rx.Collocation(rx.gauss(4)), start, h=T / steps, steps=steps, save_every=steps
        )
        return run.final.momentum

    at = (jnp.asarray(moments), jnp.asarray(T))
    np.testing.assert_allclose(end(*at), momentum, atol=1e-10)
    by_moments = jax.jacrev(end)(*at)
    by_period = jax.jacfwd(end, argnums=1)(*at)
    slopes = -by_period @ by_moments / (by_period @ by_period)
    np.testing.assert_allclose(slopes, exact, rtol=1e-8)

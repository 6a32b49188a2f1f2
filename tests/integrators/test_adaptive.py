"""Steps chosen by the error: proportional to the tolerance, cheaper where motion is uneven."""

import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.integrators.collocation import Collocation
from retrax.numerics.nodes import gauss

# The reference solution of the 3D pendulum at t = 10, to 18 digits.
R10 = np.array(
    [
        [-0.663251766376693119, 0.744479484775183701, -0.076468236196956381],
        [-0.745264753360342574, -0.666357144907965223, -0.023422272068541731],
        [-0.068392556590203899, 0.041454217867209333, 0.996796873000750188],
    ]
)
W10 = np.array([0.366433618071884895, -0.493218275473233954, 0.442572651375597419])
J = np.array([1.0, 2.8, 2.0])
TOLERANCES = (1e-4, 1e-6, 1e-8, 1e-10, 1e-11)
BASES = {
    "embedded": rx.RKMK("dopri5"),
    "doubling": rx.RKMK("rk4"),
    "collocation": Collocation(gauss(2)),
}


@pytest.mark.parametrize("base", ["embedded", "collocation"])
def test_the_error_of_the_pendulum_is_proportional_to_the_tolerance(base):
    system, state, _, _ = rx.systems.Pendulum3D.paper()
    ratios = []
    for tolerance in TOLERANCES:
        method = rx.Adaptive(BASES[base], tolerance)
        run = rx.simulate(system, method, state, h=1.0, steps=10, backend="native")
        worst = max(np.max(np.abs(run.g[-1] - R10)), np.max(np.abs(run.momentum[-1] / J - W10)))
        ratios.append(worst / tolerance)
        assert np.max(np.abs(run.g[-1].T @ run.g[-1] - np.eye(3))) < 2e-15
    # Measured: 3.3 to 7.4 (embedded), 2.8 to 3.3 (collocation).
    assert 1 < min(ratios) and max(ratios) < 15


@pytest.mark.parametrize("base", ["embedded", "doubling"])
def test_the_error_on_the_sphere_is_proportional_to_the_tolerance(base):
    body, state, _, _ = rx.systems.BodyOnSphere.example()
    ratios = []
    for tolerance in TOLERANCES[1:]:
        method = rx.Adaptive(BASES[base], tolerance)
        run = rx.simulate(body, method, state, h=2.5, steps=4, backend="native")
        ratios.append(np.max(np.abs(run.y - body.exact(state.g, run.t))) / tolerance)
        np.testing.assert_allclose(run.t, 2.5 * np.arange(5), atol=1e-15)
        assert np.max(np.abs(np.linalg.norm(run.y, axis=1) - 1)) < 1e-15
    # Measured: 0.26 to 0.68 (embedded), 2.7 to 4.4 (doubling).
    assert 0.1 < min(ratios) and max(ratios) < 10


def passage(t, y):
    """A turn about a fixed axis that is quick within 1/400 s of t = 5 and slow otherwise."""
    return jnp.array([0.3, -0.5, 0.8]) * (
        0.05 + 100 / (1 + (400 * (t - 5)) ** 2)
    ) + 0.2 * jnp.array([y[1], 0.0, -y[0]])


def test_a_fast_passage_costs_a_fraction_of_the_steps():
    """Against fixed steps of the same method to the same error."""
    flow = rx.SpaceFlow(rx.Sphere(3), passage)
    y0, base = np.array([0.6, 0.0, 0.8]), rx.RKMK("dopri5")
    exact = rx.simulate(flow, base, y0, h=10 / 2**15, steps=2**15, save_every=2**15).y[-1]
    run = rx.simulate(flow, rx.Adaptive(base, 1e-8), y0, h=10.0, steps=1)
    error, tries = np.max(np.abs(run.y[-1] - exact)), int(run.info.iterations.sum())
    fixed = rx.simulate(
        flow, base, y0, h=10 / (10 * tries), steps=10 * tries, save_every=10 * tries
    )
    worse = np.max(np.abs(fixed.y[-1] - exact))
    # Measured: 134 tries for 1.5e-10; 1,340 fixed steps are wrong by 2.7e-3.
    assert tries < 200 and error < 1e-8 and worse > 1e5 * error
    seen = rx.Adaptive(base, 1e-8).attempts(flow, flow.at(y0), 10.0)
    assert len(seen.t) == tries and 0 < np.sum(~seen.accepted) < 0.3 * tries
    assert abs(np.sum(seen.size[seen.accepted]) - 10) < 1e-12
    quick = np.abs(seen.t - 5) < 0.1
    assert np.max(seen.size[~quick]) > 50 * np.min(seen.size[quick])


def test_what_it_claims_and_says():
    method = rx.Adaptive(rx.LieVerlet(), 1e-6)
    assert method.preserves == {"group", "positions"} and method.order == 2
    assert rx.Adaptive(rx.RungeKutta(), 1e-6).preserves == frozenset()
    system, state, _, _ = rx.systems.Pendulum3D.paper()
    run = rx.simulate(system, method, state, h=0.5, steps=4)
    assert "tries a step" in run.summary()
    assert 0 < run.info.residual.max() <= 1e-6 and run.info.iterations[1:].min() > 3


def test_an_ensemble_adapts_member_by_member():
    flow = rx.systems.BodyOnSphere([2.3, 1.7, 1.0], 2.0)
    starts = np.array([[0.6, 0.0, 0.8], [0.0, 0.6, 0.8], [0.1, 0.0, np.sqrt(0.99)]])
    method = rx.Adaptive(rx.RKMK("dopri5"), 1e-9)
    runs = rx.ensemble(flow, method, starts, h=2.0, steps=3)
    for k, start in enumerate(starts):
        one = rx.simulate(flow, method, start, h=2.0, steps=3)
        np.testing.assert_allclose(runs["g"].values[-1, k], one.y[-1], atol=1e-14)


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (
            rx.Adaptive(rx.RKMK("dopri5"), 1e-9),
            r"step 1 of 1 .* came to t = 1 s, where the step is too short to change the time",
        ),
        (
            rx.Adaptive(rx.RKMK("dopri5"), 1e-9, most=20),
            r"took 20 tries and came only to t = 0\.\d+ s. The tolerance 1e-09 asks for steps",
        ),
    ],
)
def test_a_singular_motion_stops_the_run_in_a_sentence(method, sentence):
    flow = rx.SpaceFlow(rx.Torus(1), lambda t, y: jnp.ones(1) / jnp.maximum(1 - t, 0.0) ** 1.5)
    with pytest.raises(rx.StepFailed, match=sentence):
        rx.simulate(flow, method, np.array([[1.0, 0.0]]), h=2.0, steps=1)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: rx.Adaptive(rx.RKMK, 1e-6), "is not a retrax integrator"),
        (lambda: rx.Adaptive(rx.RKMK(), 1e-16), "tolerance = 1e-16 must be a number from 1e-14"),
        (lambda: rx.Adaptive(rx.RKMK(), 1e-6, most=0), "most = 0 must be a whole number"),
        (
            lambda: rx.RKMK(rx.Tableau("e", 1, ((),), (1.0,), (1.0,))),
            "has 1 embedded weights, but there must be one for each of its 1 stages and one",
        ),
    ],
)
def test_what_cannot_adapt_is_refused(make, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        make()

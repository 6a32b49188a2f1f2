"""Flows on spaces as a user meets them: starts, refusals, files, ensembles, ready flows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
from space_problems import flow

import retrax as rx

SPHERE = rx.Sphere(3)
AXIS = jnp.array([0.3, -0.5, 0.8])


def wind(t, y):
    """A field on the sphere that depends on time and is tangent to it."""
    push = jnp.cos(t) * jnp.array([1.0, 0.4, -0.2]) + jnp.array([0.1, -0.6, 0.5])
    return push - (push @ y) * y + jnp.cross(AXIS, y)


def test_a_tangent_field_that_depends_on_time_is_lifted():
    y0 = np.array([0.6, 0.0, 0.8])
    run = rx.simulate(
        rx.SpaceFlow(SPHERE, field=wind), rx.RKMK("dopri5"), y0, h=0.02, steps=200, backend="native"
    )

    def rate(t, y):
        push = np.cos(t) * np.array([1.0, 0.4, -0.2]) + np.array([0.1, -0.6, 0.5])
        return push - (push @ y) * y + np.cross([0.3, -0.5, 0.8], y)

    exact = scipy.integrate.solve_ivp(rate, (0, 4), y0, method="DOP853", rtol=1e-13, atol=1e-14)
    assert np.max(np.abs(run.y[-1] - exact.y[:, -1])) < 3e-10  # measured: 4e-11
    # The velocity of a saved state is the generator at its own time.
    np.testing.assert_allclose(
        np.cross(run.velocity[77], run.y[77]), rate(run.t[77], run.y[77]), atol=1e-14
    )


def test_a_run_has_points_defect_invariants_and_comes_back_from_a_file(tmp_path):
    system, start, _ = flow("isospectral")
    run = rx.simulate(system, rx.RKMK("rk4"), start, h=0.05, steps=40)
    assert run.y.shape == (41, 3, 3) and run.group_defect().max() < 1e-15
    assert list(run.invariants()) == ["eigenvalue 1", "eigenvalue 2", "eigenvalue 3"]
    assert "distance from Sym(3)" in run.summary() and "energy" not in run.summary()
    again = rx.load(run.save(tmp_path / "toda.nc"))
    np.testing.assert_array_equal(again.y, run.y)
    np.testing.assert_array_equal(again.velocity, run.velocity)
    assert again.summary() == run.summary()
    assert run.plot() and (run.report(tmp_path / "toda.html")).stat().st_size > 1000


def test_an_ensemble_starts_from_an_array_of_points():
    system, _, _ = flow("sphere")
    keys = jax.random.split(jax.random.key(1), 5)
    starts = np.asarray(jax.vmap(SPHERE.random)(keys))
    runs = rx.ensemble(system, rx.RKMK("rk4"), starts, h=0.05, steps=20)
    one = rx.simulate(system, rx.RKMK("rk4"), starts[3], h=0.05, steps=20)
    np.testing.assert_allclose(runs["g"].values[-1, 3], one.y[-1], atol=1e-15)
    bodies = [rx.systems.BodyOnSphere([2.3, 1.7, 1.0], x) for x in (0.5, 1.0, 1.5, 2.0, 2.5)]
    runs = rx.ensemble(bodies, rx.RKMK("rk4"), starts, h=0.05, steps=20)
    np.testing.assert_allclose(runs["g"].values[-1, 3], one.y[-1], atol=1e-15)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: rx.SpaceFlow(rx.SO3(), lambda t, y: y), "is not a space; pass one, such as"),
        (lambda: rx.SpaceFlow(SPHERE), "needs exactly one of generator and field"),
        (lambda: rx.SpaceFlow(SPHERE, lambda t, y: y[:2]), r"generator returns .* shape \(2,\)"),
        (
            lambda: rx.SpaceFlow(SPHERE, field=lambda t, y: y),
            r"field is not tangent to S\^2: at a random point it misses the tangent space by ",
        ),
        (
            lambda: rx.SpaceFlow(SPHERE, lambda t, y: y, invariants={"E": lambda y: y}),
            r"invariants\['E'\] returns .* must return a real number",
        ),
        (
            lambda: rx.simulate(flow("sphere")[0], rx.LieVerlet(), np.eye(3)[0], h=0.1, steps=1),
            "LieVerlet.* steps systems with momenta, but the free body on the sphere has none; use",
        ),
        (
            lambda: rx.simulate(flow("sphere")[0], rx.Kahan(), np.eye(3)[0], h=0.1, steps=1),
            "needs a quadratic field",
        ),
        (
            lambda: rx.simulate(flow("sphere")[0], rx.RKMK(), np.ones(3), h=0.1, steps=1),
            r"g is not a point of S\^2: its defect is 0.73",
        ),
        (lambda: rx.systems.SubspaceFlow([[1.0, 2.0], [0.0, 1.0]], 1), "must be symmetric, but"),
        (lambda: rx.systems.BodyOnSphere([1.0, 2.0, 3.0], -1.0), "length = -1.0 of the momentum"),
        (lambda: rx.systems.Kuramoto([1.0, 2.0, 3.0], 1.0).exact(np.eye(3)[:, :2], 1.0), "no clos"),
    ],
)
def test_what_is_no_flow_is_refused_in_a_sentence(make, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        make()


def test_a_step_out_of_the_chart_stops_the_run():
    with pytest.raises(rx.StepFailed, match="left the chart"):
        rx.simulate(
            rx.SpaceFlow(SPHERE, lambda t, y: 9.0 * AXIS),
            rx.RKMK(),
            AXIS / 0.98994949366,
            h=1.0,
            steps=3,
        )


@pytest.mark.parametrize("coupling", [0.8, 1.1, 2.5])
def test_two_oscillators_below_at_and_above_locking(coupling):
    """Against SciPy on the angles; the sum of the phases grows at its rate, to round-off."""
    system = rx.systems.Kuramoto([0.3, 1.4], coupling)
    start = np.array([0.5, -1.2])

    def rate(_, theta):
        pull = coupling / 2 * np.sin(theta[1] - theta[0])
        return np.array([0.3 + pull, 1.4 - pull])

    solver = scipy.integrate.solve_ivp(rate, (0, 20), start, "DOP853", rtol=1e-13, atol=1e-13)
    end = np.asarray(system.space.at_angles(jnp.asarray(solver.y[:, -1])))
    y0 = np.asarray(system.space.at_angles(jnp.asarray(start)))
    np.testing.assert_allclose(system.exact(y0, 20.0), end, atol=2e-11)
    run = rx.simulate(system, rx.RKMK("rk4"), y0, h=0.1, steps=200, save_every=200)
    total = np.sum(system.space.angles(run.y[-1])) - (start.sum() + 1.7 * 20)
    assert abs(np.remainder(total + np.pi, 2 * np.pi) - np.pi) < 3e-14


def test_the_toda_lattice_is_one_of_particles():
    """Positions and momenta by SciPy, read off Flaschka's matrix."""
    q, p = np.array([0.0, 0.4, 0.7, 1.5]), np.array([1.0, 0.2, -0.4, -0.8])
    toda = rx.systems.Toda(4)

    def rate(_, z):
        push = np.exp(z[:3] - z[1:4])
        return np.concatenate([z[4:], -np.diff(push, prepend=0.0, append=0.0)])

    start = np.concatenate([q, p])
    end = scipy.integrate.solve_ivp(rate, (0, 1.5), start, "DOP853", rtol=1e-13, atol=1e-13)
    there = toda.lattice(end.y[:4, -1], end.y[4:, -1])
    # Flaschka's variables run at twice the time of the flow.
    seen = toda.exact(toda.lattice(q, p), 1.5)
    np.testing.assert_allclose(seen, there, atol=1e-11)


def test_the_heavy_top_on_its_orbit_is_the_heavy_top():
    """The vertical and the momentum in body axes of a run on SO(3)."""
    moments, arm = [1.2, 1.6, 0.8], np.array([0.1, -0.2, 0.6])
    top = rx.systems.HeavyTop(moments, 1.0, arm, 9.81)
    R = rx.SO3().exp(jnp.array([0.4, -0.3, 0.2]))
    full = rx.simulate(
        top, rx.RKMK("dopri5"), top.state(R, velocity=[0.6, 0.2, 3.0]), h=0.01, steps=100
    )
    orbit = rx.systems.HeavyTopOrbit(moments, 9.81 * arm)
    start = np.concatenate([full.momentum[0], full.g[0][2]])
    run = rx.simulate(orbit, rx.RKMK("dopri5"), start, h=0.01, steps=100)
    np.testing.assert_allclose(run.y[-1][3:], full.g[-1][2], atol=4e-10)
    np.testing.assert_allclose(run.y[-1][:3], full.momentum[-1], atol=2e-9)
    casimirs = np.linalg.norm(run.y[:, 3:], axis=1), np.sum(run.y[:, :3] * run.y[:, 3:], axis=1)
    for values in casimirs:
        assert np.max(np.abs(values - values[0])) < 1e-14


def test_every_flow_is_a_case_of_the_command_line():
    from retrax.systems.catalogue import CASES

    named = {"body-on-sphere", "kuramoto", "continuous-qr", "subspace-flow", "toda"}
    assert named | {"heavy-top-orbit"} <= set(CASES)

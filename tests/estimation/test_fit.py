"""Parameters from measurements: the truth is found, and errors are those of the noise."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from pendulums import GUESS, TRUE, attitudes, motion, pendulum, whole_pendulum

import retrax as rx

T = np.linspace(0.0, 2.0, 101)


@pytest.fixture(scope="module")
def run():
    return motion(T)


def deviations(found):
    """How many standard errors each parameter is from the truth."""
    return {k: (found.p[k] - TRUE[k]) / found.standard_errors[k] for k in TRUE}


def test_parameters_and_start_from_attitudes(run):
    data = rx.Measurements(run.t, attitudes(run, 0.01), noise=0.01)
    found = rx.fit(pendulum, data, GUESS)
    assert found.converged
    assert max(map(abs, deviations(found).values())) < 3
    assert 0.8 < found.chi2 / found.degrees_of_freedom < 1.2
    assert found.identifiability.determined
    turned = rx.SO3().log(jnp.asarray(run.g[0]).T @ found.state.g)
    assert np.max(np.abs(turned)) < 0.01
    assert np.allclose(found.system.velocity_at(found.state), run.velocity[0], atol=0.03)
    assert np.allclose(np.diag(found.correlations), 1)
    assert "J2" in found.summary() and "Fit: J2" in repr(found)


def test_without_noise_the_truth_is_found(run):
    """To the error of the steps, which are shortened until it does not show."""
    data = rx.Measurements(run.t, run.g)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = rx.fit(pendulum, data, GUESS, integrator="collocation-4", h=0.005, most=60)
    for name, value in TRUE.items():
        assert found.p[name] == pytest.approx(value, rel=1e-6)


def test_a_common_factor_is_not_determined(run):
    data = rx.Measurements(run.t, attitudes(run, 0.01), noise=0.01)
    with pytest.warns(UserWarning, match=r"J\[0\], J\[1\], J\[2\] and mgl are determined only up"):
        found = rx.fit(whole_pendulum, data, {"J": [1.0, 2.0, 2.0], "mgl": 9.0})
    assert not found.identifiability.determined
    assert np.isinf(np.diag(found.covariance)).all()
    J, mgl = found.p["J"], found.p["mgl"]
    assert J[1] / J[0] == pytest.approx(1.8, rel=0.02)
    assert mgl / J[0] == pytest.approx(9.81, rel=0.02)
    assert "not determined" in found.summary()


def test_measurements_between_steps_lose_nothing(run):
    """Times that no step hits: half of the samples, moved by partial steps of the true motion."""
    rng = np.random.default_rng(3)
    late = rng.uniform(0.0, 0.02, size=100)
    body, fine = pendulum(TRUE), rx.Collocation(rx.gauss(3))
    states = [fine.step(body, _state(run, k), jnp.asarray(dt))[0] for k, dt in enumerate(late)]
    t, R = run.t[:-1] + late, np.stack([np.asarray(s.g) for s in states])
    data = rx.Measurements(t, R, noise=1e-4)
    found = rx.fit(pendulum, data, GUESS)
    assert found.chi2 < 1.0  # of 300: the errors of steps are far below the noise of 1e-4
    for name, value in TRUE.items():
        assert abs(found.p[name] - value) < found.standard_errors[name]


def _state(run, k):
    return rx.State(*[jnp.asarray(x[k]) for x in (run.g, run.momentum, run.t)])


def test_a_step_that_is_too_long_is_told(run):
    data = rx.Measurements(run.t, attitudes(run, 1e-4), noise=1e-4)
    with pytest.warns(UserWarning, match=r"steps of h = 0\.02 s are too long"):
        rx.fit(pendulum, data, TRUE, integrator="lie-verlet", h=0.02)


def test_a_known_start_and_velocities(run):
    noise = 0.02
    seen = np.asarray(run.velocity) + noise * np.random.default_rng(5).normal(size=(len(T), 3))
    data = [
        rx.Measurements(run.t, attitudes(run, 0.01), noise=0.01),
        rx.Measurements(run.t, seen, of="velocity", noise=noise),
    ]

    def start(body):
        return body.state(run.g[0], velocity=run.velocity[0])

    found = rx.fit(pendulum, data, GUESS, state=start, free_state=False)
    assert max(map(abs, deviations(found).values())) < 3
    assert list(found.residuals) == ["attitude", "velocity"]
    assert np.array_equal(found.state.g, run.g[0])


def test_the_adjoint_finds_what_tangents_find(run):
    data = rx.Measurements(run.t, attitudes(run, 0.01), noise=0.01)
    by_tangents = rx.fit(pendulum, data, TRUE)
    by_adjoint = rx.fit(pendulum, data, TRUE, method="l-bfgs", most=300)
    for name in TRUE:
        error = by_tangents.standard_errors[name]
        assert abs(by_adjoint.p[name] - by_tangents.p[name]) < 0.01 * error
        assert by_adjoint.standard_errors[name] == pytest.approx(error, rel=1e-3)


def test_the_motion_that_was_found_is_of_the_functions_of_the_fit():
    pull = [1.0]
    t = np.linspace(0.0, 1.0, 5)
    data = rx.Measurements(t, 1.2 * t[:, None] ** 2, of="position", noise=0.01)
    found = rx.fit(
        lambda p: rx.MechanicalSystem(
            rx.Translation(1), [1.0], lambda x: -(pull[0] + p["k"]) * x[0]
        ),
        data,
        {"k": 1.0},
        state=lambda body: body.state([0.0], velocity=[0.0]),
        free_state=False,
    )
    pull[0] = 5.0
    assert found.p["k"] == pytest.approx(1.4, abs=1e-6)
    assert found.run.g[-1, 0] == pytest.approx(1.2, abs=1e-6)
    assert found.run.energy()[-1] == pytest.approx(0.0, abs=1e-6)


def test_any_observable_and_unknown_noise(run):
    """The height of the body axis, 1000 times: a function of the state, noise from residuals."""

    def height(state):
        return state.g[2, 2]

    seen = np.asarray(run.g)[:, 2, 2] + 0.003 * np.random.default_rng(2).normal(size=len(T))

    def start(body):
        return body.state(run.g[0], velocity=run.velocity[0])

    found = rx.fit(
        lambda p: pendulum({**TRUE, **p}),
        rx.Measurements(run.t, seen, of=height),
        {"mgl": 9.7},
        state=start,
        free_state=False,
    )
    assert found.noise == pytest.approx(0.003, rel=0.3)
    assert abs(found.p["mgl"] - 9.81) < 3 * found.standard_errors["mgl"]


def test_a_fit_is_saved_and_shown(run, tmp_path):
    import xarray as xr

    data = rx.Measurements(run.t, attitudes(run, 0.01), noise=0.01)
    found = rx.fit(pendulum, data, GUESS)
    with xr.open_dataset(found.save(tmp_path / "fit.nc")) as kept:
        assert kept["value"].sel(parameter="mgl") == found.p["mgl"]
        assert np.array_equal(kept["covariance"], found.covariance)
        assert kept["residual of attitude"].shape == (101, 3)
    page = found.report(tmp_path / "fit.html").read_text()
    assert "J2" in page and "Correlations" in page and "<script" not in page
    assert len(found.run.t) == 101


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"start": {}}, "holds no numbers"),
        ({"start": {"J2": np.nan, "J3": 2.0, "mgl": 9.0}}, "finite numbers"),
        ({"system_of": lambda p: 3}, "is not a retrax system"),
        ({"system_of": lambda p: pendulum({"J2": p["K"]})}, "cannot be built: KeyError"),
        ({"data": 3}, "is not rx.Measurements"),
        ({"free_state": False}, "needs the state"),
        ({"method": "simplex"}, "choose one of auto"),
        ({"h": -1.0}, "positive"),
        ({"state": 3}, "is not a State"),
        ({"start": {"J2": 9.0, "J3": 1.0, "mgl": 9.0}}, "inertia"),
    ],
)
def test_what_cannot_be_fitted_is_refused(run, change, match):
    data = rx.Measurements(run.t, run.g, noise=0.01)
    usual = {"system_of": pendulum, "data": data, "start": GUESS} | change
    with pytest.raises(rx.BadInput, match=match):
        rx.fit(usual.pop("system_of"), usual.pop("data"), usual.pop("start"), **usual)


def on_a_circle(p):
    return rx.MechanicalSystem(
        rx.Translation(2),
        [1.0, 1.0],
        potential=lambda x: p["k"] * x[1],
        constraint=rx.Holonomic(lambda x: jnp.sum(x**2) - 1.0),
    )


def on_a_sphere(p):
    return rx.LagrangianSystem(rx.Sphere(3), lambda x, v: v @ v / 2 - p["k"] * x[2])


@pytest.mark.parametrize(
    ("system_of", "where", "match"),
    [
        (on_a_circle, [0.8, -0.6], "starts on a constraint on positions"),
        (on_a_sphere, [0.6, 0.0, -0.8], r"are points of S\^2, not of a group"),
    ],
)
def test_a_start_that_is_not_free_must_be_given(system_of, where, match):
    """Also where places off the constraint were measured, of which no state could be made."""
    places = np.outer(np.linspace(1.0, 1.02, 11), where)
    data = rx.Measurements(np.linspace(0, 1, 11), places, of="configuration", noise=0.01)
    for given in ({}, {"state": lambda system: system.state(1.1 * np.array(where))}):
        with pytest.raises(rx.BadInput, match=f"{match}.*give state=... and free_state=False"):
            rx.fit(system_of, data, start={"k": 9.0}, **given)


@pytest.mark.campaign
def test_a_fit_of_the_wrong_axes_is_told(run):
    """Attitudes from space to body axes: a number comes out, and a warning with it."""
    data = rx.Measurements(run.t, np.swapaxes(attitudes(run, 0.01), 1, 2), noise=0.01)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = rx.fit(pendulum, data, start=GUESS)
    assert any("times the noise" in str(w.message) for w in caught)
    assert any("other axes, units or order" in note for note in found.notes)


def test_the_name_of_what_is_measured_is_looked_up_first(run):
    data = rx.Measurements(run.t, np.asarray(run.velocity), of="velocty", noise=0.1)
    with pytest.raises(rx.BadInput, match=r"of = 'velocty' is not measured on"):
        rx.fit(pendulum, data, start=GUESS)
    with pytest.raises(rx.BadInput, match=r"most = 1 must be a whole number of at least 2"):
        rx.fit(pendulum, rx.Measurements(run.t, run.g, noise=0.1), start=GUESS, most=1)

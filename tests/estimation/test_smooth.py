"""Smoothing: against a dense solution, against the truth, and what cannot be smoothed."""

import jax.numpy as jnp
import numpy as np
import pytest
from pendulums import TRUE, attitudes, pendulum

import retrax as rx

OMEGA = 1.3


def oscillator():
    return rx.MechanicalSystem(
        rx.Translation(1), [1.0], lambda q: 0.5 * OMEGA**2 * q[0] ** 2, physical=False
    )


def test_a_linear_chain_against_all_equations_at_once():
    """States and covariances of an oscillator, from one dense least-squares problem."""
    body, h, steps, noise, q = oscillator(), 0.1, 30, 0.05, 0.4
    rng = np.random.default_rng(3)
    t = h * np.arange(steps + 1)
    seen = np.cos(OMEGA * t) + noise * rng.normal(size=steps + 1)
    data = rx.Measurements(t, seen, of="position", noise=noise)
    start = body.state([1.0], velocity=[0.0])
    found = rx.smooth(body, data, noise=q, state=start, integrator="lie-verlet", h=h)
    assert found.converged
    # Verlet's step as a matrix; unknown are the start and all impulses.
    kick, drift = np.array([[1, 0], [-h / 2 * OMEGA**2, 1]]), np.array([[1, h], [0, 1]])
    step = kick @ drift @ kick
    columns = np.zeros((steps + 1, 2, 2 + steps))
    columns[0, :, :2] = np.eye(2)
    for k in range(steps):
        columns[k + 1] = step @ columns[k]
        columns[k + 1, 1, 2 + k] += 1.0
    rows = np.concatenate([columns[:, 0] / noise, np.eye(2 + steps)[2:] / (q * np.sqrt(h))])
    right = np.concatenate([seen / noise, np.zeros(steps)])
    known = np.linalg.lstsq(rows, right, rcond=None)[0]
    spread = np.linalg.inv(rows.T @ rows)
    states = columns @ known
    assert np.allclose(found.states.g, states[:, :1], atol=1e-9)
    assert np.allclose(found.states.momentum, states[:, 1:], atol=1e-9)
    assert np.allclose(found.controls[:, 0], known[2:], atol=1e-9)
    covariances = columns @ spread @ np.swapaxes(columns, 1, 2)
    # What is not known of the start is finite: ten units, to 4e-5 of the variances here.
    assert np.allclose(found.covariances, covariances, rtol=4e-4, atol=1e-12)


@pytest.fixture(scope="module")
def pushed():
    body = pendulum(TRUE)

    def force(g, xi, t):
        return jnp.array([0.0, 1.0, 0.5]) * jnp.sin(2.0 * t)

    true = rx.MechanicalSystem(rx.SO3(), body.inertia, body.potential, force=force)
    start = true.state(rx.SO3().exp(jnp.array([1.0, 0.2, 0.1])), velocity=[0.5, 1.0, 2.0])
    run = rx.simulate(true, "rkmk-5", start, h=0.002, steps=2000, save_every=20)
    return body, run


def test_an_unknown_force_is_found(pushed):
    """Half a force is missing in the system: errors are those that are claimed."""
    body, run = pushed
    data = rx.Measurements(run.t, attitudes(run, 0.01), noise=0.01)
    found = rx.smooth(body, data, noise=0.5)
    assert found.converged and found.covariances.shape == (101, 6, 6)
    between = np.swapaxes(np.asarray(found.states.g), 1, 2) @ np.asarray(run.g)
    turned = np.stack([np.asarray(rx.SO3().log(jnp.asarray(R))) for R in between])
    errors = turned / found.standard_errors[:, :3]
    assert 0.6 < np.sqrt(np.mean(errors**2)) < 1.4
    speeds = found.along(lambda state: body.velocity_at(state)) - run.velocity
    assert np.sqrt(np.mean(speeds**2)) < 0.1
    lacking = np.sin(2.0 * found.t[1:])
    assert np.corrcoef(found.force[:, 1], lacking)[0, 1] > 0.5
    assert np.sqrt(np.mean(found.residuals["attitude"] ** 2)) < 0.011
    assert "101 states" in repr(found)


def test_it_is_drawn_and_saved(pushed, tmp_path):
    import xarray as xr

    body, run = pushed
    data = rx.Measurements(run.t, attitudes(run, 0.01), noise=0.01)
    found = rx.smooth(body, data, noise=0.5)
    assert len(found.plot(tmp_path / "motion.svg").axes) == 3
    with xr.open_dataset(found.save(tmp_path / "motion.nc")) as kept:
        assert np.array_equal(kept["covariance"], found.covariances)


def test_what_cannot_be_smoothed_is_refused(pushed):
    body, run = pushed
    data = rx.Measurements(run.t, np.asarray(run.g))
    with pytest.raises(rx.BadInput, match="give their noise"):
        rx.smooth(body, data, noise=0.5)
    data = rx.Measurements(run.t, np.asarray(run.g), noise=0.01)
    with pytest.raises(rx.BadInput, match="must be a positive number, or 3 of them"):
        rx.smooth(body, data, noise=-1.0)
    sleigh = rx.systems.Suslov([1.0, 2.0, 2.5])
    with pytest.raises(rx.BadInput, match="has a constraint or no momenta"):
        rx.smooth(sleigh, data, noise=0.1)

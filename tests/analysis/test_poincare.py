"""Crossings of a section, to round-off, and at the times that are known."""

import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.systems import henon_heiles
from retrax.testing.problems import asymmetric_top

poincare = rx.analysis.poincare


def test_an_oscillator_crosses_at_known_times():
    body = rx.MechanicalSystem(rx.Translation(1), [1.0], lambda q: 0.5 * q[0] ** 2, physical=False)
    start = body.state([1.0], velocity=[0.0])
    run = rx.simulate(body, rx.Collocation(rx.gauss(4)), start, h=0.1, steps=300)
    found = poincare(run, lambda state: state.g[0])
    expected = np.pi / 2 + np.pi * np.arange(len(found.t))
    assert len(found.t) == 10
    assert np.max(np.abs(found.t - expected)) < 1e-13  # measured 1e-14
    assert np.max(np.abs(found.values)) < 1e-14
    assert found.directions.tolist() == [-1, 1] * 5
    rising = poincare(run, lambda state: state.g[0], direction=1)
    assert np.array_equal(rising.t, found.t[1::2])
    assert np.allclose(rising.along(lambda state: state.momentum[0]), 1.0, atol=1e-11)


@pytest.mark.parametrize("save_every", [1, 4])
def test_a_top_crosses_to_round_off(save_every):
    """Each state lies on the section, and a run from it meets the run it was found on."""
    top, start = asymmetric_top()
    run = rx.simulate(top, rx.LieVerlet(), start, h=0.01, steps=2000, save_every=save_every)
    found = poincare(run, lambda state: state.g[2, 0], direction=1)
    assert len(found.t) == 3
    assert np.max(np.abs(found.along(lambda state: state.g[2, 0]))) < 1e-15
    assert (np.diff(found.t) > 0).all()
    near = np.searchsorted(run.t, found.t)
    between = np.asarray(run.g)[near - 1, 2, 0] * np.asarray(run.g)[near, 2, 0]
    assert (between <= 0).all()
    energies = [float(top.energy(rx.State(*(jnp.asarray(x[k]) for x in
                (found.states.g, found.states.momentum, found.states.t)))))
                for k in range(len(found.t))]  # fmt: skip
    assert np.ptp(energies) < 2 * np.ptp(run.energy())


def test_the_section_of_henon_and_heiles():
    """A quadratic field, by a method without momenta: every crossing lies on the section."""
    system = henon_heiles()
    points = 0.1 * np.array([1.0, 0.0, 0.0, 1.0])
    run = rx.simulate(system, rx.Kahan(), points, h=0.05, steps=4000)
    found = poincare(run, lambda state: state.g[0], direction=1)
    assert len(found.t) > 20
    assert np.max(np.abs(found.values)) < 1e-15


def test_what_does_not_cross_is_told():
    top, start = asymmetric_top()
    run = rx.simulate(top, rx.LieVerlet(), start, h=0.01, steps=50)
    with pytest.raises(rx.BadInput, match="does not cross the section: its function goes from 2"):
        poincare(run, lambda state: state.t * 0 + 2.0 + state.g[0, 0])
    with pytest.raises(rx.BadInput, match="section returns float64 of shape"):
        poincare(run, lambda state: state.g[0])
    with pytest.raises(rx.BadInput, match="direction = 2 is not known"):
        poincare(run, lambda state: state.g[0, 0], direction=2)

"""What a run has to cite is found from the docstrings of what it used."""

import numpy as np
import pytest

import retrax as rx


def test_a_run_cites_its_integrator_retraction_and_system():
    top = rx.systems.HeavyTop([1.0, 1.2, 0.4], 1.0, [0.0, 0.0, 0.5])
    start = top.state(np.eye(3), velocity=[0.1, 0.0, 5.0])
    run = rx.simulate(top, rx.Composition(rx.LieVerlet(), order=4), start, h=0.01, steps=2)
    text = rx.cite(run)
    assert text.startswith("@software{retrax,")
    for key in ("BouRabeeMarsden2009", "MarsdenWest2001", "Suzuki1990"):
        assert f"{{{key}," in text
    assert "BallZenkov2015" not in text
    assert rx.cite(top, run.integrator) == text


def test_every_integrator_cites_something():
    for integrator in rx.INTEGRATORS.values():
        assert rx.cite(integrator).count("\n@") >= 1, integrator


def test_an_array_has_no_authors():
    with pytest.raises(rx.BadInput, match="names no works"):
        rx.cite(np.zeros(3))

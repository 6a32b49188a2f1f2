"""Integrators by their names: what a name stands for, and what is said of an unknown one."""

import numpy as np
import pytest

import retrax as rx
from retrax.integrators.base import as_integrator
from retrax.systems.integrators import INTEGRATORS, TOUCHING


@pytest.mark.parametrize("name", [*INTEGRATORS, *TOUCHING])
def test_a_name_stands_for_its_integrator(name):
    ready = (INTEGRATORS | TOUCHING)[name]
    assert as_integrator(name) is ready
    assert as_integrator(ready) is ready


@pytest.mark.parametrize(
    "given, sentence",
    [
        ("lie-verlot", "integrator = 'lie-verlot' is not the name .* did you mean 'lie-verlet'"),
        ("LieVerlet", "did you mean 'lie-verlet'"),
        ("rolling-verlot", "did you mean 'rolling-verlet'"),
        ("?", "is not the name of an integrator: rx.INTEGRATORS lists them"),
        (rx.LieVerlet, "is not a retrax integrator; an instance is needed, such as LieVerlet()"),
        (None, "integrator = None is not a retrax integrator"),
    ],
)
def test_what_is_not_an_integrator_is_answered_with_what_is(given, sentence):
    with pytest.raises(rx.BadInput, match=sentence):
        as_integrator(given)


def test_the_sentence_names_the_argument():
    with pytest.raises(rx.BadInput, match=r"^base = 'kahn' is not the name .*'kahan'"):
        as_integrator("kahn", "base")


def test_methods_made_of_others_take_names():
    assert rx.Composition("lie-verlet", order=4) == rx.INTEGRATORS["composition-4"]
    assert rx.RadialProjection("kahan-4") == rx.INTEGRATORS["kahan-projected-4"]
    assert repr(rx.Adaptive("rkmk-5", 1e-8)) == repr(rx.Adaptive(rx.RKMK("dopri5"), 1e-8))
    with pytest.raises(rx.BadInput, match=r"^base = 'lie-verlett' is not the name"):
        rx.Composition("lie-verlett", order=4)


TOP = rx.systems.EulerTop([1.0, 2.0, 3.0])
START = TOP.at([0.4, 0.5, 0.7])
MANY = np.stack([[0.4, 0.5, 0.7], [0.1, 0.2, 0.3]])
RUN = {"h": 0.1, "steps": 4}


def swept(method):
    return rx.sweep(lambda I3: (TOP, START), method, grid={"I3": [3.0]}, store="unused", **RUN)


DOORS = {
    "simulate": lambda method: rx.simulate(TOP, method, START, **RUN).y[-1],
    "ensemble": lambda method: rx.ensemble(TOP, method, MANY, **RUN)["g"].values,
    "reversibility": lambda method: rx.analysis.reversibility(TOP, method, START, **RUN),
    "convergence": lambda method: rx.analysis.convergence(TOP, method, START, h=0.1, time=0.4),
    "symplecticity": lambda method: rx.analysis.symplecticity(TOP, method, START, h=0.1),
    "lyapunov": lambda method: rx.analysis.lyapunov(TOP, method, START, **RUN),
    "check_integrator": rx.testing.check_integrator,
    "sweep": lambda method: swept(method),
    "sweep of two": lambda method: swept({"one": rx.Kahan(), "two": method}),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_answers_an_unknown_name(door):
    with pytest.raises(rx.BadInput, match=r"'kahn' is not the name of .* did you mean 'kahan'"):
        DOORS[door]("kahn")


@pytest.mark.parametrize("door", ["simulate", "ensemble", "reversibility"])
def test_a_name_runs_as_its_integrator_does(door):
    np.testing.assert_array_equal(DOORS[door]("kahan"), DOORS[door](rx.Kahan()))

"""What a notebook shows of an answer is a few lines that a person can read."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx


def plant():
    return rx.Actuated(rx.systems.FreeRigidBody([1.0, 2.0, 2.5]), np.eye(3)[:, :2], (-1.0, 1.0))


def mechanism():
    made = rx.Mechanism()
    arm = made.body("arm", 1.0, [1.0, 1.0, 1.0], [0.5, 0.0, 0.0])
    made.join(rx.Revolute("ground", arm, at=[0, 0, 0], axis=[0, 1, 0], name="hinge"))
    return made


def swing(**options):
    system = rx.MechanicalSystem(rx.Translation(1), [1.0], lambda x: 1 - jnp.cos(x[0]))
    start = system.state([1.0], velocity=[0.0])
    return rx.simulate(system, rx.LieVerlet(), start, h=0.1, steps=200, **options)


def exponents():
    run = swing()
    return rx.analysis.lyapunov(run.system, rx.LieVerlet(), run.final, h=0.1, steps=100)


CASES = {
    "plant": (plant, r"^<free rigid body with 2 inputs from .*-1.* to .*1"),
    "a mechanism": (mechanism, r"^<mechanism in space: 1 body \(arm\); 1 joint \(hinge\)>$"),
    "crossings": (
        lambda: rx.analysis.poincare(swing(), lambda z: z.g[0]),
        r"^<\d crossings of a section, \d of them upwards, from t = ",
    ),
    "modified energy": (
        lambda: rx.analysis.modified_energy(swing()),
        r"^<modified energy at \d+ states: it varies by .* J \(known to .* J\), the energy by ",
    ),
    "exponents": (exponents, r"^<Lyapunov exponent \S+ \+- \S+ per second; growth by e\^"),
}


@pytest.mark.parametrize("name", CASES)
def test_an_answer_is_told_in_a_line(name):
    make, told = CASES[name]
    text = repr(make())
    assert len(text) < 240 and "\n" not in text
    assert re.search(told, text), text

"""Functions whose reads cannot be compared, fields without an energy, values that left a trace."""

import os
from collections import deque

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx

LINE, METHOD = rx.Translation(1), rx.RKMK("rk4")
RUN = {"h": 0.01, "steps": 40, "save_every": 20}


def stiffness() -> float:
    return float(os.environ["RETRAX_TEST_STIFFNESS"])


def oscillator(mass):
    """A potential that reads the environment."""
    system = rx.MechanicalSystem(
        LINE, jnp.stack([mass]), potential=lambda g: stiffness() * g[0] ** 2, physical=False
    )
    return system, system.state(jnp.array([0.4]), velocity=jnp.array([0.7]))


def test_a_store_of_what_the_environment_made_otherwise_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("RETRAX_TEST_STIFFNESS", "2.0")
    call = dict(grid={"mass": [1.3, 2.0]}, store=tmp_path / "s.zarr", client="serial", **RUN)
    rx.sweep(oscillator, METHOD, progress=False, **call)
    monkeypatch.setenv("RETRAX_TEST_STIFFNESS", "5.0")
    with pytest.raises(rx.BadInput, match="another sweep, which differs from this one in systems"):
        rx.sweep(oscillator, METHOD, progress=False, **call)


@jax.custom_vjp
def square(x):
    return x**2


square.defvjp(lambda x: (x**2, x), lambda x, c: (2 * x * c,))


def test_a_store_whose_results_cannot_be_verified_is_refused(tmp_path):
    def stiff(mass):
        system = rx.MechanicalSystem(
            LINE, jnp.stack([mass]), potential=lambda g: 2 * square(g[0]), physical=False
        )
        return system, system.state(jnp.array([0.4]), velocity=jnp.array([0.7]))

    call = dict(grid={"mass": [1.3, 2.0]}, store=tmp_path / "s.zarr", client="serial", **RUN)
    rx.sweep(stiff, METHOD, progress=False, **call)
    with pytest.raises(rx.BadInput, match=r"cannot be compared \(jax.custom_vjp"):
        rx.sweep(stiff, METHOD, progress=False, **call)


def test_the_energy_of_a_run_is_that_of_the_values_it_was_made_with(monkeypatch):
    monkeypatch.setenv("RETRAX_TEST_STIFFNESS", "2.0")
    system, state = oscillator(jnp.asarray(1.3))
    run = rx.simulate(system, METHOD, state, **RUN, progress=False)
    monkeypatch.setenv("RETRAX_TEST_STIFFNESS", "5.0")
    exact = 1.3 * 0.7**2 / 2 + 2.0 * 0.4**2
    assert np.max(np.abs(run.energy() - exact)) < 1e-9  # measured 1.1e-10


def test_a_changed_deque_leaves_the_energy_of_a_run():
    held = deque([2.0])
    system = rx.MechanicalSystem(
        LINE, [1.3], potential=lambda g: held[0] * g[0] ** 2, physical=False
    )
    run = rx.simulate(system, METHOD, system.state([0.4], velocity=[0.7]), **RUN, progress=False)
    held[0] = 5.0
    exact = 1.3 * 0.7**2 / 2 + 2.0 * 0.4**2
    assert np.max(np.abs(run.energy() - exact)) < 1e-9  # measured 1.1e-10


@pytest.mark.parametrize(
    "system, start",
    [
        (rx.QuadraticField(lambda x: jnp.stack([x[0] * x[1], -x[0] * x[1]])), [0.3, 0.2]),
        (rx.GroupFlow(LINE, lambda g: -g), [0.3]),
    ],
    ids=["quadratic field", "group flow"],
)
def test_a_field_without_an_energy_lists_none(system, start):
    run = rx.simulate(system, METHOD, system.state(jnp.array(start)), **RUN, progress=False)
    assert "energy" not in run.invariants()
    with pytest.raises(rx.BadInput, match="has no energy"):
        run.energy()


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_a_value_that_left_its_trace_is_named(backend):
    left = {}

    def build(k):
        left["system"] = rx.MechanicalSystem(
            LINE, [1.3], potential=lambda g: k * g[0] ** 2, physical=False
        )
        left["k"] = k
        return k

    jax.grad(build)(1.0)
    plain = rx.MechanicalSystem(LINE, [1.3], physical=False)
    state = plain.state([0.4], velocity=[0.7])
    for system, h in ((left["system"], 0.1), (plain, left["k"])):
        with pytest.raises(rx.BadInput, match="a function that has ended"):
            rx.simulate(system, METHOD, state, h=h, steps=2, backend=backend)

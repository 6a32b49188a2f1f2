"""An energy that is not conserved is no invariant: its change is held against the work done."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import retrax as rx
from retrax.cli.main import app
from retrax.show.curves import panels
from retrax.show.page import kept_table
from retrax.show.quantities import quantity
from retrax.trajectory.energy_balance import energy_balance

TOP = ([1.0, 2.0, 2.5], lambda R: -9.81 * R[2, 2])


def driven_and_damped(R, xi, t):
    return -0.3 * xi + jnp.stack([0.0 * t, 0.0 * t, 0.5 * jnp.cos(2 * t)])


def forced_run(h, steps, **settings):
    top = rx.MechanicalSystem(rx.SO3(), *TOP, force=driven_and_damped)
    start = top.state(jnp.eye(3), velocity=[1.0, 0.5, 2.0])
    method = rx.LagrangeDAlembert()
    return rx.simulate(top, method, start, h=h, steps=steps, progress=False, **settings)


@pytest.fixture(scope="module")
def forced():
    return forced_run(0.01, 1000)


def test_the_energy_of_a_forced_system_is_a_balance_and_no_invariant(forced):
    assert forced.invariants() == {}
    balance = forced.energy_balance()
    assert balance.change[-1] == pytest.approx(-5.1013, abs=2e-4)
    # The difference is the error of the integrator: 2.18e-4 and a quarter of it at half the step.
    fine = forced_run(0.005, 2000).energy_balance()
    ratio = balance.difference[-1] / fine.difference[-1]
    assert abs(balance.difference[-1]) < 2.5e-4 and ratio == pytest.approx(4, abs=0.01)
    assert balance.uncertainty < 2e-7  # measured: 1.4e-7
    np.testing.assert_array_equal(forced.energy() - forced.energy()[0], balance.change)


def test_summary_json_page_and_figures_show_the_balance(forced):
    told = forced.measures()
    assert "energy" not in told["invariants"]
    assert set(told["energy_balance"]) == {"change", "work", "difference"}
    summary = forced.summary()
    assert "it changed by -5.1" in summary and "difference +2.18e-04 J" in summary
    assert "\nenergy  " not in summary  # no row of the table of invariants
    assert "change of energy less work" in kept_table(forced)
    first = panels(forced)[0]
    assert first.title == "change of energy and work done" and set(first.values) == {
        "change", "work", "difference",
    }  # fmt: skip
    assert quantity(forced, "energy").values[0] == forced.energy()[0]
    titles = [axes.get_title(loc="left") for axes in rx.show.overview(forced).axes]
    assert any(title.startswith("energy (-4.06 J at the start)") for title in titles)


def test_a_file_keeps_the_balance(forced, tmp_path):
    back = rx.load(forced.save(tmp_path / "run.nc"))
    assert back.invariants() == {} and back.summary() == forced.summary()
    for ours, read in zip(forced.energy_balance(), back.energy_balance(), strict=True):
        np.testing.assert_array_equal(ours, read)


def test_a_table_that_turns_does_work_on_the_ball_it_drives():
    ball = rx.systems.BallOnTurntable(1.0, 0.5, 0.9)
    start = (jnp.eye(3), jnp.array([0.7, -0.2]))
    state = ball.state(start, velocity=ball.velocity_of(start, [0.3, -0.4, 0.8]))
    run = rx.simulate(ball, rx.LagrangeDAlembert(), state, h=0.01, steps=300, progress=False)
    assert "energy" not in run.invariants() and "moving energy" in run.invariants()
    balance = run.energy_balance()
    assert balance.change[-1] > 0.07 and abs(balance.difference[-1]) < 1e-7  # measured: 4.1e-8


def test_damping_of_the_systems_themselves_is_work():
    system = rx.systems.StringPendulum.paper()[0]
    still, damped = (
        rx.systems.StringPendulum(
            1.0, 0.025, 40.0, 4, 0.1, system.arm[0], system.inertia[0], 9.81, damping=damping
        )
        for damping in (None, rx.systems.StringDamping(viscosity=0.05))
    )
    assert still.conservative and not damped.conservative
    start = damped.state(damped.hanging().g, velocity=[*[0.0] * 9, 0.0, 0.0, -0.5, 0.0, 0.0, 0.0])
    run = rx.simulate(damped, rx.LieVerlet(), start, h=1e-4, steps=400, progress=False)
    balance = run.energy_balance()
    assert balance.change[-1] < -1e-4
    assert abs(balance.difference[-1]) < 2e-3 * abs(balance.change[-1])


def test_conserved_energies_stay_invariants():
    top = rx.MechanicalSystem(rx.SO3(), *TOP)
    start = top.state(jnp.eye(3), velocity=[1.0, 0.5, 2.0])
    run = rx.simulate(top, rx.LieVerlet(), start, h=0.01, steps=10, progress=False)
    assert "energy" in run.invariants() and run.energy_balance() is None
    assert run.measures()["energy_balance"] is None
    np.testing.assert_array_equal(run.energy(), run.invariants()["energy"])
    field = rx.simulate(
        rx.systems.EulerTop([3.0, 2.0, 1.0]),
        rx.Kahan(),
        [1.0, 1.0, 1.0],
        h=0.1,
        steps=5,
        progress=False,
    )
    assert field.energy_balance() is None and len(field.energy()) == 6


def test_an_ensemble_of_forced_systems_has_its_energies():
    top = rx.MechanicalSystem(rx.SO3(), *TOP, force=driven_and_damped)
    start = top.state(jnp.eye(3), velocity=[1.0, 0.5, 2.0])
    starts = rx.State(
        jnp.stack([start.g, start.g]), jnp.stack([start.momentum, 2 * start.momentum]), jnp.zeros(2)
    )
    runs = rx.ensemble(top, rx.LagrangeDAlembert(), starts, h=0.01, steps=2, save_every=1)
    seen = rx.analysis.observe_members(top, runs)
    assert "kind" not in seen["energy"].attrs
    assert float(seen["energy"][0, 0]) == pytest.approx(float(top.energy(start)), rel=1e-15)


def test_the_quadrature_is_of_order_4_at_uneven_times_too():
    errors = []
    for n in (20, 40, 80):
        t = np.linspace(0.0, 1.0, n + 1)
        t = t + 0.1 * np.sin(2 * np.pi * t) / (2 * np.pi)
        balance = energy_balance(t, np.sin(3 * t), 3 * np.cos(3 * t))
        errors.append(float(np.max(np.abs(balance.difference))))
        assert errors[-1] < balance.uncertainty
    assert np.log2(np.array(errors[:-1]) / errors[1:]) == pytest.approx([4, 4], abs=0.25)


def test_two_saved_states_have_a_balance_whose_accuracy_is_not_known():
    balance = energy_balance(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([0.5, 1.5]))
    assert balance.at_the_end() == {"change": 1.0, "work": 1.0, "difference": 0.0}
    assert np.isnan(balance.uncertainty)


def test_the_command_prints_the_balance_as_json():
    call = ["run", "turntable", "--steps", "50", "--json"]
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert "energy" not in told["invariants"] and abs(told["energy_balance"]["difference"]) < 1e-6

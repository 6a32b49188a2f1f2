"""The page of a plan, its file, and its command."""

import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import retrax as rx
from retrax.cli.main import app
from retrax.show.page import asset
from retrax.show.plan_page import motion, panels, plan_page

S = rx.systems
CRAFT = S.spacecraft([5.0, 7.0, 9.0], torque=0.5)
REST = np.zeros(3)


def problem(**changes):
    usual = {
        "start": CRAFT.state(np.eye(3), velocity=REST),
        "end": rx.Reach(rx.SO3().exp(jnp.array([1.0, -0.7, 0.5])), velocity=REST),
        "duration": 20.0,
        "steps": 12,
        "cost": rx.MinimumEffort(),
    }
    return rx.ControlProblem(CRAFT, rx.LieVerlet(), **(usual | changes))


@pytest.fixture(scope="module")
def plan():
    return rx.optimise(problem())


@pytest.fixture(scope="module")
def quickest():
    return rx.optimise(problem(duration=rx.Free(9.0), cost=rx.MinimumTime(), steps=20))


def same(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)


def test_the_page_of_a_plan_is_self_contained(plan, tmp_path):
    path = plan.report(tmp_path / "plan.html")
    text = path.read_text(encoding="utf-8")
    assert "http://" not in text.replace("http://www.w3.org", "") and "src=" not in asset(
        "page.html"
    )
    assert f"{plan.cost:.12g}" in text and "minimum" in text
    assert [p.name for p in tmp_path.iterdir()] == ["plan.html"]
    data = json.loads(text.split('<script id="run" type="application/json">')[1].split("</")[0])
    assert data.keys() == {"scene", "panels", "colours"}


def test_inputs_are_drawn_as_steps_between_their_bounds(plan):
    times, first = panels(plan)[0]
    u = first.values["u1"]
    np.testing.assert_array_equal(u[::2], plan.controls[:, 0])
    np.testing.assert_array_equal(u[1::2], plan.controls[:, 0])
    np.testing.assert_array_equal(times[::2], plan.t[:-1])
    np.testing.assert_array_equal(times[1::2], plan.t[1:])
    assert set(first.values["upper bound"]) == {0.5}
    assert set(first.values["lower bound"]) == {-0.5}


def test_velocities_and_costates_are_drawn(plan):
    by_title = {panel.title: (t, panel.values) for t, panel in panels(plan)}
    t, velocity = by_title["body velocity"]
    omega = np.asarray(plan.states.momentum) / [5.0, 7.0, 9.0]
    np.testing.assert_allclose(velocity["ξ2"], omega[:, 1], rtol=1e-14, atol=1e-18)
    assert len(t) == plan.problem.steps + 1
    t, costates = by_title["costate of the momentum"]
    np.testing.assert_array_equal(costates["λ1"], plan.costates[:, 3])
    np.testing.assert_array_equal(t, plan.t[1:])


def test_the_motion_of_a_plan_is_a_run(plan):
    run = motion(plan)
    assert run.completed == plan.problem.steps
    np.testing.assert_array_equal(run.g, plan.states.g)
    assert run.group_defect().max() < 1e-14


def test_a_plan_that_is_no_minimum_says_so_on_its_page(plan):
    other = rx.optimise(plan.problem)
    other.kind = "extremal"
    assert "a minimum is not certain" in plan_page(other)
    assert "a minimum is not certain" not in plan_page(plan)


@pytest.mark.parametrize("which", ["plan", "quickest"])
def test_a_plan_is_read_back_bit_for_bit(which, request, tmp_path):
    plan = request.getfixturevalue(which)
    again = rx.load_plan(plan.save(tmp_path / "plan.nc"))
    for name in ("t", "states", "controls", "costates", "multipliers", "path", "miss", "numbers"):
        same(getattr(plan, name), getattr(again, name))
    assert again.measures() == plan.measures()
    assert again.summary() == plan.summary()
    same(again.problem.params, plan.problem.params)


def test_a_plan_from_a_file_flies_and_is_the_guess_of_another(quickest, tmp_path):
    again = rx.load_plan(quickest.save(tmp_path / "plan.nc"))
    p = again.problem
    run = rx.simulate(
        p.plant, p.integrator, p.start, h=again.h, steps=p.steps, control=again.signal()
    )
    np.testing.assert_allclose(run.final.g, np.asarray(again.states.g)[-1], rtol=0, atol=1e-9)
    finer = problem(duration=rx.Free(9.0), cost=rx.MinimumTime(), steps=40, guess=again)
    assert rx.optimise(finer).T == pytest.approx(again.T, rel=1e-2)


def test_a_plan_with_a_cost_of_the_users_asks_for_its_problem(tmp_path):
    mine = problem(cost=lambda g, xi, u, t: u @ u + xi @ xi)
    plan = rx.optimise(mine)
    path = plan.save(tmp_path / "plan.nc")
    with pytest.raises(rx.BadInput, match="give it yourself"):
        rx.load_plan(path)
    again = rx.load_plan(path, problem=mine)
    same(again.numbers, plan.numbers)
    with pytest.raises(rx.BadInput, match="its number of steps is not that"):
        rx.load_plan(path, problem=problem(steps=9))


def test_runs_and_plans_are_told_apart(plan, tmp_path):
    path = plan.save(tmp_path / "plan.nc")
    with pytest.raises(rx.BadInput, match=r"rx\.load_plan reads it"):
        rx.load(path)
    run = rx.simulate(CRAFT.system, rx.LieVerlet(), plan.problem.start, h=0.1, steps=2)
    with pytest.raises(rx.BadInput, match="holds no plan"):
        rx.load_plan(run.save(tmp_path / "run.nc"))
    with pytest.raises(rx.BadInput, match="no such file"):
        rx.load_plan(tmp_path / "none.nc")


def test_a_damaged_plan_is_refused_in_a_sentence(plan, tmp_path):
    import xarray as xr

    from retrax.planning.plan_file import plan_dataset

    whole = plan_dataset(plan)
    bent = {
        "controls": whole.assign(controls=whole.controls.isel(stage=slice(0, 3)).rename(stage="x")),
        "momentum": whole.assign(momentum=whole.momentum * np.nan),
        "problem": whole.drop_vars("problem"),
        "status": whole.assign_attrs(cost="many"),
    }
    for name, ds in bent.items():
        assert isinstance(ds, xr.Dataset)
        ds.to_netcdf(tmp_path / f"{name}.nc", engine="h5netcdf")
        with pytest.raises(rx.BadInput):
            rx.load_plan(tmp_path / f"{name}.nc")


def test_optimise_on_the_command_line(tmp_path):
    arguments = ["optimise", "slew", "--steps", "12", "--duration", "50"]
    plan, page = tmp_path / "slew.nc", tmp_path / "slew.html"
    result = CliRunner().invoke(app, [*arguments, "-o", str(plan), "--report", str(page)])
    assert result.exit_code == 0, result.stderr
    assert "minimum" in result.stdout and "stationarity" in result.stdout and page.is_file()
    told = CliRunner().invoke(app, [*arguments, "--json"])
    measured = json.loads(told.stdout)
    assert measured["case"] == "slew" and measured["steps"] == 12 and measured["duration"] == 50
    assert measured["cost"] == pytest.approx(rx.load_plan(plan).cost, rel=1e-12)


def test_what_the_command_refuses(tmp_path):
    unknown = CliRunner().invoke(app, ["optimise", "slow", "--json"])
    assert unknown.exit_code == 2 and "slew" in json.loads(unknown.stdout)["error"]["sentence"]
    nowhere = CliRunner().invoke(app, ["optimise", "slew", "-o", str(tmp_path / "no" / "x.nc")])
    assert nowhere.exit_code == 2
    steps = CliRunner().invoke(app, ["optimise", "slew", "--steps", "0"])
    assert steps.exit_code == 2
    # 150 degrees in 5 s take far more than 50 N m.
    hopeless = CliRunner().invoke(
        app, ["optimise", "slew", "--duration", "5", "--steps", "12", "--json"]
    )
    assert hopeless.exit_code == 1
    assert json.loads(hopeless.stdout)["error"]["kind"] == "NoPlan"


def test_the_problems_are_listed():
    listed = CliRunner().invoke(app, ["optimise"])
    assert listed.exit_code == 0 and "fastest-slew" in listed.stdout
    told = json.loads(CliRunner().invoke(app, ["optimise", "--json"]).stdout)
    assert told["problems"]["slew"]["steps"] == 100


def test_reading_a_plan_runs_nothing_of_the_file(plan, tmp_path):
    """A file that names a function outside retrax is refused, not obeyed."""
    import json as text

    from retrax.planning.plan_file import PROBLEM, plan_dataset

    ds = plan_dataset(plan)
    data = text.loads(ds[PROBLEM].values.tobytes())
    data["path"] = {"function": "os:getcwd"}
    forged = np.frombuffer(text.dumps(data).encode(), np.uint8)
    ds = ds.drop_vars(PROBLEM).assign({PROBLEM: (("forged_bytes",), forged)})
    ds.to_netcdf(tmp_path / "forged.nc", engine="h5netcdf")
    with pytest.raises(rx.BadInput):
        rx.load_plan(tmp_path / "forged.nc")


def test_planning_is_not_imported_before_it_is_used():
    code = "import sys, retrax; print('retrax.planning.optimise' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"

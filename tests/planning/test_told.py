"""What plans, and searches that find none, say of themselves."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from craft import rest_to_rest, spacecraft
from typer.testing import CliRunner

import retrax as rx
from retrax.cli.main import app

PLANT = rx.Actuated(rx.MechanicalSystem(rx.Translation(1), [2.0]), [[1.0]])


def problem(**changed):
    options = {
        "start": PLANT.state([0.0], velocity=[0.0]),
        "end": rx.Reach([1.0], velocity=[0.0]),
        "duration": 2.0,
        "steps": 8,
        "cost": rx.MinimumEffort(),
    } | changed
    return rx.ControlProblem(PLANT, "lie-verlet", **options)


@pytest.fixture(scope="module")
def plan():
    return rx.optimise(problem())


@pytest.fixture(scope="module")
def failed():
    with pytest.raises(rx.NoPlan) as told:
        rx.optimise(problem(bounds=(-0.5, 0.5)))
    return told.value


def test_an_end_that_was_not_reached_is_told_with_ways_out(failed):
    assert "no plan was found: the nearest to the end that was found in 2 s misses it by 0.641" in (
        str(failed)
    )
    assert str(failed).endswith(
        "inputs are at their bounds for 100% of the time. Give it more time, wider bounds, more "
        "steps, a guess= from a similar problem, or another end."
    )


def test_the_last_iterate_says_that_it_is_no_plan(failed):
    said = failed.plan.summary()
    assert "no plan, the last iterate" in said and "end             not reached" in said
    assert "nan" not in said and "no plan" in repr(failed.plan)


@pytest.mark.parametrize("what", ["save", "report", "signal", "feedback"])
def test_the_last_iterate_is_not_used_as_a_plan(what, failed, tmp_path):
    arguments = {"feedback": (1.0, 1.0), "signal": ()}.get(what, (tmp_path / "x",))
    with pytest.raises(rx.BadInput, match="the last iterate of a search that found no plan"):
        getattr(failed.plan, what)(*arguments)
    assert not [*tmp_path.iterdir()]


SAID = {
    "cost": ({"cost": lambda g, xi, u, t: jnp.sqrt(-1 - u @ u)}, "cost is nan at state 0"),
    "slope": (
        {"cost": lambda g, xi, u, t: jnp.sqrt(u @ u)},
        "a derivative of cost is nan at state 0",
    ),
    "path": ({"path": lambda g, xi, u: jnp.sqrt(0.5 - g) + u}, "misses it by 0.49.*a wider path"),
    "no slope": (
        {"end": lambda g, mu: jnp.array([g[0] ** 2 + mu[0] ** 2 - 1])},
        "misses it by 1, most in equation 0 of 1; it has no slope there",
    ),
    "longer": ({"duration": rx.Free(2.0)}, "the duration runs away"),
    "shorter": ({"duration": rx.Free(2.0), "cost": rx.MinimumTime()}, "the duration shrinks away"),
}


@pytest.mark.parametrize("name", SAID)
def test_a_search_without_a_plan_names_the_reason(name):
    changed, sentence = SAID[name]
    with pytest.raises(rx.NoPlan, match=sentence):
        rx.optimise(problem(**changed))


def test_a_path_that_the_start_breaks_is_refused_before_the_search():
    with pytest.raises(rx.BadInput, match=r"broken at the start.*number 1 of 2 is -0\.1"):
        rx.optimise(problem(path=lambda g, xi, u: jnp.stack([u[0] - 5, xi[0] - 0.1])))


def test_a_path_broken_at_the_last_state_is_told():
    far = problem(
        end=None,
        final_cost=lambda g, mu: 50 * (g[0] - 1) ** 2,
        path=lambda g, xi, u: jnp.array([0.9 - g[0]]),
    )
    with pytest.warns(UserWarning, match=r"broken at the last state, where it is -0\.0852"):
        found = rx.optimise(far)
    last = 0.9 - np.asarray(found.states.g)[-1]
    np.testing.assert_allclose(found.path_at_end, last, rtol=0, atol=1e-15)
    assert found.measures()["path at the end"] == pytest.approx(last.tolist())
    assert "at the end [-0.085], broken there" in found.summary()
    states = rx.State(jnp.zeros((2, 1)), jnp.zeros((2, 1)), jnp.zeros(2))
    with pytest.warns(UserWarning, match="last state of 2 of 2 members"):
        many = rx.optimise(far, starts=states)
    np.testing.assert_allclose(many.path_at_end[1], last, rtol=0, atol=1e-9)

    assert many.status.values.tolist() == ["path broken at the end"] * 2 and found.kind == "minimum"


CONTRADICTED = {
    "a place": ({"path": lambda g, xi, u: jnp.array([0.8 - g[0]])}, r"-0\.2"),
    "a rate": (
        {
            "path": lambda g, xi, u: jnp.stack([0.6 - xi[0], 5 - u[0]]),
            "end": rx.Reach([1.0], velocity=[0.9]),
        },
        r"-0\.3",
    ),
}


@pytest.mark.parametrize("name", CONTRADICTED)
def test_a_path_that_the_end_contradicts_has_a_status_of_its_own(name, tmp_path):
    changed, value = CONTRADICTED[name]
    with pytest.warns(UserWarning, match=f"the end contradicts the path constraint.*{value}"):
        found = rx.optimise(problem(**changed))
    assert found.status == "path broken at the end" in repr(found)


def test_a_frozen_input_is_what_it_is_frozen_at(tmp_path):
    plant = rx.Actuated(rx.MechanicalSystem(rx.Translation(1), [2.0]), [[1.0, 0.5, 0.3]])
    options = {
        "start": plant.state([0.0], velocity=[0.0]),
        "end": rx.Reach([1.0], velocity=[0.0]),
        "duration": 2.0,
        "steps": 8,
        "cost": rx.MinimumEffort(),
    }
    lower, upper = np.array([-5.0, 0.7, -np.inf]), np.array([5.0, 0.7, np.inf])
    found = rx.optimise(rx.ControlProblem(plant, "lie-verlet", bounds=(lower, upper), **options))
    assert np.all(found.controls[:, 1] == 0.7) and found.status == "minimum"
    run = rx.simulate(
        plant, "lie-verlet", options["start"], h=found.h, steps=8, control=found.signal()
    )
    np.testing.assert_allclose(run.final.g, 1.0, rtol=0, atol=1e-14)
    # Without the frozen input its force has to come from the others: the same motion.
    free = rx.Actuated(plant.system, [[1.0, 0.3]])
    start = free.state([0.0], velocity=[0.0])
    pushed = rx.MechanicalSystem(rx.Translation(1), [2.0], force=lambda g, xi, t: jnp.array([0.35]))
    other = rx.optimise(
        rx.ControlProblem(
            rx.Actuated(pushed, [[1.0, 0.3]]), "lie-verlet", **options | {"start": start}
        )
    )
    np.testing.assert_allclose(found.controls[:, [0, 2]], other.controls, rtol=0, atol=1e-9)
    again = rx.load_plan(found.save(tmp_path / "plan.nc"))
    assert np.array_equal(again.controls, found.controls) and again.status == "minimum"


@pytest.mark.parametrize("steps", [2, 10])
def test_a_plan_in_the_least_time_there_is(steps):
    """Full ahead, then full astern: 2 kg moved by 1 m in 2 s take 2 N."""
    found = rx.optimise(problem(bounds=(-2.0, 2.0), steps=steps))
    half = np.where(np.arange(steps) < steps / 2, 2.0, -2.0)
    np.testing.assert_allclose(found.controls[:, 0], half, rtol=0, atol=1e-5)
    assert np.all(np.abs(found.controls) <= 2.0 * (1 + 4e-8))


def test_the_guess_of_a_free_duration_may_be_one_of_its_bounds():
    found = rx.optimise(problem(duration=rx.Free(2.0, lower=2.0, upper=3.0)))
    assert abs(found.T - 3.0) < 1e-5


def test_members_without_a_plan_are_nan_everywhere():
    states = rx.State(jnp.array([[0.9], [-9.0]]), jnp.zeros((2, 1)), jnp.zeros(2))
    many = rx.optimise(problem(bounds=(-0.5, 0.5)), starts=states)
    assert many.status.values.tolist() == ["minimum", "no plan"]
    for name in set(many.data_vars) - {"status"}:
        assert np.isnan(many[name].isel(member=1)).all(), name
        assert np.isfinite(many[name].isel(member=0)).all(), name


def test_a_guess_of_another_plant_is_refused(plan):
    with pytest.raises(rx.BadInput, match=r"guess is a plan on R, and the .* moves on SO\(3\)"):
        rest_to_rest(spacecraft(), (0.1, 0.0, 0.0), guess=plan)


def test_a_summary_counts_symmetries_and_names_compiling(plan):
    assert "for 1 symmetry of space out of 1" in plan.summary()
    assert "compiling included" in plan.summary()


def test_the_page_of_a_kept_plan(plan, tmp_path):
    kept = plan.save(tmp_path / "plan.nc")
    result = CliRunner().invoke(app, ["report", str(kept), "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["page"] == str(tmp_path / "plan.html") and told["cost"] == plan.cost
    assert f"{plan.cost:.12g}" in (tmp_path / "plan.html").read_text(encoding="utf-8")


def test_the_command_looks_around_where_inputs_have_bounds(monkeypatch):
    from retrax.planning import optimise as module

    asked = []

    def find(problem, tries):
        asked.append(tries)
        raise rx.NoPlan("seen")

    monkeypatch.setattr(module, "optimise", find)
    for more in ([], ["--tries", "3"]):
        CliRunner().invoke(app, ["optimise", "slew", *more])
    assert asked == [None, 3]


def test_the_command_says_how_to_look_further(monkeypatch, plan):
    from retrax.planning import optimise as module

    monkeypatch.setattr(module, "optimise", lambda problem, tries: plan)
    monkeypatch.setattr(plan, "kind", "extremal")
    said = " ".join(CliRunner().invoke(app, ["optimise", "slew"]).stdout.split())
    assert "may be no minimum" in said and "retrax optimise slew --tries 16" in said

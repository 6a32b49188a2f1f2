"""A plan from a file solves the problem that it is read with, or is refused."""

import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx


def effort(g, xi, u, t):
    return u @ u


def tenfold(g, xi, u, t):
    return 10 * u @ u


def problem(mass=2.0, target=1.0, x0=0.0, **changed):
    plant = rx.Actuated(rx.MechanicalSystem(rx.Translation(1), [mass]), [[1.0]])
    options = {
        "start": plant.state([x0], velocity=[0.0]),
        "end": rx.Reach([target], velocity=[0.0]),
        "duration": 2.0,
        "steps": 8,
        "cost": effort,
    } | changed
    return rx.ControlProblem(plant, "lie-verlet", **options)


@pytest.fixture(scope="module")
def plan():
    return rx.optimise(problem())


@pytest.fixture(scope="module")
def path(plan, tmp_path_factory):
    return plan.save(tmp_path_factory.mktemp("plans") / "plan.nc")


OTHER = {
    "mass": (lambda: problem(mass=7.0), "its plant is not that"),
    "target": (lambda: problem(target=3.0), "its end is not that"),
    "duration": (lambda: problem(duration=4.0), "its duration is not that"),
    "free": (lambda: problem(duration=rx.Free(2.0)), "its duration is not that"),
    "start": (lambda: problem(x0=0.5), "its start is not that"),
    "cost": (lambda: problem(cost=tenfold), "its cost is 60.95.*, and not 6.095"),
    "cost of retrax": (lambda: problem(cost=rx.MinimumEffort()), "its cost is of another kind"),
    "bounds": (lambda: problem(bounds=(-1.0, 1.0)), "its lower bounds are"),
    "path": (lambda: problem(path=lambda g, xi, u: 5 - g[0]), "its path constraint is of another"),
    "end": (
        lambda: problem(end=lambda g, mu: jnp.concatenate([g - 3.0, mu])),
        "its end is of another kind",
    ),
}


@pytest.mark.parametrize("name", OTHER)
def test_a_plan_of_another_problem_is_refused(name, path):
    make, sentence = OTHER[name]
    with pytest.raises(rx.BadInput, match=sentence):
        rx.load_plan(path, problem=make())


def test_a_plan_of_the_same_problem_is_read(plan, path):
    again = rx.load_plan(path, problem=problem())
    assert again.cost == plan.cost and again.summary() == plan.summary()


def test_a_function_that_a_file_does_not_keep_is_evaluated(tmp_path):
    def hill(stiffness):
        system = rx.MechanicalSystem(rx.Translation(1), [2.0], lambda x: stiffness * x @ x)
        plant = rx.Actuated(system, [[1.0]])
        return rx.ControlProblem(
            plant,
            "lie-verlet",
            start=plant.state([0.0], velocity=[0.0]),
            end=lambda g, mu: g - 1.0,
            duration=2.0,
            steps=8,
            cost=effort,
            path=lambda g, xi, u: 2.0 - g,
        )

    path = rx.optimise(hill(0.1)).save(tmp_path / "plan.nc")
    assert rx.load_plan(path, problem=hill(0.1)).status == "minimum"
    with pytest.raises(rx.BadInput, match="steps do not lead from one state to the next"):
        rx.load_plan(path, problem=hill(0.2))
    other = hill(0.1)
    other = rx.ControlProblem(
        other.plant, "lie-verlet", start=other.start, end=lambda g, mu: g - 3.0, duration=2.0,
        steps=8, cost=effort, path=other.path,
    )  # fmt: skip
    with pytest.raises(rx.BadInput, match="misses the end by 2"):
        rx.load_plan(path, problem=other)


def test_numbers_that_were_changed_are_refused(plan, path, tmp_path):
    import xarray as xr

    ds = xr.load_dataset(path, engine="h5netcdf")
    ds["controls"] = ds.controls * 1.001
    ds.to_netcdf(tmp_path / "bent.nc", engine="h5netcdf")
    with pytest.raises(rx.BadInput, match="steps do not lead"):
        rx.load_plan(tmp_path / "bent.nc", problem=plan.problem)
    assert np.isfinite(plan.cost)

"""Forged parts of mechanisms, balls and plans, and a start that is none of the run."""

import base64
from collections.abc import Callable

import h5py
import numpy as np
import pytest
import xarray as xr
from forged_netcdf import renewed
from forged_systems import _array, _described

import retrax as rx


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    floor = rx.Plane(name="floor")
    balls = rx.systems.Balls(0.1, 1.0, count=2, friction=0.3, drag=0.5, against=[floor])
    thrown = balls.state([[0, 0, 0.12], [0.3, 0, 0.1]], velocity=[1.0, 0.0, -1.0])
    arm = rx.systems.double_pendulum()
    runs = {
        "balls": rx.simulate(balls, rx.NonsmoothRattle(), thrown, h=0.002, steps=12),
        "arm": rx.simulate(arm, rx.LieVerlet(), arm.assemble(), h=0.005, steps=4),
    }
    return {name: run.save(folder / f"{name}.nc") for name, run in runs.items()}


def _system(**parts) -> Callable[[dict], None]:
    return lambda told: told["system"]["fields"].update(parts)


def _start(told):
    array = told["state"]["fields"]["momentum"]["array"]
    numbers = 2 * np.frombuffer(base64.b64decode(array["data"])) + 1.0
    array["data"] = base64.b64encode(numbers.tobytes()).decode()


FORGED = {
    "balls of another size": ("balls", _system(radius=_array([0.2, 0.2]))),
    "balls of no size": ("balls", _system(radius=_array([-0.1, 0.1]))),
    "a million balls": ("balls", _system(count=1_000_000)),
    "another start": ("balls", _start),
    "another step": ("balls", lambda told: told["plan"].update(h=0.1)),
    "fewer steps than one": ("balls", lambda told: told["plan"].update(steps=-1)),
    "one name twice": ("arm", _system(names=["upper", "upper"])),
    "a name that is a number": ("arm", _system(names=["upper", 5])),
    "a name too few": ("arm", _system(names=["upper"])),
    "a shape that is a word": ("arm", _system(shapes=[["x"], []])),
}


@pytest.mark.parametrize("name, change", FORGED.values(), ids=FORGED.keys())
def test_a_forged_part_is_not_read_without_a_word(files, tmp_path, name, change):
    path = tmp_path / "forged.nc"
    path.write_bytes(files[name].read_bytes())
    _described(change, path)
    renewed(path)
    with pytest.raises((rx.BadInput, UserWarning)):
        rx.load(path)


def test_a_run_tells_the_group_of_its_system(files, tmp_path):
    path = tmp_path / "forged.nc"
    path.write_bytes(files["arm"].read_bytes())
    with h5py.File(path, "r+") as file:
        file.attrs["provenance_group"] = "SE(3)"
    renewed(path)
    with pytest.raises(rx.BadInput, match="was made on 'SE\\(3\\)'"):
        rx.load(path)


def test_honest_files_are_read(files):
    assert all(rx.load(path).system is not None for path in files.values())


def test_a_plan_cannot_excuse_itself(tmp_path):
    plant = rx.Actuated(rx.MechanicalSystem(rx.Translation(1), [2.0]), [[1.0]])
    start = plant.state([0.0], velocity=[0.0])
    problem = rx.ControlProblem(
        plant,
        "lie-verlet",
        start=start,
        end=rx.Reach([1.0], velocity=[0.0]),
        duration=2.0,
        steps=6,
        cost=rx.MinimumEffort(),
    )
    ds = xr.load_dataset(rx.optimise(problem).save(tmp_path / "plan.nc"), engine="h5netcdf")
    bent = ds.assign(controls=ds.controls * 1.5).assign_attrs(largest_defect=1e9)
    missed = ds.assign(miss=ds.miss + 10.0)
    for number, forged in enumerate((bent, missed)):
        forged.to_netcdf(tmp_path / f"{number}.nc", engine="h5netcdf")
        with pytest.raises(rx.BadInput, match="hold to"):
            rx.load_plan(tmp_path / f"{number}.nc")

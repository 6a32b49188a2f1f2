"""Single numbers of files, changed so that all checksums fit, and what is not told at all."""

import base64
import json
import shutil
from collections.abc import Callable

import h5py
import numpy as np
import pytest
from forged_checkpoints import _attributes, _column
from forged_netcdf import renewed
from forged_sweeps import swept
from forged_systems import _array, _described

import retrax as rx
from retrax.numerics.evaluate import Evaluated
from retrax.store import measured
from retrax.trajectory.observe import observe


def top_run(**more) -> rx.Trajectory:
    body = rx.systems.HeavyTop([1.0, 1.7, 2.3], 1.0, [0.4, -0.3, 1.1])
    state = body.state(np.eye(3), velocity=[1.2, -0.5, 2.0])
    return rx.simulate(body, rx.LieVerlet(), state, h=0.01, progress=False, **more)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("numbers")
    top_run(steps=200, save_every=10).save(folder / "top.nc")
    top_run(steps=40).save(folder / "each.nc")
    top_run(steps=200, save_every=10, every=100, checkpoint=folder / "top.zarr")
    arm = rx.systems.double_pendulum()
    rx.simulate(arm, rx.LieVerlet(), arm.assemble(), h=0.005, steps=4).save(folder / "arm.nc")
    plant = rx.Actuated(rx.MechanicalSystem(rx.Translation(1), [2.0]), [[1.0]])
    problem = rx.ControlProblem(
        plant,
        "lie-verlet",
        start=plant.state([0.0], velocity=[0.0]),
        end=rx.Reach([1.0], velocity=[0.0]),
        duration=2.0,
        steps=6,
        cost=rx.MinimumEffort(),
    )
    rx.optimise(problem).save(folder / "plan.nc")
    pushed = rx.simulate(
        plant, rx.LieVerlet(), problem.start, h=0.1, steps=5, control=rx.Signal([0.0], [[1.0]])
    )
    pushed.save(folder / "plant.nc")
    return folder


@pytest.fixture
def copied(files, tmp_path):
    def copy(name):
        path = files / name
        made = shutil.copytree if path.is_dir() else shutil.copy2
        return made(path, tmp_path / name)

    return copy


def _row(name, values) -> Callable:
    def put(rows):
        rows[5] = values(rows[5])
        return rows

    return lambda path: _column(name, put, path)


def _since(path):
    text = base64.b64encode(np.full(3, 5.0)).decode()
    _attributes(path, lambda record: record["attributes"]["restart"].update(since=text))


INNER = {
    "off the group": (_row("g", lambda x: np.append(7.0, x[1:])), r"off SO\(3\)"),
    "elsewhere": (_row("g", lambda x: np.eye(3).ravel()), "momentum e3 .* keeps it at 4.6"),
    "faster": (_row("momentum", lambda x: x * 0 + 9.0), "momentum e3 .* keeps it at 4.6"),
    "busier": (_since, "a restart after other statistics"),
}


@pytest.mark.parametrize("change, sentence", INNER.values(), ids=INNER.keys())
def test_resume_and_load_refuse_the_same_checkpoints(copied, change, sentence):
    path = copied("top.zarr")
    change(path)
    for read in (rx.load, lambda path: rx.resume(path, steps=300)):
        with pytest.raises(rx.BadInput, match=sentence):
            read(path)


def _attribute(**values) -> Callable:
    def change(path):
        with h5py.File(path, "r+") as file:
            file.attrs.update(values)

    return change


def _scaled(factor) -> Callable:
    """All times, as if steps had been so much longer."""

    def change(path):
        _described(lambda told: told["plan"].update(h=told["plan"]["h"] * factor), path)
        with h5py.File(path, "r+") as file:
            file["time"][...] *= factor
            file.attrs["h"] *= factor

    return change


def _residual(path):
    with h5py.File(path, "r+") as file:
        file["residual"][...] += 1e5


def _told(change) -> Callable:
    return lambda path: _described(change, path)


def _parts(told, name) -> list:
    """The fields of all objects of a class."""
    found = [told["fields"]] if isinstance(told, dict) and told.get("class") == name else []
    inside = told.values() if isinstance(told, dict) else told if isinstance(told, list) else ()
    return found + [part for one in inside for part in _parts(one, name)]


def _changed(name, **fields) -> Callable:
    return _told(lambda told: _parts(told, name)[0].update(fields))


def _moved(told):
    for part in _parts(told, "mechanisms:Joined"):
        shape = part["at"]["array"]["shape"]
        part["at"] = _array(np.full(shape, 5.0))


FORGED = {
    "nothing told": ("top.nc", _told(dict.clear), "does not tell the system"),
    "no system": ("top.nc", _told(lambda told: told.pop("system")), "does not tell the system"),
    "heavier": ("top.nc", _changed("systems:HeavyTop", mass=_array(1 + 1e-6)), "its energy at"),
    "slower": ("top.nc", _scaled(2.0), "do not lead from one saved state to the next"),
    "each slower": ("each.nc", _scaled(2.0), "do not lead from one saved state to the next"),
    "each faster": ("each.nc", _scaled(0.5), "do not lead from one saved state to the next"),
    "unsolved": ("top.nc", _residual, "left with a residual of 1e\\+05"),
    "before it began": ("top.nc", _attribute(seconds=-3.0), "it took -3.0 s"),
    "compiled before": ("top.nc", _attribute(compile_seconds=-1.0), "compiled in -1.0 s"),
    "forces elsewhere": ("arm.nc", _told(_moved), "cannot be rebuilt here"),
    "fewer equations": ("arm.nc", _changed("mechanisms:Stack", count=1), "cannot be rebuilt here"),
    "more inputs": ("plant.nc", _changed("mechanics:Actuators", count=2), "count = 2"),
}


@pytest.mark.parametrize("name, change, sentence", FORGED.values(), ids=FORGED.keys())
def test_a_forged_number_is_not_read_without_a_word(copied, name, change, sentence, monkeypatch):
    path = copied(name)
    change(path)
    renewed(path)
    monkeypatch.chdir(path.parent)  # sentences about long paths are cut
    with pytest.raises((rx.BadInput, UserWarning), match=sentence):
        rx.load(path.name)


def test_a_run_without_its_system_is_read_with_a_warning(copied):
    path = copied("top.nc")
    _described(lambda told: told.update(system=None), path)
    renewed(path)
    with pytest.warns(UserWarning, match="is not in it, so what it tells"):
        rx.load(path)


@pytest.mark.parametrize("name", ["top.nc", "each.nc", "arm.nc", "plant.nc", "top.zarr"])
def test_honest_files_are_read(files, name):
    assert rx.load(files / name).system is not None


def test_a_file_may_differ_by_ten_times_what_machines_make_of_numbers(files, monkeypatch):
    """XLA for NumPy is another machine. Measured: 2.4e-16, on the catalogue 3.8e-14 at most."""
    run = rx.load(files / "top.nc")
    once = observe(run.system, run.states, run.integrator, run.h)
    monkeypatch.setattr(Evaluated, "prepare", lambda self, *_: self._compiled_to_host)
    again = observe(run.system, run.states, run.integrator, run.h)
    for one, other in ((once.energy, again.energy), (once.velocity, again.velocity)):
        apart = np.max(np.abs(one - other)) / np.max(np.abs(one))
        assert 10 * apart < 10 * 3.8e-14 < measured._APART


PLANS = {
    "costates": (None, "do not fit their checksum"),
    "unsolved": ({"residual_stationarity": 5.0}, "tells residual stationarity = 5"),
    "iterations": ({"iterations": -1.0}, "tells iterations = -1"),
    "seconds": ({"seconds": -1.0}, "tells seconds = -1"),
    "status": ({"status": "optimal"}, "a plan that is 'optimal'"),
}


@pytest.mark.parametrize("change, sentence", PLANS.values(), ids=PLANS.keys())
def test_a_plan_tells_numbers_that_plans_have(copied, change, sentence):
    path = copied("plan.nc")
    with h5py.File(path, "r+") as file:
        if change is None:
            file["costates"][...] *= 3
        else:
            file.attrs.update(change)
    with pytest.raises(rx.BadInput, match=sentence):
        rx.load_plan(path)


def test_a_plan_without_a_checksum_is_read_with_a_warning(files, copied):
    assert rx.load_plan(files / "plan.nc").converged
    path = copied("plan.nc")
    with h5py.File(path, "r+") as file:
        del file.attrs["checksum"]
    with pytest.warns(UserWarning, match="no checksum.* save the plan again"):
        rx.load_plan(path)


def test_a_sweep_tells_the_steps_that_it_took(tmp_path):
    swept(tmp_path / "sweep.zarr")
    record = tmp_path / "sweep.zarr" / "zarr.json"
    told = json.loads(record.read_text())
    for name, value in (("h", 0.5), ("steps", 7), ("provenance_system", "a cube"), ("run", "{}")):
        record.write_text(json.dumps({**told, "attributes": {**told["attributes"], name: value}}))
        with pytest.raises(rx.BadInput, match=f"tells another {name} than this sweep has"):
            swept(tmp_path / "sweep.zarr")

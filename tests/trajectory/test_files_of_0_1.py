"""Files written by retrax 0.1 load, continue and draw: see tests/data/v0.1."""

import json
import tarfile
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx
from retrax.files import written_by_retrax
from retrax.mechanics.remembered import RememberedSystem
from retrax.show.page import page, page_data
from retrax.store.version_0_1 import space_named

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*has no checksum"),
    pytest.mark.filterwarnings("ignore:.*does not tell velocity and energy at its start"),
]

FILES = Path(__file__).parents[1] / "data" / "v0.1" / "files.tar.xz"
RUNS = {
    "body-on-sphere": ("S^2", []),
    "chaplygin-ball": ("SO(3) x R^2", ["ball"]),
    "euler-top": ("R^3", ["field"]),
    "heavy-top": ("SO(3)", ["body"]),
    "kuramoto": ("T^5", []),
    "own-product": ("SO(3) x R^2", []),
    "pendulum": ("SO(3)", ["body"]),
    "rod": ("(SO(3) x R^3)^21", ["rods"]),
    "rolling-disk": ("SE(2) x R", ["disk"]),
    "string-pendulum": ("(R^3)^20 x SO(3)", ["string", "masses", "arms", "inertia"]),
    "strings-in-contact": ("R^127 x R^127 x R^2", ["strings"]),
    "suslov": ("SO(3)", ["turning"]),
    "toda": ("Sym(3)", []),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("v0.1")
    with tarfile.open(FILES) as archive:
        archive.extractall(place, filter="data")
    for packed in place.glob("*.tar.xz"):
        with tarfile.open(packed) as archive:
            archive.extractall(place, filter="data")
    return place


@pytest.mark.parametrize("name", RUNS)
def test_a_run_loads_and_is_drawn(folder, tmp_path, name):
    run = rx.load(folder / f"{name}.nc")
    space, drawing = RUNS[name]
    assert type(run.system) is RememberedSystem and run.integrator is None
    assert run.system.configuration_space.name == space == run.provenance["group"]
    assert list(run.system.drawing or {}) == drawing
    assert not {"drawing", "units", "up"} & run.provenance.keys()
    assert "largest error" in run.summary() and len(run.velocity) == len(run)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert page_data(run)["scene"]["things"] and "</html>" in page(run)
    again = rx.load(run.save(tmp_path / "again.nc"))
    assert type(again.system) is RememberedSystem and again.system.drawing == run.system.drawing
    np.testing.assert_array_equal(again.velocity, run.velocity)


def test_what_a_run_told_for_its_picture_is_told_by_its_system(folder):
    assert not rx.load(folder / "pendulum.nc").system.e3_points_up
    string = rx.load(folder / "string-pendulum.nc").system
    assert string.unit_of("stretched length") == "m" and not string.e3_points_up
    inertia = rx.load(folder / "suslov.nc").system.inertia
    assert inertia.shape == (3, 3) and np.all(np.linalg.eigvalsh(inertia) > 0)


def test_a_run_is_continued_with_the_system_given(folder):
    run = rx.load(folder / "heavy-top.nc")
    with pytest.raises(rx.BadInput, match="give the system yourself"):
        rx.simulate(run.system, rx.LieVerlet(), run.final, h=run.h, steps=3)
    from retrax.systems.catalogue import CASES

    system, state, *_ = CASES["heavy-top"].make()
    more = rx.simulate(system, rx.LieVerlet(), run.final, h=run.h, steps=5)
    whole = rx.simulate(system, rx.LieVerlet(), state, h=run.h, steps=run.steps + 5)
    np.testing.assert_allclose(more.momentum[-1], whole.momentum[-1], rtol=1e-12, atol=1e-12)


def own_top():
    return rx.MechanicalSystem(rx.SO3(), [1.0, 2.8, 2.0], lambda R: 0.4 * R[2, 2])


@pytest.mark.parametrize("name", ["top", "string", "rod", "own-top"])
def test_a_checkpoint_goes_on(folder, name):
    path, expected = folder / f"{name}.zarr", json.loads((folder / "expected.json").read_text())
    begun = rx.load(path)
    assert 0 < begun.completed < begun.steps == expected[name]["steps"]
    if name == "own-top":
        assert type(begun.system) is RememberedSystem
    else:
        assert begun.energy().shape == (len(begun),)
    with warnings.catch_warnings():
        # Where it runs on another processor or with other versions, a notice says so.
        warnings.filterwarnings("ignore", message="the run in .* goes on elsewhere")
        run = rx.resume(path, system=own_top() if name == "own-top" else None, progress=False)
    ended = [*expected[name]["g"], expected[name]["momentum"], expected[name]["t"]]
    for found, wanted in zip(jax.tree.leaves(run.final), ended, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    assert rx.load(path).completed == expected[name]["steps"]


def test_an_ensemble_is_measured(folder):
    import xarray as xr

    from retrax.systems.catalogue import CASES

    with xr.open_dataset(folder / "ensemble.nc", engine="h5netcdf") as runs:
        seen = rx.analysis.observe_members(CASES["heavy-top"].make()[0], runs.load())
    assert seen["energy"].shape == (5, 3) and float(seen["group_defect"].max()) < 1e-14
    with pytest.raises(rx.BadInput, match="holds an ensemble"):
        rx.load(folder / "ensemble.nc")


def test_a_sweep_is_read(folder):
    import xarray as xr

    with xr.open_zarr(folder / "sweep.zarr", chunks=None, zarr_format=3) as runs:
        assert runs.sizes["mass"] == 3 and runs.sizes["spin"] == 2
        assert np.isfinite(runs["momentum"].values).all()


def test_a_page_is_known_as_one_and_may_be_replaced(folder):
    path = folder / "heavy-top.html"
    assert written_by_retrax(path)
    assert rx.load(folder / "heavy-top.nc").report(path) == path


def test_names_that_groups_give_are_read():
    product = rx.Product(rx.SE3(), rx.Power(rx.Product(rx.SO3(), rx.Translation(2)), 3), rx.SO2())
    for space in (
        *map(rx.GroupItself, (product, rx.Power(rx.Power(rx.SO3(), 2), 2), rx.SO(5))),
        *(rx.Sphere(3), rx.Torus(4), rx.Stiefel(5, 2), rx.Grassmann(4, 1), rx.Isospectral(3)),
        rx.CoadjointOrbit(rx.SE3()),
    ):
        found = space_named(space.name)
        assert found is not None and found.name == space.name
        assert found.group.dim == space.group.dim
    for name in ("SL(3)", "subgroup of GL(4) of dimension 6", "SO(3) x ", "(" * 200, "R^0", "S^0"):
        assert space_named(name) is None


def test_a_name_of_another_space_gives_no_system(folder):
    run = rx.load(folder / "heavy-top.nc")
    from retrax.store.version_0_1 import system_in_words

    for name in ("R^3", "SE(3)", "SO(3)^2", "R^999999"):
        assert system_in_words({"system": "top", "group": name}, run.states) is None
    assert jnp.ndim(run.final.momentum) == 1

"""Sweeps in one process: what they hold, how they go on, what they refuse."""

import errno
import shutil
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import retrax as rx
from retrax.sweeps import axes, blocks, plan, workers, zarr_store
from tops import ARM, INERTIA, SPIN, ready_top, slope, start, top

GRID = {"mass": [0.5, 1, 1.5], "gravity": np.linspace(1.0, 9.0, 5)}
RUN = {"h": 0.02, "steps": 60, "save_every": 20}


def sweep(path, make=top, integrator=None, **changes):
    arguments = {"grid": GRID, "client": "serial", "chunk": 4, **RUN, **changes}
    if "samples" in changes or "states" in changes:
        arguments["grid"] = changes.get("grid")
    return rx.sweep(make, integrator or rx.LieVerlet(), store=path / "sweep.zarr", **arguments)


def alone(make, *parameters, integrator=None, **changes):
    system, state = make(*parameters)
    return rx.simulate(system, integrator or rx.LieVerlet(), state, **RUN | changes)


def states_of(count):
    body = ready_top(1.0, 5.0)[0]
    spins = np.array(SPIN) + 0.1 * np.arange(3 * count).reshape(count, 3)
    return body, jax.vmap(lambda v: start(body, v))(spins), spins


def test_a_grid_has_a_dimension_for_each_parameter(tmp_path):
    runs = sweep(tmp_path)
    assert runs["g"].dims == ("time", "mass", "gravity", "g_0", "g_1")
    assert runs["mass"].values.tolist() == GRID["mass"]
    for mass, gravity in [(0.5, 1.0), (1.0, 7.0), (1.5, 9.0)]:
        expected = alone(ready_top, mass, gravity)
        here = runs.sel(mass=mass, gravity=gravity)
        np.testing.assert_array_equal(here["time"], expected.t)
        np.testing.assert_allclose(here["g"], expected.g, rtol=0, atol=2e-14)
        np.testing.assert_allclose(here["momentum"], expected.momentum, rtol=0, atol=2e-14)
    assert (runs["failed_step"] == -1).all()
    with xr.open_zarr(tmp_path / "sweep.zarr") as read:  # nobody but Zarr and xarray is needed
        xr.testing.assert_identical(read.load(), runs.load())


def test_blocks_do_not_show(tmp_path):
    first = sweep(tmp_path, chunk=2).load()
    for chunk in (7, None):
        shutil.rmtree(tmp_path / "sweep.zarr")
        xr.testing.assert_equal(sweep(tmp_path, chunk=chunk), first)


def test_samples_are_members(tmp_path):
    """Vectors in a dict of arrays, and the same as a list of dicts."""
    _, _, spins = states_of(5)
    masses = np.linspace(0.5, 1.0, 5)

    def make(mass, spin):
        body, _ = top(mass, 5.0)
        return body, start(body, spin)

    runs = sweep(tmp_path, make, samples={"mass": masses, "spin": spins}).load()
    assert runs["momentum"].dims == ("time", "member", "body")
    assert runs["spin"].dims == ("member", "spin_0") and runs["mass"].dims == ("member",)
    body = ready_top(masses[3], 5.0)[0]
    expected = rx.simulate(body, rx.LieVerlet(), start(body, spins[3]), **RUN)
    np.testing.assert_allclose(runs["g"][:, 3], expected.g, rtol=0, atol=2e-14)
    rows = [{"mass": m, "spin": s} for m, s in zip(masses, spins, strict=True)]
    again = sweep(tmp_path, make, samples=rows)
    xr.testing.assert_identical(again.load(), runs)


def test_every_sample_at_every_point_of_the_grid(tmp_path):
    runs = sweep(tmp_path, grid={"mass": [0.5, 1.5]}, samples={"gravity": [2.0, 2.0, 9.0]})
    assert runs["g"].dims == ("time", "mass", "member", "g_0", "g_1")
    expected = alone(ready_top, 1.5, 9.0).g
    np.testing.assert_allclose(runs["g"].sel(mass=1.5)[:, 2], expected, rtol=0, atol=2e-14)
    np.testing.assert_array_equal(runs["g"][:, :, 0], runs["g"][:, :, 1])


def test_states_alone(tmp_path):
    """The same bits as one ensemble, also where members start at different times."""
    body, states, _ = states_of(6)
    states = rx.State(states.g, states.momentum, jnp.arange(6.0))
    expected = rx.ensemble(body, rx.LieVerlet(), states, **RUN)
    runs = sweep(tmp_path, body, states=states)
    for name in ("g", "momentum", "iterations", "t"):
        np.testing.assert_array_equal(runs[name], expected[name])


def test_integrators_and_step_sizes_are_dimensions_too(tmp_path):
    several = {"verlet": rx.LieVerlet(), "rkmk": rx.RKMK("rk4")}
    runs = sweep(
        tmp_path, integrator=several, grid={"mass": [0.5, 1.5]}, samples={"gravity": [5.0] * 3},
        h=[0.1, 0.05], steps=[6, 12], save_every=[2, 4],
    )  # fmt: skip
    assert runs["g"].dims == ("time", "integrator", "h", "mass", "member", "g_0", "g_1")
    np.testing.assert_allclose(runs["t"].sel(h=0.05), runs["t"].sel(h=0.1), rtol=1e-15)
    expected = alone(
        ready_top, 1.5, 5.0, integrator=several["rkmk"], h=0.05, steps=12, save_every=4
    )
    here = runs["g"].sel(integrator="rkmk", h=0.05, mass=1.5)[:, 1]
    np.testing.assert_allclose(here, expected.g, rtol=0, atol=2e-14)


def energies(runs, system):
    energy = rx.analysis.observe_members(system, runs)["energy"]
    return {"drift": abs(energy - energy[0]).max("time"), "weight": runs["mass"] * runs["gravity"]}


def test_only_what_is_measured_is_kept(tmp_path):
    runs = sweep(tmp_path, measure=energies, chunk=8)
    assert set(runs.data_vars) >= {"drift", "weight", "failed_step"} and "g" not in runs
    assert runs["drift"].dims == ("mass", "gravity")
    np.testing.assert_array_equal(runs["weight"], np.outer(GRID["mass"], GRID["gravity"]))
    energy = alone(ready_top, 1.5, 9.0).invariants()["energy"]
    drift = float(runs["drift"].sel(mass=1.5, gravity=9.0))
    assert drift == pytest.approx(np.max(np.abs(energy - energy[0])), abs=1e-13) and drift > 1e-4


def word(shape, mass):
    """Needs to see its parameters, so its members are built one by one."""
    arm = np.array(ARM) if shape == "long" else np.array(ARM) / 2

    def height(R, scale=0.5 if mass > 1.0 else 1.0):
        return scale * (R[2] @ arm)

    body = rx.MechanicalSystem(
        rx.SO3(), INERTIA, potential=lambda R: mass * height(R), physical=False
    )
    return body, start(body)


@pytest.mark.parametrize("name", ["../out", "a/b", "..", "", 3, "a\\b"])
def test_a_measure_cannot_write_outside_the_store(tmp_path, name):
    with pytest.raises(rx.BadInput, match="it names an array in the store"):
        sweep(tmp_path, measure=lambda runs, system: {name: runs["momentum"].values[-1, :, 0]})
    assert not list(tmp_path.iterdir())


def test_functions_may_close_over_anything(tmp_path):
    """Words, decisions, functions within functions and default values: one kind of body."""
    runs = sweep(tmp_path, word, grid={"shape": ["long", "short"], "mass": [1.0, 2.0]})
    for shape, mass, gravity in [("long", 1.0, 1.0), ("short", 1.0, 0.5), ("long", 2.0, 0.5)]:
        expected = alone(ready_top, mass, gravity).g
        here = runs["g"].sel(shape=shape, mass=mass)
        np.testing.assert_allclose(here, expected, rtol=0, atol=2e-14)


def test_a_member_that_fails_is_flagged(tmp_path):
    grid = {"position": [-3.0, 0.35, 0.5, -8.0]}
    with pytest.warns(
        UserWarning, match=r"2 of 4 members failed, the first of them position = 0.5"
    ):
        runs = sweep(tmp_path, slope, rx.RKMK("euler"), grid=grid, chunk=3, h=0.2, steps=8)
    failed = runs["failed_step"].values
    assert failed[0] == failed[3] == -1 and 0 < failed[2] < failed[1]
    with pytest.raises(rx.StepFailed) as one:
        alone(slope, 0.5, integrator=rx.RKMK("euler"), h=0.2, steps=8)
    assert one.value.trajectory.completed == failed[2] - 1
    assert np.isnan(runs["g"][-1].values[:, 0]).tolist() == [False, True, True, False]


def test_a_sweep_goes_on_where_it_stopped(tmp_path, monkeypatch):
    """Interrupted, and then with blocks damaged and cut short: only these are run again."""
    whole = sweep(tmp_path).load()
    path = tmp_path / "sweep.zarr"
    shutil.rmtree(path)

    def interrupted(done, total):
        if done == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"interrupted. Of 6 blocks 3 are in the store"):
        sweep(tmp_path, progress=interrupted)
    before = {file: file.stat().st_mtime_ns for file in (path / "g").rglob("*") if file.is_file()}
    seen = []
    again = sweep(tmp_path, progress=lambda *done: seen.append(done)).load()
    assert seen[0] == (9, 15) and seen[-1] == (15, 15)
    assert all(file.stat().st_mtime_ns == time for file, time in before.items())
    xr.testing.assert_identical(again.drop_attrs(), whole.drop_attrs())

    damaged, short = path / "momentum/c/0/1/0/0", path / "g/c/0/2/1/0/0"
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    short.write_bytes(short.read_bytes()[:-7])
    seen.clear()
    again = sweep(tmp_path, progress=lambda *done: seen.append(done)).load()
    assert seen[0] == (10, 15) and len(seen) == 3
    xr.testing.assert_identical(again.drop_attrs(), whole.drop_attrs())
    sweep(tmp_path, progress=lambda *done: seen.append(done))
    assert seen[-1] == (15, 15) and len(seen) == 4

    monkeypatch.setattr(plan, "versions", lambda: {"jax": "0.0"})
    shutil.rmtree(path / "blocks/committed/c")
    with pytest.warns(UserWarning, match=r"begun with jax \d.*goes on with other versions"):
        sweep(tmp_path)


FACTOR = 1.0


def factored(mass, gravity):
    body = rx.MechanicalSystem(
        rx.SO3(), jnp.array(INERTIA), lambda R: FACTOR * mass * gravity * R[2, 2], physical=False
    )
    return body, start(body)


OTHERS = {
    "h": ({"h": 0.03}, "h"),
    "steps": ({"steps": 80}, "steps"),
    "a mass": ({"grid": GRID | {"mass": [0.5, 1.0, 1.6]}}, "parameters and systems"),
    "integrator": ({"integrator": rx.LieVerlet(rx.Exp())}, "integrator"),
    "code": ({"make": top}, "systems"),
    "measure": ({"measure": energies}, "measure"),
    "chunk": ({"chunk": 5}, "chunk"),
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    sweep(folder, factored)
    return folder


@pytest.mark.parametrize("what", OTHERS)
def test_another_sweep_does_not_go_into_the_same_store(finished, what):
    changes, words = OTHERS[what]
    with pytest.raises(rx.BadInput, match=f"holds another sweep, which differs .* in {words};"):
        sweep(finished, **{"make": factored} | changes)


def test_a_constant_that_functions_find_by_name_counts(finished, monkeypatch):
    monkeypatch.setitem(globals(), "FACTOR", 1.1)
    with pytest.raises(rx.BadInput, match="differs from this one in systems"):
        sweep(finished, factored)


def raising(mass, gravity):
    raise RuntimeError("no such top")


def kinds(mass, gravity):
    inertia = INERTIA if mass < 1 else jnp.diag(jnp.array(INERTIA))
    body = rx.MechanicalSystem(rx.SO3(), inertia, physical=False)
    return body, start(body)


REFUSED = {
    "nothing": ({"grid": None}, "grid and samples are both empty"),
    "not a dict": ({"grid": [1.0]}, "must be a dict"),
    "empty": ({"grid": {"mass": []}}, "at least one value"),
    "not finite": ({"grid": {"mass": [1.0, np.nan]}}, "must be finite"),
    "twice": ({"grid": {"mass": [1.0, 1.0]}}, "has a value twice"),
    "vectors": ({"grid": {"mass": np.eye(3)}}, "give vectors as samples"),
    "no numbers": ({"grid": {"mass": [object()]}}, "must be numbers or words"),
    "name": ({"grid": {"time": [1.0]}}, "must be named as an argument"),
    "in both": ({"grid": {"mass": [1.0]}, "samples": {"mass": [1.0]}}, "both in grid and in"),
    "lengths": ({"samples": {"mass": [1.0], "gravity": [1.0, 2.0]}}, "different lengths"),
    "rows": ({"samples": [{"mass": 1.0}, {"gravity": 1.0}]}, r"samples\[1\] has the parameters"),
    "samples": ({"samples": 3}, "must be a dict of arrays"),
    "other arguments": ({"grid": {"size": [1.0]}}, r"make\(size = 1.0\) raised TypeError"),
    "raises": ({"make": raising}, "raised RuntimeError: no such top"),
    "no pair": ({"make": lambda mass, gravity: mass}, "must return a system and a state"),
    "no system": ({"make": lambda mass, gravity: (mass, gravity)}, "which is not a retrax system"),
    "no state": ({"make": lambda mass, gravity: (top(1.0, 1.0)[0], 3)}, "as the state"),
    "no function": ({"make": 3}, "must be a function that returns a system"),
    "kinds": ({"make": kinds}, "must be of one kind"),
    "both": ({"states": states_of(3)[1], "grid": GRID}, "states are for one system"),
    "system and grid": ({"make": states_of(1)[0]}, "neither grid nor samples"),
    "one state": ({"make": states_of(1)[0], "states": top(1.0, 1.0)[1]}, "first axis"),
    "inertia": (
        {"make": lambda mass, gravity: ready_top(mass, gravity), "grid": {"mass": [1.0, -1.0]}},
        "raised TypeError",
    ),
    "integrators": ({"integrator": {1: rx.LieVerlet()}}, "a dict of them by name"),
    "integrator": ({"integrator": "verlet"}, "is not the name of an integrator"),
    "h": ({"h": 0.0}, "must be a finite number"),
    "h twice": ({"h": [0.1, 0.1]}, "list of different ones"),
    "steps": ({"steps": 0}, "whole number of at least 1"),
    "list of steps": ({"steps": [10, 20]}, "one for each of a list h"),
    "records": ({"h": [0.1, 0.2], "steps": [10, 20], "save_every": 10}, "must all save as many"),
    "chunk": ({"chunk": 0}, "chunk = 0 must be"),
    "retries": ({"retries": -1}, "retries = -1 must be"),
    "backend": ({"backend": "cuda"}, "must be one of auto"),
    "measure": ({"measure": "energy"}, "must be a function of the runs"),
    "measured": ({"measure": lambda runs, system: 3.0}, "first axis of 2 members"),
    "measuring": ({"measure": lambda runs, system: runs["x"]}, "measure raised KeyError"),
    "progress": ({"progress": 3}, "must be None, True, False or a function"),
    "client": ({"client": 3}, "client = 3 must be a Dask client"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_run_is_refused_before_anything_is_written(tmp_path, what):
    changes, sentence = REFUSED[what]
    with pytest.raises(rx.BadInput, match=sentence):
        sweep(tmp_path, **changes)
    assert not list(tmp_path.iterdir())


def test_a_parameter_must_not_have_the_name_of_a_result(tmp_path):
    def make(momentum):
        body = ready_top(1.0, 1.0)[0]
        return body, body.state(jnp.eye(3), momentum=momentum)

    with pytest.raises(rx.BadInput, match="'momentum' has the name of a result"):
        sweep(tmp_path, make, samples={"momentum": np.eye(3)})


def test_a_store_that_cannot_be_used_is_refused(tmp_path, monkeypatch):
    with pytest.raises(rx.BadInput, match=r"the folder .*nowhere.* does not exist"):
        sweep(tmp_path / "nowhere")
    with pytest.raises(rx.BadInput, match="cannot be written"):
        sweep(Path("/proc"))
    (tmp_path / "sweep.zarr").write_text("mine")
    with pytest.raises(rx.BadInput, match="exists and is not a sweep"):
        sweep(tmp_path)
    (tmp_path / "sweep.zarr").unlink()
    xr.Dataset({"x": ("x", [1.0])}).to_zarr(tmp_path / "sweep.zarr", consolidated=False)
    with pytest.raises(rx.BadInput, match="exists and is not a sweep"):
        sweep(tmp_path)
    shutil.rmtree(tmp_path / "sweep.zarr")
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(zarr_store.shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(rx.BadInput, match=r"will take up to .* kB, but its disk has 1 kB free"):
        sweep(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_disk_that_fills_up_stops_a_sweep_with_a_sentence(tmp_path, monkeypatch):
    calls = []

    def full(path, results, block, runs, seconds):
        if block.number == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, results, block, runs, seconds)

    real = zarr_store.write
    monkeypatch.setattr(blocks, "write", full)
    with pytest.raises(rx.SweepStopped, match=r"No space left on device. Of 6 blocks 2 are in"):
        sweep(tmp_path)
    monkeypatch.undo()
    sweep(tmp_path, progress=lambda *done: calls.append(done))
    assert calls[0] == (5, 15)


def test_without_dask_one_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(rx.BadInput, match=r"pip install 'retrax\[dask\]'"):
        sweep(tmp_path, client=None)
    assert sweep(tmp_path, client=workers.SERIAL).sizes["mass"] == 3


@pytest.mark.parametrize(
    "members, work, size, expected",
    [(60, 2000 * 13, 100, 60), (10**6, 10**5 * 13, 100, 15625), (100, 20_000 * 378, 3000, 4),
     (10**6, 10**5 * 13, 2**20, 64), (5, 10**9, 2**30, 1)],
    ids=["small", "large", "rods", "many bytes", "one at a time"],
)  # fmt: skip
def test_how_many_members_a_block_has_depends_on_the_sweep_alone(members, work, size, expected):
    assert axes.usual_block(members, work, size) == expected
    assert axes.block_shape([3, 5, 7], 20) == (1, 2, 7)
    assert axes.block_shape([3, 5, 7], 1000) == (3, 5, 7)
    assert axes.block_shape([3, 50], 20) == (1, 20)

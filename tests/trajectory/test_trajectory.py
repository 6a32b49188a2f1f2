"""A trajectory: its parts, its table, its file."""

import json
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import retrax as rx


@pytest.fixture(scope="module")
def run():
    system, state, h, _ = rx.systems.Pendulum3D.paper()
    return rx.simulate(system, rx.LieVerlet(), state, h=h, steps=60, save_every=7)


@pytest.fixture(scope="module")
def floating():
    """A run on a nested product, where the configuration is a tuple of tuples."""
    group = rx.Product(rx.SE3(), rx.Translation(2))
    system = rx.MechanicalSystem(
        group,
        [1.0, 1.3, 0.9, 1.4, 1.4, 1.4, 0.5, 0.5],
        lambda g: g[0][1] @ g[0][1] / 2 + g[1] @ g[1] + g[0][0][2, 2] * g[1][0],
    )
    start = system.state(group.identity(), velocity=[0.3, -0.2, 0.5, 1.0, 0.1, 0, -0.4, 0.2])
    return rx.simulate(system, rx.LieVerlet(), start, h=0.05, steps=20)


def test_parts_are_stacked_along_time(run):
    assert run.g.shape == (10, 3, 3)
    assert run.momentum.shape == run.velocity.shape == (10, 3)
    np.testing.assert_allclose(run.momentum, run.velocity * np.array([1.0, 2.8, 2.0]), rtol=1e-15)
    assert run.info.iterations.shape == (10,) and run.info.iterations[0] == 0
    assert np.array_equal(run.final.g, run.g[-1]) and run.final.t == run.t[-1] == 60 * 0.05


def test_invariants_are_named_and_true(run):
    invariants = run.invariants()
    assert set(invariants) == {"energy", "spatial momentum e3"}
    R, w = np.asarray(run.g), np.asarray(run.velocity)
    energy = np.sum(w * w * [1.0, 2.8, 2.0], axis=1) / 2 - 9.81 * R[:, 2, 2]
    np.testing.assert_allclose(invariants["energy"], energy, rtol=1e-15)
    vertical = np.einsum("tj,tj->t", R[:, 2], run.momentum)
    np.testing.assert_allclose(invariants["spatial momentum e3"], vertical, rtol=1e-15)
    assert np.max(run.group_defect()) < 1e-15


def test_the_summary_says_what_was_run_and_how_well_it_held(run):
    text = run.summary()
    for part in ("3D pendulum", "LieVerlet()", "60 steps of h = 0.05 s", "energy", "SO(3)"):
        assert part in text
    assert len({len(line) for line in text.splitlines()[4:6]}) == 1


def test_measures_are_plain_json(run):
    measures = json.loads(json.dumps(run.measures()))
    assert measures["steps"] == 60 and measures["h"] == 0.05
    assert measures["final"]["g"] == run.g[-1].tolist()
    assert abs(measures["invariants"]["energy"]["initial"] + 9.175) < 1e-12
    assert measures["invariants"]["spatial momentum e3"]["max_error"] < 1e-14


def test_the_dataset_has_units_and_provenance(run):
    ds = run.dataset()
    assert ds["time"].attrs["units"] == "s" and ds["energy"].attrs["units"] == "J"
    assert ds.attrs["provenance_integrator"] == "LieVerlet()"
    assert ds.attrs["provenance_jax"] == jax.__version__
    assert ds["spatial_momentum_e3"].attrs["long_name"] == "spatial momentum e3"


@pytest.mark.parametrize("name", ["run", "floating"])
def test_saved_and_loaded_is_the_same_to_the_bit(name, request, tmp_path):
    original = request.getfixturevalue(name)
    loaded = rx.load(original.save(tmp_path / "run.nc"))
    same = jax.tree.map(np.array_equal, loaded.states, original.states)
    assert all(jax.tree.leaves(same))
    assert jax.tree.structure(loaded.g) == jax.tree.structure(original.g)
    assert loaded.provenance == original.provenance and repr(loaded) == repr(original)
    assert loaded.summary() == original.summary() and loaded.measures() == original.measures()
    assert loaded.info.iterations.tolist() == original.info.iterations.tolist()
    assert list(loaded.invariants()) == list(original.invariants())


def test_a_loaded_run_can_be_continued(run, tmp_path):
    system, *_ = rx.systems.Pendulum3D.paper()
    loaded = rx.load(run.save(tmp_path / "run.nc"))
    again = rx.simulate(system, rx.LieVerlet(), loaded.final, h=0.05, steps=1)
    assert again.t[0] == run.t[-1]


def test_a_run_that_is_made_again_can_be_looked_at(run):
    def made():
        return rx.simulate(run.system, run.integrator, run.final, h=run.h, steps=5)

    first, again = made(), made()
    assert again.summary().splitlines()[3:] == first.summary().splitlines()[3:]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(run, tmp_path, monkeypatch):
    path = run.save(tmp_path / "run.nc")
    before = path.read_bytes()

    def broken(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_bytes", broken)
    with pytest.raises(OSError, match="disk full"):
        run.save(path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["run.nc"]


def test_files_that_are_no_runs_are_refused(run, tmp_path):
    with pytest.raises(rx.BadInput, match="there is no such file"):
        rx.load(tmp_path / "missing.nc")
    (tmp_path / "text.nc").write_text("hello")
    with pytest.raises(rx.BadInput, match="not a readable NetCDF file"):
        rx.load(tmp_path / "text.nc")
    other = tmp_path / "other.nc"
    xr.Dataset({"a": ("x", np.arange(3))}).to_netcdf(other, engine="h5netcdf")
    with pytest.raises(rx.BadInput, match="not a retrax run"):
        rx.load(other)
    newer = run.dataset().assign_attrs(format_version=99)
    newer.to_netcdf(other, engine="h5netcdf")
    with pytest.raises(rx.BadInput, match="format 99"):
        rx.load(other)
    with pytest.raises(rx.BadInput, match="does not exist"):
        run.save(tmp_path / "missing" / "run.nc")


def test_drift_of_a_line_and_of_an_oscillation():
    t = np.linspace(0.0, 10.0, 101)
    assert abs(rx.analysis.drift(t, 3.0 - 0.25 * t) + 0.25) < 1e-15
    assert abs(rx.analysis.drift(t, np.cos(2 * np.pi * t))) < 1e-2
    assert rx.analysis.drift(t[:1], t[:1]) == 0.0


def test_arrays_come_back_as_numpy(run):
    assert isinstance(run.t, np.ndarray) and not isinstance(run.momentum, jnp.ndarray)


def ended_by_an_event(run, within):
    """The run as if an event had ended it in its next step, a part of the step after its last."""
    event = rx.State(run.final.g, run.final.momentum, run.t[-1] + within * run.h)
    states, info = jax.tree.map(
        lambda x, last: np.concatenate([x, np.asarray(last)[None]]),
        (run.states, run.info),
        (event, jax.tree.map(lambda x: 0 * x[-1], run.info)),
    )
    told = {name: getattr(run, name) for name in ("h", "completed", "save_every", "provenance")}
    told |= {name: getattr(run, name) for name in ("seconds", "system", "integrator")}
    return type(run)(t=states.t, states=states, info=info, steps=1000, compile_seconds=0.0, **told)


def test_a_run_that_an_event_ended_is_read_back(run, tmp_path):
    stopped = ended_by_an_event(run, 0.3)
    again = rx.load(stopped.save(tmp_path / "event.nc"))
    assert np.array_equal(again.t, stopped.t) and len(again) == len(run) + 1
    assert again.completed == 60 and again.final.t == stopped.t[-1]


@pytest.mark.parametrize("within", [-0.3, 1.5])
def test_an_event_lies_within_one_step_of_the_last(run, tmp_path, within):
    path = ended_by_an_event(run, within).save(tmp_path / "event.nc")
    with pytest.raises(rx.BadInput, match="after its last whole one"):
        rx.load(path)

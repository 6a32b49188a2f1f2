"""Driven runs in files: their inputs, what their controllers keep, and a run that is taken up."""

import jax
import numpy as np
import pytest
from driven_plants import MATRIX, controls

import retrax as rx

PLANT = rx.Actuated(rx.systems.Pendulum3D([1.0, 2.8, 2.0], 1.0, [0.1, 0.2, 0.4]), MATRIX)
START = PLANT.state(np.eye(3), velocity=[0.3, 1.0, -0.7])
METHOD = rx.LieVerlet()
EACH = list(controls())


def driven(control, steps=80, state=START, **options):
    options = {"h": 0.01, "save_every": 3, "control": control} | options
    return rx.simulate(PLANT, METHOD, state, steps=steps, **options)


def same(one, other):
    for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.filterwarnings("ignore:.*a checkpoint keeps data")
@pytest.mark.parametrize("kind", EACH)
def test_a_checkpoint_holds_inputs_and_goes_on_with_every_bit(kind, tmp_path):
    control, path = controls()[kind], tmp_path / "run.zarr"
    whole = driven(control)
    driven(control, steps=31, checkpoint=path, every=10)
    read = rx.load(path)
    np.testing.assert_array_equal(read.inputs, driven(control, steps=31).inputs)
    assert "energy" not in read.invariants()
    rest = rx.resume(path, 80, system=PLANT, integrator=METHOD, control=control)
    same(rest.states, whole.states)
    np.testing.assert_array_equal(rest.inputs, whole.inputs)


@pytest.mark.filterwarnings("ignore:.*a checkpoint keeps data")
@pytest.mark.parametrize("kind", ["signal", "with a state"])
def test_what_is_loaded_goes_on_as_what_was_run(kind, tmp_path):
    control = controls()[kind]
    run = driven(control)
    read = rx.load(run.save(tmp_path / "run.nc"))
    np.testing.assert_array_equal(read.inputs, run.inputs)
    np.testing.assert_array_equal(read.energy_balance().work, run.energy_balance().work)
    same(driven(control, state=read.final).states, driven(control, state=run.final).states)
    assert (kind == "signal") == isinstance(read.integrator, rx.Driven)  # no function of ours in it


def test_a_table_needs_nothing_to_go_on(tmp_path):
    control, path = controls()["signal"], tmp_path / "run.zarr"
    driven(control, steps=30, checkpoint=path)
    same(rx.resume(path, 80).states, driven(control).states)


@pytest.mark.filterwarnings("ignore:.*a checkpoint keeps data")
def test_half_of_a_driven_run_is_not_taken_up(tmp_path):
    path, free = tmp_path / "run.zarr", tmp_path / "free.zarr"
    control = controls()["sampled"]
    driven(control, steps=30, checkpoint=path)
    driven(None, steps=30, checkpoint=free)
    said = r"system=plant, integrator=..., control=..."
    for options in ({}, {"integrator": METHOD}, {"control": control}):
        with pytest.raises(rx.BadInput, match=said):
            rx.resume(path, 80, **options)
    with pytest.raises(rx.BadInput, match="holds a free run"):
        rx.resume(free, 80, system=PLANT, integrator=METHOD, control=control)
    with pytest.raises(rx.BadInput, match="keeps arrays of shapes"):
        other = controls()["with a state"]
        rx.resume(path, 80, system=PLANT, integrator=METHOD, control=other)


def test_inputs_are_in_datasets_and_quantities():
    run = driven(controls()["signal"])
    data = run.dataset()
    assert data["inputs"].dims == ("time", "input")
    np.testing.assert_array_equal(data["inputs"], run.inputs)
    free = driven(None)
    assert free.inputs.shape == (len(free.t), 0)
    assert "inputs" not in free.dataset()

"""Reading a run never runs anything that its file holds."""

import builtins
import os
import pickle
import subprocess

import h5py
import jax.numpy as jnp
import numpy as np
import pytest

import retrax as rx


class Harmful:
    """Unpickled, this calls `os.system`."""

    def __reduce__(self):
        return os.system, ("true",)


COMMAND = "__import__('os').system('true')"
PICKLED = pickle.dumps(Harmful(), protocol=2)
HARM = [COMMAND, PICKLED.hex(), "!!python/object/apply:os.system [x]"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    body = rx.systems.FreeRigidBody([1.0, 1.7, 2.3])
    state = body.state(jnp.eye(3), velocity=[0.3, -0.2, 0.9])
    run = rx.simulate(body, rx.LieVerlet(), state, h=0.05, steps=4, progress=False)
    return run.save(tmp_path_factory.mktemp("runs") / "run.nc")


@pytest.fixture
def executed(monkeypatch):
    """What a file could have run: every door out of data into code, with a bell on it."""
    rung = []

    def bell(name):
        return lambda *args, **kwargs: rung.append(name)

    for module, name in (
        (builtins, "eval"), (os, "system"), (os, "popen"), (pickle, "loads"), (pickle, "load"),
        (subprocess, "Popen"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, bell(name))
    return rung


@pytest.mark.parametrize("harm", HARM, ids=["python", "pickle", "yaml"])
@pytest.mark.parametrize("name", ["configuration", "provenance_system", "provenance_drawing", "h"])
def test_attributes_are_never_run(saved, tmp_path, executed, name, harm):
    path = tmp_path / "harm.nc"
    path.write_bytes(saved.read_bytes())
    with h5py.File(path, "r+") as file:
        file.attrs[name] = harm
    if name.startswith("provenance"):
        assert rx.load(path).provenance[name.removeprefix("provenance_")] == harm
    else:
        with pytest.raises(rx.BadInput, match=r"harm\.nc' holds no whole run"):
            rx.load(path)
    assert executed == []


def test_objects_in_a_file_are_never_made(saved, tmp_path, executed):
    path = tmp_path / "objects.nc"
    path.write_bytes(saved.read_bytes())
    with h5py.File(path, "r+") as file:
        del file["momentum"]
        file["momentum"] = np.array([PICKLED.hex()], dtype=h5py.string_dtype())
    with pytest.raises(rx.BadInput, match=r"objects\.nc"):
        rx.load(path)
    assert executed == []


def test_the_bells_ring(executed):
    pickle.loads(b"")
    os.system("true")
    assert executed == ["loads", "system"]

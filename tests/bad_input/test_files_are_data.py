"""Reading a run never runs anything that its file holds."""

import os
import pickle
import subprocess
import sys
from typing import Any

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
    path = run.save(tmp_path_factory.mktemp("runs") / "run.nc")
    rx.load(path)  # what reading imports is imported now, and what that runs is not heard
    return path


class Bells:
    """Every door out of data into code, with a bell on it: Python announces who goes through."""

    def __init__(self):
        self.rung: list[str] | None = None
        sys.addaudithook(self.hear)

    def hear(self, event: str, args: tuple[Any, ...]) -> None:
        if self.rung is None:
            return
        harmful = event == "compile" and "system" in str(args[0])
        unpickled = event == "pickle.find_class" and args[0] in ("os", "posix", "nt")
        if harmful or unpickled or event in ("os.system", "subprocess.Popen", "os.posix_spawn"):
            self.rung.append(event)


BELLS = Bells()


@pytest.fixture
def executed(saved):
    """What a file has run while the test goes on."""
    BELLS.rung = []
    yield BELLS.rung
    BELLS.rung = None


@pytest.mark.parametrize("harm", HARM, ids=["python", "pickle", "yaml"])
@pytest.mark.parametrize("name", ["configuration", "provenance_system", "provenance_created", "h"])
def test_attributes_are_never_run(saved, tmp_path, executed, name, harm):
    path = tmp_path / "harm.nc"
    path.write_bytes(saved.read_bytes())
    with h5py.File(path, "r+") as file:
        file.attrs[name] = harm
        if name.startswith("provenance"):  # or else it is refused before it is read
            del file.attrs["checksum"], file["run"]
    if name.startswith("provenance"):
        with pytest.warns(UserWarning, match="has no checksum"):
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
    pickle.loads(PICKLED)
    assert executed == ["pickle.find_class", "os.system"]
    eval(COMMAND)
    assert executed[2:] == ["compile", "os.system"]
    subprocess.run(["true"], check=True)
    assert "subprocess.Popen" in executed[4:]

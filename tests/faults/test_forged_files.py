"""Forged files are refused in a sentence, or read as what they were."""

import subprocess
import sys

import h5py
import numpy as np
import pytest
import xarray as xr
from forged_checkpoints import checkpoint_doors, checkpoint_forgeries
from forged_netcdf import SECRET, netcdf_doors, netcdf_forgeries
from forged_sweeps import sweep_door, sweep_forgeries
from forged_systems import checkpoints, signed, top_doors
from forging import campaign, judge

import retrax as rx


@pytest.fixture(scope="module")
def doors(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forged")
    return {
        **{door.name: (door, checkpoint_forgeries) for door in checkpoint_doors(folder)},
        **{door.name: (door, netcdf_forgeries) for door in netcdf_doors(folder)},
        "sweep": (sweep_door(folder), sweep_forgeries),
    }


FEW = {
    "load a checkpoint": (
        "attributes/h: largest", "attributes/rows: huge", "attributes/restart/memory: lists",
        "attributes/restart/state: text", "attributes/provenance_system: escape",
        "attributes/seconds: zero", "attributes/compile_seconds: huge",
        "attributes/seconds: beyond", "attributes/rows: beyond",
        "consolidated_metadata/metadata/g/shape: lists", "start system 23: ",
        "start attributes/probe: text", "system.mass = heavy", "time backwards",
        "momentum not a number", "g/c.0.0.0 is a link", "zarr.json piped", "start is a link",
        "momentum is a link", "time/c.1 sparse", "zarr 2",
    ),
    "resume": (
        "attributes/restart: table", "attributes/environment: table", "start system 18: ",
        "attributes/compile_seconds: zero",
        "start integrator 19: ", "start system 16: ", "system and integrator swapped",
        "system.inertia = None", "time shuffled",
    ),
    "load": (
        "attribute steps: fraction", "attribute configuration: twice", "attribute h: largest",
        "attribute provenance_group: missing", "g: virtual", "g: in another file",
        "momentum: a link to another file", "momentum: a link", "time: compound",
        "energy: references", "velocity: giant and packed", "g: never written",
        "iterations: another filter", "momentum.scale_factor", "times are dates",
        "also the file in itself", "also a giant", "run: virtual", "run: shorter",
        "run system 2: ", "run system 9: ", "run system 16: ", "run system 17: ",
        "run integrator 1: ", "run system is missing", "run on a giant", "run holds b'[[",
    ),
    "report": (
        "run system 0: ", "run on text",
        "attribute provenance_system: markup",
        "attribute provenance_integrator: shell", "attribute provenance_group: formula",
    ),
    "sweep": (
        "format_version: deep", "identity: text", "a giant", "another label", "a result bursts",
        "the lock is a link", "momentum/c is a link", "zarr.json is a pipe",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FEW)
def test_a_forged_file_is_refused_in_a_sentence_or_read_as_what_it_was(doors, name):
    door, forgeries = doors[name]
    wanted, wrong = list(FEW[name]), []
    for forgery in forgeries(door.original):
        asked = next((few for few in wanted if forgery.name.startswith(few)), None)
        if asked is not None:
            wanted.remove(asked)
            verdict = judge(door, forgery)
            wrong += [f"{forgery.name}: {verdict}"] if verdict.startswith("WRONG") else []
    assert not wanted, "there is no such forgery"
    assert not wrong, "\n".join(wrong)


@pytest.mark.campaign
@pytest.mark.parametrize("name", FEW)
def test_every_forged_file_is_refused_in_a_sentence_or_read_as_what_it_was(doors, name):
    door, forgeries = doors[name]
    seen, wrong = campaign(door, forgeries(door.original))
    assert not wrong, f"{seen}\n" + "\n".join(wrong)
    assert seen.total() > (150 if name == "sweep" else 500)


FEW_SYSTEMS = (
    "inertia = [-5.0, -5.0, -5.0]; renewed", "inertia = [2.0, 3.4, 4.6]; renewed",
    "mass = -5.0; unsigned", "mass = 1.3001; renewed", "arm is Ellipsis; renewed",
    "inertia and arm swapped; renewed", "another integrator; renewed", "g: seven; renewed",
    "preserves = -1.5; renewed",
    "g: turned; renewed", "velocity: one entry; renewed", "energy: one entry; renewed",
    "group_defect: seven; renewed", "momentum: doubled; renewed", "iterations: negative; renewed",
    "run is missing; renewed", "g: turned; <lambda>",
)  # fmt: skip


@pytest.fixture(scope="module")
def tops(tmp_path_factory):
    return top_doors(tmp_path_factory.mktemp("tops"))


def test_a_file_tells_nothing_about_its_system_that_is_not_measured(tops):
    forgeries = {forgery.name: forgery for forgery in signed(tops[0].original)}
    wrong = [f"{few}: {judge(tops[0], forgeries[few])}" for few in FEW_SYSTEMS]
    assert [verdict for verdict in wrong if "WRONG" in verdict] == []


def test_a_checkpoint_of_another_system_is_refused(tops):
    seen, wrong = campaign(tops[1], checkpoints(tops[1].original))
    assert not wrong and seen.total() > 70


@pytest.mark.campaign
def test_no_forged_system_is_read_without_a_word(tops):
    seen, wrong = campaign(tops[0], signed(tops[0].original))
    assert not wrong, f"{seen}\n" + "\n".join(wrong)
    assert seen.total() > 350


def test_a_file_without_a_checksum_is_read_with_a_warning(tops, tmp_path):
    path = tmp_path / "top.nc"
    path.write_bytes(tops[0].original.read_bytes())
    with h5py.File(path, "r+") as file:
        del file.attrs["checksum"]
    with pytest.warns(UserWarning, match="has no checksum"):
        assert np.array_equal(rx.load(path).g, rx.load(tops[0].original).g)


READ = """
import resource, sys
import retrax as rx
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    rx.load(sys.argv[1])
except rx.BadInput as error:
    print(error)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((after - before) // 1024)
"""


def test_a_small_file_does_not_take_gigabytes(doors, tmp_path):
    path = tmp_path / "run.nc"
    path.write_bytes(doors["load"][0].original.read_bytes())
    with h5py.File(path, "r+") as file:
        del file["energy"]
        options = {"chunks": (2**20,), "compression": "gzip", "fillvalue": 1.0}
        file.create_dataset("energy", (440_000_000,), "f8", **options)
    assert path.stat().st_size < 40_000
    told = subprocess.run([sys.executable, "-c", READ, path], capture_output=True, text=True)
    sentence, megabytes = told.stdout.splitlines()
    assert "'energy', which declares 3.52 GB of numbers and holds 0 kB" in sentence
    assert int(megabytes) < 200, "memory was taken before the file was refused"


def test_no_other_file_is_read(doors, tmp_path):
    """The secret lies where HDF5 would look for the numbers, and never comes out."""
    path, secret = tmp_path / "run.nc", tmp_path / "secret"
    path.write_bytes(doors["load"][0].original.read_bytes())
    secret.write_text(SECRET.ljust(168))
    with h5py.File(path, "r+") as file:
        shape = file["momentum"].shape
        del file["momentum"]
        file.create_dataset("momentum", shape, "f8", external=[(str(secret), 0, 168)])
        read = bytes(np.asarray(file["momentum"]).tobytes())
    assert SECRET.encode() in read, "HDF5 itself does read it"
    with pytest.raises(rx.BadInput, match="'momentum', whose numbers are in other files"):
        rx.load(path)


def test_a_run_with_packed_arrays_is_still_read(doors, tmp_path):
    """Files that other tools have compressed as NetCDF does are no forgeries."""
    original = doors["load"][0].original
    with xr.open_dataset(original, engine="h5netcdf") as run:
        packed = {name: {"zlib": True, "shuffle": True} for name in run.data_vars}
        run.to_netcdf(tmp_path / "packed.nc", engine="h5netcdf", encoding=packed)
    found, wanted = rx.load(tmp_path / "packed.nc"), rx.load(original)
    assert np.array_equal(found.momentum, wanted.momentum)

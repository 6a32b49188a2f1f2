"""Forged stores of sweeps: the same sweep goes on from what is in them."""

import functools
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numcodecs
import numpy as np
import xarray as xr
from forging import VALUES, Door, Forgery

import retrax as rx


def top(mass: Any) -> tuple[Any, Any]:
    body = rx.systems.HeavyTop([1.0, 1.7, 2.3], mass, [0.4, -0.3, 1.1])
    return body, body.state(jnp.eye(3), velocity=[0.3, -0.2, 0.9])


def swept(path: Path) -> xr.Dataset:
    return rx.sweep(
        top, rx.LieVerlet(), grid={"mass": [1.0, 1.5, 2.0, 2.5]}, h=0.05, steps=6, save_every=3,
        store=path, client="serial", chunk=2, progress=False,
    ).load()  # fmt: skip


def sweep_door(folder: Path) -> Door:
    path = folder / "sweep.zarr"
    wanted = swept(path)
    return Door("sweep", path, lambda store: swept(store).equals(wanted))


def _record(where: tuple[str, ...], value: Any, path: Path) -> None:
    record = json.loads((path / "zarr.json").read_text())
    part = record
    for key in where[:-1]:
        part = part[key]
    if value is ...:
        part.pop(where[-1])
    else:
        part[where[-1]] = value
    (path / "zarr.json").write_text(json.dumps(record))


def sweep_forgeries(path: Path) -> Iterator[Forgery]:
    for key in ("format", "format_version", "identity"):
        for name, value in VALUES.items():
            yield Forgery(f"{key}: {name}", functools.partial(_record, ("attributes", key), value))
    arrays = ("consolidated_metadata", "metadata")
    for array in ("momentum", "mass", "blocks/committed"):
        for key in ("shape", "data_type", "chunk_grid", "codecs", "node_type"):
            for name in ("missing", "null", "huge", "text", "lists", "table"):
                change = functools.partial(_record, (*arrays, array, key), VALUES[name])
                yield Forgery(f"{array}.{key}: {name}", change)
    wide = {"name": "regular", "configuration": {"chunk_shape": [3, 4, 3]}}
    odd: dict[str, tuple[tuple[str, ...], Any]] = {
        "a giant": ((*arrays, "momentum", "shape"), [3, 10**12, 3]),
        "wider chunks": ((*arrays, "momentum", "chunk_grid"), wide),
        "another type": ((*arrays, "momentum", "data_type"), "float32"),
        "no codec": ((*arrays, "momentum", "codecs"), [{"name": "bytes"}]),
        "no commits": ((*arrays, "blocks/committed"), ...),
        "more": ((*arrays, "../../out"), {"node_type": "group", "zarr_format": 3}),
        "zarr 2": (("zarr_format",), 2),
        "a scale": ((*arrays, "momentum", "attributes"), {"scale_factor": 2.0}),
        "a mask": ((*arrays, "momentum", "attributes"), {"_FillValue": "AAAAAAAAAAA="}),
        "another fill value": ((*arrays, "momentum", "fill_value"), 0.0),
        "an array of zarr 2": ((*arrays, "momentum", "zarr_format"), 2),
    }
    for name, (where, value) in odd.items():
        yield Forgery(name, functools.partial(_record, where, value))
    yield from _files()


def _files() -> Iterator[Forgery]:
    chunk, label = "momentum/c/0/1/0", "mass/c/0"

    def bomb(name: str, path: Path) -> None:
        (path / name).write_bytes(numcodecs.Zstd().encode(np.zeros(2**22)))

    def linked(name: str, path: Path) -> None:
        shutil.move(path / name, path.parent / "outside")
        (path / name).symlink_to(path.parent / "outside")

    def locked(path: Path) -> None:
        (path / ".lock").unlink(missing_ok=True)
        (path / ".lock").symlink_to(path.parent / "made")

    def piped(name: str, path: Path) -> None:
        (path / name).unlink()
        os.mkfifo(path / name)

    def texted(name: str, text: bytes, path: Path) -> None:
        (path / name).write_bytes(text)

    def relabelled(path: Path) -> None:
        (path / label).write_bytes(numcodecs.Zstd().encode(np.array([1.0, 1.5, 2.0, 9.0])))

    def changed(path: Path) -> None:
        (path / chunk).write_bytes(numcodecs.Zstd().encode(np.ones((3, 2, 3))))

    made: dict[str, tuple[Callable[[Path], None], bool]] = {
        "a result bursts": (functools.partial(bomb, chunk), True),
        "a commit bursts": (functools.partial(bomb, "blocks/committed/c/0/0"), True),
        "a label bursts": (functools.partial(bomb, label), False),
        "another result": (changed, True),
        "another label": (relabelled, False),
        "the lock is a link": (locked, False),
    }
    for name in (chunk, "momentum", "blocks", "momentum/c"):
        made[f"{name} is a link"] = functools.partial(linked, name), False
    for name in (chunk, "zarr.json"):
        made[f"{name} is a pipe"] = functools.partial(piped, name), False
    for text in (b"", b"\x28\xb5\x2f\xfd", b"text" * 9):
        made[f"a result holds {text[:5]!r}"] = functools.partial(texted, chunk, text), True
        made[f"the record holds {text[:5]!r}"] = functools.partial(texted, "zarr.json", text), False
    for name, (change, mended) in made.items():
        yield Forgery(name, change, mended)

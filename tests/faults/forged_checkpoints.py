"""Forged checkpoints, each with checksums that fit."""

import functools
import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from damage import checkpoint, same
from forging import VALUES, Door, Forgery, deep

import retrax as rx
from retrax.store import checkpoint_format
from retrax.store.checkpoint_format import chunk_end, digest

# Where another value is as good as the one that is there: the run and its states stay the same.
_FREE = {"commit": int, "seconds": float, "compile_seconds": float, "steps": int, "every": int}
_THERE = (
    ("failure", "null"), ("every", "null"), ("fill_value", "zero"), ("step", "zero"),
    ("memory", "no text"),
)  # fmt: skip
# JSON writes whole numbers of any size, also those that no floating-point number reaches.
_VALUES = VALUES | {"beyond": 10**400}


def checkpoint_doors(folder: Path) -> list[Door]:
    path = folder / "run.zarr"
    wanted = checkpoint(path)
    longer = rx.resume(Path(shutil.copytree(path, folder / "longer.zarr")), steps=170)

    def loaded(file: Path) -> bool:
        found = rx.load(file)
        return same(found, wanted) and found.summary().replace("\n", " ").isprintable()

    def resumed(file: Path) -> bool:
        return same(rx.resume(file, steps=170), longer)

    return [Door("load a checkpoint", path, loaded), Door("resume", path, resumed)]


def _attributes(path: Path, change: Callable[[dict], None], start: bool = False) -> None:
    """Change the record, or what stands in the start, and let all checksums fit again."""
    file = path / ("start/zarr.json" if start else "zarr.json")
    record = json.loads(file.read_text())
    record["attributes"].pop("checksum")
    change(record)
    file.write_bytes(checkpoint_format._check(record))
    if start:
        begun = digest(file.read_bytes())
        _attributes(path, lambda other: other["attributes"].update(start=begun))


def _set(where: tuple[str, ...], value: Any, record: dict) -> None:
    for key in where[:-1]:
        record = record[key]
    if value is ...:
        record.pop(where[-1])
    else:
        record[where[-1]] = value


def _keys(path: Path) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Where values are in the two records."""
    told = json.loads((path / "zarr.json").read_text())
    for key in told["attributes"]:
        yield ("attributes", key), False
    for key in ("step", "state", "since", "memory"):
        yield ("attributes", "restart", key), False
    yield ("consolidated_metadata",), False
    arrays = ("consolidated_metadata", "metadata")
    yield arrays, False
    for name in ("g", "momentum", "iterations"):
        yield (*arrays, name), False
        for key in ("shape", "data_type", "chunk_grid", "codecs", "fill_value", "dimension_names"):
            yield (*arrays, name, key), False
    for key in ("system", "integrator", "probe", "probe_steps"):
        yield ("attributes", key), True


def _is_free(where: tuple[str, ...], value: Any) -> bool:
    key = where[-1]
    if key.startswith("provenance_"):
        needed = key.split("_")[1] in ("system", "group", "integrator")
        return isinstance(value, str) or (value is ... and not needed)
    number = type(value) is int or (type(value) is float and _FREE.get(key) is float)
    least = {"steps": 150, "every": 1}.get(key, 0)
    most = 1e309 if _FREE.get(key) is float else 2**53
    return key == "checksum" or (key in _FREE and number and least <= value <= most)


def checkpoint_forgeries(path: Path) -> Iterator[Forgery]:
    for where, start in _keys(path):
        for name, value in _VALUES.items():
            if where[-1] == "checksum" or (where[-1], name) in _THERE:
                continue  # the one is made anew, the others are what is there
            change = functools.partial(_set, where, value)
            free = _is_free(where, value) or (start and value is None)
            label = f"{'start ' if start else ''}{'/'.join(where)}: {name}"
            yield Forgery(label, functools.partial(_attributes, change=change, start=start), free)
    yield from _objects()
    yield from _numbers()
    yield from _files()


NUMBERS = {"dtype": "float64", "shape": [2], "data": "AAAAAAAA+H8AAAAAAAD4fw==", "jax": True}
_CALL = {"args": [], "keywords": {"dict": []}, "part": None}
# What may stand where a system or an integrator should be.
ODD_OBJECTS: list[Any] = [
    {"class": "os:environ", "fields": {}},
    {"class": "retrax.groups.so3:SO3", "fields": {}},
    {"class": "retrax.systems.heavy_top:HeavyTop", "fields": {}},
    {"class": "retrax.cli.main:app", "fields": {}},
    {"class": "../../x:y", "fields": {}},
    {"function": "retrax.numerics.checks:quote"},
    {"function": "builtins:eval"},
    {"array": NUMBERS},
    {"array": {**NUMBERS, "shape": [-1]}},
    {"array": {**NUMBERS, "shape": [10**12]}},
    {"array": {**NUMBERS, "dtype": "O"}},
    {"dict": [[{"list": []}, 1]]},
    {"dict": [1, 2]},
    {"set": [[{"list": [1]}]]},
    {"partial": {"function": "os:system"}, "args": ["true"], "keywords": {}},
    {"number": "1e999x"},
    {"list": deep(600)},
    {**_CALL, "factory": "os:system"},
    {**_CALL, "factory": "venv.__main__:x"},
    {**_CALL, "factory": "this:s"},
    {**_CALL, "factory": "__main__:x"},
    {**_CALL, "factory": "../../evil:x"},
    {**_CALL, "factory": "a b:c"},
    {**_CALL, "factory": 3},
    {**_CALL, "factory": "x" * 100_000 + ":y"},
]


def names_a_factory(data: Any) -> bool:
    """Whether data names a factory, which `load` never calls: it reads the states without it."""
    quiet = isinstance(data, dict) and isinstance(data.get("factory"), str)
    return quiet and ":" in data["factory"] and data["factory"].isprintable()


def _objects() -> Iterator[Forgery]:
    """Systems and integrators that retrax never wrote."""
    for name in ("system", "integrator"):
        for number, data in enumerate(ODD_OBJECTS):
            change = functools.partial(_set, ("attributes", name), data)
            yield Forgery(
                f"start {name} {number}: {str(data)[:60]}",
                functools.partial(_attributes, change=change, start=True),
                harmless=names_a_factory(data),
            )
    yield Forgery("system and integrator swapped", _swapped)
    for part, value in [
        ("inertia", "text"), ("inertia", None), ("inertia", [1, 2]), ("mass", "heavy"),
        ("arm", {"array": NUMBERS}), ("group", 3), ("group", [1]),
    ]:  # fmt: skip
        yield Forgery(f"system.{part} = {str(value)[:30]}", functools.partial(_part, part, value))


def _swapped(path: Path) -> None:
    def swap(record: dict) -> None:
        told = record["attributes"]
        told["system"], told["integrator"] = told["integrator"], told["system"]

    _attributes(path, swap, start=True)


def _part(name: str, value: Any, path: Path) -> None:
    def put(record: dict) -> None:
        fields = record["attributes"]["system"]["fields"]
        fields[name if name in fields else next(iter(fields))] = value

    _attributes(path, put, start=True)


def _column(name: str, change: Callable[[np.ndarray], np.ndarray], path: Path) -> None:
    """Change the numbers of a column, with all checksums of them."""
    told = json.loads((path / "zarr.json").read_text())["attributes"]
    files = sorted((path / name).glob("c.*"), key=lambda file: int(file.name.split(".")[1]))
    dtype = "<i8" if name == "iterations" else "<f8"
    values = np.concatenate([np.frombuffer(f.read_bytes()[:-4], dtype) for f in files])
    width = values.size // (told["rows_per_chunk"] * len(files))
    rows = values.reshape(-1, width)[: told["rows"]]
    changed = np.ascontiguousarray(change(rows.copy()), dtype)
    whole = np.zeros((told["rows_per_chunk"] * len(files), width), dtype)
    whole[: len(changed)] = changed
    for file, part in zip(files, np.split(whole, len(files)), strict=True):
        file.write_bytes(part.tobytes() + chunk_end(part.tobytes()))
    crc = zlib.crc32(changed.tobytes())
    _attributes(path, lambda record: record["attributes"]["crc"].update({name: crc}))


def _numbers() -> Iterator[Forgery]:
    for name in ("g", "momentum", "time", "residual", "increment"):
        yield Forgery(
            f"{name} not a number", functools.partial(_column, name, lambda x: x * np.nan)
        )
        yield Forgery(f"{name} infinite", functools.partial(_column, name, lambda x: x + np.inf))
    for label, change in {
        "backwards": lambda t: t[::-1],
        "stretched": lambda t: 1.5 * t,
        "standing": lambda t: 0 * t,
        "shuffled": lambda t: np.roll(t, 3),
    }.items():
        yield Forgery(f"time {label}", functools.partial(_column, "time", change))


def _files() -> Iterator[Forgery]:
    """Links, pipes, folders, files cut short, and stores of another kind."""

    def outside(path: Path) -> Path:
        return path.parent / "outside"

    def linked(name: str, path: Path) -> None:
        shutil.move(path / name, outside(path))
        (path / name).symlink_to(outside(path))

    def piped(name: str, path: Path) -> None:
        (path / name).unlink()
        os.mkfifo(path / name)

    def foldered(name: str, path: Path) -> None:
        (path / name).unlink()
        (path / name).mkdir()

    def texted(name: str, text: bytes, path: Path) -> None:
        (path / name).write_bytes(text)

    def sparse(name: str, path: Path) -> None:
        os.truncate(path / name, 2**33)

    files = ("zarr.json", "start/zarr.json", "g/c.0.0.0", "time/c.1")
    for name in (*files, "momentum", "start"):
        folder = name == "momentum" or name == "start"
        yield Forgery(f"{name} is a link", functools.partial(linked, name))
        if not folder:
            for change in (piped, foldered, sparse):
                what = f"{name} {change.__name__}"
                yield Forgery(what, functools.partial(change, name))
            for text in (b"", b"{}", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"a":1,"a":2}'):
                yield Forgery(f"{name} holds {text[:9]!r}", functools.partial(texted, name, text))
    yield Forgery("zarr 2", lambda path: _zarr2(path))


def _zarr2(path: Path) -> None:
    (path / "zarr.json").unlink()
    (path / ".zgroup").write_text('{"zarr_format": 2}')

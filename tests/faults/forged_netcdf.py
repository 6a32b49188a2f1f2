"""Forged NetCDF files: what HDF5 can do besides keeping a run."""

import functools
import json
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from forged_checkpoints import ODD_OBJECTS, names_a_factory
from forging import Door, Forgery

import retrax as rx
from retrax.show.figures import overview
from retrax.show.page import page
from retrax.store.checksum import CHECKSUM, checksum_of, variables_of
from retrax.store.netcdf import read_whole

SECRET = "a secret that lies beside the run"
ATTRIBUTES: dict[str, Any] = {
    "missing": ..., "text": "text", "no text": "", "minus one": -1, "zero": 0, "huge": 2**62,
    "fraction": 1.5, "not a number": np.nan, "infinite": np.inf, "largest": 1.7e308,
    "bytes": b"\xff\xfe", "list": np.arange(3), "table": np.zeros((2, 2)), "words": ["a", "b"],
    "deep": "[" * 3000, "nested": "[[0, [1]]]", "twice": "[0, 0]", "escape": "\x1b[31mred\x07",
    "empty": h5py.Empty("f8"), "compound": np.zeros(1, [("a", "f8"), ("b", "i4")]),
    "markup": "</script><script>alert(1)</script>", "formula": "$\\nonsense{$",
    "shell": "x.toml; touch /tmp/never", "true": np.bool_(True),
}  # fmt: skip
NEEDED = ("system", "group", "integrator")
TEXTS = (*NEEDED, "created")


def netcdf_doors(folder: Path) -> list[Door]:
    body = rx.systems.HeavyTop([1.0, 1.7, 2.3], 1.0, [0.4, -0.3, 1.1])
    state = body.state(jnp.eye(3), velocity=[0.3, -0.2, 0.9])
    wanted = rx.simulate(body, rx.LieVerlet(), state, h=0.05, steps=6, progress=False)
    path = wanted.save(folder / "run.nc")
    wanted = rx.load(path)

    def loaded(file: Path) -> bool:
        found = rx.load(file)
        assert SECRET not in repr(found.provenance)
        one, other = (_numbers(run) for run in (found, wanted))
        told = found.summary().replace("\n", " ")
        return told.isprintable() and all(map(np.array_equal, one, other))

    def shown(file: Path) -> bool:
        found = rx.load(file)
        text = page(found)
        if "formula" in file.name or "$" in found.provenance["system"]:
            overview(found).canvas.draw()
        return "<script>alert" not in text and "retrax run x.toml;" not in text

    return [Door("load", path, loaded), Door("report", path, shown)]


def _numbers(run: rx.Trajectory) -> list[Any]:
    seen = run.observations
    return [
        *jax.tree.leaves((run.t, run.states, run.info)),
        np.array([run.h, run.completed, run.save_every]),
        seen.velocity,
        *seen.invariants.values(),
    ]


def _attribute(owner: str, name: str, value: Any, path: Path) -> None:
    with h5py.File(path, "r+") as file:
        attributes = (file[owner] if owner else file).attrs
        if name in attributes:
            del attributes[name]
        if value is not ...:
            attributes[name] = value


def _replaced(name: str, make: Callable[[h5py.File, np.ndarray], None], path: Path) -> None:
    """Put something else where an array is, with the attributes of that array."""
    with h5py.File(path, "r+") as file:
        values = file[name][...]
        kept = {k: file[name].attrs[k] for k in ("long_name", "kind") if k in file[name].attrs}
        del file[name]
        make(file, values)
        made = file.get(name, getlink=True)
        if isinstance(made, h5py.HardLink) and name in file:
            for key, value in kept.items():
                file[name].attrs[key] = value


def renewed(path: Path) -> None:
    """Let the checksum of a NetCDF file fit again, if it can be read."""
    try:
        with warnings.catch_warnings(action="ignore"):
            ds = read_whole(path)
        fits = checksum_of(variables_of(ds), ds.attrs)
    except Exception:
        return
    with h5py.File(path, "r+") as file:
        if CHECKSUM in file.attrs:
            file.attrs[CHECKSUM] = fits


def netcdf_forgeries(path: Path) -> Iterator[Forgery]:
    """Forgeries whose checksums fit."""

    def well(change: Callable[[Path], None], path: Path) -> None:
        change(path)
        renewed(path)

    for forgery in _netcdf_forgeries(path):
        yield forgery._replace(change=functools.partial(well, forgery.change))


def _netcdf_forgeries(path: Path) -> Iterator[Forgery]:
    with h5py.File(path) as file:
        names, told = list(file), list(file.attrs)
    for name in told:
        if name in ("_NCProperties", CHECKSUM) or (
            name.startswith("provenance_") and name[11:] not in TEXTS
        ):
            continue
        for label, value in ATTRIBUTES.items():
            yield Forgery(
                f"attribute {name}: {label}",
                functools.partial(_attribute, "", name, value),
                _is_free(name, label, value),
            )
    for name in ("g", "momentum", "time", "energy", "iterations", "velocity", "run"):
        for label, make in _arrays(name).items():
            yield Forgery(f"{name}: {label}", functools.partial(_replaced, name, make))
        for key, value in _odd_attributes().items():
            yield Forgery(f"{name}.{key}", functools.partial(_attribute, name, key, value))
    yield from _objects()
    yield from _whole_files(names)


def _objects() -> Iterator[Forgery]:
    """Systems and integrators that retrax never wrote, and bytes that are no JSON."""
    for name in ("system", "integrator"):
        for number, data in enumerate(ODD_OBJECTS):
            yield Forgery(
                f"run {name} {number}: {str(data)[:60]}",
                functools.partial(_described, {name: data}),
                harmless=names_a_factory(data),
            )
        yield Forgery(f"run {name} is missing", functools.partial(_described, {name: ...}))
    giant = {"class": "groups:Translation", "fields": {"n": 10**15}}
    for label, space in {
        "a giant": {"class": "spaces:GroupItself", "fields": {"group": giant, "side": -1}},
        "text": "text",
    }.items():
        fields = {
            "title": "top", "space": space, "numbers": {"dict": []}, "functions": [],
            "drawing": None, "measured": {"dict": []}, "e3_points_up": True,
        }  # fmt: skip
        system = {"class": "mechanics:RememberedSystem", "fields": fields}
        yield Forgery(f"run on {label}", functools.partial(_described, {"system": system}))
    for text in (b"", b"[", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b"{" + b'"a":{' * 9_000):
        yield Forgery(f"run holds {text[:9]!r}", functools.partial(_texted, text))


def _described(changes: dict[str, Any], path: Path) -> None:
    """Describe another system or integrator in the file."""
    with xr.open_dataset(path, engine="h5netcdf") as ds:
        data = json.loads(ds["run"].values.tobytes())
    for name, value in changes.items():
        data.pop(name)
        if value is not ...:
            data[name] = value
    _texted(json.dumps(data).encode(), path)


def _texted(text: bytes, path: Path) -> None:
    with xr.open_dataset(path, engine="h5netcdf") as ds:
        ds.load()
    values = np.frombuffer(text, np.uint8)
    ds.drop_vars("run").assign(run=(("run_bytes",), values)).to_netcdf(path, engine="h5netcdf")


def _is_free(name: str, label: str, value: Any) -> bool:
    if name in ("seconds", "compile_seconds"):
        return label in ("zero", "huge", "fraction", "largest")
    key = name.removeprefix("provenance_")
    if key == name:
        return name == "steps" and label == "huge"
    if value is ...:
        return key not in NEEDED
    return isinstance(value, str | bytes)


def _arrays(name: str) -> dict[str, Callable[[h5py.File, np.ndarray], None]]:
    """What may stand where an array of numbers should be."""

    def plain(change: Callable[[np.ndarray], Any]) -> Callable[[h5py.File, np.ndarray], None]:
        return lambda file, x: file.__setitem__(name, change(x))

    def stored(**options: Any) -> Callable[[h5py.File, np.ndarray], None]:
        return lambda file, x: file.create_dataset(name, **{"data": x, **options}) and None

    def outside(file: h5py.File, x: np.ndarray) -> None:
        secret = Path(file.filename).with_name("secret")
        secret.write_bytes(SECRET.encode().ljust(x.nbytes, b"!"))
        file.create_dataset(name, x.shape, x.dtype, external=[(str(secret), 0, x.nbytes)])

    def elsewhere(file: h5py.File, x: np.ndarray) -> None:
        with h5py.File(Path(file.filename).with_name("other.h5"), "w") as other:
            other["x"] = x
        file[name] = h5py.ExternalLink(str(Path(file.filename).with_name("other.h5")), "/x")

    def virtual(file: h5py.File, x: np.ndarray) -> None:
        with h5py.File(Path(file.filename).with_name("other.h5"), "w") as other:
            other["x"] = x
        layout = h5py.VirtualLayout(x.shape, x.dtype)
        layout[...] = h5py.VirtualSource(Path(file.filename).with_name("other.h5"), "x", x.shape)
        file.create_virtual_dataset(name, layout)

    def soft(file: h5py.File, x: np.ndarray) -> None:
        file["hidden"] = x
        file[name] = h5py.SoftLink("/hidden")

    def referring(file: h5py.File, x: np.ndarray) -> None:
        file.create_dataset(name, (len(x),), h5py.ref_dtype)

    def ragged(file: h5py.File, x: np.ndarray) -> None:
        file.create_dataset(name, (len(x),), h5py.vlen_dtype("f8"))

    def named_type(file: h5py.File, x: np.ndarray) -> None:
        file[name] = np.dtype("f8")

    def never_written(file: h5py.File, x: np.ndarray) -> None:
        file.create_dataset(name, (450_000_000, *x.shape[1:]), x.dtype, fillvalue=0)

    made = {
        "missing": lambda file, x: None,
        "shorter": plain(lambda x: x[:-1]), "longer": plain(lambda x: np.concatenate([x, x])),
        "more axes": plain(lambda x: x[None]), "scalar": plain(lambda x: 1.0),
        "empty": plain(lambda x: np.zeros((0, 3))), "no space": plain(lambda x: h5py.Empty("f8")),
        "complex": plain(lambda x: x.astype(complex)), "text": plain(lambda x: np.array(b"text")),
        "words": plain(lambda x: ["a"] * len(x)), "single words": plain(lambda x: "a"),
        "compound": plain(lambda x: np.zeros(len(x), [("a", "f8"), ("b", "i4")])),
        "opaque": plain(lambda x: np.zeros(len(x), "V8")),
        "truth": plain(lambda x: np.zeros(x.shape, bool)),
        "not a number": plain(lambda x: np.full(x.shape, np.nan)),
        "infinite": plain(lambda x: np.full(x.shape, np.inf)),
        "never written": never_written,
        "giant and packed": stored(data=None, shape=(10**9,), dtype="f8", chunks=(10**6,),
                                   compression="gzip"),
        "giant chunks": stored(chunks=None, data=None, shape=(5,), dtype="f8", maxshape=(None,),
                               fillvalue=3.0),
        "another filter": stored(compression="lzf"), "scaled": stored(scaleoffset=3),
        "in another file": outside, "a link to another file": elsewhere, "virtual": virtual,
        "a link": soft, "references": referring, "a type": named_type,
        "a group": lambda file, x: file.create_group(name) and None,
        "ragged": ragged,
    }  # fmt: skip
    if name in ("energy", "velocity"):  # what is measured may be anything, also not finite
        made.pop("not a number"), made.pop("infinite")
        made.pop("truth")
    if name in ("energy", "run"):
        made.pop("missing")
    if name in ("iterations", "momentum", "g"):
        made.pop("truth")
    return made


def _odd_attributes() -> dict[str, Any]:
    return {
        "scale_factor": 2.0, "add_offset": 1.0, "missing_value": 0.3,
        "units": np.arange(20_000.0),
        "long_name": np.zeros((2, 2)), "kind": np.zeros(1, [("a", "f8")]),
    }  # fmt: skip


def _whole_files(names: list[str]) -> Iterator[Forgery]:
    def cut(part: float, path: Path) -> None:
        os.truncate(path, int(part * path.stat().st_size))

    def texted(text: bytes, path: Path) -> None:
        path.write_bytes(text)

    def extra(make: Callable[[h5py.File], Any], path: Path) -> None:
        with h5py.File(path, "r+") as file:
            make(file)

    def dated(path: Path) -> None:
        _attribute("time", "units", "days since 2000-01-01", path)

    for part in (0.0, 0.02, 0.3, 0.6, 0.95):
        yield Forgery(f"cut to {part}", functools.partial(cut, part))
    for text in (b"", b"CDF\x01" + bytes(100), b"\x89HDF\r\n\x1a\n" + bytes(200), b"PK\x03\x04"):
        yield Forgery(f"holds {text[:8]!r}", functools.partial(texted, text))
    yield Forgery("times are dates", dated)
    for label, make in {
        "a group": lambda file: file.create_group("more"),
        "a link to the shadow file": lambda file: file.__setitem__(
            "more", h5py.ExternalLink("/etc/shadow", "/")
        ),
        "a link in a circle": lambda file: file.__setitem__("more", h5py.SoftLink("/more")),
        "the file in itself": lambda file: file.__setitem__("more", file["/"]),
        "a giant": lambda file: file.create_dataset("more", (10**12,), "f8"),
        "../../out": lambda file: file.create_dataset("more", data=["../../out"]),
    }.items():
        yield Forgery(f"also {label}", functools.partial(extra, make))

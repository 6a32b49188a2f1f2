"""Forged runs: every number in its place, but not of the system that ran.

Each is tried with a checksum that fits again, and without one.
"""

import base64
import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import jax.numpy as jnp
import numpy as np
from forged_checkpoints import _attributes
from forged_netcdf import _texted, renewed
from forging import Door, Forgery

import retrax as rx
from retrax.store.checksum import CHECKSUM


def top_doors(folder: Path) -> list[Door]:
    body = rx.systems.HeavyTop([1.0, 1.7, 2.3], 1.3, [0.4, -0.3, 1.1])
    state = body.state(rx.SO3().exp(jnp.array([0.3, 0.1, -0.2])), velocity=[0.3, -0.2, 0.9])

    def run(**more: Any) -> rx.Trajectory:
        return rx.simulate(body, rx.LieVerlet(), state, h=0.02, steps=12, progress=False, **more)

    path = run().save(folder / "top.nc")
    run(checkpoint=folder / "top.zarr")
    original = rx.load(path)

    def read(file: Path) -> bool:
        run = rx.load(file)
        return run.integrator.preserves == original.integrator.preserves and all(
            np.allclose(one, other, 1e-12, 1e-12)
            for one, other in ((run.g, original.g), (run.energy(), original.energy()))
        )

    return [Door("NetCDF", path, read), Door("checkpoint", folder / "top.zarr", read)]


def unsigned(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        del file.attrs[CHECKSUM]


def _array(values: Any) -> dict[str, Any]:
    values = np.asarray(values, float)
    text = base64.b64encode(values.tobytes()).decode()
    return {"array": {"dtype": "float64", "shape": list(values.shape), "data": text, "jax": True}}


# What a system may be made of instead, by the name of the part.
PARTS: dict[str, list[Any]] = {
    "inertia": [
        [-5.0] * 3, [2.0, 3.4, 4.6], [1.7, 1.0, 2.3], [0.0] * 3, [np.nan] * 3, [1.0, 1.7, -2.3],
        [np.inf, 1.7, 2.3], [1.0, 1.7], [[1.0, 0.0, 0.0], [0.0, 1.7, 0.0], [0.0, 0.0, 2.3]], 7.0,
        [1.0 + 1e-4, 1.7, 2.3], [1.0, 1.7, 9.0], [], [1e300, 1.7, 2.3],
    ],
    "mass": [-5.0, 0.0, 2.6, np.nan, np.inf, [1.3], [1.3, 1.3], 1.3001, 1e300],
    "arm": [[0.4, 0.3, 1.1], [0.0] * 3, [np.nan] * 3, [0.4, -0.3], [1.1, -0.3, 0.4], 1.0],
    "gravity": [-9.81, 1.62, np.nan, [9.81] * 3, [[9.81]]],
}  # fmt: skip
OTHERS: list[Any] = [
    None,
    "text",
    3,
    [1.0],
    True,
    {"number": "nan"},
    {"class": "groups:SO3", "fields": {}},
]


def _described(change: Callable[[dict], None], path: Path) -> None:
    with h5py.File(path) as file:
        told = json.loads(file["run"][...].tobytes())
    change(told)
    _texted(json.dumps(told).encode(), path)


def _part(name: str, value: Any, told: dict) -> None:
    fields = told["system"]["fields"]
    if value is ...:
        fields.pop(name)
    else:
        fields[name] = value


def _preserves(promise: Any, told: dict) -> None:
    told["integrator"]["fields"]["preserves"] = promise


# The same inertia in other words.
_MATRIX = "inertia = [[1.0, 0.0, 0.0], [0.0, 1.7, 0.0], [0.0, 0.0, 2.3]]"


def systems(change: Callable[[Callable[[dict], None], Path], None]) -> Iterator[Forgery]:
    """Other systems, where `change` puts them into a file."""

    def forged(name: str, how: Callable[[dict], None]) -> Forgery:
        harmless = name == _MATRIX or name.startswith("preserves")  # the class tells this
        return Forgery(name, functools.partial(change, how), harmless)

    for part, values in PARTS.items():
        for value in values:
            yield forged(f"{part} = {value}", functools.partial(_part, part, _array(value)))
        for value in (*OTHERS, ...):
            yield forged(f"{part} is {value}", functools.partial(_part, part, value))

    def swapped(told: dict) -> None:
        fields = told["system"]["fields"]
        fields["inertia"], fields["arm"] = fields["arm"], fields["inertia"]

    def another(told: dict) -> None:
        told["system"] = {"class": "systems:FreeRigidBody", "fields": {}}

    def method(told: dict) -> None:
        told["integrator"] = {"class": "integrators:RollingVerlet", "fields": {}}

    yield forged("inertia and arm swapped", swapped)
    yield forged("another system", another)
    yield forged("another integrator", method)
    for promise in (-1.5, {"set": ["energy"]}, {"set": []}, "group"):
        yield forged(f"preserves = {promise}", functools.partial(_preserves, promise))


def _numbers(name: str, make: Callable[[np.ndarray], np.ndarray], path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file[name][...] = make(file[name][...].copy())


def _without(name: str, path: Path) -> None:
    with h5py.File(path, "r+") as file:
        del file[name]


def _row(k: int, change: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray], np.ndarray]:
    def make(values: np.ndarray) -> np.ndarray:
        values[k] = change(values[k])
        return values

    return make


def arrays() -> Iterator[Forgery]:
    """Other numbers in the arrays of a NetCDF file, and arrays that are missing."""
    turned = np.asarray(rx.SO3().exp(jnp.array([0.4, 0.0, 0.0])))
    odd: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "seven": _row(3, lambda x: x * 0 + 7),
        "turned": _row(5, lambda x: turned @ x if x.ndim == 2 else x + 1),
        "doubled": lambda x: 2 * x,
        "negative": lambda x: -x,
        "not a number": _row(2, lambda x: x * np.nan),
        "infinite": _row(-1, lambda x: x + np.inf),
        "backwards": lambda x: x[::-1],
        "one entry": _row(4, lambda x: x + 1e-3 * (np.eye(3)[0] if x.ndim else 1)),
    }
    names = ("g", "momentum", "velocity", "energy", "group_defect", "spatial_momentum_e3")
    for name in names:
        for label, make in odd.items():
            constant = name == "spatial_momentum_e3" and label == "backwards"
            if constant or (
                name == "group_defect" and label in ("doubled", "negative", "backwards")
            ):
                continue  # but for round-off
            yield Forgery(f"{name}: {label}", functools.partial(_numbers, name, make))
    for name in ("time", "iterations", "residual", "increment"):
        make = functools.partial(_numbers, name, lambda x: -x - 1)
        yield Forgery(f"{name}: negative", make)
    for name in (*names, "time", "iterations", "residual", "increment", "run"):
        harmless = name in ("energy", "spatial_momentum_e3")  # measured anew
        yield Forgery(f"{name} is missing", functools.partial(_without, name), harmless)


def signed(path: Path) -> Iterator[Forgery]:
    """Forgeries of a NetCDF file, with a checksum that fits, none, and the old one."""

    def then(change: Callable[[Path], None], sign: Callable[[Path], None], path: Path) -> None:
        change(path)
        sign(path)

    for forgery in (*systems(_described), *arrays()):
        for sign in (renewed, unsigned, lambda path: None):
            change = functools.partial(then, forgery.change, sign)
            yield forgery._replace(name=f"{forgery.name}; {sign.__name__}", change=change)


def checkpoints(path: Path) -> Iterator[Forgery]:
    def started(change: Callable[[dict], None], path: Path) -> None:
        _attributes(path, lambda record: change(record["attributes"]), start=True)

    yield from systems(started)

    def unmeasured(told: dict) -> None:
        told.pop("measured")

    yield Forgery("nothing measured", functools.partial(started, unmeasured))
    for label, value in {"other": [1.0, 2.0, 3.0, 4.0], "few": [1.0], "none": []}.items():
        text = base64.b64encode(np.array(value).tobytes()).decode()
        change = lambda told, text=text: told.update(measured=text)  # noqa: E731
        yield Forgery(f"{label} measured", functools.partial(started, change))

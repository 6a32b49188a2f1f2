"""Measurements from tables: CSV files whose header names the columns, and xarray datasets."""

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from retrax.errors import BadInput
from retrax.estimation.measurements import SECONDS, Measurements
from retrax.files import as_path
from retrax.numerics.checks import quote, require_choice

if TYPE_CHECKING:
    import xarray as xr

# The columns of each sensor, and how it is made of them.
_ATTITUDES: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "matrices": (tuple(f"r{i}{j}" for i in "123" for j in "123"), {}),
    "quaternions": (("qw", "qx", "qy", "qz"), {"order": "wxyz"}),
    "rotation vectors": (("rx", "ry", "rz"), {}),
}
_POSITION, _RATE = ("x", "y", "z"), ("wx", "wy", "wz")
_TIMES = ("t", "time")
_HEADER = re.compile(r"^\s*(\w+)\s*(?:[\[(]\s*([^\])]*?)\s*[\])])?\s*$")
_DEGREES = {"deg", "deg/s", "degree", "degrees", "degrees/s"}
_RADIANS = {"rad", "rad/s"}
_OPTIONS = ("noise", "missing", "time_unit")


def read_csv(path: str | Path, **options: Any) -> list[Measurements]:
    """Read a CSV file, as `Measurements.read` says."""
    columns, units = _columns(as_path(path))
    name = next((name for name in _TIMES if name in columns), None)
    if name is None:
        raise BadInput(f"{str(path)!r} has no column t: its columns are {', '.join(columns)}.")
    settings = _settings(options)
    settings["time_unit"] = _time_unit(units[name], settings["time_unit"], str(path))
    found = []
    attitudes = [kind for kind, (names, _) in _ATTITUDES.items() if set(names) <= set(columns)]
    if len(attitudes) > 1:
        raise BadInput(f"{str(path)!r} has attitudes twice: as {' and as '.join(attitudes)}.")
    for kind in attitudes:
        names, more = _ATTITUDES[kind]
        values = np.stack([columns[x] for x in names], axis=1)
        values = values.reshape(-1, 3, 3) if kind == "matrices" else values
        unit = _angle_unit(names, units) if kind == "rotation vectors" else None
        found.append(_make_table(columns[name], values, "attitude", settings, unit=unit, **more))
    for of, names in (("position", _POSITION), ("velocity", _RATE)):
        there = [x for x in names if x in columns]
        if there:
            values = np.stack([columns[x] for x in there], axis=1)
            unit = _angle_unit(there, units) if of == "velocity" else None
            found.append(_make_table(columns[name], values, of, settings, unit=unit))
    if not found:
        raise BadInput(
            f"{str(path)!r} has no columns that are known: it has {', '.join(columns)}, but "
            "measurements are R11 to R33, qw to qz, rx to rz, x to z, or wx to wz."
        )
    return found


def from_dataset(data: "xr.Dataset", **options: Any) -> list[Measurements]:
    """Take measurements out of a dataset, as `Measurements.from_dataset` says."""
    settings = _settings(options)
    if not (hasattr(data, "coords") and hasattr(data, "data_vars")):
        raise BadInput(f"data = {quote(data)} is not an xarray.Dataset.")
    time = next((name for name in ("time", "t") if name in data.coords), None)
    if time is None:
        raise BadInput(f"the dataset has no coordinate time or t: it has {list(data.coords)}.")
    settings["time_unit"] = _time_unit(
        str(data[time].attrs.get("units", "")), settings["time_unit"], "the dataset"
    )
    t = np.asarray(data[time].values)
    found = []
    for of in ("attitude", "position", "velocity"):
        if of not in data:
            continue
        one = data[of]
        if time not in one.dims:
            raise BadInput(f"{of} of the dataset has no axis {time}: it has {list(one.dims)}.")
        values = np.asarray(one.transpose(time, ...).values)
        more = {"order": one.attrs["order"]} if "order" in one.attrs else {}
        if "noise" in one.attrs and settings["noise"] is None:
            more["noise"] = one.attrs["noise"]
        unit = _angle(str(one.attrs.get("units", ""))) if of != "position" else None
        if of == "attitude" and values.shape[1:] != (3,):
            unit = None
        found.append(_make_table(t, values, of, settings, unit=unit, **more))
    if not found:
        raise BadInput(
            f"the dataset has none of attitude, position and velocity: it has {list(data)}."
        )
    return found


def _make_table(
    t: np.ndarray, values: np.ndarray, of: str, settings: dict, **more: Any
) -> Measurements:
    noise = settings["noise"]
    if isinstance(noise, Mapping):
        noise = noise.get(of)
    given = {"noise": noise, "time_unit": settings["time_unit"], "missing": settings["missing"]}
    return Measurements(t, values, of=of, **(given | more))


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    for key in options:
        if key not in _OPTIONS:
            raise BadInput(f"{key} is not an option here: there are {', '.join(_OPTIONS)}.")
    return {"noise": None, "missing": "refuse", "time_unit": None, **options}


def _columns(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the columns of a CSV file by name, and their units; empty cells are NaN."""
    if not path.is_file():
        raise BadInput(f"path = {str(path)!r}: there is no such file.")
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            head, *rows = [row for row in csv.reader(file) if any(cell.strip() for cell in row)]
    except (UnicodeDecodeError, csv.Error, ValueError) as cause:
        raise BadInput(f"{str(path)!r} is not a CSV file with a header.") from cause
    names, units = [], {}
    for cell in head:
        match = _HEADER.match(cell)
        if match is None:
            raise BadInput(
                f"{str(path)!r}: {cell!r} is not the name of a column; a header such as "
                "t [s], qw, qx, qy, qz is needed."
            )
        names.append(match[1].lower())
        units[match[1].lower()] = (match[2] or "").lower()
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise BadInput(f"{str(path)!r} has two columns {twice!r}.")
    table = np.empty((len(rows), len(names)))
    for k, row in enumerate(rows):
        if len(row) != len(names):
            raise BadInput(
                f"{str(path)!r}: line {k + 2} has {len(row)} cells, but there are {len(names)} "
                "columns."
            )
        table[k] = [_number(cell, path, k + 2) for cell in row]
    return dict(zip(names, table.T, strict=True)), units


def _number(cell: str, path: Path, line: int) -> float:
    text = cell.strip()
    if text.lower() in ("", "nan", "na"):
        return np.nan
    try:
        return float(text)
    except ValueError:
        raise BadInput(f"{str(path)!r}: {text!r} in line {line} is not a number.") from None


def _time_unit(told: str, asked: str | None, where: str) -> str | None:
    if told and told not in SECONDS:
        raise BadInput(f"{where} has times in {told!r}: known are {', '.join(SECONDS)}.")
    if asked is not None:
        require_choice("time_unit", asked, tuple(SECONDS))
    if told and asked is not None and told != asked:
        raise BadInput(f"time_unit = {asked!r}, but {where} says that t is in {told!r}.")
    return told or asked


def _angle_unit(names: Sequence[str], units: Mapping[str, str]) -> str | None:
    told = {units[name] for name in names}
    if len(told) > 1:
        raise BadInput(f"{', '.join(names)} have different units: {', '.join(sorted(told))}.")
    return _angle(told.pop())


def _angle(told: str) -> str | None:
    if told in _DEGREES:
        return "deg"
    return "rad" if told in _RADIANS else None

"""Figures with the numbers behind them: PNG for pages, PDF for print, NetCDF for everybody."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from retrax.files import write_whole
from retrax.show.style import CYCLE, GREY, style
from retrax.store.netcdf import write_netcdf
from retrax.trajectory.dataset import identifier
from retrax.trajectory.provenance import versions
from retrax_papers.report import FigureFiles

Column = tuple[str | tuple[str, ...], Any, str, str]
"""Dimensions, values, units, and a name in words."""
Values = np.ndarray | Sequence[float]
Curve = tuple[np.ndarray, np.ndarray]
"""Abscissae and values."""

# A method whose error with the finest step is larger has no slope yet.
_CONVERGING = 0.1


class DataFigure(NamedTuple):
    """A figure before it is written, with its data."""

    name: str
    title: str
    caption: str
    figure: Figure
    data: xr.Dataset


def write_drawings(folder: Path, drawings: Sequence[DataFigure]) -> tuple[FigureFiles, ...]:
    """Write `name.png`, `name.pdf` and `name.nc` of each; returns their names and captions."""
    for one in drawings:
        with style():
            for suffix in ("png", "pdf"):
                with write_whole(folder / f"{one.name}.{suffix}") as temporary:
                    one.figure.savefig(temporary, format=suffix, dpi=160)
        data = one.data.assign_attrs(
            title=one.title,
            comment=one.caption,
            **{f"provenance_{name}": version for name, version in versions().items()},
        )
        _write_dataset(folder / f"{one.name}.nc", data)
    return tuple(FigureFiles(one.name, one.title, one.caption) for one in drawings)


def _write_dataset(path: Path, data: xr.Dataset) -> None:
    packed = {
        str(name): {"zlib": True, "complevel": 4}
        for name in data.variables
        if data[name].size > 1000
    }
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=xr.SerializationWarning)
        write_netcdf(data, path, packed)


def labels(names: Iterable[str]) -> np.ndarray:
    """Names as the values of a column."""
    return np.array(list(names), dtype=object)


def columns(**named: Column) -> xr.Dataset:
    """A dataset; a variable that is named as its only dimension becomes a coordinate."""
    told = {
        name: (dims, np.asarray(values), {"units": units, "long_name": words})
        for name, (dims, values, units, words) in named.items()
    }
    own = {name for name, (dims, *_) in told.items() if dims in (name, (name,))}
    coordinates = {name: told[name] for name in own}
    return xr.Dataset({n: v for n, v in told.items() if n not in own}, coords=coordinates)


def by_name(
    kind: str,
    runs: Mapping[str, tuple[Values, Values]],
    x: tuple[str, str, str],
    y: tuple[str, str, str],
) -> dict[str, Column]:
    """Curves of several runs, each with its own abscissae, as columns; short ones end in NaN.

    **Arguments:** `kind`: what the runs differ in, a dimension; `x` and `y`: name, units, words.
    """
    longest = max((len(np.atleast_1d(a)) for a, _ in runs.values()), default=0)

    def filled(values: Values) -> np.ndarray:
        whole = np.asarray(values, dtype=float)
        missing = [(0, longest - len(whole))] + [(0, 0)] * (whole.ndim - 1)
        return np.pad(whole, missing, constant_values=np.nan)

    dims = (kind, f"{y[0]}_sample")
    across = [filled(a) for a, _ in runs.values()]
    up = [filled(b) for _, b in runs.values()]
    deeper = tuple(f"{y[0]}_{k}" for k in range(np.ndim(up[0]) - 1))
    return {
        kind: (kind, labels(runs), "1", kind.replace("_", " ")),
        x[0]: (dims, np.stack(across), *x[1:]),
        y[0]: ((*dims, *deeper), np.stack(up), *y[1:]),
    }


def along_time(t: Values, curves: Mapping[str, tuple[Values, str]]) -> xr.Dataset:
    """Curves over one time axis, from (values, units) by name."""
    named: dict[str, Column] = {"time": ("time", t, "s", "time")}
    for name, (values, units) in curves.items():
        key = identifier(name)
        more = tuple(f"{key}_{k}" for k in range(np.ndim(values) - 1))
        named[key] = (("time", *more), values, units, name)
    return columns(**named)


def draw_errors(axes: Axes, curves: Mapping[str, Curve]) -> None:
    """Errors against the step, each with the slope at its two coarsest steps in the legend."""
    for (name, (h, error)), colour in zip(curves.items(), (*CYCLE, GREY), strict=False):
        slope = np.log2(error[0] / error[1]) / np.log2(h[0] / h[1])
        told = f"slope {slope:.2f}" if error[-1] < _CONVERGING else "not yet converging"
        axes.loglog(h, error, "o-", color=colour, ms=3, label=f"{name} ({told})")
    axes.set_xlabel("h (s)")

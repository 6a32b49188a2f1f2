"""The parameters of a sweep: a grid, samples, or both, as labelled dimensions."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from retrax.errors import BadInput

MEMBER = "member"


class Axes(NamedTuple):
    """Dimensions with their sizes, one row of parameters a member, and labels by name.

    Members are counted along the last dimension first. A label is (dimensions, values).
    """

    sizes: dict[str, int]
    columns: dict[str, np.ndarray]
    labels: dict[str, tuple[tuple[str, ...], np.ndarray]]

    @property
    def members(self) -> int:
        return math.prod(self.sizes.values())

    def row(self, member: int) -> dict[str, Any]:
        """The parameters of one member: numbers and arrays of NumPy, and words."""
        return {
            name: str(column[member]) if column.dtype.kind == "U" else column[member]
            for name, column in self.columns.items()
        }

    def named(self, member: int) -> str:
        """The parameters of one member for people."""
        row = ", ".join(f"{name} = {value}" for name, value in self.row(member).items())
        return row or f"{MEMBER} = {member}"


def axes(grid: Any, samples: Any) -> Axes:
    """A dimension for each entry of the grid, and the last, `member`, for the samples."""
    lines = {} if grid is None else _grid(grid)
    rows = {} if samples is None else _samples(samples)
    if not lines and not rows:
        raise BadInput(
            "grid and samples are both empty: name at least one parameter of make and its values."
        )
    twice = sorted(lines.keys() & rows.keys())
    if twice:
        raise BadInput(f"the parameter {twice[0]!r} is both in grid and in samples.")
    sizes = {name: len(values) for name, values in lines.items()}
    labels: dict[str, Any] = {name: ((name,), values) for name, values in lines.items()}
    if rows:
        sizes[MEMBER] = len(next(iter(rows.values())))
        labels[MEMBER] = ((MEMBER,), np.arange(sizes[MEMBER]))
    for name, values in rows.items():
        own = tuple(f"{name}_{axis}" for axis in range(values.ndim - 1))
        labels[name] = ((MEMBER, *own), values)
    at = np.indices(tuple(sizes.values())).reshape(len(sizes), -1)
    index = dict(zip(sizes, at, strict=True))
    columns = {name: values[index[name]] for name, values in lines.items()}
    columns |= {name: values[index[MEMBER]] for name, values in rows.items()}
    return Axes(sizes, columns, labels)


def _grid(grid: Any) -> dict[str, np.ndarray]:
    if not isinstance(grid, Mapping):
        raise BadInput(f"grid = {grid!r} must be a dict from names of parameters to their values.")
    lines = {_name(name): _values(f"grid[{name!r}]", values) for name, values in grid.items()}
    for name, values in lines.items():
        if values.ndim != 1:
            raise BadInput(
                f"grid[{name!r}] has shape {values.shape}, but a dimension of a grid is a list of "
                "numbers; give vectors as samples."
            )
        if len(np.unique(values)) != len(values):
            raise BadInput(f"grid[{name!r}] has a value twice: each is a label of the results.")
    return lines


def _samples(samples: Any) -> dict[str, np.ndarray]:
    columns = {
        _name(name): _values(f"samples[{name!r}]", values)
        for name, values in _columns(samples).items()
    }
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise BadInput(
            f"samples has columns of different lengths {lengths}, but each has one value a member."
        )
    return columns


def _columns(samples: Any) -> dict[Any, Any]:
    """The columns of a dict of arrays, of a table with named columns, or of a list of dicts."""
    if isinstance(samples, Mapping):
        return dict(samples)
    if hasattr(samples, "columns"):
        return {name: np.asarray(samples[name]) for name in samples.columns}
    if isinstance(samples, list | tuple) and all(isinstance(row, Mapping) for row in samples):
        names = list(samples[0]) if samples else []
        odd = [k for k, row in enumerate(samples) if set(row) != set(names)]
        if odd:
            raise BadInput(
                f"samples[{odd[0]}] has the parameters {sorted(samples[odd[0]])}, but the first "
                f"has {sorted(names)}."
            )
        return {name: [row[name] for row in samples] for name in names}
    raise BadInput(
        f"samples = {samples!r} must be a dict of arrays of one length, a table with named "
        "columns, or a list of dicts."
    )


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name.isidentifier() or name in (MEMBER, "time", "h"):
        raise BadInput(
            f"the parameter {name!r} must be named as an argument of make is, and not "
            f"{MEMBER!r}, 'time' or 'h'."
        )
    return name


def _values(name: str, values: Any) -> np.ndarray:
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as cause:
        raise BadInput(f"{name} must be an array, but it is ragged: {cause}.") from cause
    if array.ndim == 0 or array.size == 0:
        raise BadInput(f"{name} = {values!r} must be a list of at least one value.")
    if array.dtype.kind not in "fiubU":
        raise BadInput(f"{name} holds {array.dtype} values, but they must be numbers or words.")
    if array.dtype.kind == "f":
        array = array.astype(np.float64)
        if not np.isfinite(array).all():
            raise BadInput(f"{name} must be finite, but it holds {array[~np.isfinite(array)][0]}.")
    return array

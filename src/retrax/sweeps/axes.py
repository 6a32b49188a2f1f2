"""The shape of a sweep: parameters and settings as labelled dimensions, cut into blocks."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np

from retrax.errors import BadInput
from retrax.integrators.base import AbstractIntegrator, as_integrator
from retrax.numerics.checks import host_float64
from retrax.run.checks import require_count, require_step_size
from retrax.run.chunks import saved_steps
from retrax.run.ensemble import saved_states

MEMBER = "member"
# Coordinates of the results by name: their dimensions, and their values.
Labels: TypeAlias = dict[str, tuple[tuple[str, ...], np.ndarray]]


@runtime_checkable
class Table(Protocol):
    """A table with named columns, such as a data frame of pandas."""

    @property
    def columns(self) -> Iterable[str]: ...

    def __getitem__(self, name: str, /) -> Sequence[object]: ...


class Axes(NamedTuple):
    """Dimensions with their sizes, one row of parameters a member, and labels by name.

    Members are counted along the last dimension first. A label is (dimensions, values).
    """

    sizes: dict[str, int]
    columns: dict[str, np.ndarray]
    labels: Labels

    @property
    def members(self) -> int:
        return math.prod(self.sizes.values())

    def row(self, member: int) -> dict[str, np.generic | np.ndarray | str]:
        """Return the parameters of one member: numbers and arrays of NumPy, and words."""
        return {
            name: str(column[member]) if column.dtype.kind == "U" else column[member]
            for name, column in self.columns.items()
        }

    def describe(self, member: int) -> str:
        """Return the parameters of one member for people."""
        row = ", ".join(f"{name} = {value}" for name, value in self.row(member).items())
        return row or f"{MEMBER} = {member}"


def axes(grid: object, samples: object) -> Axes:
    """Return a dimension for each entry of the grid, and the last, `member`, for the samples."""
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
    labels: Labels = {name: ((name,), values) for name, values in lines.items()}
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


def _grid(grid: object) -> dict[str, np.ndarray]:
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


def _samples(samples: object) -> dict[str, np.ndarray]:
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


def _columns(samples: object) -> dict[object, object]:
    """Return the columns of a dict of arrays, a table with named columns, or a list of dicts."""
    if isinstance(samples, Mapping):
        return dict(samples)
    if isinstance(samples, Table):
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


def _name(name: object) -> str:
    if not isinstance(name, str) or not name.isidentifier() or name in (MEMBER, "time", "h"):
        raise BadInput(
            f"the parameter {name!r} must be named as an argument of make is, and not "
            f"{MEMBER!r}, 'time' or 'h'."
        )
    return name


def _values(name: str, values: object) -> np.ndarray:
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


class Setting(NamedTuple):
    """How one run over all members is made."""

    integrator: AbstractIntegrator
    h: float
    steps: int
    save_every: int | None


class Settings(NamedTuple):
    """Dimensions with their sizes, labels, and the settings along the last dimension first."""

    sizes: dict[str, int]
    labels: Labels
    each: tuple[Setting, ...]

    @property
    def records(self) -> int:
        """How many states are saved of each member."""
        return saved_states(self.each[0].steps, self.each[0].save_every)


def settings(integrator: Any, h: Any, steps: Any, save_every: Any) -> Settings:
    """Return a dimension `integrator` if that is a dict, and a dimension `h` if that is a list."""
    sizes, labels = {}, {}
    named = isinstance(integrator, Mapping)
    if named:
        if not integrator or not all(isinstance(name, str) for name in integrator):
            raise BadInput(
                f"integrator = {integrator!r} must be an integrator or a dict of them by name."
            )
        sizes["integrator"] = len(integrator)
        labels["integrator"] = (("integrator",), np.array(list(integrator)))
    sized = np.ndim(h) == 1
    if sized:
        sizes["h"] = len(h)
        labels["h"] = (("h",), host_float64("h", h))
        if len(set(labels["h"][1])) != len(h) or not len(h):
            raise BadInput(f"h = {h!r} must be one step size or a list of different ones.")
    each_h = list(h) if sized else [h]
    counts = zip(
        each_h, _each("steps", steps, sizes), _each("save_every", save_every, sizes), strict=True
    )
    sequence = [_check(*count) for count in counts]
    records = {saved_states(n, every) for _, n, every in sequence}
    if len(records) > 1:
        raise BadInput(
            f"the step sizes h = {h!r} would save {sorted(records)} states, but must all save as "
            "many: give a save_every for each, or None."
        )
    given = list(integrator.values()) if named else [integrator]
    integrators = [as_integrator(one) for one in given]
    each = tuple(Setting(i, *count) for i, count in itertools.product(integrators, sequence))
    return Settings(sizes, labels, each)


def _each(name: str, value: Any, sizes: dict[str, int]) -> list[Any]:
    """Return a value for each step size, where one may stand for all."""
    if not isinstance(value, list | tuple | np.ndarray) or np.ndim(value) == 0:
        return [value] * sizes.get("h", 1)
    if len(value) != sizes.get("h"):
        raise BadInput(
            f"{name} = {value!r} must be one number, or a list of one for each of a list h."
        )
    return list(value)


def _check(h: Any, steps: Any, save_every: Any) -> tuple[float, int, int | None]:
    require_step_size(h)
    require_count("steps", steps)
    if save_every is None:
        return float(h), int(steps), None
    require_count("save_every", save_every)
    return float(h), int(steps), int(save_every)


def times(axes: Axes, settings: Settings, starts: np.ndarray) -> Labels:
    """Return the times of the saved states: one list for all, or as many as differ.

    They are the times that a run has, t0 + k h.
    """
    one_of_each_h = settings.each[: settings.sizes.get("h", 1)]
    behind = np.stack([saved_steps(s.steps, s.save_every) * s.h for s in one_of_each_h], axis=1)
    alike = bool((starts == starts[0]).all())
    if alike and "h" not in settings.sizes:
        return {"time": (("time",), starts[0] + behind[:, 0])}
    dims, shape = ["time"], [len(behind)]
    if "h" in settings.sizes:
        dims, shape = ["time", "h"], list(behind.shape)
    t = behind.reshape(shape)
    if alike:
        return {"t": (tuple(dims), starts[0] + t)}
    several = starts.reshape(math.prod(axes.sizes.values()))
    t = t[..., None] + several
    return {"t": ((*dims, *axes.sizes), t.reshape(*shape, *axes.sizes.values()))}


# The default: about this many blocks, none of less work, in steps times numbers of a state, or of
# more bytes than these.
_BLOCKS, _LEAST_WORK, _MOST_BYTES = 64, 2.5e7, 2**26


class Block(NamedTuple):
    """The number of a block and of its setting, its region, and which members are in it.

    The region has a slice for each dimension, those of the settings first.
    """

    number: int
    setting: int
    region: tuple[slice, ...]
    members: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(s.stop - s.start for s in self.region)


def block_shape(sizes: Sequence[int], most: int) -> tuple[int, ...]:
    """Return the sides of a block of at most `most` members, long in the last dimensions.

    Nothing but the sweep itself has a say in this, so that it is cut up alike wherever it runs.
    """
    sides: list[int] = []
    for size in reversed(sizes):
        sides.append(max(1, min(size, most)))
        most = most // size if size <= most else 1
    return tuple(reversed(sides))


def usual_block(members: int, work: int, bytes_per_member: int) -> int:
    """Return how many members a block has by default; `work` is that of one member."""
    enough = max(math.ceil(members / _BLOCKS), math.ceil(_LEAST_WORK / work))
    return max(1, min(enough, _MOST_BYTES // bytes_per_member, members))


def blocks(settings: Sequence[int], sizes: Sequence[int], sides: Sequence[int]) -> Iterator[Block]:
    """List all blocks of all settings, in order."""
    numbers = np.arange(math.prod(sizes)).reshape(tuple(sizes))
    count = itertools.count()
    for which, setting in enumerate(itertools.product(*map(range, settings))):
        for corner in itertools.product(
            *(range(0, size, side) for size, side in zip(sizes, sides, strict=True))
        ):
            region = tuple(
                slice(first, min(first + side, size))
                for first, side, size in zip(corner, sides, sizes, strict=True)
            )
            here = tuple(slice(k, k + 1) for k in setting)
            yield Block(next(count), which, here + region, numbers[region].ravel())

"""What was measured, when, and how well."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Float, PyTree

from retrax.errors import BadInput, warn
from retrax.estimation.attitudes import attitudes
from retrax.mechanics.state import State
from retrax.numerics.checks import (
    ArrayLike,
    host_float64,
    quote,
    require_choice,
    require_finite,
    require_instance,
)
from retrax.numerics.meant import explain_keywords

if TYPE_CHECKING:
    import xarray as xr

# What is measured: a name, or a function of the state written in JAX.
Observable = str | Callable[[State], Any]

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0}
ANGLES = ("rad", "deg")
MISSING = ("refuse", "drop")
# Neighbours further apart than so many usual distances have a gap between them.
_GAP = 3.0


class Measurements:
    r"""What one sensor measured: values at times, and their noise.

    A fit takes one of these, or a list: each sensor has its own times.

    **Arguments:**

    - `t`: the times in seconds, in order; at least two. `time_unit` says if they are in `"ms"`,
        `"us"` or `"min"`; given as `"s"` it is not asked whether they could be milliseconds.
    - `values`: one row for each time.
    - `of`: what they are. `"attitude"`: `(time, 3, 3)` matrices from body to space axes,
        `(time, 4)` quaternions or `(time, 3)` rotation vectors, on SO(3) and SE(3);
        `"configuration"`: elements as the group stores them; `"position"`: on SE(3), SE(2) and
        R^n; `"velocity"`, `"momentum"`: in body coordinates; the name of an observable of the
        system; or a function of the state, written in JAX.
    - `noise`: the standard deviation of every value, or one for each component; of attitudes and
        configurations in the coordinates of $\log(g_{obs}^{-1}g)$, in radians for angles. Without
        it a fit estimates one from its residuals.
    - `order`: of quaternions, `"wxyz"` or `"xyzw"`: the numbers do not tell, so it must be named.
    - `unit`: `"rad"` or `"deg"`, of rotation vectors and of angular velocities.
    - `missing`: rows with NaN are refused, or dropped with a note: `"refuse"`, `"drop"`.
    - `name`: what tables call the sensor.

    Quaternions that change sign and gaps in time are accepted with a note; `notes` has them.

    **Raises:** `BadInput` for times that are not in order, NaN, values that are no rotations, and
    units that cannot be right.
    """

    @explain_keywords
    def __init__(
        self,
        t: ArrayLike,
        values: PyTree,
        *,
        of: Observable = "attitude",
        noise: ArrayLike | None = None,
        order: str | None = None,
        unit: str | None = None,
        time_unit: str | None = None,
        missing: str = "refuse",
        name: str | None = None,
    ):
        self.of = _require_observable(of)
        self.name = _name(of) if name is None else require_instance("name", name, str, "a text")
        self.unit = None if unit is None else require_choice("unit", unit, ANGLES)
        self.time_unit = time_unit
        scale = 1.0 if time_unit is None else SECONDS[_require_time_unit(time_unit)]
        times = host_float64("t", t) * scale
        arrays = jax.tree.map(lambda x: host_float64("values", x), values, is_leaf=_is_list)
        if of != "configuration" and len(jax.tree.leaves(arrays)) != 1:
            raise BadInput("values must be one array with a row for each time.")
        _require_rows(times, arrays)
        times, arrays, notes = _without_missing(
            times, arrays, require_choice("missing", missing, MISSING)
        )
        _require_in_order(times)
        if self.of == "attitude":
            arrays, mended = attitudes(arrays, order, unit == "deg", unit is not None)
            notes += mended
        elif order is not None:
            raise BadInput(f"order = {order!r} is that of quaternions, but these are {self.name}.")
        elif of != "configuration" and np.ndim(arrays) == 1:
            arrays = arrays[:, None]
        if unit is not None and self.of not in ("attitude", "velocity"):
            raise BadInput(
                f"unit = {unit!r} is for attitudes and velocities; convert {self.name} yourself."
            )
        self.t: Float[np.ndarray, " time"] = times
        self.values: PyTree = arrays
        self.noise = None if noise is None else _require_noise(noise)
        self.notes = (*notes, *_gaps(times))
        for note in self.notes:
            warn(f"{self.name}: {note}.")

    def __repr__(self) -> str:
        noise = "of unknown noise" if self.noise is None else f"noise {self.noise.tolist()}"
        return (
            f"<Measurements of {self.name}: {len(self.t)} from t = {self.t[0]:g} to "
            f"{self.t[-1]:g} s, {noise}>"
        )

    def __len__(self) -> int:
        return len(self.t)

    @classmethod
    def read(cls, path: str | Path, **options: Any) -> list["Measurements"]:
        """Read a CSV file; its header says what the columns are. One for each sensor in it.

        `t` and `R11` to `R33`, `qw` to `qz`, `rx, ry, rz` (a rotation vector), `x, y, z`,
        `wx, wy, wz` (angular velocity). A unit may follow: `t [ms]`, `wx (deg/s)`.
        `options` are `noise`, one for all or by sensor, `{"attitude": 0.01}`, and `missing`.
        """
        from retrax.estimation.tables import read_csv

        return read_csv(path, **options)

    @classmethod
    def from_dataset(cls, data: "xr.Dataset", **options: Any) -> list["Measurements"]:
        """Take measurements out of an `xarray.Dataset` with a dimension `time` or `t`.

        Variables are `attitude`, `position` and `velocity`, as the class takes them; their
        attributes `noise` and `order` are read. `options` are those of `read`.
        """
        from retrax.estimation.tables import from_dataset

        return from_dataset(data, **options)


def as_measurements(data: object) -> tuple[Measurements, ...]:
    """Return the sensors of a fit."""
    what = 'rx.Measurements: write rx.Measurements(t, values, of="attitude", noise=...)'
    several = [
        require_instance("data", one, Measurements, what)
        for one in (data if isinstance(data, list | tuple) else [data])
    ]
    if not several:
        raise BadInput("data is an empty list: there is nothing to fit.")
    unknown = [one.name for one in several if one.noise is None]
    if unknown and len(several) > 1:
        raise BadInput(
            f"{unknown[0]} has no noise: with several sensors their noise says how much each "
            "counts, so give one to each."
        )
    return tuple(several)


def _name(of: Observable) -> str:
    return of if isinstance(of, str) else getattr(of, "__name__", "observable").strip("<>")


def _require_observable(of: object) -> Any:
    if not isinstance(of, str) and not callable(of):
        raise BadInput(f"of = {quote(of)} must be a name or a function of the state.")
    return of


def _require_time_unit(unit: object) -> str:
    return require_choice("time_unit", unit, tuple(SECONDS))


def _is_list(x: object) -> bool:
    return isinstance(x, list)


def _require_rows(t: np.ndarray, values: PyTree) -> None:
    if t.ndim != 1 or len(t) < 2:
        raise BadInput(f"t has shape {t.shape}, but must be a vector of at least two times.")
    for leaf in jax.tree.leaves(values):
        if leaf.ndim < 1 or len(leaf) != len(t):
            raise BadInput(
                f"values has shape {leaf.shape}, but needs one row for each of {len(t)} times."
            )


def _without_missing(t: np.ndarray, values: PyTree, missing: str) -> tuple:
    rows = [np.isfinite(x).reshape(len(t), -1).all(axis=1) for x in jax.tree.leaves(values)]
    there = np.logical_and.reduce([np.isfinite(t), *rows])
    lost = int(np.sum(~there))
    if not lost:
        return t, values, ()
    first = int(np.argmin(there))
    if missing == "refuse":
        raise BadInput(
            f"{lost} of {len(t)} rows hold NaN or infinity, the first is row {first} "
            f'(t = {t[first]:g} s): leave them out with missing="drop".'
        )
    if np.sum(there) < 2:
        raise BadInput(f"of {len(t)} rows fewer than two are without NaN.")
    kept = jax.tree.map(lambda x: x[there], values)
    return t[there], kept, (f"{lost} of {len(t)} rows with NaN or infinity were left out",)


def _require_in_order(t: np.ndarray) -> None:
    require_finite("t", t)
    back = np.flatnonzero(np.diff(t) < 0)
    if len(back):
        k = int(back[0])
        raise BadInput(
            f"the times are not in order: t = {t[k + 1]:g} s in row {k + 1} follows {t[k]:g} s "
            f"({len(back)} such rows). Sort the rows by time if they were only mixed up; a clock "
            "that was set back must be repaired first."
        )
    if t[-1] == t[0]:
        raise BadInput(f"all times are t = {t[0]:g} s: a motion needs several.")


def _gaps(t: np.ndarray) -> tuple[str, ...]:
    distances = np.diff(t)
    usual = float(np.median(distances[distances > 0]))
    wide = np.flatnonzero(distances > _GAP * usual)
    if not len(wide):
        return ()
    worst = int(np.argmax(distances))
    return (
        f"{len(wide)} gap{'s' if len(wide) > 1 else ''} in time, the longest of "
        f"{distances[worst]:.4g} s after t = {t[worst]:.4g} s (usual distance {usual:.4g} s)",
    )


def _require_noise(noise: object) -> np.ndarray:
    array = np.atleast_1d(host_float64("noise", noise))
    if array.ndim != 1 or not (np.isfinite(array) & (array > 0)).all():
        raise BadInput(
            f"noise = {quote(noise)} must be a positive standard deviation, or one for each "
            "component."
        )
    return array

"""What a fit found: parameters with their errors, and how well the measurements are met."""

import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Float, PyTree

from retrax.estimation.identifiability import Identifiability, covariance, identifiability
from retrax.estimation.least_squares import Found
from retrax.estimation.measurements import Measurements
from retrax.estimation.problem import Problem
from retrax.files import as_path, require_place
from retrax.trajectory.trajectory import Trajectory

if TYPE_CHECKING:
    import xarray as xr

# Where the noise is known, a sum of squares further from its mean than so many deviations is told.
_SIGMAS = 5.0


class Fit:
    r"""Parameters found from measurements, with what is known of their errors.

    **Attributes:**

    - `p`: the parameters, nested as the first guess; `state`: the state at the start; `system`:
        the system of these parameters.
    - `names`: the parameters, one for each row of `covariance`.
    - `residuals`: for each sensor, by name, $\log(g_{obs}^{-1}g)$ or the difference, in its units;
        `t`: their times.
    - `chi2`: the sum of squares of residuals over noise; `degrees_of_freedom`: how many there are
        more than unknowns. `noise`: the standard deviation of a residual over the noise that was
        given, about 1 where that was right; where none was given it is the noise.
    - `converged`, `looks`: whether the search ended where it should, and how often it looked.
    - `notes`: sentences about what was mended in the data, and about what is doubtful.
    """

    def __init__(self, problem: Problem, found: Found, data: Sequence[Measurements]):
        self._problem, self._point, self.data = problem, found.point, tuple(data)
        self.looks, self.converged = found.looks, found.converged
        unknowns = problem.unknowns
        self.names = list(unknowns.nesting.names)
        self.p: PyTree = jax.tree.map(
            lambda x: x.item() if isinstance(x, np.ndarray) and x.ndim == 0 else x,
            unknowns.nesting.nest(np.asarray(found.point.p)),
        )
        self.system, state = unknowns.make(jax.tree.map(jax.numpy.asarray, found.point))
        self.state = state
        weighted = problem.residuals(found.point)
        self.chi2 = float(weighted @ weighted)
        size = unknowns.size(found.point)
        self.degrees_of_freedom = len(weighted) - size
        self.residuals, self.t = _by_sensor(problem, self.data, weighted)
        self.notes = _notes(self, self.data)

    @property
    def values(self) -> Float[np.ndarray, " parameter"]:
        """The parameters in a row, as `names` has them."""
        return np.asarray(self._point.p)

    @property
    def noise(self) -> float:
        if self.degrees_of_freedom < 1:
            return math.nan
        return math.sqrt(self.chi2 / self.degrees_of_freedom)

    @cached_property
    def jacobian(self) -> Float[np.ndarray, "residual unknown"]:
        """The derivative of the weighted residuals in parameters, then in the start."""
        return self._problem.linear(self._point).jacobian

    @property
    def _sigma(self) -> float:
        """The standard deviation of a weighted residual: 1 where the noise was given."""
        given = self.data[0].noise is not None
        return 1.0 if given or math.isnan(self.noise) else self.noise

    @cached_property
    def identifiability(self) -> Identifiability:
        """How well each combination of the unknowns is known, by singular values."""
        unknowns, point = self._problem.unknowns, self._point
        p = np.asarray(point.p)
        scales = _sizes(p, unknowns.nesting.shapes)
        motion = np.max(np.abs(point.motion), initial=0.0) or 1.0
        values = np.concatenate([p, np.zeros(unknowns.size(point) - len(p))])
        if unknowns.free:
            rest = [np.ones(len(point.motion)), np.full(len(unknowns.admissible), motion)]
            scales = np.concatenate([scales, *rest])
        return identifiability(self.jacobian, values, scales, self.unknowns, self._sigma)

    @property
    def unknowns(self) -> list[str]:
        """The names of all unknowns: parameters, then what is free of the start."""
        return self.names + self._problem.unknowns.state_names(self._point)

    @cached_property
    def _everything(self) -> np.ndarray:
        return covariance(self.identifiability, self._sigma)

    @property
    def covariance(self) -> Float[np.ndarray, "parameter parameter"]:
        """The covariance of the parameters, the start being unknown too where it is free.

        Infinite for a parameter that is not determined.
        """
        n = len(self.names)
        return self._everything[:n, :n]

    @property
    def state_covariance(self) -> Float[np.ndarray, "start start"]:
        """The covariance of the start: left-trivialised configuration, then velocity."""
        n = len(self.names)
        return self._everything[n:, n:]

    @property
    def standard_errors(self) -> PyTree:
        """The standard errors of the parameters, nested as they are."""
        return self._problem.unknowns.nesting.nest(np.sqrt(np.diag(self.covariance)))

    @property
    def correlations(self) -> Float[np.ndarray, "parameter parameter"]:
        """The correlations of the parameters; NaN for those that are not determined."""
        errors = np.sqrt(np.diag(self.covariance))
        with np.errstate(invalid="ignore"):
            return self.covariance / np.outer(errors, errors)

    @cached_property
    def run(self) -> Trajectory:
        """The motion that was found, with the steps of the fit."""
        return self._problem.run(self.system, self.state)

    def rows(self) -> list[tuple[str, ...]]:
        """Return each parameter with its value, its standard error and the part that is of it."""
        errors = np.sqrt(np.diag(self.covariance))
        return [
            (name, *write_value(value, error))
            for name, value, error in zip(self.names, self.values, errors, strict=True)
        ]

    def lines(self) -> list[str]:
        """Tell in sentences what was fitted, how well, and what to beware of."""
        measured = ", ".join(f"{len(one)} of {one.name}" for one in self.data)
        known = self.data[0].noise is not None
        ratio = self.chi2 / self.degrees_of_freedom if self.degrees_of_freedom > 0 else math.nan
        met = (
            f"chi2 = {self.chi2:.6g} with {self.degrees_of_freedom} degrees of freedom: "
            f"{ratio:.4g} each"
            if known
            else f"noise of {self.noise:.4g}, from the residuals"
        )
        return [
            f"{self.system.name} from measurements: {measured}",
            f"{met}; {self.looks} looks, steps of h = {self._problem.h:.4g} s by "
            f"{self._problem.integrator!r}",
            *(f"Note: {note}." for note in self.notes),
        ]

    def summary(self) -> str:
        """Return the fit as a table for people."""
        return "\n".join([*self.lines(), "", *align([COLUMNS, *self.rows()])])

    def __repr__(self) -> str:
        parts = ", ".join(f"{name} = {value} +- {error}" for name, value, error, _ in self.rows())
        return f"<Fit: {parts}>"

    def dataset(self) -> "xr.Dataset":
        """Return parameters, covariance and residuals as an `xarray.Dataset`."""
        import xarray as xr

        both = ("parameter", "with_parameter")
        found: dict[str, Any] = {
            "value": (("parameter",), self.values),
            "standard_error": (("parameter",), np.sqrt(np.diag(self.covariance))),
            "covariance": (both, self.covariance),
            "correlation": (both, self.correlations),
            "singular_value": (("combination",), self.identifiability.singular_values),
            "relative_error": (("combination",), self.identifiability.relative_errors),
        }
        coordinates: dict[str, Any] = {"parameter": self.names, "with_parameter": self.names}
        for name, values in self.residuals.items():
            found[f"residual of {name}"] = ((f"t of {name}", f"component of {name}"), values)
            coordinates[f"t of {name}"] = self.t[name]
        told_of = {
            "system": self.system.name,
            "integrator": repr(self._problem.integrator),
            "h": self._problem.h,
            "chi2": self.chi2,
            "degrees_of_freedom": self.degrees_of_freedom,
            "noise": self.noise,
            "converged": str(self.converged),
            "notes": "; ".join(self.notes),
        }
        return xr.Dataset(found, coordinates, told_of)

    def save(self, path: str | Path) -> Path:
        """Write `dataset()` to a NetCDF file, whole; `xarray.open_dataset` reads it."""
        from retrax.store.netcdf import write_netcdf

        path = as_path(path)
        require_place(path)
        write_netcdf(self.dataset(), path)
        return path

    def report(self, path: str | Path) -> Path:
        """Write one self-contained HTML page: parameters, residuals, what is determined."""
        from retrax.show.fit_page import write_fit_page

        return write_fit_page(self, path)


COLUMNS = ("parameter", "value", "standard error", "relative")


def write_value(value: float, error: float) -> tuple[str, str, str]:
    """Write a value with as many digits as its error leaves it, the error, and its part of it."""
    if not math.isfinite(error):
        return f"{value:.6g}", "not determined", "-"
    if error == 0 or value == 0:
        return f"{value:.6g}", f"{error:.2g}", "-"
    digits = max(2, math.ceil(math.log10(abs(value) / error)) + 2) if error < abs(value) else 2
    return f"{value:.{min(digits, 15)}g}", f"{error:.2g}", f"{abs(error / value):.1e}"


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table as lines of text, numbers to the right."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]

    def line(row: Sequence[str]) -> str:
        cells = [row[0].ljust(widths[0])]
        cells += [c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)]
        return "  ".join(cells).rstrip()

    return [line(rows[0]), "  ".join("-" * w for w in widths), *map(line, rows[1:])]


def _by_sensor(
    problem: Problem, data: Sequence[Measurements], weighted: np.ndarray
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    residuals, times, at = {}, {}, 0
    for k, (one, along) in enumerate(zip(data, problem.sensors, strict=True)):
        sensor = along.sensor
        shape = (len(one), len(sensor.noise))
        end = at + shape[0] * shape[1]
        name = one.name if one.name not in residuals else f"{one.name} {k + 1}"
        residuals[name] = weighted[at:end].reshape(shape) * sensor.noise
        times[name] = one.t
        at = end
    return residuals, times


def _sizes(p: np.ndarray, shapes: Sequence[tuple[int, ...] | None]) -> np.ndarray:
    """Return the size of each parameter: that of the largest in its array, or 1."""
    sizes, at = np.ones(len(p)), 0
    for shape in shapes:
        if shape is not None:
            end = at + math.prod(shape)
            sizes[at:end] = np.max(np.abs(p[at:end]), initial=0.0) or 1.0
            at = end
    return sizes


def misfit(result: Fit) -> str | None:
    """Say if the residuals are larger than the given noise makes them."""
    freedom = result.degrees_of_freedom
    if freedom < 1:
        return "there are no more residuals than unknowns: errors say nothing"
    if result.data[0].noise is None:
        return None
    away = (result.chi2 - freedom) / math.sqrt(2 * freedom)
    if away <= _SIGMAS:
        return None
    return (
        f"residuals are {math.sqrt(result.chi2 / freedom):.3g} times the noise (chi2 is "
        f"{away:+.1f} standard deviations off): the noise is larger, the system is another, or the "
        "values have other axes, units or order; the standard errors do not hold"
    )


def _notes(result: Fit, data: Sequence[Measurements]) -> tuple[str, ...]:
    notes = [f"{one.name}: {note}" for one in data for note in one.notes]
    return tuple(notes)

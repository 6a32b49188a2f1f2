"""How fast errors fall: with the step, and with the work."""

import itertools
from collections.abc import Mapping, Sequence, Sized
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from retrax.analysis.convergence import Convergence
from retrax.errors import BadInput
from retrax.numerics.checks import host_float64, require_instance
from retrax.show.style import GREY, MARKERS, look, new_figure, style

if TYPE_CHECKING:
    import xarray as xr

Points = Sequence[tuple[float | int, float | int]]
_CONVERGENCES = "what rx.analysis.convergence returns, or several such by name"


def convergence(measured: Convergence | Mapping[str, Convergence], title: str = "") -> Figure:
    """Draw differences of successive runs against the step, with the order of each method.

    **Arguments:** `measured`: what `retrax.analysis.convergence` found, for one method or for
    several by name. Grey lines have the slope of the nearest whole order.
    """
    several = {"": measured} if isinstance(measured, Convergence) else measured
    several = require_instance("measured", several, Mapping, _CONVERGENCES)
    for found in several.values():
        require_instance("measured", found, Convergence, _CONVERGENCES)
    _require_curves("measured", {name: found.differences for name, found in several.items()})
    with style():
        figure = new_figure(5.6, 4.6, title or "Convergence")
        axes = figure.add_subplot()
        for k, (name, found) in enumerate(several.items()):
            h, errors = np.array(found.h[: len(found.differences)]), np.array(found.differences)
            told = f"{name}: " if name else ""
            axes.loglog(h, errors, marker=MARKERS[k % len(MARKERS)], markersize=4,
                        label=f"{told}order {found.order:.2f}", **look(k))  # fmt: skip
            _slope(axes, h, errors, round(found.order))
        axes.set_xlabel("step h (s)")
        axes.set_ylabel("difference from the next finer run")
        axes.legend()
    return figure


def work_precision(
    curves: "Mapping[str, Points] | xr.Dataset",
    *,
    work: str = "processor time (s)",
    error: str = "error",
    title: str = "",
) -> Figure:
    """Draw error against work, a curve for each method; the best lies at the lower left.

    **Arguments:**

    - `curves`: what `retrax.analysis.work_precision` measured, a panel for each system; or for each
        method, by name, pairs (work, error) of its runs, both positive.
    - `work`, `error`: what they are, with units.
    """
    import xarray as xr

    panels: Mapping[str, Mapping[str, Points]]
    panels = _find_curves(curves) if isinstance(curves, xr.Dataset) else {"": _pairs(curves)}
    with style():
        figure = new_figure(5.4 * len(panels) + 1.0, 4.8, title or "Work and precision")
        for column, (system, several) in enumerate(panels.items()):
            _require_curves("curves", several)
            axes = figure.add_subplot(1, len(panels), column + 1)
            _draw_work(axes, several)
            axes.set_title(system)
            axes.set_xlabel(work)
            axes.set_ylabel(error)
            axes.legend()
    return figure


def _draw_work(axes: Axes, curves: Mapping[str, Points]) -> None:
    for k, (name, points) in enumerate(curves.items()):
        pairs = np.array(sorted(points))
        if not (np.isfinite(pairs).all() and (pairs > 0).all()):
            raise BadInput(
                f"curves[{name!r}] has a work or an error that is not positive and finite, "
                "and has no place on logarithmic axes."
            )
        axes.loglog(*pairs.T, marker=MARKERS[k % len(MARKERS)], markersize=4, label=name,
                    **look(k))  # fmt: skip


def _pairs(curves: object) -> dict[str, Points]:
    """Return curves that were given by hand, as pairs of numbers."""
    what = "a dataset of rx.analysis.work_precision, or pairs (work, error) by name"
    given = require_instance("curves", curves, Mapping, what)
    found = {name: host_float64(f"curves[{name!r}]", x) for name, x in given.items()}
    for name, x in found.items():
        if len(x) and x.shape[1:] != (2,):
            raise BadInput(f"curves[{name!r}] has shape {x.shape}, but must be pairs of numbers.")
    return {name: [tuple(pair) for pair in x.tolist()] for name, x in found.items()}


def _find_curves(found: "xr.Dataset") -> dict[str, dict[str, list[tuple[float, float]]]]:
    """Return the curves of each system, without runs that failed and errors that are not known."""
    panels = {}
    for system in found["system"].values:
        one = found.sel(system=system)
        least = float(one["reference_error"])
        curves = {}
        for method in one["method"].values:
            pairs = zip(
                *(one[x].sel({"method": method}).values for x in ("seconds", "error")), strict=True
            )
            kept = [(float(w), float(e)) for w, e in pairs if w > 0 and e > least]
            if kept:
                curves[str(method)] = kept
        panels[str(system)] = curves
    return panels


def _slope(axes: Axes, h: np.ndarray, errors: np.ndarray, order: int) -> None:
    """Draw a thin line of a whole order below the curve."""
    line = 0.5 * errors[-1] * (h / h[-1]) ** order
    axes.loglog(h, line, color=GREY, linewidth=0.6, linestyle=(0, (4, 3)))
    axes.annotate(f"$h^{{{order}}}$", (h[0], line[0]), fontsize=8, color="#555555",
                  xytext=(4, -2), textcoords="offset points")  # fmt: skip


def _require_curves(name: str, curves: Mapping[str, Sized]) -> None:
    if not curves or not all(len(points) for points in curves.values()):
        empty = next(itertools.chain((k for k, v in curves.items() if not len(v)), [""]))
        raise BadInput(f"{name} has nothing to draw{f' for {empty!r}' if empty else ''}.")

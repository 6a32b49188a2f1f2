"""Figs. 1 and 2 of the nonholonomic paper, and what they do not show."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from retrax.show.downsample import extremes
from retrax.show.style import BLUE, CYCLE, GREEN, GREY, ORANGE, new_figure, style
from retrax.trajectory.files import written_whole

if TYPE_CHECKING:
    from retrax.reproduce.nonholonomic import Measured

_COLOURS = {"exponential": BLUE, "Cayley": ORANGE}
_POINTS, _PARTS = 2000, 300
# The stretch of time that is shown in detail, in seconds.
_CLOSE_UP = 30.0


def draw(
    folder: Path,
    measured: "dict[str, Measured]",
    orders: dict[str, list[tuple[float, float]]],
) -> list[Path]:
    """Write the three figures; returns their paths."""
    with style():
        figures = {
            "figure-1": _figure_1(measured),
            "figure-2": _figure_2(measured),
            "orders": _orders(orders),
        }
    paths = []
    for name, figure in figures.items():
        path = folder / f"{name}.png"
        with written_whole(path) as temporary:
            figure.savefig(temporary, format="png", dpi=160)
        paths.append(path)
    return paths


def _figure_1(measured: "dict[str, Measured]") -> Figure:
    figure = new_figure(
        11.0, 6.4, "Suslov's problem, adapted integrators: what Fig. 1 shows (left)"
    )
    grid = figure.add_gridspec(3, 2, width_ratios=[5, 6])
    energy, group, across = (figure.add_subplot(grid[k, 0]) for k in range(3))
    for kind, colour in _COLOURS.items():
        one = measured[f"(17), s = 0, {kind}"]
        energy.plot(*_few(one.t, one.energy), color=colour, label=f"(17), s = 0, {kind}")
        group.plot(*_largest(one.t, one.defect), color=colour)
        across.plot(*_largest(one.t[1:], one.across), color=colour)
    energy.set_ylabel("energy error (J)")
    group.set_ylabel("norm of $R^TR - 1$")
    across.set_ylabel("constraint (rad/s)")
    across.set_xlabel("time (s)")
    energy.legend(loc="best")
    _momenta(figure.add_subplot(grid[:, 1]), measured)
    return figure


def _momenta(axes: Axes, measured: "dict[str, Measured]") -> None:
    shown = {
        "(17), s = 0, exponential": (ORANGE, "-"),
        "Lagrange-d'Alembert, s = 0, exponential": (BLUE, "-"),
        "Hamel midpoint, exponential": (GREEN, "--"),
    }
    for name, (colour, line) in shown.items():
        one = measured[name]
        for k in range(2):
            label = name if k == 0 else None
            axes.plot(*_few(one.t, one.path[:, k]), line, color=colour, label=label)
    drifting = measured["(17), s = 0, exponential"]
    for k in range(2):
        end = (drifting.t[-1], drifting.path[-1, k])
        axes.annotate(f"$\\Pi_{k + 1}$", end, xytext=(-14, 5), textcoords="offset points")
    axes.annotate(
        "$\\Pi_1 = \\Pi_2 = 1$", (drifting.t[-1], 1.0), xytext=(-62, 5), textcoords="offset points"
    )
    axes.set_title("what it does not show: the momentum, which should stay at (1, 1)")
    axes.set_xlabel("time (s)")
    axes.set_ylabel("body momentum (kg m$^2$/s)")
    axes.legend(loc="center right")


def _figure_2(measured: "dict[str, Measured]") -> Figure:
    figure = new_figure(10.0, 4.8, "The unadapted integrator (10) is the free rigid body (Fig. 2)")
    panels = figure.subplots(2, 2, width_ratios=[3, 4])
    for kind, colour in _COLOURS.items():
        one = measured[f"(10), {kind}"]
        begin = one.t <= _CLOSE_UP
        for row, values in zip(panels, (one.energy, one.path[:, 2]), strict=True):
            row[0].plot(one.t[begin], values[begin], color=colour, label=kind)
            for signed in (values, -values):
                t, largest = _largest(one.t, signed)
                row[1].plot(t, largest if signed is values else -largest, color=colour)
    for axes in panels[1]:
        for sign in (-1, 1):
            axes.axhline(sign * np.sqrt(10 / 11), color=GREY, lw=0.8, ls=":")
        axes.set_xlabel("time (s)")
    panels[0, 0].set_ylabel("energy error (J)")
    panels[1, 0].set_ylabel("$\\Pi_3$ (dotted: theory)")
    panels[0, 0].set_title("the beginning")
    panels[0, 1].set_title("the whole run: least and largest values")
    panels[0, 1].legend(*panels[0, 0].get_legend_handles_labels(), loc="center right")
    return figure


def _orders(orders: dict[str, list[tuple[float, float]]]) -> Figure:
    figure = new_figure(
        6.4, 4.6, "Suslov's problem with a full inertia: error of the velocity at 2 s"
    )
    axes = figure.add_subplot(111)
    for (name, rows), colour in zip(orders.items(), CYCLE, strict=False):
        h, error = np.array(rows).T
        slope = np.log2(error[0] / error[1]) / np.log2(h[0] / h[1])
        axes.loglog(h, error, "o-", color=colour, ms=3, label=f"{name} (slope {slope:.2f})")
    axes.set_xlabel("h (s)")
    axes.set_ylabel("largest error (rad/s)")
    axes.legend(loc="lower left", fontsize=7)
    return figure


def _few(t: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A curve with fewer points and the same extremes."""
    kept = extremes(y, _POINTS)
    return t[kept], y[kept]


def _largest(t: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest value in each of many equal parts of the run."""
    parts = min(_PARTS, len(y))
    length = len(y) // parts
    blocks = y[: parts * length].reshape(parts, length)
    return t[: parts * length : length], np.max(blocks, axis=1)

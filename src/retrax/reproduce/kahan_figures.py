"""Orbits on the momentum sphere, orders, predators and prey, and where poles are met."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import Axes3D

from retrax.show.sphere import draw_path, draw_sphere
from retrax.show.style import CYCLE, GREY, ORANGE, new_figure, style
from retrax.trajectory.files import written_whole

if TYPE_CHECKING:
    from retrax.reproduce.kahan import Boundary, Measured


def draw(folder: Path, measured: "Measured") -> list[Path]:
    """Write the four figures; returns their paths."""
    with style():
        figures = {
            "orbits": _orbits(measured.orbits),
            "orders": _orders(measured.errors),
            "predators": _predators(measured.prey),
            "poles": _poles(measured.boundary),
        }
    paths = []
    for name, figure in figures.items():
        path = folder / f"{name}.png"
        with written_whole(path) as temporary:
            figure.savefig(temporary, format="png", dpi=160)
        paths.append(path)
    return paths


def _orbits(orbits: dict[str, list[np.ndarray]]) -> Figure:
    figure = new_figure(12.0, 3.6, "Momenta of a free rigid body, I = (3, 2, 1)")
    titles = {
        "exact": "exact",
        "Kahan": "Kahan, h = 0.5, 2000 steps",
        "explicit Euler": "explicit Euler, h = 0.1, 200 steps",
        "Runge-Kutta 4": "Runge-Kutta 4, h = 1, 1000 steps",
    }
    for k, (name, paths) in enumerate(orbits.items()):
        axes = figure.add_subplot(1, 4, k + 1, projection="3d")
        assert isinstance(axes, Axes3D)
        draw_sphere(axes)
        for path, colour in zip(paths, CYCLE, strict=False):
            draw_path(axes, path, colour, "")
        axes.set_title(titles[name], loc="center")
    return figure


def _orders(errors: dict[str, list[tuple[float, float]]]) -> Figure:
    figure = new_figure(6.4, 4.6, "Euler's top: error of the momentum at t = 100")
    axes = figure.add_subplot(111)
    for (name, rows), colour in zip(errors.items(), CYCLE, strict=False):
        h, error = np.array(rows).T
        slope = np.log2(error[0] / error[1])
        axes.loglog(h, error, "o-", color=colour, ms=3, label=f"{name} (slope {slope:.2f})")
    axes.set_xlabel("h (s)")
    axes.set_ylabel("largest error")
    axes.legend(loc="lower right", fontsize=7)
    return figure


def _predators(prey: dict[str, np.ndarray]) -> Figure:
    figure = new_figure(9.6, 3.6, "Predators and prey from (2, 1): closed orbits, or spirals")
    titles = {
        "Kahan": "Kahan, h = 0.1, 1000 steps",
        "explicit Euler": "explicit Euler, h = 0.1, 200 steps",
        "Runge-Kutta 4": "Runge-Kutta 4, h = 0.9, 300 steps",
    }
    for k, ((name, y), colour) in enumerate(zip(prey.items(), CYCLE, strict=False)):
        axes = figure.add_subplot(1, 3, k + 1)
        joined = name == "explicit Euler"
        axes.plot(y[:, 0], y[:, 1], "-" if joined else ".", color=colour, ms=2.0)
        axes.plot(*y[0], "o", color=GREY, ms=4)
        axes.set_title(titles[name])
        axes.set_xlabel("prey")
    figure.axes[0].set_ylabel("predators")
    return figure


def _poles(edge: "Boundary") -> Figure:
    figure = new_figure(6.4, 4.6, "Where Kahan's map of Euler's top meets a pole, I = (3, 2, 1)")
    axes = figure.add_subplot(111)
    shown = np.where(edge.failed_step > 0, edge.failed_step, np.nan).astype(float)
    mesh = axes.pcolormesh(edge.second, edge.first, shown, norm=LogNorm(), cmap="viridis")
    axes.axvline(edge.bound, color=ORANGE, lw=1.4, label="$h\\,m_2\\sqrt{a_1a_3} = 2$")
    axes.set_xlabel("$h\\,m_2(0)$")
    axes.set_ylabel("$h\\,m_1(0)$, with $h\\,m_3(0) = 1$")
    axes.legend(loc="upper left")
    bar = figure.colorbar(mesh, label="step that crosses a pole (white: none in 2000)")
    latest = max(2, int(np.nanmax(shown)))
    bar.set_ticks(range(1, latest + 1), labels=[f"{k}" for k in range(1, latest + 1)])
    bar.minorticks_off()
    return figure

"""The paper's four pictures again, energy over long times, and convergence."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from retrax.show.style import CYCLE, new_figure, style
from retrax.trajectory.files import written_whole

if TYPE_CHECKING:
    from retrax.reproduce.pseudospectral import Long, Measured, Short

_FAMILIES = ("Gauss", "Radau", "Lobatto")
_FLOOR = 1e-17


def draw(folder: Path, measured: "Measured") -> list[Path]:
    """Write the figures; returns their paths."""
    with style():
        figures = {
            "pendulum": _pendulum(measured.short),
            "energy": _energy(measured.long, measured.chaotic),
            "convergence": _convergence(measured),
        }
    paths = []
    for name, figure in figures.items():
        path = folder / f"{name}.png"
        with written_whole(path) as temporary:
            figure.savefig(temporary, format="png", dpi=160)
        paths.append(path)
    return paths


def _pendulum(short: dict[str, "Short"]) -> Figure:
    figure = new_figure(10.0, 6.4, "The 3D pendulum for 30 s, h = 0.05 s")
    axes = [figure.add_subplot(2, 2, k + 1) for k in range(4)]
    run = short["geometric Gauss"]
    for i, colour in enumerate(CYCLE[:3]):
        axes[0].plot(run.t, run.velocity[:, i], color=colour, label=f"$\\omega_{i + 1}$")
    axes[0].set_title("angular velocity (rad/s)")
    panels = {"defects": "distance from SO(3)", "energies": "energy error (J)"}
    panels["momenta"] = "error of the vertical momentum (kg m$^2$/s)"
    for panel, (what, title) in zip(axes[1:], panels.items(), strict=True):
        for family, colour in zip(_FAMILIES, CYCLE, strict=False):
            for kind, line in (("geometric", "-"), ("plain", "--")):
                one = short[f"{kind} {family}"]
                size = np.maximum(np.abs(getattr(one, what)), _FLOOR)
                panel.semilogy(one.t, size, line, color=colour, label=f"{kind} {family}")
        panel.set_title(title)
    axes[0].legend(loc="lower right")
    axes[1].legend(loc="center right", fontsize=6)
    for panel in axes[2:]:
        panel.set_xlabel("t (s)")
    return figure


def _energy(regular: dict[str, "Long"], chaotic: dict[str, "Long"]) -> Figure:
    figure = new_figure(10.0, 3.8, "Energy error over long times, two Gauss nodes")
    titles = {
        "the paper's orbit, regular, h = 0.1 s": regular,
        "chaotic, $\\omega_0 = (2, -3, 1)$, h = 0.05 s": chaotic,
    }
    for k, (title, runs) in enumerate(titles.items()):
        axes = figure.add_subplot(1, 2, k + 1)
        for (name, run), colour in zip(runs.items(), CYCLE, strict=False):
            axes.semilogy(
                run.t, np.maximum(np.abs(run.errors), _FLOOR), ".", ms=1.2, color=colour, label=name
            )
        axes.set_title(title)
        axes.set_xlabel("t (s)")
    figure.axes[0].set_ylabel("energy error (J)")
    figure.axes[0].legend(loc="center right", markerscale=6)
    return figure


def _convergence(measured: "Measured") -> Figure:
    figure = new_figure(9.6, 3.8, "Error of (R, $\\omega$) at t = 10 s")
    left, right = (figure.add_subplot(1, 2, k + 1) for k in range(2))
    for (s, rows), colour in zip(measured.convergence.items(), CYCLE, strict=False):
        h, error = np.array(rows).T
        left.loglog(h, error, "o-", color=colour, ms=3, label=f"geometric Gauss, s = {s}")
    sizes = [h for h, _ in next(iter(measured.convergence.values()))]
    for (name, errors), line in zip(measured.printed.items(), ("k:", "k--", "k-."), strict=True):
        left.loglog(sizes, errors, line, label=f"Algorithm 1, {name}")
    left.set_xlabel("h (s)")
    left.legend(fontsize=6)
    s, error = np.array(measured.spectral).T
    right.semilogy(s, error, "o-", color=CYCLE[0], ms=3)
    right.set_title("h = 1 s")
    right.set_xlabel("nodes s")
    return figure

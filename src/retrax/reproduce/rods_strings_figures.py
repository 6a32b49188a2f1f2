"""Strings in contact: space and time, spectra, exponents."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from retrax.show.space_time import draw_space_time
from retrax.show.style import BLUE, CYCLE, GREY, new_figure, style
from retrax.trajectory.files import written_whole

if TYPE_CHECKING:
    from retrax.reproduce.rods_strings import Measured


def draw(folder: Path, measured: "Measured") -> list[Path]:
    """Write the figures; returns their paths."""
    with style():
        figures = {
            "strings-figure-2": _figure_2(measured),
            "strings-spectra": _spectra(measured),
            "strings-exponents": _exponents(measured),
        }
    paths = []
    for name, figure in figures.items():
        path = folder / f"{name}.png"
        with written_whole(path) as temporary:
            figure.savefig(temporary, format="png", dpi=160)
        paths.append(path)
    return paths


def _figure_2(measured: "Measured") -> Figure:
    run = measured.picture
    figure = new_figure(
        11.0, 4.2, "Fig. 2 of the paper with F = 1, G = 0.8, s = (2, 2.6), u = sin x, v = 0"
    )
    axes = figure.add_subplot(121)
    draw_space_time(axes, run)
    axes.set_title("$u(x, t)$ and the contact")
    axes = figure.add_subplot(122)
    system = run.system
    axes.plot(run.t, run.along(lambda state: system.harmonic(state.g)), color=BLUE)
    axes.set_title("first harmonic $\\hat u_1$")
    axes.set_xlabel("time (s)")
    return figure


def _spectra(measured: "Measured") -> Figure:
    figure = new_figure(11.0, 3.6, "Spectra of the first harmonic, 100 periods")
    for k, (name, motion) in enumerate(measured.motions.items()):
        axes = figure.add_subplot(1, 3, k + 1)
        shown = motion.spectrum.omega <= 4.0
        axes.plot(motion.spectrum.omega[shown], motion.spectrum.decibels[shown], color=CYCLE[k])
        if name == "frozen contact":
            for line in measured.frozen_lines:
                axes.axvline(line, color=GREY, lw=0.4, zorder=0)
        axes.set_ylim(-130, 5)
        axes.set_title(f"{name}: floor {motion.spectrum.floor(4.0):.0f} dB")
        axes.set_xlabel("angular frequency (rad/s)")
    figure.axes[0].set_ylabel("power (dB)")
    return figure


def _exponents(measured: "Measured") -> Figure:
    figure = new_figure(10.0, 3.8, f"Largest Lyapunov exponent, T = {measured.time:g} s")
    axes = figure.add_subplot(121)
    sizes = sorted({n for _, n in measured.exponents})
    for colour, n in zip(CYCLE, sizes, strict=False):
        rows = [(G, one) for (G, m), one in measured.exponents.items() if m == n]
        G, value = [G for G, _ in rows], [one.exponent for _, one in rows]
        axes.errorbar(
            G, value, [one.error for _, one in rows],
            fmt="o-", color=colour, ms=3, capsize=2, label=f"n = {n}",
        )  # fmt: skip
    axes.axhline(0.0, color=GREY, lw=0.6)
    axes.set_xlabel("G (s)")
    axes.set_ylabel("exponent (1/s)")
    axes.legend()
    axes = figure.add_subplot(122)
    for colour, G in zip(CYCLE, sorted({G for G, _ in measured.exponents}), strict=False):
        one = measured.exponents[G, sizes[len(sizes) // 2]]
        axes.loglog(one.t, np.maximum(one.running, 1e-5), color=colour, label=f"G = {G:g}")
    axes.set_title(f"running estimates, n = {sizes[len(sizes) // 2]}")
    axes.set_xlabel("time (s)")
    axes.legend(fontsize=7)
    return figure

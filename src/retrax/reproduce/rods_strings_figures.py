"""Strings in contact: Fig. 2 of the paper on rods, spectra, exponents."""

from typing import TYPE_CHECKING

import numpy as np

from retrax.reproduce.drawings import Column, Drawing, by_name, columns
from retrax.show.space_time import draw_space_time
from retrax.show.style import BLUE, CYCLE, GREY, new_figure, style

if TYPE_CHECKING:
    from retrax.analysis.lyapunov import Lyapunov
    from retrax.reproduce.rods_strings import Motion
    from retrax.trajectory.trajectory import Trajectory

_HIGHEST = 4.0  # the largest frequency that is drawn
_TIMES = 600  # the most times of the picture that are kept as data


def figure_2(run: "Trajectory", moving: "Motion") -> Drawing:
    """The string over place and time, and the spectrum of its first harmonic."""
    with style():
        figure = new_figure(
            11.0, 4.2, "Fig. 2 of the paper with F = 1, G = 0.8, s = (2, 2.6), u = sin x, v = 0"
        )
        axes = figure.add_subplot(121)
        draw_space_time(axes, run)
        axes.set_title("$u(x, t)$ and the contact")
        axes = figure.add_subplot(122)
        shown = moving.spectrum.omega <= _HIGHEST
        omega, power = moving.spectrum.omega[shown], moving.spectrum.decibels[shown]
        axes.plot(omega, power, color=BLUE)
        axes.set_title("spectrum of the first harmonic, 100 periods")
        axes.set(xlabel="$\\omega/\\omega_0$, $\\omega_0 = 2\\pi c/l$", ylabel="$S(\\omega)$ (dB)")
        axes.set_ylim(-110, 5)
    every = -(-len(run.t) // _TIMES)
    data = columns(
        time=("time", run.t[::every], "s", "time"),
        place=("place", np.asarray(run.system.nodes), "m", "place along the string"),
        displacement=(("time", "place"), run.g[0][::every], "m", "displacement u"),
        contact=("time", run.g[2][::every, 0], "m", "place of the contact on u"),
        omega=("omega", omega, "rad/s", "angular frequency; omega_0 = 1 rad/s"),
        power=("omega", power, "dB", "power of the first harmonic"),
    )
    return Drawing(
        "figure-2",
        "Fig. 2: a string in contact over place and time, and its spectrum",
        "The paper states none of the parameters of its figure; only the appearance can be "
        "compared. Left: displacement and the path of the contact. Right: the spectrum of the "
        "first harmonic.",
        figure,
        data,
    )


def spectra(motions: "dict[str, Motion]", frozen_lines: list[float]) -> Drawing:
    """Spectra without contact, with a frozen and with a moving one."""
    curves = {}
    with style():
        figure = new_figure(11.0, 3.6, "Spectra of the first harmonic, 100 periods")
        for k, (name, motion) in enumerate(motions.items()):
            axes = figure.add_subplot(1, 3, k + 1)
            shown = motion.spectrum.omega <= _HIGHEST
            curves[name] = (motion.spectrum.omega[shown], motion.spectrum.decibels[shown])
            axes.plot(*curves[name], color=CYCLE[k])
            if name == "frozen contact":
                for line in frozen_lines:
                    axes.axvline(line, color=GREY, lw=0.4, zorder=0)
            axes.set_ylim(-130, 5)
            axes.set_title(f"{name}: floor {motion.spectrum.floor(_HIGHEST):.0f} dB")
            axes.set_xlabel("angular frequency (rad/s)")
        figure.axes[0].set_ylabel("power (dB)")
    words = ("power", "dB", "power of the first harmonic")
    named = by_name("run", curves, ("omega", "rad/s", "angular frequency"), words)
    named["lines"] = ("line", frozen_lines, "rad/s", "lines of the frozen contact, exact")
    return Drawing(
        "spectra",
        "Spectra: no contact, a frozen and a moving one",
        "Beyond the paper. A frozen contact is a linear system and has overtones too, at the roots "
        "of its own equation (grey); only the moving contact fills the space between the lines.",
        figure,
        columns(**named),
    )


def told_apart(found: "dict[tuple[float, int], Lyapunov]", n: int) -> str:
    """Which exponents on the lattice of `n` segments differ from zero by two standard errors."""
    known = {G: abs(one.exponent) >= 2 * one.error for (G, m), one in found.items() if m == n}
    positive = ", ".join(f"{G:g}" for G, sure in sorted(known.items()) if sure)
    others = ", ".join(f"{G:g}" for G, sure in sorted(known.items()) if not sure)
    sentences = []
    if positive:
        sentences.append(
            f"On n = {n} the exponents of G = {positive} differ from zero by two standard errors "
            "or more, which algebraic growth does too: compare them with the linear problem G = 0."
        )
    if others:
        sentences.append(f"Those of G = {others} cannot be distinguished from zero in this time.")
    return " ".join(sentences)


def exponents(found: "dict[tuple[float, int], Lyapunov]", time: float) -> Drawing:
    """Largest exponents against the coupling, and running estimates."""
    sizes = sorted({n for _, n in found})
    couplings = sorted({G for G, _ in found})
    middle = sizes[len(sizes) // 2]
    running = {}
    with style():
        figure = new_figure(10.0, 3.8, f"Largest Lyapunov exponent, T = {time:g} s")
        left, right = figure.add_subplot(121), figure.add_subplot(122)
        for colour, n in zip(CYCLE, sizes, strict=False):
            values = [found[G, n].exponent for G in couplings]
            errors = [found[G, n].error for G in couplings]
            look = {"color": colour, "ms": 3, "capsize": 2, "label": f"n = {n}"}
            left.errorbar(couplings, values, errors, fmt="o-", **look)
        left.axhline(0.0, color=GREY, lw=0.6)
        left.set(xlabel="G", ylabel="exponent (1/s)")
        left.legend()
        for colour, G in zip(CYCLE, couplings, strict=False):
            one = found[G, middle]
            running[f"G = {G:g}"] = (one.t, one.running)
            right.loglog(one.t, np.maximum(one.running, 1e-5), color=colour, label=f"G = {G:g}")
        right.set_title(f"running estimates, n = {middle}")
        right.set_xlabel("time (s)")
        right.legend(fontsize=7)
    grid = [[found[G, n] for n in sizes] for G in couplings]
    named: dict[str, Column] = {
        "G": ("G", couplings, "1", "coupling"),
        "n": ("n", sizes, "1", "segments"),
        "exponent": (
            ("G", "n"), [[one.exponent for one in row] for row in grid], "1/s", "exponent"
        ),
        "error": (("G", "n"), [[one.error for one in row] for row in grid], "1/s", "its error"),
    }  # fmt: skip
    words = ("running", "1/s", f"running estimate, n = {middle}")
    named |= by_name("run", running, ("time", "s", "time"), words)
    return Drawing(
        "exponents",
        "Largest Lyapunov exponents",
        f'Where the paper says "chaotic for all initial conditions". {told_apart(found, middle)}',
        figure,
        columns(**named),
    )

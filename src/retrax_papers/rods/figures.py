"""Two crossed rods and their contact force, strings in contact, and contacts that hold."""

from typing import Any

import jax
import numpy as np

from retrax.analysis.lyapunov import Lyapunov
from retrax.show.space_time_diagram import draw_space_time
from retrax.show.style import BLUE, CYCLE, GREEN, GREY, ORANGE, new_figure, style
from retrax.systems import RodsInContact, StringsInContact
from retrax.trajectory.trajectory import Trajectory
from retrax_papers.drawings import Column, DataFigure, along_time, by_name, columns, labels
from retrax_papers.report import nearest
from retrax_papers.rods.runs import Estimate, Motion

_SKETCHED = 2.0  # the time of the sketch, in seconds
_LONG = 10.0  # metres of arrow for a newton

_HIGHEST = 4.0  # the largest frequency that is drawn
_TIMES = 600  # the most times of the picture that are kept as data


def figure_1(run: Trajectory) -> DataFigure:
    """The two rods at one moment, their centres of contact, and the force on the first."""
    k = nearest(run.t, _SKETCHED)
    now = jax.tree.map(lambda x: x[k], run.g)
    assert isinstance(run.system, RodsInContact)
    strands = run.system.strands(now)
    centres = np.stack([np.asarray(strand.point) for strand in strands])
    rods = [np.asarray(now[i][1]) for i in (0, 1)]
    middle, force = centres.mean(axis=0), np.asarray(run.multipliers[k])
    with style():
        figure = new_figure(7.5, 4.6, f"Two rods in contact (Fig. 1), at t = {run.t[k]:g} s")
        axes: Any = figure.add_subplot(projection="3d")
        for rod, colour, name in zip(rods, (BLUE, GREY), ("rod 1", "rod 2"), strict=True):
            axes.plot(*rod.T, color=colour, lw=6, alpha=0.6, solid_capstyle="round", label=name)
            axes.plot(*rod.T, ".", color=colour, ms=3)
        axes.plot(*centres.T, "o-", color=GREEN, ms=4, label="$r_1$, $r_2$ at the contact")
        arrow = np.stack([middle, middle + _LONG * force])
        axes.plot(*arrow.T, color=ORANGE, lw=2.2, label="$\\lambda$, the force on rod 1")
        axes.set(xlim=(-1.2, 1.2), ylim=(-1.4, 1.0), zlim=(-0.5, 0.3))
        axes.set(xlabel="x (m)", ylabel="y (m)", zlabel="z (m)")
        axes.set_box_aspect((2.4, 2.4, 1.0), zoom=1.2)
        axes.view_init(elev=18, azim=-60)
        axes.legend(loc="upper left")
    data = columns(
        rod=("rod", [1, 2], "1", "rod"),
        axis=("axis", labels(["x", "y", "z"]), "1", "axis of space"),
        position=(("rod", "node", "axis"), np.stack(rods), "m", "nodes of the centrelines"),
        centre=(("rod", "axis"), centres, "m", "centres of the discs in contact"),
        force=("axis", force, "N", "contact force on rod 1"),
    )
    return DataFigure(
        "figure-1",
        "Fig. 1: two rods in contact, drawn from a run",
        "The line through the centres r1, r2 of the discs in contact passes through the point of "
        "contact; the arrow is the force on the first rod, 10 m for a newton.",
        figure,
        data,
    )


def contact_force(run: Trajectory) -> DataFigure:
    """Pressure and friction along time."""
    assert isinstance(run.system, RodsInContact)
    parts = jax.jit(jax.vmap(run.system.contact_force))(run.g, np.asarray(run.multipliers))
    pressure, friction = np.asarray(parts["pressure"]), np.asarray(parts["friction"])
    with style():
        figure = new_figure(9.0, 4.6, "Two rods in rolling contact")
        above, below = figure.subplots(2, 1, sharex=True)
        above.plot(run.t, pressure, color=BLUE)
        above.set_ylabel("pressure N (N)")
        below.plot(run.t, friction, color=ORANGE)
        below.set_ylabel("friction needed")
        below.set_xlabel("t (s)")
    curves = {"pressure": (pressure, "N"), "friction needed": (friction, "1")}
    return DataFigure(
        "contact-force",
        "The contact force of two rods",
        "Beyond the paper: the pressure, and the coefficient of friction that rolling without slip "
        "needs. Rods of 20 elements, clamped, stretched by 1.2, pressed together and kicked.",
        figure,
        along_time(run.t, curves),
    )


def figure_2(run: Trajectory, moving: Motion) -> DataFigure:
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
    assert isinstance(run.system, StringsInContact)
    every = -(-len(run.t) // _TIMES)
    data = columns(
        time=("time", run.t[::every], "s", "time"),
        place=("place", np.asarray(run.system.nodes), "m", "place along the string"),
        displacement=(("time", "place"), run.g[0][::every], "m", "displacement u"),
        contact=("time", run.g[2][::every, 0], "m", "place of the contact on u"),
        omega=("omega", omega, "rad/s", "angular frequency; omega_0 = 1 rad/s"),
        power=("omega", power, "dB", "power of the first harmonic"),
    )
    return DataFigure(
        "figure-2",
        "Fig. 2: a string in contact over place and time, and its spectrum",
        "The paper states none of the parameters of its figure; only the appearance can be "
        "compared. Left: displacement and the path of the contact. Right: the spectrum of the "
        "first harmonic.",
        figure,
        data,
    )


def spectra(motions: dict[str, Motion], frozen_lines: list[float]) -> DataFigure:
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
    return DataFigure(
        "spectra",
        "Spectra: no contact, a frozen and a moving one",
        "Beyond the paper. A frozen contact is a linear system and has overtones too, at the roots "
        "of its own equation (grey); only the moving contact fills the space between the lines.",
        figure,
        columns(**named),
    )


def told_apart(found: dict[tuple[float, int], Lyapunov], n: int) -> str:
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


def exponents(found: dict[tuple[float, int], Lyapunov], time: float) -> DataFigure:
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
    return DataFigure(
        "exponents",
        "Largest Lyapunov exponents",
        f'Where the paper says "chaotic for all initial conditions". {told_apart(found, middle)}',
        figure,
        columns(**named),
    )


def friction(found: dict[float, Estimate]) -> DataFigure:
    """The part of contacts that hold, against the coefficient of friction."""
    k = np.linspace(0.0, 1.5, 151)
    cap, paper = 1 - 1 / np.sqrt(1 + k * k), 0.5 * k / np.sqrt(1 + k * k)
    at, part = list(found), [one.measured for one in found.values()]
    error = [one.error for one in found.values()]
    with style():
        figure = new_figure(6.4, 3.8, "Contacts that hold without slip, of random forces")
        axes = figure.add_subplot(111)
        axes.plot(k, 100 * paper, "--", color=ORANGE, label="the paper: $k/2\\sqrt{k^2+1}$")
        axes.plot(k, 100 * cap, color=BLUE, label="cap of a hemisphere: $1-1/\\sqrt{1+k^2}$")
        axes.plot(at, 100 * np.array(part), "o", color=GREEN, label="random forces")
        axes.set(xlabel="coefficient of friction k", ylabel="contacts that hold (%)")
        axes.legend(loc="upper left")
    data = columns(
        k=("k", k, "1", "coefficient of friction"),
        cap=("k", cap, "1", "part of a hemisphere in the cone, (1)"),
        paper=("k", paper, "1", "the paper's formula"),
        k_measured=("k_measured", at, "1", "coefficients measured at"),
        measured=("k_measured", part, "1", "part of random forces in the cone"),
        error=("k_measured", error, "1", "statistical error"),
    )
    return DataFigure(
        "friction",
        "Contacts that hold, against the coefficient of friction",
        "The paper's estimate against forces with random directions: at k = 0.2 it is five times "
        "too large.",
        figure,
        data,
    )

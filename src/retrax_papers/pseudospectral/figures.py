"""Figs. 1 to 6 of the pseudospectral paper, the errors of its algorithm, and long runs."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from retrax.show.sphere import draw_sphere
from retrax.show.style import BLUE, CYCLE, GREY, ORANGE, new_figure, style
from retrax_papers.drawings import Column, DataFigure, by_name, columns, labels
from retrax_papers.pseudospectral.runs import GROWING, Commuting, Long, Short

_FAMILIES = ("Gauss", "Radau", "Lobatto")
_FLOOR = 1e-17
_PANELS = {
    "defects": ("distance from SO(3)", "1"),
    "energies": ("energy error (J)", "J"),
    "momenta": ("error of the vertical momentum (kg m$^2$/s)", "kg m2/s"),
}
_INK = "#333333"
_SNAPSHOT = 24  # the record of the sketch: t = 1.2 s


def figures_1_to_3(found: Commuting) -> DataFigure:
    """Three diagrams, with what was measured of each."""
    with style():
        figure = new_figure(11.0, 3.4, "Figs. 1 to 3 of the paper, on the sphere under SO(3)")
        panels = figure.subplots(1, 3)
        for axes in panels:
            axes.set(xlim=(-0.25, 2.25), ylim=(-0.45, 1.35))
            axes.axis("off")
        _square(panels[0], ["$G$", r"$\mathcal{M}$"], [r"$\Phi_y$"], ["$L_g$", r"$\Phi_g$"])
        panels[0].set_title(f"Fig. 1, (12): commutes to {found.action:.0e}", loc="center")
        nodes = [r"$\mathfrak{g}$", "$G$", r"$\mathcal{M}$"]
        _square(panels[1], nodes, [r"$\exp$", r"$\Phi_y$"], ["$B_g$", "$L_g$", r"$\Phi_g$"])
        panels[1].set_title(f"Fig. 2, (13): commutes to {found.translation:.0e}", loc="center")
        nodes = [r"$\mathfrak{g}$", r"$\mathcal{M}$"]
        ups = [r"$d\exp_u^{-1}\xi$", r"$\xi_{\mathcal{M}}$"]
        top = [r"$T\mathfrak{g}$", r"$T\mathcal{M}$"]
        _square(panels[2], nodes, [r"$\Phi_y\circ\exp$"], ups, top, r"$T(\Phi_y\circ\exp)$")
        panels[2].set_title(
            f"Fig. 3, (15): commutes to {found.right:.0e};\nwith $d\\exp^{{-1}}$ at $-u$ misses by "
            f"{found.left:.2f}",
            loc="center",
        )
    laws = ["(12)", "(13)", "(15), right-trivialised", "(15), left-trivialised"]
    defects = [found.action, found.translation, found.right, found.left]
    data = columns(
        law=("law", labels(laws), "1", "equation of the paper"),
        defect=("law", defects, "1", f"largest defect over {found.samples} random triples"),
    )
    return DataFigure(
        "figures-1-to-3",
        "Figs. 1 to 3: the commuting diagrams, measured",
        "The action on a point, the logarithm, and their generators, on the sphere under SO(3) for "
        "random rotations: each diagram commutes to round-off, the third with the tangent map of "
        "the right side only. Algorithm 1 multiplies on the other side.",
        figure,
        data,
    )


def _square(
    axes: Axes,
    nodes: list[str],
    across: list[str],
    up: list[str],
    top: list[str] | None = None,
    above: str | None = None,
) -> None:
    """Two rows of nodes with arrows across and up."""
    gap = 2.0 / (len(nodes) - 1)
    arrow = {"arrowstyle": "->", "color": _INK, "lw": 1.1, "shrinkA": 14, "shrinkB": 14}
    for k, name in enumerate(nodes):
        for y, text in ((0.0, name), (1.0, top[k] if top else name)):
            axes.text(k * gap, y, text, ha="center", va="center", fontsize=13)
        axes.annotate("", (k * gap, 1.0), (k * gap, 0.0), arrowprops=arrow)
        axes.text(k * gap + 0.05, 0.5, up[k], fontsize=11, color=BLUE, va="center")
    for k, name in enumerate(across):
        for y, text in ((0.0, name), (1.0, above or name)):
            axes.annotate("", ((k + 1) * gap, y), (k * gap, y), arrowprops=arrow)
            place = (k + 0.5) * gap, y + (0.14 if y else -0.14)
            axes.text(*place, text, fontsize=11, color=ORANGE, ha="center", va="center")


def figure_4(run: Short) -> DataFigure:
    """The pendulum at one moment, and the path of its centre of mass."""
    path = run.path
    with style():
        figure = new_figure(9.0, 4.4, "The 3D pendulum (Fig. 4), and where its centre of mass goes")
        axes: Any = figure.add_subplot(121, projection="3d")
        draw_sphere(axes, e3_up=False)
        end = path[_SNAPSHOT]
        axes.plot(*np.stack([np.zeros(3), end]).T, color=_INK, lw=2.2)
        axes.plot(*path[: _SNAPSHOT + 1].T, color=BLUE, lw=1.2)
        axes.plot(*end[:, None], "o", color=ORANGE, ms=9)
        axes.plot([0], [0], [0], "s", color=GREY, ms=6)
        axes.text(*(end * 1.2), "$R\\rho$", fontsize=11)
        axes.text(0.05, 0.05, -0.12, "pivot", fontsize=9)
        axes.set_title(f"pivot, arm and centre of mass at t = {run.t[_SNAPSHOT]:.1f} s")
        above = figure.add_subplot(122)
        above.plot(path[:, 0], path[:, 1], color=BLUE)
        above.plot(*path[0, :2], "o", color=ORANGE, ms=5, label="start, hanging straight down")
        above.set(xlabel="x (m)", ylabel="y (m)", aspect="equal")
        above.set_title("seen from above, 30 s")
        above.legend(loc="upper right")
    data = columns(
        time=("time", run.t, "s", "time"),
        axis=("axis", labels(["x", "y", "z, down"]), "1", "axis of space"),
        centre=(("time", "axis"), path, "m", "centre of mass"),
    )
    return DataFigure(
        "figure-4",
        "Fig. 4: the pendulum, drawn from its data",
        "A body on a pivot with the arm rho = (0, 0, 1) m; the third axis of space points down. "
        "Right: its centre of mass in the motion of Fig. 6.",
        figure,
        data,
    )


def figure_6(short: dict[str, Short]) -> DataFigure:
    """Angular velocity, distance from SO(3), energy and vertical momentum."""
    with style():
        figure = new_figure(10.0, 6.4, "The 3D pendulum for 30 s, h = 0.05 s")
        axes = [figure.add_subplot(2, 2, k + 1) for k in range(4)]
        run, plain = short["geometric Gauss"], short["plain Gauss"]
        for i, colour in enumerate(CYCLE[:3]):
            axes[0].plot(run.t, run.velocity[:, i], color=colour, label=f"$\\omega_{i + 1}$")
        axes[0].set_title("angular velocity (rad/s)")
        for panel, (what, (title, _)) in zip(axes[1:], _PANELS.items(), strict=True):
            for family, colour in zip(_FAMILIES, CYCLE, strict=False):
                for kind, line in (("geometric", "-"), ("plain", "--")):
                    one = short[f"{kind} {family}"]
                    size = np.maximum(np.abs(getattr(one, what)), _FLOOR)
                    panel.semilogy(one.t, size, line, color=colour, label=f"{kind} {family}")
            growing = np.maximum(np.abs(getattr(short[GROWING], what)), _FLOOR)
            panel.semilogy(run.t, growing, color="black", lw=1.2, label=GROWING)
            panel.set_title(title)
        axes[0].set_ylim(bottom=-1.0)
        axes[0].legend(loc="lower center", ncols=3)
        axes[1].legend(loc="center", bbox_to_anchor=(0.55, 0.475), ncols=2, fontsize=6)
        for panel in axes[2:]:
            panel.set_xlabel("t (s)")
    names = list(short)
    named: dict[str, Column] = {
        "time": ("time", run.t, "s", "time"),
        "integrator": (
            "integrator",
            labels(names),
            "1",
            "integrator, two or three nodes",
        ),
        "velocity": (
            ("integrator", "time", "axis"),
            np.stack([short[name].velocity for name in names]),
            "rad/s",
            "body angular velocity",
        ),
    }
    words = ("distance from SO(3)", "energy error", "error of the vertical momentum")
    for (what, (_, units)), said in zip(_PANELS.items(), words, strict=True):
        values = np.stack([getattr(short[name], what) for name in names])
        named[what] = (("integrator", "time"), values, units, said)
    return DataFigure(
        "figure-6",
        "Fig. 6: angular velocity, SO(3), energy and momentum for 30 s",
        "The paper compares geometric and plain collocation. Iterated to convergence, plain Gauss "
        f"(dashed blue) misses SO(3) by {plain.group:.0e}, energy by {plain.energy:.0e} J and "
        f"momentum by {plain.momentum:.0e} kg m²/s; geometric Gauss (blue) by {run.group:.0e}, "
        f"{run.energy:.0e} and {run.momentum:.0e}. Black: plain Gauss whose iteration stops at "
        f"3.2e-11 leaves SO(3) by {short[GROWING].group:.0e} after 30 s, and grows, as the curve "
        "of about 1e-13 that the paper describes.",
        figure,
        columns(**named),
    )


def energy(regular: dict[str, Long], chaotic: dict[str, Long]) -> DataFigure:
    """The energy error along long runs."""
    titles = {
        "the paper's orbit, regular, h = 0.1 s": ("regular", regular),
        "chaotic, $\\omega_0 = (2, -3, 1)$, h = 0.05 s": ("chaotic", chaotic),
    }
    named: dict[str, Column] = {}
    with style():
        figure = new_figure(10.0, 3.8, "Energy error over long times, two Gauss nodes")
        for k, (title, (kind, runs)) in enumerate(titles.items()):
            axes = figure.add_subplot(1, 2, k + 1)
            for (name, run), colour in zip(runs.items(), CYCLE, strict=False):
                size = np.maximum(np.abs(run.errors), _FLOOR)
                axes.semilogy(run.t, size, ".", ms=1.2, color=colour, label=name, rasterized=True)
            axes.set_title(title)
            axes.set_xlabel("t (s)")
            x, y = (f"time_{kind}", "s", "time"), (f"energy_{kind}", "J", f"energy error, {kind}")
            named |= by_name(
                "integrator", {n: (run.t, run.errors) for n, run in runs.items()}, x, y
            )
        figure.axes[0].set_ylabel("energy error (J)")
        figure.axes[0].legend(loc="center", bbox_to_anchor=(0.5, 0.4), ncols=2, markerscale=6)
    return DataFigure(
        "energy",
        "Energy over long times, regular and chaotic",
        "Beyond the paper. Largest errors on the regular and on the chaotic orbit: "
        + "; ".join(
            f"{name} {regular[name].largest:.0e} and {chaotic[name].largest:.0e} J"
            for name in regular
        )
        + f". Slope of geometric Gauss on the left: {regular['geometric Gauss'].slope:.1e} J/s.",
        figure,
        columns(**named),
    )


def convergence(
    printed: dict[str, list[float]],
    errors: dict[int, list[tuple[float, float]]],
    nodes: list[tuple[int, float]],
) -> DataFigure:
    """Errors against the step, and against the number of nodes."""
    curves = {f"geometric Gauss, s = {s}": tuple(np.array(rows).T) for s, rows in errors.items()}
    sizes = next(iter(curves.values()))[0]
    curves |= {f"Algorithm 1, {name}": (sizes, np.array(e)) for name, e in printed.items()}
    with style():
        figure = new_figure(9.6, 3.8, "Error of (R, $\\omega$) at t = 10 s")
        left, right = (figure.add_subplot(1, 2, k + 1) for k in range(2))
        looks = [("o-", colour) for colour in CYCLE[: len(errors)]]
        looks += [(line, "black") for line in (":", "--", "-.")]
        for (name, (h, error)), (line, colour) in zip(curves.items(), looks, strict=True):
            left.loglog(h, error, line, color=colour, ms=3, label=name)
        left.set_xlabel("h (s)")
        left.set_xticks(sizes, [f"{h:g}" for h in sizes])
        left.minorticks_off()
        left.set_ylim(top=1e6)
        left.legend(fontsize=6, loc="upper left", ncols=2)
        s, error = np.array(nodes).T
        right.semilogy(s, error, "o-", color=CYCLE[0], ms=3)
        right.set_title("h = 1 s")
        right.set_xticks(s)
        right.set_xlabel("nodes s")
    slopes = {name: np.log2(e[-2] / e[-1]) for name, e in printed.items()}
    words = ("error", "1", "largest error of (R, omega) at t = 10 s")
    named = by_name("integrator", curves, ("h", "s", "step size"), words)
    named["nodes"] = ("nodes", [s for s, _ in nodes], "1", "Gauss nodes")
    named["error_h_1"] = ("nodes", [e for _, e in nodes], "1", "the same with h = 1 s")
    return DataFigure(
        "convergence",
        "Fig. 5, the algorithm: as printed, corrected, and solved together",
        "As printed (dotted) it does not converge; with the velocity corrected its order is "
        f"{slopes['velocity corrected']:.1f}, with the sign of the bracket "
        f"{slopes['both corrected']:.1f} (at the shortest steps). With all stages solved together "
        f"the orders are 2s. Right, h = 1 s: error {error[0]:.0e} with {s[0]:.0f} nodes, "
        f"{error[-1]:.0e} with {s[-1]:.0f}.",
        figure,
        columns(**named),
    )

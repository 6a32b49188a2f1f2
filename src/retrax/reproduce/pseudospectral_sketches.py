"""Figs. 1 to 4 of the pseudospectral paper: its diagrams with their defects, its pendulum."""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from retrax.reproduce.drawings import Drawing, columns
from retrax.show.sphere import draw_sphere
from retrax.show.style import BLUE, GREY, ORANGE, new_figure, style

if TYPE_CHECKING:
    from retrax.reproduce.commuting import Commuting
    from retrax.reproduce.pseudospectral_runs import Short

_INK = "#333333"
_SNAPSHOT = 24  # the record of the sketch: t = 1.2 s


def diagrams_drawing(found: "Commuting") -> Drawing:
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
        law=("law", np.array(laws, dtype=object), "1", "equation of the paper"),
        defect=("law", defects, "1", f"largest defect over {found.samples} random triples"),
    )
    return Drawing(
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


def pendulum_drawing(run: "Short") -> Drawing:
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
        axis=("axis", np.array(["x", "y", "z, down"], dtype=object), "1", "axis of space"),
        centre=(("time", "axis"), path, "m", "centre of mass"),
    )
    return Drawing(
        "figure-4",
        "Fig. 4: the pendulum, drawn from its data",
        "A body on a pivot with the arm rho = (0, 0, 1) m; the third axis of space points down. "
        "Right: its centre of mass in the motion of Fig. 6.",
        figure,
        data,
    )

"""The capstan, the twisted ring and the overhand knot, drawn with the numbers behind them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from retrax.show.style import BLUE, CYCLE, GREY, ORANGE, new_figure, style
from retrax.trajectory.trajectory import Trajectory
from retrax_papers.drawings import DataFigure, columns
from retrax_papers.touching import ring
from retrax_papers.touching.capstan import Slide
from retrax_papers.touching.knot import SIGMA, THICK, Knot
from retrax_papers.touching.ring import Writhe


def capstan(found: Sequence[Slide]) -> DataFigure:
    """Tensions along the rod, and their ratio against the law."""
    with style():
        sheet = new_figure(9.0, 3.8, "A rod that slides around a post")
        left, right = sheet.subplots(1, 2)
        for colour, one in zip((*CYCLE, GREY) * 2, found, strict=False):
            named = f"f = {one.friction:g}, kinks of {np.degrees(one.kink):.1f} deg"
            left.semilogy(
                np.linspace(0, 1, len(one.tension)), one.tension, color=colour, label=named
            )
            right.plot(one.friction * one.wrap, np.log(one.ratio), "o", color=colour)
        far = max(one.friction * one.wrap for one in found) * 1.1
        right.plot([0, far], [0, far], color=GREY, lw=1, label=r"$\ln(T_2/T_1) = f\Theta$")
        left.set(xlabel="arc length / length", ylabel="tension / load")
        right.set(xlabel=r"$f\Theta$", ylabel=r"$\ln(T_2/T_1)$")
        left.legend(fontsize=7)
        right.legend()
    data = columns(
        friction=("run", [one.friction for one in found], "1", "coefficient of friction"),
        kink=("run", [one.kink for one in found], "rad", "angle between segments"),
        wrap=("run", [one.wrap for one in found], "rad", "angle around the post"),
        ratio=("run", [one.ratio for one in found], "1", "tension of the pulled end over the load"),
        law=("run", [one.law for one in found], "1", "exp(f angle)"),
    )
    return DataFigure(
        "capstan",
        "The capstan: tension along a rod that slides around a post",
        "The rod is pulled on the left and loaded on the right; where it lies on the post friction "
        "lets the tension grow exponentially. Right: the logarithm of the ratio of both ends, "
        "which meets the law of the capstan (line) as the segments become short.",
        sheet,
        data,
    )


def thresholds(found: Mapping[int, float]) -> DataFigure:
    """The critical twist against the number of segments."""
    sizes = np.array(list(found))
    off = np.abs(np.array(list(found.values())) / ring.CRITICAL - 1)
    with style():
        sheet = new_figure(5.6, 3.8, "The twist at which a ring buckles")
        axes = sheet.add_subplot()
        axes.loglog(sizes, off, "o-", color=BLUE, label="found, less the closed form")
        axes.loglog(sizes, off[0] * (sizes / sizes[0]) ** -2.0, ":", color=GREY, label="order 2")
        axes.set(xlabel="segments", ylabel=r"$|\Phi/\Phi_c - 1|$")
        axes.legend()
    data = columns(
        segments=("segments", sizes, "1", "segments of the ring"),
        twist=("segments", list(found.values()), "rad", "critical twist"),
    )
    return DataFigure(
        "threshold",
        "The twisted ring: where the circle loses its stability",
        "The twist at which the softest mode of the planar ring has no stiffness left, against "
        "Michell's 2 pi sqrt(3) EI/GJ.",
        sheet,
        data,
    )


def writhe(found: Writhe, run: Trajectory) -> DataFigure:
    """How the ring leaves its plane and touches itself."""
    places = np.asarray(run.g[1])
    with style():
        sheet = new_figure(9.4, 4.0, "A ring that is twisted beyond its threshold")
        axes = sheet.add_subplot(1, 2, 1)
        axes.plot(found.t, found.height, color=BLUE, label="height of the ring (m)")
        axes.plot(found.t, found.gap, color=ORANGE, label="least gap (m)")
        axes.plot(found.t, found.twist, color=GREY, label="twist / critical twist")
        axes.set_xlabel("t (s)")
        axes.legend(fontsize=7)
        _drawn(sheet, places[[0, len(places) // 2, -1]], (1, 2, 2))
    data = columns(
        time=("time", found.t, "s", "time"),
        twist=("time", found.twist, "1", "twist over the critical twist"),
        height=("time", found.height, "m", "height of the ring"),
        gap=("time", found.gap, "m", "least gap between all segments"),
    )
    return DataFigure(
        "writhe",
        "The twisted ring beyond its threshold",
        "The clamp turns at a constant rate. Above the critical twist the circle leaves its plane. "
        "Right: at the start, in the middle and at the end.",
        sheet,
        data,
    )


def knot(found: Sequence[Sequence[Knot]], run: Trajectory) -> DataFigure:
    """The knot, and its traction against its opening."""
    places = np.asarray(run.g[1]) / THICK
    every = [one for knots in found for one in knots]
    frictions = sorted({one.friction for one in every})
    with style():
        sheet = new_figure(9.4, 4.0, "An overhand knot that is pulled")
        axes = sheet.add_subplot(1, 2, 1)
        radii = np.linspace(*_range([one.opening for one in every]), 100)
        for colour, f in zip(CYCLE, frictions, strict=False):
            for one in every:
                if one.friction == f:
                    axes.plot(one.opening, one.traction * one.opening**2, color=colour, lw=1)
                    axes.plot(one.radius, one.scaled, "o", color=colour)
            line = 0.5 + SIGMA * f * np.sqrt(radii)
            axes.plot(radii, line, ":", color=colour, label=f"loose knot, f = {f:g}")
        axes.set(xlabel="R / a", ylabel=r"$TR^2/EI$")
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=7)
        _drawn(sheet, places[[0, -1]], (1, 2, 2), faced=True)
    data = columns(
        friction=("knot", [one.friction for one in every], "1", "coefficient of friction"),
        opening=("knot", [one.radius for one in every], "1", "radius of the loop over the rod's"),
        traction=("knot", [one.scaled for one in every], "1", "T R^2/EI while it is pulled"),
        theory=("knot", [one.theory for one in every], "1", "1/2 + sigma f sqrt(R/a)"),
        push=("knot", [one.push for one in every], "1", "P a^2/EI"),
        gap=("knot", [one.gap for one in every], "m", "least gap of the run"),
    )
    return DataFigure(
        "knot",
        "The overhand knot: traction against opening",
        "Lines from right to left: knots that are pulled slowly; points: when all of the knot "
        "slides. Dotted: the leading order of the theory of loose knots, whose corrections are of "
        "the order sqrt(a/R). Right: the loose knot at the start (light) and the pulled one.",
        sheet,
        data,
    )


def _range(values: Sequence[np.ndarray]) -> tuple[float, float]:
    return min(map(np.min, values)), max(map(np.max, values))


def _drawn(
    sheet: Any, states: np.ndarray, where: tuple[int, int, int], faced: bool = False
) -> None:
    """Draw curves of space, the last one strongly; `faced` from where its loop is widest."""
    axes = sheet.add_subplot(*where, projection="3d")
    if faced:
        middle = states[-1][len(states[-1]) // 3 : 2 * len(states[-1]) // 3]
        *_, (x, y, z) = np.linalg.svd(middle - middle.mean(axis=0))[2]
        axes.view_init(np.degrees(np.arcsin(z)), np.degrees(np.arctan2(y, x)))
    for k, x in enumerate(states):
        last = k == len(states) - 1
        axes.plot(
            *x.T, color=BLUE if last else GREY, lw=3.0 if last else 1.0, alpha=1.0 if last else 0.6
        )
    low, high = states.min(axis=(0, 1)), states.max(axis=(0, 1))
    axes.set_box_aspect(np.maximum(high - low, 0.15 * (high - low).max()))
    axes.set_axis_off()

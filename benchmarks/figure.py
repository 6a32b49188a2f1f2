"""The work-precision figure: error against processor time on the 3D pendulum."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

from retrax.show.style import (
    AMBER,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    new_figure,
    style,
)

COLOURS = {
    "retrax": BLUE,
    "C": GREY,
    "SciPy": GREEN,
    "diffrax": ORANGE,
    "heyoka": PURPLE,
    "Exudyn": SKY,
    "MuJoCo": AMBER,
}
# On the left, the kinds of methods whose loops are compared.
FAMILIES = {
    "C": GREY,
    "Composition": BLUE,
    "Collocation": GREEN,
    "GalerkinVariational": ORANGE,
    "heyoka": PURPLE,
}
LINES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "v")
# On the right, those that show the best of each library.
WHOLE_CALLS = {
    ("retrax", "Composition(LieVerlet(), order=4)"),
    ("retrax", "Composition(LieVerlet(), order=8)"),
    ("retrax", "RKMK('dopri5')"),
    ("retrax", "Collocation(gauss(8))"),
    ("retrax", "GalerkinVariational(gauss(8))"),
    ("SciPy", "DOP853"),
    ("SciPy", "LSODA"),
    ("diffrax", "Tsit5"),
    ("diffrax", "Tsit5, fixed steps"),
    ("diffrax", "Dopri8"),
    ("heyoka", "Taylor"),
    ("Exudyn", "Lie-group RK44"),
    ("MuJoCo", "RK4"),
}


def work_precision(curves: list[dict[str, Any]], path: Path) -> None:
    """Write the figure: on the left what the loops cost, on the right what whole calls cost."""
    # The same data give the same file: text stays text, and names in it are not drawn by lot.
    with style(), mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "retrax"}):
        figure = new_figure(9.0, 6.0, "3D pendulum to T = 30: error against processor time")
        left, right = figure.subplots(1, 2, sharey=True, sharex=True)
        _panel(left, "the loop alone", [c for c in curves if _family(c) in FAMILIES], _family)
        shown = [c for c in curves if (c["library"], c["method"]) in WHOLE_CALLS]
        _panel(right, "whole calls", shown)
        left.set_ylabel("error of the attitude at the end (rad)")
        figure.savefig(path, metadata={"Date": None})


def _family(curve: dict[str, Any]) -> str:
    """The kind of method on the left; heyoka's calls are hardly more than its loop."""
    if curve["library"] != "retrax":
        return curve["library"]
    if not curve["method"].endswith("loop alone"):
        return ""
    if "LieVerlet" in curve["method"]:
        return "Composition"
    return curve["method"].partition("(")[0]


def _library(curve: dict[str, Any]) -> str:
    return curve["library"]


def _panel(
    axes: Any,
    title: str,
    curves: list[dict[str, Any]],
    group: Callable[[dict[str, Any]], str] = _library,
) -> None:
    seen: dict[str, int] = {}
    for curve in curves:
        library, points, kind = curve["library"], curve["points"], group(curve)
        k = seen[kind] = seen.get(kind, -1) + 1
        axes.loglog(
            [p["seconds"] * 1e3 for p in points],
            [p["error"] for p in points],
            color=(FAMILIES | COLOURS)[kind],
            linestyle=LINES[k % len(LINES)],
            marker=MARKERS[k % len(MARKERS)],
            markersize=3,
            label=f"{library} {curve['method'].removesuffix(', loop alone')}",
        )
    axes.set_xlabel("processor time (ms)")
    axes.set_title(title)
    axes.legend(fontsize=6, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.12))

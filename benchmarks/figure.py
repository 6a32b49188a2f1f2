"""The work-precision figure: error against processor time on the 3D pendulum."""

from pathlib import Path
from typing import Any

from retrax.show.style import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, new_figure, style

COLOURS = {"retrax": BLUE, "C": GREY, "SciPy": GREEN, "diffrax": ORANGE, "heyoka": PURPLE}
OTHERS = {"Exudyn": SKY, "MuJoCo": "#E69F00"}
LINES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "v", "D", "x")


def work_precision(curves: list[dict[str, Any]], path: Path) -> None:
    """Write the figure; one panel with what we wrote, one with retrax's best and the others."""
    with style():
        figure = new_figure(9.0, 4.2, "3D pendulum to T = 30: error against processor time")
        left, right = figure.subplots(1, 2, sharey=True, sharex=True)
        _panel(left, [c for c in curves if c["library"] in ("retrax", "C")])
        _panel(right, [c for c in curves if c["library"] != "C" and not _minor(c)])
        left.set_ylabel("error of the attitude at the end (rad)")
        figure.savefig(path, metadata={"Date": None})


def _minor(curve: dict[str, Any]) -> bool:
    """Ours that are not the best at some error; the left panel shows them."""
    return curve["library"] == "retrax" and "order=8" not in curve["method"]


def _panel(axes: Any, curves: list[dict[str, Any]]) -> None:
    seen: dict[str, int] = {}
    for curve in curves:
        library, points = curve["library"], curve["points"]
        k = seen[library] = seen.get(library, -1) + 1
        axes.loglog(
            [p["seconds"] * 1e3 for p in points],
            [p["error"] for p in points],
            color=(COLOURS | OTHERS)[library],
            linestyle=LINES[k % len(LINES)],
            marker=MARKERS[k % len(MARKERS)],
            markersize=3,
            label=f"{library} {curve['method']}",
        )
    axes.set_xlabel("processor time (ms)")
    axes.legend(fontsize=6)

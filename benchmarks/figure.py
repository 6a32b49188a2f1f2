"""The work-precision figure: error against processor time on the 3D pendulum."""

from pathlib import Path
from typing import Any

from retrax.show.style import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, new_figure, style

COLOURS = {"retrax": BLUE, "C": GREY, "SciPy": GREEN, "diffrax": ORANGE, "heyoka": PURPLE}
OTHERS = {"Exudyn": SKY, "MuJoCo": "#E69F00"}
LINES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "v", "D", "x")


def work_precision(curves: list[dict[str, Any]], path: Path) -> None:
    """Write the figure: on the left what the loops cost, on the right what whole calls cost."""
    with style():
        figure = new_figure(9.0, 6.0, "3D pendulum to T = 30: error against processor time")
        left, right = figure.subplots(1, 2, sharey=True, sharex=True)
        _panel(left, "the loop alone", [c for c in curves if c["library"] == "C" or _inside(c)])
        _panel(right, "whole calls", [c for c in curves if c["library"] != "C" and _shown(c)])
        left.set_ylabel("error of the attitude at the end (rad)")
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _inside(curve: dict[str, Any]) -> bool:
    return curve["library"] == "retrax" and "loop alone" in curve["method"]


def _shown(curve: dict[str, Any]) -> bool:
    """Of ours only order 8, so that the others can be seen."""
    return curve["library"] != "retrax" or curve["method"].endswith("order=8)")


def _panel(axes: Any, title: str, curves: list[dict[str, Any]]) -> None:
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
            label=f"{library} {curve['method'].removesuffix(', loop alone')}",
        )
    axes.set_xlabel("processor time (ms)")
    axes.set_title(title)
    axes.legend(fontsize=6, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.12))

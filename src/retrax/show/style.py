"""One look for every figure and page: colours that all eyes can tell apart, quiet axes."""

from contextlib import AbstractContextManager
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

# The palette of Okabe and Ito, without its yellow, which vanishes on white.
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
SKY, AMBER, GREY = "#56B4E9", "#E69F00", "#7F7F7F"
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, SKY, AMBER)
CYCLE_ON_DARK = (SKY, AMBER, "#2FC79A", PURPLE, "#F07030", "#F0E442")

MARKERS = ("o", "s", "^", "D", "v", "P")
# The first four colours stand 3 to 1 against white; paler ones are dashed as well.
_STRONG = 4

# A curve is drawn with this many points at most; the extremes of what is left out are kept.
POINTS = 4000

_SETTINGS: dict[Any, Any] = {
    "axes.edgecolor": "#B0B0B0",
    "axes.formatter.limits": (-3, 4),
    "axes.formatter.use_mathtext": True,
    "axes.grid": True,
    "axes.labelcolor": "#333333",
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "figure.dpi": 110,
    "figure.titlesize": 11,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 0.9,
    "savefig.dpi": 160,
    "xtick.color": "#555555",
    "xtick.labelsize": 8,
    "ytick.color": "#555555",
    "ytick.labelsize": 8,
}


def style() -> AbstractContextManager[None]:
    """A context in which figures take this look; nothing outside it changes."""
    return rc_context(rc=_SETTINGS)


def look(k: int) -> dict[str, Any]:
    """Colour and line of the curve with number `k`, to be told apart also without colours."""
    turn = k % len(CYCLE)
    return {"color": CYCLE[turn], "linestyle": "-" if turn < _STRONG else "--"}


def literal(text: str) -> str:
    """Text from a file as it stands: what lies between dollar signs is no formula."""
    return text.replace("$", r"\$")


def new_figure(width: float, height: float, title: str) -> Figure:
    """An empty figure in inches; it belongs to no window and needs no display."""
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left")
    return figure

"""One look for every figure and page: colours that all eyes can tell apart, quiet axes, files.

Curves lose points but keep their extremes: a peak that was computed stays in the picture.
"""

from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from retrax.cases.makers import did_you_mean
from retrax.errors import BadInput
from retrax.files import as_path, require_place, write_whole

if TYPE_CHECKING:
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

SUFFIXES = (".svg", ".pdf", ".png")
# Text stays text that can be searched and edited; the same figure gives the same file.
_FILE_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "retrax",
    "pdf.fonttype": 42,
}
_UNDATED = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}


def style() -> AbstractContextManager[None]:
    """Return a context that gives figures this look and changes nothing outside it."""
    from matplotlib import rc_context

    return rc_context(rc=_SETTINGS)


def look(k: int) -> dict[str, Any]:
    """Return colour and line of the curve with number `k`, distinct even without colours."""
    turn = k % len(CYCLE)
    return {"color": CYCLE[turn], "linestyle": "-" if turn < _STRONG else "--"}


def literal(text: str) -> str:
    """Escape text from a file, so that dollar signs do not begin a formula."""
    return text.replace("$", r"\$")


def new_figure(width: float, height: float, title: str) -> "Figure":
    """Return an empty figure in inches; it belongs to no window and needs no display."""
    from retrax.show.notebook import NotebookFigure

    figure = NotebookFigure(figsize=(width, height), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left")
    return figure


def extremes(values: Float[np.ndarray, " time"], points: int) -> Int[np.ndarray, " kept"]:
    """Choose at most `points` (4 or more) indices of a series, in order.

    A short series is kept whole. A long one is cut into buckets of equal length; the least and the
    largest value of each are kept, and both ends.
    """
    count = len(values)
    if count <= points:
        return np.arange(count)
    edges = np.linspace(0, count, max(1, (points - 2) // 2) + 1).astype(int)
    kept = {0, count - 1}
    for first, end in pairwise(edges):
        bucket = values[first:end]
        kept |= {first + int(np.argmin(bucket)), first + int(np.argmax(bucket))}
    return np.array(sorted(kept))


def save(figure: "Figure", path: str | Path) -> Path:
    """Write a figure whole or not at all: `.svg` and `.pdf` as vectors, `.png` as pixels.

    **Raises:** `BadInput` for another suffix, or a folder that does not exist.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    path = as_path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise BadInput(
            f"path = {str(path)!r} must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}."
            f"{did_you_mean(suffix, SUFFIXES) if suffix else ''}"
        )
    if not isinstance(figure, Figure):
        raise BadInput(f"figure = {figure!r} is not a figure of retrax.show.")
    require_place(path)
    with write_whole(path) as temporary, rc_context(rc=_FILE_SETTINGS):
        figure.savefig(temporary, format=suffix[1:], dpi=160, metadata=_UNDATED[suffix])
    return path

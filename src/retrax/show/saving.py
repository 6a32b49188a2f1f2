"""Figures as files: vectors where the suffix says so."""

from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from retrax.cases.choices import did_you_mean
from retrax.errors import BadInput
from retrax.files import require_place, written_whole

SUFFIXES = (".svg", ".pdf", ".png")
# Text stays text that can be searched and edited; the same figure gives the same file.
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "retrax",
    "pdf.fonttype": 42,
}
_UNDATED = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}


def save(figure: Figure | Any, path: str | Path) -> Path:
    """Write a figure whole or not at all: `.svg` and `.pdf` as vectors, `.png` as pixels.

    **Raises:** `BadInput` for another suffix, or a folder that does not exist.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise BadInput(
            f"path = {str(path)!r} must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}."
            f"{did_you_mean(suffix, SUFFIXES) if suffix else ''}"
        )
    if not isinstance(figure, Figure):
        raise BadInput(f"figure = {figure!r} is not a figure of retrax.show.")
    require_place(path)
    with written_whole(path) as temporary, rc_context(rc=_SETTINGS):
        figure.savefig(temporary, format=suffix[1:], dpi=160, metadata=_UNDATED[suffix])
    return path

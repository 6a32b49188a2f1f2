"""One self-contained page of a run: the motion in 3-D with its invariants beside it."""

import html
import json
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from retrax.files import require_place, written_whole
from retrax.show.curves import curves
from retrax.show.drawn import drawable
from retrax.show.frames import scene
from retrax.show.pack import plain
from retrax.show.pictures.choose import picture
from retrax.show.style import CYCLE, CYCLE_ON_DARK
from retrax.show.tables import again, failure, kept_table, made_table

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory

_LIBRARIES = ("vendor/three.min.js", "vendor/uplot.min.js")
_STYLES = ("vendor/uplot.min.css", "page.css")
_SCRIPTS = (
    "data.js",
    "motion.js",
    "stage.js",
    "shapes.js",
    "tube.js",
    "things.js",
    "around.js",
    "plots.js",
    "player.js",
)


def write_page(run: "Trajectory", path: str | Path) -> Path:
    """Write the page to `path`; it opens without a network and without a server."""
    path = Path(path)
    require_place(path)
    text = page(run)
    with written_whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


@drawable()
def page(run: "Trajectory") -> str:
    """The page as text."""
    made = run.provenance
    data = json.dumps(page_data(run), separators=(",", ":"), allow_nan=False, default=plain)
    return Template(_asset("page.html")).substitute(
        title=html.escape(made["system"]),
        subtitle=html.escape(
            f"{made['integrator']}, {run.completed:,} steps of h = {run.h:g} s, "
            f"from t = {run.t[0]:g} s to {run.t[-1]:g} s"
        ),
        failure=failure(run),
        style="\n".join(_asset(name) for name in _STYLES),
        summary=kept_table(run),
        made=made_table(run),
        again=again(run),
        data=data.replace("<", "\\u003c"),  # or a name with "</script>" in it would end the script
        libraries="\n".join(f"<script>{_asset(name)}</script>" for name in _LIBRARIES),
        scripts="\n".join(_asset(name) for name in _SCRIPTS),
    )


def page_data(run: "Trajectory") -> dict[str, Any]:
    """Everything that moves or is plotted, as small as it can be without losing an extreme."""
    return {
        "scene": scene(run, picture(run)),
        "panels": curves(run),
        "colours": {"light": CYCLE, "dark": CYCLE_ON_DARK},
    }


def _asset(name: str) -> str:
    return files("retrax.show").joinpath("assets", name).read_text(encoding="utf-8")

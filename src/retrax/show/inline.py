"""A small picture of a run for notebooks."""

import base64
import io
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rc_context

from retrax.show.downsample import extremes
from retrax.show.style import look, new_figure, style
from retrax.trajectory.observe import deviations

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory

_POINTS, _CURVES = 400, 4


def inline_image(run: "Trajectory") -> str:
    """An SVG image as a `data:` address: body velocity, and the errors of the invariants.

    In an `img` it is a picture and nothing else: it runs no scripts, and its names cannot clash
    with those of the page.
    """
    errors = {name: deviations(x) for name, x in run.invariants().items()}
    parts: list[tuple[str, Any]] = [("velocity", np.asarray(run.velocity).T[:_CURVES])]
    if errors:
        parts.append(("errors of the invariants", list(errors.values())[:_CURVES]))
    with style(), rc_context({"svg.fonttype": "path", "axes.titlesize": 8}):
        figure = new_figure(6.4, 1.6, "")
        for column, (title, curves) in enumerate(parts):
            axes = figure.add_subplot(1, len(parts), column + 1)
            for k, values in enumerate(curves):
                kept = extremes(np.asarray(values, dtype=float), _POINTS)
                axes.plot(run.t[kept], values[kept], **look(k))
            axes.set_title(title)
            axes.set_xlabel("time (s)")
        stream = io.BytesIO()
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(stream.getvalue()).decode()

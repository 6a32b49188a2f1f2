"""Strings in contact in space and time."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from retrax.errors import BadInput
from retrax.show.style import new_figure, style
from retrax.systems.strings.strings_in_contact import StringsInContact

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory

# A picture shows this many times at most; more would be finer than its pixels.
_MOST_TIMES = 1200
_PATH = "#202020"


def space_time(run: "Trajectory") -> Figure:
    """Both strings as colours over place and time, with the paths of their contacts."""
    if not isinstance(run.system, StringsInContact):
        raise BadInput(
            f"the {run.provenance['system']} has no picture in space and time: strings in contact "
            "have one."
        )
    strings = run.system
    title = f"Strings in contact, F = {float(strings.F):g}, G = {np.asarray(strings.G).tolist()}"
    with style():
        figure = new_figure(9.6, 4.6, title)
        for k, name in enumerate(("u", "v")):
            axes = figure.add_subplot(1, 2, k + 1)
            draw_space_time(axes, run, k)
            axes.set_title(f"${name}$ and the path of $s_{k + 1}$")
    return figure


def draw_space_time(axes: Axes, run: "Trajectory", string: int = 0) -> None:
    """One of the strings, with the path of its contact."""
    strings = run.system
    every = -(-len(run.t) // _MOST_TIMES)
    values, s = np.asarray(run.g[string])[::every], np.asarray(run.g[2])[:, string]
    size = float(np.max(np.abs(values))) or 1.0
    axes.grid(False)
    mesh = axes.pcolormesh(
        np.asarray(strings.nodes), run.t[::every], values,
        cmap="RdBu_r", vmin=-size, vmax=size, shading="nearest", rasterized=True,
    )  # fmt: skip
    path = np.mod(s, float(strings.length))
    path[1:][np.abs(np.diff(path)) > float(strings.length) / 2] = np.nan  # round the ring
    axes.plot(path, run.t, color=_PATH)
    axes.set_xlabel("place (m)")
    axes.set_ylabel("time (s)")
    axes.figure.colorbar(mesh, ax=axes, label="displacement (m)")

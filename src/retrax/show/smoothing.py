"""A smoothed motion: velocities, the force that the system lacks, and residuals."""

import numpy as np
from matplotlib.figure import Figure

from retrax.estimation.smoothed import Smoothed
from retrax.show.style import POINTS, extremes, literal, look, new_figure, style

_SHOWN = 6


def smoothing(found: Smoothed) -> Figure:
    """Draw a smoothed motion; the band about each force is twice its standard deviation."""
    system = found.system
    velocity = found.along(lambda state: system.velocity_at(state))
    with style():
        figure = new_figure(8.0, 2.0 * (2 + len(found.residuals)) + 0.4, f"{system.name}, smoothed")
        rows = 2 + len(found.residuals)
        panels = [figure.add_subplot(rows, 1, k + 1) for k in range(rows)]
        for k, column in enumerate(velocity.T[:_SHOWN]):
            kept = extremes(column, POINTS)
            panels[0].plot(found.t[kept], column[kept], label=f"$\\xi_{k + 1}$", **look(k))
        panels[0].set_title("body velocity")
        ends, wide = found.t[1:], 2 * found.control_noise / np.diff(found.t)[0]
        for k, column in enumerate(found.force.T[:_SHOWN]):
            panels[1].plot(ends, column, **look(k))
            panels[1].axhspan(-wide[k], wide[k], color=look(k)["color"], alpha=0.05)
        panels[1].set_title("force that the system lacks")
        for axes, (name, values) in zip(panels[2:], found.residuals.items(), strict=True):
            for k, column in enumerate(values.T[:_SHOWN]):
                axes.plot(found.times[name], column, linestyle="", marker=".", markersize=2,
                          color=look(k)["color"])  # fmt: skip
            axes.set_title(f"residuals of {literal(name)}")
        panels[0].legend(ncols=_SHOWN)
        panels[-1].set_xlabel("time (s)")
    return figure

"""Spectra: the lines that a quantity is made of."""

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from retrax.analysis.spectrum import Spectrum
from retrax.analysis.spectrum import spectrum as analyse
from retrax.errors import BadInput
from retrax.show.downsample import extremes
from retrax.show.quantities import quantity
from retrax.show.style import ORANGE, POINTS, literal, look, new_figure, style

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory

_NAMED_LINES = 8


def spectrum(
    run: "Trajectory | Spectrum",
    what: Any = "velocity 1",
    *,
    up_to: float | None = None,
    above: float = -60.0,
    label: str = "",
) -> Figure:
    """The power spectrum of a quantity in decibels below its highest line, with the lines marked.

    **Arguments:**

    - `run`: a run, or what `retrax.analysis.spectrum` found.
    - `what`: a quantity, as `quantity` takes it.
    - `up_to`: the highest angular frequency shown (rad/s); left out, all of them.
    - `above`: how high a line must be to be marked (dB); the highest eight carry their frequency.
    """
    if isinstance(run, Spectrum):
        found, title = run, label or "Spectrum"
    else:
        series = quantity(run, what, label)
        found = analyse(run.t, series.values)
        shown_as = label or (what if isinstance(what, str) else "")
        title = f"{literal(run.provenance['system'])}: {shown_as}"
    end = float(found.omega[-1]) if up_to is None else up_to
    shown = found.omega <= end
    if shown.sum() < 2:
        raise BadInput(f"up_to = {up_to!r} rad/s leaves nothing of a spectrum to {end:.3g} rad/s.")
    omega, power = found.omega[shown], found.decibels[shown]
    lines = [line for line in found.peaks(above) if line[0] <= end]
    with style():
        figure = new_figure(7.2, 3.8, title.rstrip(": "))
        axes = figure.add_subplot()
        kept = extremes(power, POINTS)
        axes.plot(omega[kept], power[kept], **look(0))
        for rank, (at, height) in enumerate(sorted(lines, key=lambda line: -line[1])):
            axes.plot(at, height, marker="v", markersize=4, color=ORANGE)
            if rank < _NAMED_LINES:
                axes.annotate(f"{at:.4g}", (at, height), fontsize=7, color="#333333",
                              xytext=(3, 3), textcoords="offset points")  # fmt: skip
        axes.set_xlim(0, end)
        axes.set_ylim(max(float(power.min()), -160.0), 8)
        axes.set_xlabel("angular frequency (rad/s)")
        axes.set_ylabel("power (dB)")
    return figure

"""Phase portraits: two quantities against each other."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from retrax.errors import BadInput
from retrax.show.quantities import names, quantity
from retrax.show.style import look, new_figure, style

if TYPE_CHECKING:
    from retrax.trajectory.trajectory import Trajectory

# A path is drawn with this many points at most.
_POINTS = 20_000


def phase_portrait(
    runs: "Trajectory | Sequence[Trajectory]",
    x: Any = None,
    y: Any = None,
    *,
    labels: Sequence[str] = (),
    joined: bool = True,
) -> Figure:
    """The paths of one run or several in the plane of two quantities; a dot where each starts.

    **Arguments:**

    - `runs`: a run, or runs of one system from several starts.
    - `x`, `y`: quantities, as `quantity` takes them: `"momentum 1"`, an invariant, a function of
        the state. Left out, a position against its momentum where there are such, else the first
        two positions or momenta.
    - `labels`: what to call the runs in a legend.
    - `joined`: whether saved states are joined by a line; `False` draws dots, for sections and for
        runs that were saved seldom.
    """
    every_run: list[Any] = list(runs) if isinstance(runs, list | tuple) else [runs]
    if not every_run:
        raise BadInput("runs is empty: a phase portrait needs at least one run.")
    default = _axes_of(every_run[0])
    x, y = default[0] if x is None else x, default[1] if y is None else y
    if labels and len(labels) != len(every_run):
        raise BadInput(f"labels has {len(labels)} names for {len(every_run)} runs.")
    made = every_run[0].provenance
    with style():
        figure = new_figure(5.6, 5.2, f"{made['system']} by {made['integrator']}")
        axes = figure.add_subplot()
        for k, run in enumerate(every_run):
            across, up = quantity(run, x), quantity(run, y)
            every = -(-len(run.t) // _POINTS)
            how: dict[str, Any] = look(k)
            if not joined:
                how |= {"linestyle": "none", "marker": ".", "markersize": 2.0}
            axes.plot(across.values[::every], up.values[::every], **how)
            name = labels[k] if labels else None
            axes.plot(across.values[0], up.values[0], "o", markersize=4, color=how["color"],
                      label=name)  # fmt: skip
        axes.set_xlabel(across.label)
        axes.set_ylabel(up.label)
        if labels:
            axes.legend()
    return figure


def _axes_of(run: "Trajectory") -> tuple[str, str]:
    known = set(names(run))
    moving = bool(np.any(np.asarray(run.momentum)))
    vector = "momentum" if moving else "velocity"
    for pair in (
        ("position 1", "momentum 1") if moving else ("position 1", "position 2"),
        (f"{vector} 1", f"{vector} 2"),
    ):
        if known.issuperset(pair):
            return pair
    return "time", f"{vector} 1"

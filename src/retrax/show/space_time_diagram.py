"""What happens along a string or a rod, in space and time."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Array
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from retrax.errors import BadInput
from retrax.mechanics.state import State
from retrax.numerics.checks import host_float64, require_instance
from retrax.show.drawn import require_run
from retrax.show.style import literal, new_figure, style
from retrax.systems.strings.strings_in_contact import StringsInContact
from retrax.trajectory.trajectory import Trajectory

# A picture shows this many times at most; more would be finer than its pixels.
_MOST_TIMES = 1200
_PATH = "#202020"


def space_time(
    run: Trajectory,
    what: str | Callable[[State], Array] | None = None,
    *,
    places: Sequence[float] | np.ndarray | None = None,
    label: str = "",
) -> Figure:
    """Draw a quantity along a string or rod as colours over place and time.

    **Arguments:**

    - `what`: an observable with a value at each node or element, `"tension"` of a string pendulum
        for instance, or a function of the state that returns such values. Left out, strings in
        contact show both strings with the paths of their contacts.
    - `places`: where the values belong (m); left out, they are numbered.
    - `label`: what the colours are, with a unit.
    """
    require_run(run)
    if what is None and isinstance(run.system, StringsInContact):
        return _strings(run, run.system)
    values = _values(run, what)
    across = np.arange(values.shape[1]) if places is None else host_float64("places", places)
    if across.shape != values.shape[1:]:
        raise BadInput(
            f"places has shape {across.shape}, but there are {values.shape[1]} values at each time."
        )
    every = -(-len(run.t) // _MOST_TIMES)
    with style():
        figure = new_figure(6.4, 4.6, f"{literal(run.provenance['system'])}: {label or what}")
        axes = figure.add_subplot()
        _mesh(axes, across, run.t[::every], values[::every], label or f"{what}")
        axes.set_xlabel("number along the body" if places is None else "place (m)")
    return figure


def _values(run: Trajectory, what: str | Callable[[State], Array] | None) -> np.ndarray:
    along = {key: x for key, x in run.observations.observables.items() if np.ndim(x) == 2}
    if what is None or (isinstance(what, str) and what not in along):
        got = "" if what is None else f", got {what!r}"
        known = f"one of {', '.join(along)}, or " if along else ""
        raise BadInput(
            f"a picture of the {run.provenance['system']} over place and time needs {known}a "
            f"function of the state that returns a value at each place{got}."
        )
    values = along[what] if isinstance(what, str) else run.along(what)
    if np.ndim(values) != 2:
        raise BadInput(
            f"what returns values of shape {values.shape[1:]} at each time, but a picture in space "
            "and time needs a list of them."
        )
    return np.asarray(values)


def _mesh(
    axes: Axes, places: np.ndarray, times: np.ndarray, values: np.ndarray, label: str
) -> None:
    """Draw colours that are white at zero if both signs occur, else dark for large values."""
    low, high = float(np.min(values)), float(np.max(values))
    size = max(abs(low), abs(high)) or 1.0
    signed = low < 0 < high
    scale: dict[str, Any] = (
        {"cmap": "RdBu_r", "vmin": -size, "vmax": size} if signed else {"cmap": "cividis"}
    )
    axes.grid(False)
    mesh = axes.pcolormesh(places, times, values, shading="nearest", rasterized=True, **scale)
    axes.set_ylabel("time (s)")
    axes.figure.colorbar(mesh, ax=axes, label=label)


def _strings(run: Trajectory, strings: StringsInContact) -> Figure:
    title = f"Strings in contact, F = {float(strings.F):g}, G = {np.asarray(strings.G).tolist()}"
    with style():
        figure = new_figure(9.6, 4.6, title)
        for k, name in enumerate(("u", "v")):
            axes = figure.add_subplot(1, 2, k + 1)
            draw_space_time(axes, run, k)
            axes.set_title(f"${name}$ and the path of $s_{k + 1}$")
    return figure


def draw_space_time(axes: Axes, run: Trajectory, string: int = 0) -> None:
    """Draw one of the strings, with the path of its contact."""
    strings = require_instance("system", run.system, StringsInContact, "a pair of strings")
    every = -(-len(run.t) // _MOST_TIMES)
    values, s = np.asarray(run.g[string])[::every], np.asarray(run.g[2])[:, string]
    _mesh(axes, np.asarray(strings.nodes), run.t[::every], values, "displacement (m)")
    path = np.mod(s, float(strings.length))
    path[1:][np.abs(np.diff(path)) > float(strings.length) / 2] = np.nan  # round the ring
    axes.plot(path, run.t, color=_PATH)
    axes.set_xlabel("place (m)")
